/* interfaces.c - the addresses of this host's interfaces, and which of them a choice in NCCL's words leaves.
 * SPDX-License-Identifier: MIT */
#include "net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "net/addr.h"

bool interfaces_chosen(const char *choice, const char *name)
{
    const char *at = choice;
    bool without = *at == '^';
    at += without;
    bool whole = *at == '=';
    at += whole;
    for (;;) {
        size_t length = strcspn(at, ",");
        bool same = length > 0 && strncmp(at, name, length) == 0 && (!whole || name[length] == '\0');
        if (same) {
            return !without;
        }
        if (at[length] == '\0') {
            return without;
        }
        at += length + 1;
    }
}

/* What others may be told of it: not of its own host or link only, unless it was asked for by name. */
static bool interface_address(const struct ifaddrs *i, bool named, struct net_address *out)
{
    struct sockaddr_storage ss = {0};
    if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0 || (!named && (i->ifa_flags & IFF_LOOPBACK) != 0) ||
        (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6)) {
        return false;
    }
    memcpy(&ss, i->ifa_addr, i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    return addr_from_system(out, &ss) && (named || !addr_is_loopback(out)) &&
           !(out->family == 6 && out->ip[0] == 0xFE && (out->ip[1] & 0xC0) == 0x80);
}

size_t interfaces_list(const char *choice, struct net_address *out, size_t capacity, uint16_t port)
{
    struct ifaddrs *list = NULL;
    size_t count = 0;
    if (getifaddrs(&list) != 0) {
        return 0;
    }
    bool named = choice[0] != '\0' && choice[0] != '^';
    for (struct ifaddrs *i = list; i != NULL && count < capacity; i = i->ifa_next) {
        struct net_address a;
        if ((choice[0] == '\0' || interfaces_chosen(choice, i->ifa_name)) && interface_address(i, named, &a)) {
            a.port = port;
            out[count++] = a;
        }
    }
    freeifaddrs(list);
    return count;
}

void interfaces_names(char *out, size_t size)
{
    struct ifaddrs *list = NULL;
    size_t used = 0;
    out[0] = '\0';
    if (getifaddrs(&list) != 0) {
        return;
    }
    for (struct ifaddrs *i = list; i != NULL && used < size; i = i->ifa_next) {
        bool inet = i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET;
        if (inet && (i->ifa_flags & IFF_UP) != 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", i->ifa_name);
        }
    }
    freeifaddrs(list);
}
