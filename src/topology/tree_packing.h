/* tree_packing.h - the trees and shares that fill all links of a network at once.
 *
 * One idea: the least time is a linear programme over all trees, solved by column generation: the prices of the
 * resources give each pair a price, and the cheapest tree is the one to add.  No tree cheaper than the time of the set
 * is the proof that the set is best.  The programme begins with trees found by multiplicative weights, and stops at a
 * fixed amount of work, so that large views get a good set instead of the best one.
 * Only TREE_SET_MOST trees are kept.  Their shares are solved for again, and cut to units.
 * Invariant: equal networks give equal sets on every machine.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TREE_PACKING_H
#define PCCL_TOPOLOGY_TREE_PACKING_H

#include "topology/network_model.h"
#include "topology/tree_grow.h"
#include "topology/tree_load.h"
#include "topology/tree_set.h"

/* Bytes of storage that tree_packing_solve needs, aligned to 8; n <= TREE_SET_MEMBERS. */
size_t tree_packing_room(size_t n, size_t sites);

/* Writes the set; `out->parent` has room for TREE_SET_MOST rows of n.  False, nothing to be used, if the network is not
 * valid, n is over TREE_SET_MEMBERS, or no tree of the shape reaches all members. */
bool tree_packing_solve(const struct network *net, enum tree_shape shape, void *storage, struct tree_set *out,
                        struct tree_forecast *forecast);

#endif
