/* cost.h - how long an all-reduce will take: one formula per algorithm, and the choice between them.
 *
 * Its one idea: the choice is a calculation that can be shown.  All predictions are kept, so that measured times can be
 * set against them.
 * What it knows is each peer's link and each pair's path.  It does not know uplinks that several peers share: behind
 * one `direct` is slower than predicted.
 * Invariant: a prediction is > 0, or 0 for a single peer, or infinite if the algorithm cannot run at all.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_COST_H
#define PCCL_TOPOLOGY_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cost_algo { COST_TINY, COST_DIRECT, COST_RING, COST_ALGO_COUNT };

struct cost_net {
    size_t n;
    const double *up_bps, *down_bps;  /* borrowed, [n], > 0 */
    const double *path_bps;           /* borrowed, [n][n], row: from; infinite if unknown, 0 if the pair cannot connect;
                                      * null: only the peers' links count */
    double delay_mean_s, delay_max_s; /* one way, over the pairs */
};

/* What is to be moved: the whole buffer, in chunks that are forwarded as soon as they are there. */
struct cost_job {
    double bytes, chunk_bytes; /* chunk 0: pure fluid */
};

/* Slice by slice, a slice is forwarded when it is complete:  2(n-1) (S/(n b) + l),  b = slowest edge of the ring. */
double cost_ring_slices_s(const struct cost_net *net, const uint16_t *order, struct cost_job job);

/* Cut-through, chunks are forwarded at once:  max(2(n-1) S/(n b) + l + c/b, 2(n-1) (l + c/b) + S/(n b)). */
double cost_ring_s(const struct cost_net *net, const uint16_t *order, struct cost_job job);

/* Owners reduce their share and send it back:  T S + 2 l_max + c/b,  T = the fullest link or path under these shares,
 * b = its rate. */
double cost_direct_s(const struct cost_net *net, const double *share, struct cost_job job);

/* Everybody sends everything to everybody:  (n-1) S/m + l_max. */
double cost_tiny_s(const struct cost_net *net, struct cost_job job);

struct cost_choice {
    enum cost_algo algo;
    double predicted_s[COST_ALGO_COUNT]; /* infinite: cannot run, or not allowed */
};

/* The least of the predictions; on a tie the one with fewer hops (tiny, direct, ring).  `allowed` has bit 1 << algo set
 * for each algorithm that may be used (types that a ring cannot send exactly exclude it); order or share null: ring or
 * direct are out.  False if none is possible; out is filled all the same. */
bool cost_choose(const struct cost_net *net, const uint16_t *order, const double *share, unsigned allowed,
                 struct cost_job job, struct cost_choice *out);

const char *cost_algo_name(enum cost_algo algo); /* "ring" */

#endif
