/* bruck.c - all-gather in log2 W rounds: in round k each rank passes on all it has, to the rank 2^k before it.
 *
 * Its one idea: the part of the rank d behind this one comes in the round of d's highest bit and goes on in every later one
 * that still lacks it.  Invariant: a part is sent only after it has come, and to no rank twice.
 * Cost: (W-1)/W of the output each way per peer, as direct, in ceil(log2 W) messages and one-way delays in place of W - 1 messages.
 * Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing
 * systems", 1997 (its concatenation).
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

void plan_make_bruck(struct plan *plan)
{
    uint32_t world = plan->params.world, rank = plan->params.rank;
    plan_parts(plan);
    for (uint32_t owner = 0; owner < world; owner++) {
        uint32_t behind = (owner + world - rank) % world, round = 1;
        plan_begin_segment(plan, owner);
        while (behind >= 2 * (uint64_t)round) {
            round *= 2;
        }
        if (behind > 0) {
            plan_add_step(plan, owner, STEP_RECV, (uint32_t)(((uint64_t)rank + round) % world));
            round *= 2;
        }
        for (; (uint64_t)behind + round < world; round *= 2) {
            plan_add_step(plan, owner, STEP_SEND, (rank + world - round) % world);
        }
        if (behind == 0) {
            plan_add_step(plan, owner, STEP_COPY, 0);
        }
    }
}
