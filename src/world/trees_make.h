/* trees_make.h - a view's trees from what is known of its links.
 *
 * One idea: view_trees.c decides which view gets trees and knows nothing of how good ones are found; the packing of trees (topology) knows no
 * world.  This is what connects them.
 * Invariant: what is made is a valid set (tree_set_valid) of all members, over links that there are.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_TREES_MAKE_H
#define PCCL_WORLD_TREES_MAKE_H

#include "topology/bandwidth.h"
#include "topology/tree_packing.h"

/* Views of more members have no trees: packing them takes the master longer than its clients may wait. */
enum { TREES_MEMBERS = 64 };

/* The members of a view, by rank, under the keys of what is known of them, and memory to work in. */
struct trees_job {
    const struct bandwidth *bandwidth;
    const uint64_t *ids;
    uint32_t members;     /* at most TREES_MEMBERS */
    const bool *leaf;     /* lacks a link with somebody: may be nobody's parent */
    double *up_bps, *down_bps;    /* room for one of each member */
    double *path_bps, *delay_s;   /* ... for one of each pair */
    void *storage;        /* trees_room(members) bytes, aligned to 8; enough for fewer members, too */
};

size_t trees_room(uint32_t members);

/* Fills `out`, whose `parent` has room for TREE_SET_MOST trees, and what the way along all of them takes; its radius is 0 where delays are not
 * known.  False: too little is known, or nobody may be a parent. */
bool trees_make(const struct trees_job *job, struct tree_set *out, struct tree_forecast *forecast);

#endif
