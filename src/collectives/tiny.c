/* tiny.c - everybody sends everything to everybody: one hop, for small messages.
 *
 * Its one idea: latency is all that counts, so there is one segment and no final data on the wire.  Invariant: all fold in
 * rank order; as all compute the same elements, the executor makes NaNs canonical (their payload may depend on the CPU).
 * Cost: W-1 buffers each way per peer, one one-way delay.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

void plan_make_tiny(struct plan *plan)
{
    uint32_t world = plan->params.world, rank = plan->params.rank;
    plan_cut(plan, 1, NULL);
    plan_begin_segment(plan, 0);
    for (uint32_t i = 1; i < world; i++) {
        plan_add_step(plan, 0, STEP_GIVE, (rank + i) % world);
    }
    plan_fold_all(plan, 0);
}
