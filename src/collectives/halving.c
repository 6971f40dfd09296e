/* halving.c - recursive halving, then recursive doubling: in each round half of what is left goes to the rank across one bit.
 *
 * Its one idea: log2 P messages each way in place of P - 1, for as many bytes; P is the largest power of two of the world.  The
 * segment of owner s is summed up along the bits in which a rank differs from s, from the highest on, and spreads back the same
 * way.  Ranks beyond P give all they have to the rank P before them, and get the result from it.
 * Invariant: what a rank takes of another, or gives it, are segments that lie one behind the other (exec.c counts on it), and one
 * program order for all of them, so frames come in their order.  Only the owner computes the final value.  Partial sums are sent
 * as they are: for plain types only.
 * Cost: 2 (P-1)/P of the buffer each way per peer in 2 log2 P one-way delays; with ranks beyond P two more delays, in which these
 * and the ranks before them send and get the whole buffer.
 * Source: Rabenseifner, "Optimization of collective reduction operations", 2004; Thakur, Rabenseifner and Gropp, 2005.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

/* A rank that has another one beyond P behind it: what comes from that one is first, and what goes to it last. */
static void make_segment(struct plan *plan, uint32_t owner, uint32_t ranks)
{
    uint32_t rank = plan->params.rank, across = ranks / 2, back = 1;
    bool beyond = rank + ranks < plan->params.world, begun = beyond;
    if (beyond) {
        plan_add_step(plan, owner, STEP_FOLD, rank + ranks);
        plan_add_step(plan, owner, STEP_FOLD, rank);
    }
    for (; across > 0 && ((rank ^ owner) & across) == 0; across /= 2) {
        plan_add_step(plan, owner, STEP_FOLD, rank ^ across);
        if (!begun) {
            plan_add_step(plan, owner, STEP_FOLD, rank);
        }
        begun = true;
    }
    if (across == 0) {
        if (!begun) { /* alone */
            plan_add_step(plan, owner, STEP_FOLD, rank);
        }
        plan_add_step(plan, owner, STEP_FINISH, 0);
    } else {
        plan_add_step(plan, owner, STEP_GIVE, rank ^ across);
        plan_add_step(plan, owner, STEP_RECV, rank ^ across);
        back = 2 * across;
    }
    for (; back < ranks; back *= 2) {
        plan_add_step(plan, owner, STEP_SEND, rank ^ back);
    }
    if (beyond) {
        plan_add_step(plan, owner, STEP_SEND, rank + ranks);
    }
}

void plan_make_halving(struct plan *plan)
{
    uint32_t rank = plan->params.rank, ranks = plan_power(plan->params.world);
    plan_cut(plan, ranks, NULL);
    for (uint32_t owner = 0; owner < ranks; owner++) {
        plan_begin_segment(plan, owner);
        if (rank < ranks) {
            make_segment(plan, owner, ranks);
        } else {
            plan_add_step(plan, owner, STEP_GIVE, rank - ranks);
            plan_add_step(plan, owner, STEP_RECV, rank - ranks);
        }
    }
}
