/* plan_kind.h - the collectives there are: what travels in an operation's parameters, and what plans are made for.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_PLAN_KIND_H
#define PCCL_CORE_PLAN_KIND_H

/* `count` below is that of the operation; "own" is the part of the rank itself. */
enum plan_kind {
    PLAN_ALL_REDUCE = 0,     /* in and out of count: the sum of all inputs; of count 0: a barrier */
    PLAN_REDUCE_SCATTER = 1, /* in: count for each rank; out: the sum of the own parts */
    PLAN_ALL_GATHER = 2,     /* in of count; out: everybody's, by rank */
    PLAN_BROADCAST = 3,      /* in of count at the root (elsewhere unused); out: the root's */
    PLAN_SCATTER = 4,        /* in at the root: count for each rank; out: the own part */
    PLAN_ALL_TO_ALL = 5,     /* in: count for each rank; out: the own part of each rank's */
    PLAN_KINDS,
};

#endif
