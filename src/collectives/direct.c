/* direct.c - reduce-scatter and all-gather in one hop each: the owner of a shard reduces it and sends it to all.
 *
 * Its one idea: shard sizes follow the weights, so a peer with a slow link owns little or nothing and still gives and
 * gets every element once.  Invariant: the owner folds in rank order, its own input in its place, so the bits depend on
 * nothing but the ranks.  Cost: 2 (W-1)/W of the buffer each way per peer with equal weights, two one-way delays.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

void plan_make_direct(struct plan *plan)
{
    uint32_t world = plan->params.world, rank = plan->params.rank;
    plan_cut(plan, world, plan->params.weights);
    for (uint32_t owner = 0; owner < world; owner++) {
        plan_begin_segment(plan, owner);
        if (owner != rank) {
            plan_add_step(plan, owner, STEP_SEND, owner);
            plan_add_step(plan, owner, STEP_RECV, owner);
            continue;
        }
        for (uint32_t r = 0; r < world; r++) {
            plan_add_step(plan, owner, STEP_FOLD, r);
        }
        plan_add_step(plan, owner, STEP_FINISH, 0);
        for (uint32_t i = 1; i < world; i++) {
            plan_add_step(plan, owner, STEP_SEND, (rank + i) % world); /* owners begin at different peers */
        }
    }
}
