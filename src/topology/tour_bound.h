/* tour_bound.h - a proven bound on the slowest edge of any directed ring.
 *
 * One idea: if all slower edges are taken away, what is left must still allow a ring.  So each member must have a
 * successor of its own (a perfect matching), everybody must reach everybody, and without any one member the others must
 * still lie on a path (of two of them, one reaches the other).  The bound is the least cost at which all three hold.
 * Invariant: no ring has a smaller largest cost than the bound.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TOUR_BOUND_H
#define PCCL_TOPOLOGY_TOUR_BOUND_H

#include "topology/tour.h"

/* Bytes of storage, aligned to 8. */
size_t tour_bound_room(size_t n);

/* The bound for costs [n][n] (row: from), 1 <= n <= TOUR_PEERS_MAX; `known` is the largest cost of some ring, which
 * ends the search early where that ring is the best.  0 for n < 2; never over `known`. */
uint64_t tour_bound(const uint64_t *cost, size_t n, uint64_t known, void *storage);

#endif
