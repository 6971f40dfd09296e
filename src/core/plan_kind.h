/* plan_kind.h - the collectives there are, and the ways to do them: what travels in an operation's parameters, and what plans are made for.
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
    PLAN_SEND = 8,           /* of two: in of count at the root; out at the other: the root's */
    PLAN_KINDS,
};

/* How it is done; each has a file in collectives/. */
enum plan_algorithm {
    PLAN_TINY = 0,
    PLAN_DIRECT = 1,
    PLAN_RING = 2,
    PLAN_TREE = 3,
    PLAN_CHAIN = 4,
    PLAN_BRUCK = 5,
    PLAN_PAIRWISE = 6,
    PLAN_HALVING = 7,
    PLAN_FOREST = 8,
    PLAN_ALGORITHMS,
};

static inline const char *plan_algorithm_name(uint8_t algorithm)
{
    static const char *const names[PLAN_ALGORITHMS] = {"tiny", "direct", "ring", "tree", "chain", "bruck", "pairwise", "halving",
                                                    "forest"};
    return algorithm < PLAN_ALGORITHMS ? names[algorithm] : "?";
}

static inline bool plan_kind_sums(uint8_t kind)
{
    return kind == PLAN_ALL_REDUCE || kind == PLAN_REDUCE_SCATTER || kind == PLAN_REDUCE;
}

/* Data goes from the root to all, or from all to the root. */
static inline bool plan_kind_from_root(uint8_t kind)
{
    return kind == PLAN_BROADCAST || kind == PLAN_SCATTER;
}

static inline bool plan_kind_to_root(uint8_t kind)
{
    return kind == PLAN_REDUCE || kind == PLAN_GATHER;
}

static inline bool plan_kind_has_root(uint8_t kind)
{
    return plan_kind_from_root(kind) || plan_kind_to_root(kind);
}

/* Only who sends a part and who receives it need to know how large it is. */
static inline bool plan_kind_pairs(uint8_t kind)
{
    return kind == PLAN_SCATTER || kind == PLAN_GATHER || kind == PLAN_ALL_TO_ALL;
}

/* Everybody has the same bytes in the end, and is given the same by each. */
static inline bool plan_kind_alike(uint8_t kind)
{
    return kind == PLAN_ALL_REDUCE || kind == PLAN_ALL_GATHER || kind == PLAN_BROADCAST;
}

/* As programs know them. */
static inline const char *plan_kind_name(uint8_t kind)
{
    static const char *const names[PLAN_KINDS] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "scatter", "all-to-all",
                                                   "reduce", "gather", "send"};
    return kind < PLAN_KINDS ? names[kind] : "?";
}

#endif
