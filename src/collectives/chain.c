/* chain.c - broadcast along a chain: each rank passes the frames on as they come; a message is a chain of two.
 *
 * Its one idea: a link carries the buffer once, so with many frames the time of the slowest link is all that counts.
 * Invariant: the chain follows the ring from the root on.
 * Cost: n bytes in and out per peer, W - 1 one-way delays for the first frame.
 * Source: Watts and van de Geijn, "A pipelined broadcast for multidimensional meshes", 1995.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

void plan_make_chain(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    uint32_t at[2] = {q->world, q->world}, rank[2] = {q->rank, q->root};
    for (uint32_t p = 0; p < q->world; p++) {
        for (int i = 0; i < 2; i++) {
            at[i] = (q->ring != NULL ? q->ring[p] : p) == rank[i] ? p : at[i];
        }
    }
    PCCL_ASSERT(at[0] < q->world && at[1] < q->world);
    uint32_t next = (at[0] + 1) % q->world, prev = (at[0] + q->world - 1) % q->world;
    plan_cut(plan, 1, NULL);
    if (at[0] != at[1]) {
        plan_add_step(plan, 0, STEP_RECV, q->ring != NULL ? q->ring[prev] : prev);
    }
    if (next != at[1]) {
        plan_add_step(plan, 0, STEP_SEND, q->ring != NULL ? q->ring[next] : next);
    }
    if (at[0] == at[1] && q->kind != PLAN_SEND) { /* a sender has no output */
        plan_add_step(plan, 0, STEP_COPY, 0);
    }
}
