/* tree_grow.h - the cheapest tree over all members, when each pair has a price.
 *
 * One idea: bandwidth does not depend on the root of a tree, so a tree is a set of pairs.  A member that cannot be
 * dialled hangs on another one and has nobody below it.
 * Invariant: the tree is written with its first member that can be dialled as root; so equal trees are equal arrays.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TREE_GROW_H
#define PCCL_TOPOLOGY_TREE_GROW_H

#include "topology/network_model.h"

enum tree_shape {
    TREE_ANY,  /* a spanning tree */
    TREE_SITES /* a star of one member per site, and a star in each site; members without a site: a star */
};

/* Bytes of scratch memory for n members and so many sites, aligned to 8. */
size_t tree_grow_room(size_t n, size_t sites);

/* Writes the cheapest tree of the shape: parent_out[n], the root is its own parent.  `price` is [n][n], symmetric,
 * infinite where a pair is not linked.  Returns what it costs; infinite if there is none, and then nothing is to be
 * used. */
double tree_grow(const struct network *net, enum tree_shape shape, const double *price, uint16_t *parent_out,
                 void *scratch);

/* Turns the tree around so that `root` is its root. */
void tree_turn(uint16_t *parent, size_t root);

#endif
