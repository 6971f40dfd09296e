/* ring.c - the classic ring: partial sums travel once around, the final values once more; an all-gather is the second round.
 *
 * Its one idea: the segment at ring position p is summed along p+1, p+2, ... p, so every link carries the same load at
 * all times.  Invariant: one fixed chain per segment, hence the same bits everywhere; only the rank at the end of the
 * chain computes the final value, the others copy it.  Partial sums are sent as they are, so only types whose wire form is
 * their sum's form may use it.  Cost: 2 (W-1)/W of the buffer each way per peer, 2 (W-1) one-way delays; of an all-gather half.
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

static void make_all_gather(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    uint32_t world = q->world, position = plan_ring_position(q, q->rank);
    uint32_t next = plan_ring_rank(q, position + 1), prev = plan_ring_rank(q, position + world - 1);
    plan_parts(plan);
    for (uint32_t owner = 0; owner < world; owner++) {
        plan_begin_segment(plan, owner);
        if (owner != q->rank) {
            plan_add_step(plan, owner, STEP_RECV, prev);
        }
        if (owner != next) {
            plan_add_step(plan, owner, STEP_SEND, next);
        }
        if (owner == q->rank) {
            plan_add_step(plan, owner, STEP_COPY, 0);
        }
    }
}

static void make_all_reduce(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    uint32_t world = q->world, position = plan_ring_position(q, q->rank);
    uint32_t next = plan_ring_rank(q, position + 1), prev = plan_ring_rank(q, position + world - 1);
    plan_cut(plan, world, NULL);
    for (uint32_t s = 0; s < world; s++) {
        uint32_t link = (position + world - (s + 1) % world) % world; /* own place in the chain: 0 first, world - 1 last */
        plan_begin_segment(plan, s);
        if (link > 0) {
            plan_add_step(plan, s, STEP_FOLD, prev);
        }
        if (link > 0 || world == 1) {
            plan_add_step(plan, s, STEP_FOLD, q->rank);
        }
        if (link == world - 1) {
            plan_add_step(plan, s, STEP_FINISH, 0);
            if (world > 1) {
                plan_add_step(plan, s, STEP_SEND, next);
            }
            continue;
        }
        plan_add_step(plan, s, STEP_GIVE, next);
        plan_add_step(plan, s, STEP_RECV, prev);
        if (link != world - 2) {
            plan_add_step(plan, s, STEP_SEND, next); /* the last but one ends the second round: its next is the owner */
        }
    }
}

void plan_make_ring(struct plan *plan)
{
    if (plan->params.kind == PLAN_ALL_REDUCE) {
        make_all_reduce(plan);
    } else {
        make_all_gather(plan);
    }
}
