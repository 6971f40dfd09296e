/* address.c - see address.h.
 * SPDX-License-Identifier: MIT */
#include "wire/address.h"

#include <stdio.h>
#include <string.h>

#include "core/id.h"

void address_text(const struct net_address *a, char *out)
{
    if (a->family == 4) {
        snprintf(out, ADDRESS_TEXT, "%u.%u.%u.%u:%u", a->ip[0], a->ip[1], a->ip[2], a->ip[3], a->port);
        return;
    }
    if (a->family != 6) {
        snprintf(out, ADDRESS_TEXT, "?");
        return;
    }
    size_t used = (size_t)snprintf(out, ADDRESS_TEXT, "[");
    for (int i = 0; i < 16; i += 2) {
        used += (size_t)snprintf(out + used, ADDRESS_TEXT - used, "%s%x", i == 0 ? "" : ":",
                                 (unsigned)(a->ip[i] << 8 | a->ip[i + 1]));
    }
    snprintf(out + used, ADDRESS_TEXT - used, "]:%u", a->port);
}

bool address_same_host(const struct net_address *a, const struct net_address *b)
{
    return a->family == b->family && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

void member_text(uint64_t id, int64_t rank, const struct net_address *address, char *out)
{
    char where[ADDRESS_TEXT] = "", peer[MEMBER_TEXT - 24];
    bool known = address != NULL && address->family != 0;
    if (known) {
        address_text(address, where);
    }
    snprintf(peer, sizeof peer, "peer " ID_FORMAT "%s%s", ID_PARTS(id), known ? " at " : "", where);
    if (rank >= 0) {
        snprintf(out, MEMBER_TEXT, "rank %u (%s)", (uint32_t)rank, peer);
    } else {
        snprintf(out, MEMBER_TEXT, "%s", peer);
    }
}
