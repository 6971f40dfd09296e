/* site_find.h - which members are at one site, by round trips and addresses.
 *
 * One idea: members less than 2 ms apart share a site, for which the round trip is believed before the address.  An
 * address tells something only where no round trip was measured, and only if it is public: private prefixes are the
 * same in many places.
 * Invariant: any two members of a site are near, so that a chain of short hops does not make one site of a country.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_SITE_FIND_H
#define PCCL_TOPOLOGY_SITE_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SITE_FIND_RTT_NS UINT64_C(2000000)
#define SITE_FIND_UNKNOWN UINT64_MAX

/* IPv6, or IPv4 as ::ffff:a.b.c.d, in the order of the network. */
struct site_address {
    uint8_t bytes[16];
};

/* Whether both are public and have the same first 24 bits (IPv4) or 48 bits (IPv6). */
bool site_address_near(const struct site_address *a, const struct site_address *b);

/* Writes the site of each member and returns how many there are: numbers from 0 in the order of their first members.
 * rtt_ns is [n][n], SITE_FIND_UNKNOWN where nothing was measured; of two directions the smaller one counts.  A member
 * joins the site whose farthest member is nearest to it.  n < 65,536. */
size_t site_find(const uint64_t *rtt_ns, const struct site_address *addresses, size_t n, uint16_t *site_out);

#endif
