/* rates.h - the network as the cost model sees it, made from what was measured.
 *
 * Its one idea: probes of single edges tell a peer's link only from below.  The best edge measured out of a peer is
 * taken for its whole uplink, the best one into it for its downlink, unless all edges were measured at once (RATES_ALL)
 * and carried more together: plans are never built on capacity that nobody has seen.
 * Invariant: every link rate is > 0; a path is what was measured on it or on the way back, infinite if nothing was.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_RATES_H
#define PCCL_TOPOLOGY_RATES_H

#include "topology/bandwidth.h"
#include "topology/network_model.h"

/* In bits per second, of bytes that took so long; a clock may see no time pass. */
uint64_t rate_of(uint64_t bytes, int64_t ns);

/* In place of the other end of an edge: all of them, at the same time; of these, all that are not near (SITE_FIND_RTT_NS). */
enum { RATES_ALL = 0 };
#define RATES_FAR (UINT64_MAX - 1)

/* The key of a peer of which nothing is known, in a list of keys. */
#define RATES_NOBODY UINT64_MAX

/* Fills up_bps[n], down_bps[n] and path_bps[n][n] (row: from; 0 if the pair cannot connect) for ids.  A peer of which
 * nothing is known gets the least rate of the others, so that it owns little until it is measured; a path that was not
 * measured is as fast as the way back.  False, nothing to be used, if no edge among ids has a rate. */
bool rates_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, double *up_bps, double *down_bps,
                double *path_bps);

/* The least round trip that was measured between two; UINT64_MAX: none was. */
uint64_t rates_trip_ns(const struct bandwidth *b, uint64_t one, uint64_t other);

enum { RATES_SITE_MEMBERS = 64 };

/* Members that are near each other, and what leaves and enters where they are. */
struct rates_sites {
    size_t count;
    uint16_t site[RATES_SITE_MEMBERS];
    double up_bps[RATES_SITE_MEMBERS], down_bps[RATES_SITE_MEMBERS]; /* infinite: nobody knows of a limit */
};

/* A site's link carries what was seen to leave its members at once, and at least its best edge.  Members whose round trip is not known are apart.
 * False: no limit of a site is known, as where no round trip is, n is over RATES_SITE_MEMBERS, or each member is alone at its site. */
bool rates_sites(const struct bandwidth *b, const uint64_t *ids, size_t n, struct rates_sites *out);

/* The network has these sites, which stay the caller's, if any limit of one is known; `room` is for them. */
void rates_add_sites(const struct bandwidth *b, const uint64_t *ids, struct rates_sites *room, struct network *net);

#endif
