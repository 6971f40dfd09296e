/* used_algorithms.h - the algorithms that simulated clusters wish for, and have used.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_USED_ALGORITHMS_H
#define PCCL_TESTS_SIM_USED_ALGORITHMS_H

#include <stdint.h>

#include "core/plan_kind.h"

enum { ALGORITHM_PHASES = 4, ALGORITHM_ENDS = 3 }; /* announced, first, middle, last; success, a member lost, another error */

struct algorithm_stats {
    uint64_t fault[PLAN_ALGORITHMS][ALGORITHM_PHASES]; /* operations that lanes were at work on in the process that a fault met */
    uint64_t end[PLAN_KINDS][PLAN_ALGORITHMS][ALGORITHM_ENDS];
    uint64_t launched;                                 /* successes without lanes */
    uint64_t seeds[PLAN_ALGORITHMS];                   /* in which an all-reduce of that algorithm has ended */
};

struct cluster;
struct node;
struct options;
struct run;
struct session_outcome;

/* What one element needs that goes round all peers alone, and back: beyond the stall time it looks like a standstill. */
int64_t algorithms_round_ns(const struct options *o);
void algorithms_config(const struct options *o, struct node *n);
uint8_t algorithms_kind(const struct options *o, uint64_t draw); /* of a call in the order of issue */
void algorithms_fault(struct cluster *cl, const struct node *n); /* is about to happen to that process */
void algorithms_ended(struct cluster *cl, const struct run *r, const struct session_outcome *o);
void algorithms_seed_ended(struct algorithm_stats *s); /* of one seed */
uint32_t algorithms_print(const struct algorithm_stats *s); /* how many cells are empty */

#endif
