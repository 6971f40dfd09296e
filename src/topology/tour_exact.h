/* tour_exact.h - the best directed ring of a few peers.
 *
 * Its one idea: the least possible slowest edge is found first, then the least sum among the rings that keep to it;
 * each alone is a dynamic program over subsets, both together are not.
 * Invariant: the answer is a function of the costs only: among equal rings it is the one that reads smallest.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TOUR_EXACT_H
#define PCCL_TOPOLOGY_TOUR_EXACT_H

#include "topology/tour.h"

enum { TOUR_EXACT_MAX = 12 };

/* Writes the best ring of peers 0..n-1, beginning with 0, and its score; tour_score_possible tells whether it does
 * without forbidden edges (if any ring can, it does).  False, nothing written, unless 1 <= n <= TOUR_EXACT_MAX. */
bool tour_exact_solve(const uint64_t *cost, size_t n, uint16_t *order_out, struct tour_score *score_out);

#endif
