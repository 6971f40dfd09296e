/* tour_repair.h - the ring order survives joins and leaves.
 *
 * Its one idea: a membership change is no reason to forget an order that was paid for with probes and search: leavers
 * are cut out, newcomers put where they hurt least, everybody else keeps their neighbours.
 * Invariant: members that were in the old ring keep their cyclic order.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TOUR_REPAIR_H
#define PCCL_TOPOLOGY_TOUR_REPAIR_H

#include "topology/tour.h"

/* Makes a ring of members[0..n) (indexes into it, beginning with index 0) from the old ring's ids.  `cost` is over the
 * members, unknown edges filled (tour_costs_fill).  Newcomers go in one after the other in the order of `members`, each
 * at the place that gives the best score, the earliest place on a tie.  order_out has room for n.  False, nothing to be
 * used, if n is 0 or over TOUR_PEERS_MAX. */
bool tour_repair_order(const uint64_t *old_ids, size_t old_count, const uint64_t *members, size_t n,
                       const uint64_t *cost, uint16_t *order_out, struct tour_score *score_out);

#endif
