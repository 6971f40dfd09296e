/* chain.c - broadcast along a chain: each rank passes the frames on as they come; a message is a chain of two.  A reduce goes the same
 * way round to its root: each rank adds its own.
 *
 * Its one idea: a link carries the buffer once, so with many frames the time of the slowest link is all that counts.
 * Invariant: the chain follows the ring, from the root on or up to it.  Sums of those before a rank lie in its scratch, and are sent as
 * they are: for plain types only.
 * Cost: n bytes in and out per peer, W - 1 one-way delays for the first frame; a reduce sums n bytes at each peer, and between its ends
 * takes n bytes of memory.
 * Source: Watts and van de Geijn, "A pipelined broadcast for multidimensional meshes", 1995.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

/* The neighbours of this rank; itself if it is alone. */
struct link {
    uint32_t prev, next;
};

static struct link link_of(const struct plan_params *q)
{
    uint32_t at = plan_ring_position(q, q->rank);
    return (struct link){plan_ring_rank(q, at + q->world - 1), plan_ring_rank(q, at + 1)};
}

static void make_broadcast(struct plan *plan, const struct link *l)
{
    const struct plan_params *q = &plan->params;
    if (q->rank != q->root) {
        plan_add_step(plan, 0, STEP_RECV, l->prev);
    }
    if (l->next != q->root) {
        plan_add_step(plan, 0, STEP_SEND, l->next);
    }
    if (q->rank == q->root && q->kind != PLAN_SEND) { /* a sender has no output */
        plan_add_step(plan, 0, STEP_COPY, 0);
    }
}

static void make_reduce(struct plan *plan, const struct link *l)
{
    const struct plan_params *q = &plan->params;
    bool first = l->prev == q->root; /* nothing comes to it */
    if (!first) {
        plan_add_step(plan, 0, STEP_FOLD, l->prev);
    }
    if (!first || q->world == 1) {
        plan_add_step(plan, 0, STEP_FOLD, q->rank);
    }
    if (q->rank == q->root) {
        plan_add_step(plan, 0, STEP_FINISH, 0);
        return;
    }
    if (!first) {
        plan_to_scratch(plan, 0);
    }
    plan_add_step(plan, 0, STEP_GIVE, l->next);
}

void plan_make_chain(struct plan *plan)
{
    struct link l = link_of(&plan->params);
    plan_cut(plan, 1, NULL);
    if (plan->params.kind == PLAN_REDUCE) {
        make_reduce(plan, &l);
    } else {
        make_broadcast(plan, &l);
    }
}
