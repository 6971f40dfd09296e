/* tour.h - what the ring solvers share: edge costs, the objective, and the matrix made from measurements.
 *
 * Its one idea: costs are integers, 2^53 / (bits/s).  Sums over 1,024 edges fit 64 bits, so that scores are exact, do
 * not depend on the order of addition, and are the same on every machine.  A forbidden edge is simply the largest cost:
 * it is avoided wherever the objective can avoid it, and seen in the score where it cannot.
 * Invariant: 1 <= cost <= TOUR_FORBIDDEN off the diagonal.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TOUR_H
#define PCCL_TOPOLOGY_TOUR_H

#include "topology/bandwidth.h"

enum { TOUR_PEERS_MAX = 1024 };

#define TOUR_FORBIDDEN (UINT64_C(1) << 53)

/* The objective: the slowest edge first, because it alone decides the time of a ring, the sum second. */
struct tour_score {
    uint64_t max, sum;
};

static inline bool tour_score_less(struct tour_score a, struct tour_score b)
{
    return a.max < b.max || (a.max == b.max && a.sum < b.sum);
}

/* False if the ring uses an edge that cannot connect. */
static inline bool tour_score_possible(struct tour_score s)
{
    return s.max < TOUR_FORBIDDEN;
}

/* Rate 0 is TOUR_FORBIDDEN. */
uint64_t tour_edge_cost(uint64_t rate_bps);

/* Score of the closed ring order[0] -> order[1] -> ... -> order[0].  A single peer has no edges: {0, 0}. */
struct tour_score tour_score_of(const uint64_t *cost, size_t n, const uint16_t *order);

/* Fills cost[n][n] (row: from) for ids from the store.  An edge that was not measured costs as much as the way back; where
 * that is unknown, too, the median of the known ones, or 1 if nothing is known.  Returns how many are unknown so. */
size_t tour_costs_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, uint64_t *cost);

#endif
