/* tour_local.h - a good directed ring of many peers, searched in slices.
 *
 * Its one idea: the only move is to exchange two neighbouring segments ("or-3opt"; moving one segment is a case of it).
 * It replaces three edges and reverses none, so that its effect is known in constant time for costs that differ between
 * directions.  Descents start from the given ring, from greedy rings, then from the best ring after a random exchange.
 * Work is counted in evaluated moves, everything else in as many as take the same time; the search is a state machine
 * that can stop after any slice, and where it stops has no influence on what it finds.
 * Invariant: the best ring is never worse than the one given.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TOUR_LOCAL_H
#define PCCL_TOPOLOGY_TOUR_LOCAL_H

#include "core/random.h"
#include "topology/tour.h"

enum { TOUR_LOCAL_NEAR = 10 }; /* cheapest successors that are tried for each peer */

enum tour_local_phase {
    TOUR_LOCAL_LISTS,   /* making the lists of cheapest successors */
    TOUR_LOCAL_DESCENT, /* improving the ring */
    TOUR_LOCAL_GREEDY,  /* building a nearest-neighbour ring */
    TOUR_LOCAL_DONE
};

struct tour_local {
    const uint64_t *cost; /* borrowed, [n][n], unchanged until done */
    size_t n, near_count;
    uint16_t *order, *position, *best, *scratch, *awake, *near; /* borrowed, parts of the storage */
    struct tour_score best_score;
    uint64_t moves_used, moves_limit;
    struct rng rng;
    uint32_t starts_left;
    enum tour_local_phase phase;
    size_t cursor, candidate; /* where the phase is */
    size_t asleep;            /* peers in a row that had nothing to improve */
    uint64_t slowest;         /* largest edge of `order`, and how often it occurs */
    size_t slowest_count;
};

/* uint16_t that the storage of _init must have. */
#define TOUR_LOCAL_ROOM(n) ((size_t)(n) * (5 + TOUR_LOCAL_NEAR))

/* A search whose rings of drawn networks lack 2 % or less of a proven bound in the median; about half a second of an idle core. */
static inline uint64_t tour_local_moves(size_t n)
{
    return n <= 16 ? 2000000 : n <= 64 ? 20000000 : 100000000;
}

/* Prepares a search of about `moves_limit` moves from ring `start` (a permutation of 0..n-1) and `starts` greedy rings.
 * The lists of cheap successors take the first n^2 of them; a move takes some 20 ns.
 * Equal arguments, equal result.  False unless 1 <= n <= TOUR_PEERS_MAX and `start` is a permutation. */
bool tour_local_init(struct tour_local *t, const uint64_t *cost, size_t n, const uint16_t *start, uint32_t starts,
                     uint64_t moves_limit, uint64_t seed, uint16_t *storage);

/* Works for about `moves` moves (at most 5 n more) or to the end; returns whether it is done. */
bool tour_local_step(struct tour_local *t, uint64_t moves);

/* The best ring so far, beginning with 0; at any time after _init. */
struct tour_score tour_local_best(const struct tour_local *t, uint16_t *order_out);

#endif
