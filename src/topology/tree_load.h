/* tree_load.h - what a set of trees asks of each resource of a network: its time per bit, its radius.
 *
 * One idea: a tree loads each member by its degree, each of its pairs by one, and a site by the pairs that leave it;
 * all of them in both directions.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TREE_LOAD_H
#define PCCL_TOPOLOGY_TREE_LOAD_H

#include "topology/network_model.h"
#include "topology/tree_set.h"

/* What a buffer's way along the trees costs: s_per_bit x bits + 2 x radius_s + radius_hops x the time of a chunk. */
struct tree_forecast {
    double s_per_bit;       /* of the fullest resource; infinite if a pair is not linked */
    double bps;             /* the rate of that resource */
    double largest_share;   /* of the buffer */
    double bound_s_per_bit; /* proven: no number of trees of this shape is faster */
    double radius_s;        /* from the farthest member to its root, over all trees; half of the way there and back */
    uint32_t radius_hops;
};

/* Doubles of scratch memory that these two need. */
size_t tree_load_room(size_t n, size_t sites);

/* The time per bit of a valid set on this network, and its radius; bound_s_per_bit is left alone. */
void tree_load(const struct network *net, const struct tree_set *set, struct tree_forecast *out, double *scratch);

/* The member whose farthest member is nearest: by delay, then by hops, then the least.  A member that cannot be dialled
 * is taken only if all are such. */
size_t tree_centre(const struct network *net, const uint16_t *parent, double *scratch);

#endif
