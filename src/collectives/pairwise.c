/* pairwise.c - all-to-all and scatter: each pair of ranks moves its own part, and only these two know how much it is.
 *
 * Its one idea: frames are numbered between the two; a frame's lane is that number modulo the lanes, at both ends.
 * Invariant: segment r is what comes from rank r, segment world + r what goes to it; each begins at a multiple of the lanes in
 * the rank's own numbering, which nobody else sees.  What goes to oneself is a copy in the own segment of the first half.
 * Cost: what is to be sent and received, W - 1 messages each way, one one-way delay; each rank begins at another one.
 * Source: Bruck et al., 1997 (the direct exchange that their index algorithm is compared with).
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

static void add(struct plan *plan, size_t in, size_t out, size_t count)
{
    uint32_t lanes = plan->params.lanes;
    plan->frame_count = (plan->frame_count + lanes - 1) / lanes * lanes;
    plan_add_segment(plan, in, out, count)->wire = 0;
}

void plan_make_pairwise(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    bool scatter = q->kind == PLAN_SCATTER;
    plan->pairwise = true;
    for (uint32_t r = 0; r < q->world; r++) {
        uint32_t shown = plan_shown(q, r);
        size_t in = r == q->rank && (!scatter || r == q->root) ? plan_place(q->places, q->counts, q->count, shown) : 0;
        size_t out = scatter ? 0 : plan_place(q->out_places, q->out_counts, q->count, shown);
        size_t count = scatter ? plan_part(q->counts, q->count, plan_shown(q, q->rank)) : plan_part(q->out_counts, q->count, shown);
        bool comes = !scatter || r == q->root;
        add(plan, in, out, comes ? count : 0);
        plan_begin_segment(plan, r);
        if (comes) {
            plan_add_step(plan, r, r == q->rank ? STEP_COPY : STEP_RECV, r);
        }
    }
    for (uint32_t r = 0; r < q->world; r++) {
        bool goes = r != q->rank && (!scatter || q->rank == q->root);
        uint32_t shown = plan_shown(q, r);
        add(plan, goes ? plan_place(q->places, q->counts, q->count, shown) : 0, 0, goes ? plan_part(q->counts, q->count, shown) : 0);
        plan_begin_segment(plan, q->world + r);
        if (goes) {
            plan_add_step(plan, q->world + r, STEP_SEND, r);
        }
    }
}
