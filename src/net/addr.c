/* addr.c - addresses in their three forms.
 * SPDX-License-Identifier: MIT */
#include "net/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

socklen_t addr_to_system(const struct net_address *a, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (a->family == 6) {
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
        memcpy(&six.sin6_addr, a->ip, 16);
        memcpy(out, &six, sizeof six);
        return sizeof six;
    }
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    memcpy(&four.sin_addr, a->ip, 4);
    memcpy(out, &four, sizeof four);
    return sizeof four;
}

bool addr_from_system(struct net_address *out, const struct sockaddr_storage *in)
{
    memset(out, 0, sizeof *out);
    if (in->ss_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, in, sizeof four);
        out->family = 4;
        out->port = ntohs(four.sin_port);
        memcpy(out->ip, &four.sin_addr, 4);
        return true;
    }
    if (in->ss_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, in, sizeof six);
        out->port = ntohs(six.sin6_port);
        const unsigned char *bytes = (const unsigned char *)&six.sin6_addr;
        if (memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0) {
            out->family = 4;
            memcpy(out->ip, bytes + 12, 4);
        } else {
            out->family = 6;
            memcpy(out->ip, bytes, 16);
        }
        return true;
    }
    return false;
}

static size_t addr_bytes(const struct net_address *a)
{
    return a->family == 6 ? 16 : 4;
}

bool addr_equal(const struct net_address *a, const struct net_address *b)
{
    return a->port == b->port && address_same_host(a, b);
}

bool addr_is_any(const struct net_address *a)
{
    static const unsigned char zeros[16];
    return memcmp(a->ip, zeros, addr_bytes(a)) == 0;
}

bool addr_is_loopback(const struct net_address *a)
{
    static const unsigned char one[16] = {[15] = 1};
    return a->family == 6 ? memcmp(a->ip, one, 16) == 0 : a->ip[0] == 127;
}

const char *addr_format(const struct net_address *a, char out[ADDR_TEXT])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    inet_ntop(a->family == 6 ? AF_INET6 : AF_INET, a->ip, ip, sizeof ip);
    snprintf(out, ADDR_TEXT, a->family == 6 ? "[%s]:%u" : "%s:%u", ip, a->port);
    return out;
}

/* Splits into host and port texts; false if the shape is wrong. */
static bool addr_split(const char *text, char *host, size_t host_size, const char **port)
{
    const char *end;
    *port = NULL;
    if (text[0] == '[') {
        text++;
        end = strchr(text, ']');
        if (end == NULL || (end[1] != 0 && end[1] != ':')) {
            return false;
        }
        *port = end[1] == ':' ? end + 2 : NULL;
    } else {
        end = strchr(text, ':');
        if (end == NULL || strchr(end + 1, ':') != NULL) { /* none, or an IPv6 address without brackets */
            end = text + strlen(text);
        } else {
            *port = end + 1;
        }
    }
    size_t length = (size_t)(end - text);
    if (length == 0 || length >= host_size) {
        return false;
    }
    memcpy(host, text, length);
    host[length] = 0;
    return true;
}

static bool addr_port(const char *text, uint16_t *out)
{
    unsigned long value = 0;
    if (*text == 0 || strlen(text) > 5) {
        return false;
    }
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = value * 10 + (unsigned long)(*text - '0');
    }
    *out = (uint16_t)value;
    return value <= 65535;
}

/* An IPv6 address with a port and without brackets.  "::1:48148" can be nothing else; "::1:2110" is also an address, but four decimal
 * digits behind what is an address by itself are most likely a port. */
static bool addr_lacks_brackets(const char *text, struct err *err)
{
    struct in6_addr six;
    char bare[INET6_ADDRSTRLEN];
    const char *last = strrchr(text, ':');
    size_t before = last != NULL ? (size_t)(last - text) : 0;
    if (text[0] == '[' || before == 0 || strchr(text, ':') == last || before >= sizeof bare) {
        return false;
    }
    memcpy(bare, text, before);
    bare[before] = 0;
    bool address = inet_pton(AF_INET6, text, &six) == 1, port = last[1] != '0' && strlen(last + 1) == 4 && strspn(last + 1, "0123456789") == 4;
    if (inet_pton(AF_INET6, bare, &six) != 1 || (address && !port)) {
        return false;
    }
    if (address) {
        (void)err_set(err, PCCL_ERR_INVALID, "address '%.100s': meant '[%s]:%.10s' or '[%s]'? write the one with brackets", text, bare, last + 1,
                      text);
    } else {
        (void)err_set(err, PCCL_ERR_INVALID, "address '%.100s': an IPv6 address with a port takes brackets: '[%s]:%.10s'", text, bare, last + 1);
    }
    return true;
}

