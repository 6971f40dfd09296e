/* plan_kind.h - the collectives there are: what travels in an operation's parameters, and what plans are made for.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_PLAN_KIND_H
#define PCCL_CORE_PLAN_KIND_H

#include <stdbool.h>
#include <stdint.h>

/* `count` below is that of the operation; "own" is the part of the rank itself. */
enum plan_kind {
    PLAN_ALL_REDUCE = 0,     /* in and out of count: the sum of all inputs; of count 0: a barrier */
    PLAN_REDUCE_SCATTER = 1, /* in: count for each rank; out: the sum of the own parts */
    PLAN_ALL_GATHER = 2,     /* in of count; out: everybody's, by rank */
    PLAN_BROADCAST = 3,      /* in of count at the root (elsewhere unused); out: the root's */
    PLAN_SCATTER = 4,        /* in at the root: count for each rank; out: the own part */
    PLAN_ALL_TO_ALL = 5,     /* in: count for each rank; out: the own part of each rank's */
    PLAN_REDUCE = 6,         /* in of count; out at the root: the sum of all inputs */
    PLAN_GATHER = 7,         /* in of count; out at the root: everybody's, by rank */
    PLAN_KINDS,
};

static inline bool plan_kind_sums(uint8_t kind)
{
    return kind == PLAN_ALL_REDUCE || kind == PLAN_REDUCE_SCATTER || kind == PLAN_REDUCE;
}

static inline bool plan_kind_has_root(uint8_t kind)
{
    return kind == PLAN_BROADCAST || kind == PLAN_SCATTER || kind == PLAN_REDUCE || kind == PLAN_GATHER;
}

/* Everybody has the same bytes in the end, and is given the same by each. */
static inline bool plan_kind_alike(uint8_t kind)
{
    return kind == PLAN_ALL_REDUCE || kind == PLAN_ALL_GATHER || kind == PLAN_BROADCAST;
}

#endif
