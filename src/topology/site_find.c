/* site_find.c - complete-link clustering, member by member.
 * SPDX-License-Identifier: MIT */
#include "topology/site_find.h"

#include <string.h>

static bool is_ipv4(const struct site_address *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    return memcmp(a->bytes, mapped, sizeof mapped) == 0;
}

/* RFC 1918, RFC 6598, loopback, link-local, unspecified; RFC 4193 for IPv6. */
static bool is_private(const struct site_address *a)
{
    const uint8_t *b = a->bytes;
    if (is_ipv4(a)) {
        return b[12] == 0 || b[12] == 10 || b[12] == 127 || (b[12] == 172 && b[13] >> 4 == 1) ||
               (b[12] == 192 && b[13] == 168) || (b[12] == 169 && b[13] == 254) || (b[12] == 100 && b[13] >> 6 == 1);
    }
    return b[0] == 0 || b[0] >> 1 == 0xFC >> 1 || (b[0] == 0xFE && b[1] >> 6 == 2);
}

bool site_address_near(const struct site_address *a, const struct site_address *b)
{
    if (is_ipv4(a) != is_ipv4(b) || is_private(a) || is_private(b)) {
        return false;
    }
    return memcmp(a->bytes, b->bytes, is_ipv4(a) ? 15 : 6) == 0;
}

/* How far apart two members are: what was measured, else 0 if their addresses say that they are near. */
static uint64_t distance_ns(const uint64_t *rtt_ns, const struct site_address *addresses, size_t n, size_t i, size_t j)
{
    uint64_t there = rtt_ns[i * n + j], back = rtt_ns[j * n + i], least = there < back ? there : back;
    if (least != SITE_FIND_UNKNOWN) {
        return least;
    }
    return site_address_near(&addresses[i], &addresses[j]) ? 0 : SITE_FIND_UNKNOWN;
}

/* The distance of the farthest member among the first i of that site. */
static uint64_t farthest_ns(const uint64_t *rtt_ns, const struct site_address *addresses, size_t n, size_t i,
                            uint16_t site, const uint16_t *sites)
{
    uint64_t most = 0;
    for (size_t j = 0; j < i; j++) {
        if (sites[j] == site) {
            uint64_t d = distance_ns(rtt_ns, addresses, n, i, j);
            most = d > most ? d : most;
        }
    }
    return most;
}

size_t site_find(const uint64_t *rtt_ns, const struct site_address *addresses, size_t n, uint16_t *site_out)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t least = SITE_FIND_RTT_NS;
        size_t best = count;
        for (size_t j = 0; j < i; j++) { /* sites that have a member near this one */
            if (distance_ns(rtt_ns, addresses, n, i, j) >= SITE_FIND_RTT_NS || site_out[j] == best) {
                continue;
            }
            uint64_t far = farthest_ns(rtt_ns, addresses, n, i, site_out[j], site_out);
            if (far < least) {
                least = far;
                best = site_out[j];
            }
        }
        site_out[i] = (uint16_t)best;
        count += best == count;
    }
    return count;
}
