/* pairwise.c - all-to-all, scatter and gather: each pair of ranks moves its own part, and only these two know how much it is.
 *
 * Its one idea: frames are numbered between the two; a frame's lane is that number modulo the lanes, at both ends.
 * Invariant: a segment for each rank that something comes from, by rank, then one for each that something goes to, and none for others;
 * each begins at a multiple of the lanes in the rank's own numbering, which nobody else sees.  What goes to oneself is a copy among
 * what comes.
 * Cost: what is to be sent and received, at most W - 1 messages each way, one one-way delay; each rank begins at another one.
 * Source: Bruck et al., 1997 (the direct exchange that their index algorithm is compared with).
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/bitset.h"

static void add(struct plan *plan, size_t in, size_t out, size_t count, enum step_kind kind, uint32_t rank)
{
    uint32_t lanes = plan->params.lanes;
    plan->frame_count = (plan->frame_count + lanes - 1) / lanes * lanes;
    plan_add_segment(plan, in, out, count)->wire = 0;
    plan_add_step(plan, plan->segment_count - 1, kind, rank);
}

/* Whether a part goes from one rank to another: in a scatter from the root, in a gather to it.  One of them is this one; if they have no
 * link it goes another way. */
static bool moves(const struct plan_params *q, uint32_t from, uint32_t to)
{
    bool apart = q->apart != NULL && bitset_has(q->apart, from == q->rank ? to : from);
    return !apart && (q->kind == PLAN_ALL_TO_ALL || (q->kind == PLAN_SCATTER ? from : to) == q->root);
}

/* Of the lists that this kind has: how much goes to a rank, or comes from it, and where that lies. */
static size_t place_in(const struct plan_params *q, uint32_t to)
{
    return q->kind == PLAN_GATHER ? 0 : plan_place_in(q, to);
}

static size_t place_out(const struct plan_params *q, uint32_t from)
{
    return q->kind == PLAN_SCATTER ? 0 : q->kind == PLAN_GATHER ? plan_place_in(q, from) : plan_place_out(q, from);
}

static size_t sent(const struct plan_params *q, uint32_t to)
{
    return part_count(&q->parts, q->count, plan_shown(q, q->kind == PLAN_GATHER ? q->rank : to));
}

static size_t taken(const struct plan_params *q, uint32_t from)
{
    return q->kind == PLAN_ALL_TO_ALL ? part_count(&q->out_parts, q->count, plan_shown(q, from))
                                      : part_count(&q->parts, q->count, plan_shown(q, q->kind == PLAN_GATHER ? from : q->rank));
}

void plan_make_pairwise(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    plan->pairwise = true;
    for (uint32_t r = 0; r < q->world; r++) {
        if (moves(q, r, q->rank)) {
            add(plan, r == q->rank ? place_in(q, r) : 0, place_out(q, r), taken(q, r), r == q->rank ? STEP_COPY : STEP_RECV, r);
        }
    }
    plan->taken = plan->segment_count;
    for (uint32_t r = 0; r < q->world; r++) {
        if (r != q->rank && moves(q, q->rank, r)) {
            add(plan, place_in(q, r), 0, sent(q, r), STEP_SEND, r);
        }
    }
}