/* Forms that people write and that are none of ours, with what to write instead; false: nothing to say. */
static bool addr_mistake(const char *text, struct err *err)
{
    const char *scheme = strstr(text, "://");
    if (scheme != NULL) {
        const char *rest = scheme + 3;
        int without = (int)(rest - text < 20 ? rest - text : 20);
        size_t left = strcspn(rest, "/");
        if (left == 0) {
            (void)err_set(err, PCCL_ERR_INVALID,
                          "address '%.100s': it names no host: write host, host:port or [ipv6]:port, without '%.*s'", text, without,
                          text);
            return true;
        }
        (void)err_set(err, PCCL_ERR_INVALID, "address '%.100s': write it without '%.*s': '%.*s'", text, without, text,
                      (int)(left < 100 ? left : 100), rest);
        return true;
    }
    return addr_lacks_brackets(text, err);
}

/* Digits and dots that are no IPv4 address: the resolver would make 5000 the address 0.0.19.136, and 1.2.3 the address 1.2.0.3. */
static bool addr_half_number(const char *host)
{
    struct in_addr four;
    return host[strspn(host, "0123456789.")] == 0 && inet_pton(AF_INET, host, &four) != 1;
}

/* Of what a name means the first that can be used; but of "localhost", which is ::1 first on many hosts, the address of IPv4:
 * a program that listens at one of them listens there. */
static bool addr_choose(const struct addrinfo *found, struct net_address *out)
{
    bool any = false;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        struct sockaddr_storage ss = {0};
        struct net_address one;
        if (a->ai_addrlen > sizeof ss) {
            continue;
        }
        memcpy(&ss, a->ai_addr, a->ai_addrlen);
        if (!addr_from_system(&one, &ss)) {
            continue;
        }
        if (!any || (addr_is_loopback(out) && addr_is_loopback(&one) && one.family < out->family)) {
            *out = one;
            any = true;
        }
    }
    return any;
}

pccl_status addr_parse(const char *text, uint16_t default_port, struct net_address *out, struct err *err)
{
    char host[256];
    const char *port_text;
    uint16_t port = default_port;
    if (addr_mistake(text, err)) {
        return PCCL_ERR_INVALID;
    }
    if (!addr_split(text, host, sizeof host, &port_text)) {
        return err_set(err, PCCL_ERR_INVALID, "address '%.100s': expected host, host:port or [ipv6]:port", text);
    }
    if (port_text != NULL && !addr_port(port_text, &port)) {
        return err_set(err, PCCL_ERR_INVALID, "address '%.100s': '%.20s' is no port, expected 0 to 65535", text, port_text);
    }
    if (host[strspn(host, "0123456789")] == 0) {
        return err_set(err, PCCL_ERR_INVALID, "address '%.100s': '%.20s' is no host: write host:port", text, host);
    }
    if (addr_half_number(host)) {
        return err_set(err, PCCL_ERR_INVALID,
                       "address '%.100s': '%.20s' is no IPv4 address: write four numbers from 0 to 255, such as 192.168.1.7", text,
                       host);
    }
    const char *scope = strchr(host, '%');
    if (scope != NULL) { /* struct net_address has no room for it: the address would silently mean another interface */
        return err_set(err, PCCL_ERR_INVALID, "address '%.100s': the scope '%.20s' would be lost: write an address without a scope",
                       text, scope);
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc != 0 || found == NULL) {
        return err_set(err, PCCL_ERR_INVALID, "address '%.100s': resolve host: %s: check the name, or write numbers", text,
                       rc != 0 ? gai_strerror(rc) : "no address");
    }
    bool ok = addr_choose(found, out);
    freeaddrinfo(found);
    out->port = port;
    return ok ? PCCL_OK : err_set(err, PCCL_ERR_INVALID, "address '%.100s': neither IPv4 nor IPv6", text);
}
