/* cost.h - how long an all-reduce will take: one formula per algorithm, and the choice between them.
 *
 * One idea: the choice is a calculation that can be shown.  All predictions are kept, so that measured times can be set
 * against them.  The fullest resource decides the bandwidth part; delays and the chunk in which data is forwarded come
 * on top.
 * Invariant: a prediction is > 0, or 0 for a single member, or infinite if the algorithm cannot run at all.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_COST_H
#define PCCL_TOPOLOGY_COST_H

#include "topology/network_model.h"
#include "topology/tree_load.h"

enum cost_algo {
    COST_TINY,         /* everybody sends everything to everybody */
    COST_DIRECT,       /* owners of equal shares */
    COST_WEIGHTED,     /* owners of the given shares */
    COST_HIERARCHICAL, /* trees of two hops: a star of sites, a star in each site */
    COST_TREES,
    COST_RING,
    COST_ALGO_COUNT
};

/* What is to be moved: the whole buffer, in chunks that are forwarded as soon as they are there. */
struct cost_job {
    double bytes, chunk_bytes; /* chunk 0: pure fluid */
};

/* What one trip of the whole buffer round a ring asks of its fullest edge or site, delays aside. */
struct ring_load {
    double s_per_bit;             /* infinite: an edge does not exist */
    double delay_s, delay_most_s; /* the sum over its edges; of one edge */
};
struct ring_load cost_ring_load(const struct network *net, const uint16_t *order);

/* Slice by slice, a slice is forwarded when it is complete:  2(n-1) (S/(n b) + l),  l = mean delay of the ring. */
double cost_ring_slices_s(const struct network *net, const uint16_t *order, struct cost_job job);

/* Cut-through, chunks are forwarded at once:  max(T S + l_max + c/b, 2(n-1) (l + c/b) + S/(n b)).  T counts how often
 * the ring leaves and enters each site; b is the rate at which an edge then runs. */
double cost_ring_s(const struct network *net, const uint16_t *order, struct cost_job job);

/* Owners reduce their share and send it back:  T S + 2 l_max + c/b,  b = rate of the fullest resource. */
double cost_direct_s(const struct network *net, const double *share, struct cost_job job);

/* Everybody sends everything to everybody:  T S + l_max. */
double cost_tiny_s(const struct network *net, struct cost_job job);

/* Up a tree and down again:  T S + 2 radius + hops c/b. */
double cost_trees_s(const struct tree_forecast *forecast, struct cost_job job);

/* Plans that were made for a network; borrowed.  Null: there is none, and its algorithm is out. */
struct cost_plans {
    const uint16_t *order;                      /* of the ring */
    const double *equal, *share;                /* equal shares, and weighted ones */
    const struct tree_forecast *hierarchical, *trees;
};

struct cost_choice {
    enum cost_algo algo;
    double predicted_s[COST_ALGO_COUNT]; /* infinite: cannot run, or not allowed */
};

/* The least of the predictions; on a tie the first of the list, which has the fewest hops.  `allowed` has bit 1 << algo
 * set for each algorithm that may be used (types that cannot be sent as sums exclude some).  False if none is possible;
 * out is filled all the same. */
bool cost_choose(const struct network *net, const struct cost_plans *plans, unsigned allowed, struct cost_job job,
                 struct cost_choice *out);

const char *cost_algo_name(enum cost_algo algo); /* "ring" */

#endif
