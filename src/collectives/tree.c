/* tree.c - down a binomial tree: in each round whoever has the data sends it to one who has not; a reduce sums up the same tree, an
 * all-reduce does both.
 *
 * Its one idea: 2 log2 W messages one after the other in place of 2 (W - 1) at each rank, for sizes and worlds in which messages
 * cost more than their bytes.  Invariant: ranks are counted from the root; the parent of a rank is that rank without its lowest
 * bit; going down the largest subtree is served first, going up it is folded last.  Only the root computes the final value.
 * Partial sums are sent as they are: for plain types only; of a reduce they lie in scratch.
 * Cost: broadcast n bytes in, up to n log2 W out, ceil(log2 W) one-way delays; reduce n out, up to n log2 W in, and n bytes of memory at
 * whoever has children; all-reduce both.
 * Source: Johnsson and Ho, "Optimum broadcasting and personalized communication in hypercubes", 1989; Thakur, Rabenseifner and
 * Gropp, "Optimization of collective communication operations in MPICH", 2005.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

/* Place of this rank in the tree: how far behind the root, and the bit that leads to its parent; at the root the first beyond all. */
struct place {
    uint32_t behind, bit;
};

static struct place place_of(const struct plan_params *q)
{
    struct place p = {.behind = (q->rank + q->world - q->root) % q->world, .bit = 1};
    while (p.behind != 0 ? (p.behind & p.bit) == 0 : p.bit < q->world) {
        p.bit *= 2;
    }
    return p;
}

static uint32_t rank_at(const struct plan_params *q, uint32_t behind)
{
    return (uint32_t)(((uint64_t)q->root + behind) % q->world);
}

static void send_down(struct plan *plan, const struct place *p)
{
    const struct plan_params *q = &plan->params;
    for (uint32_t bit = p->bit / 2; bit > 0; bit /= 2) {
        if (p->behind + bit < q->world) {
            plan_add_step(plan, 0, STEP_SEND, rank_at(q, p->behind + bit));
        }
    }
}

static void make_broadcast(struct plan *plan, const struct place *p)
{
    if (p->behind != 0) {
        plan_add_step(plan, 0, STEP_RECV, rank_at(&plan->params, p->behind - p->bit));
    }
    send_down(plan, p);
    if (p->behind == 0) {
        plan_add_step(plan, 0, STEP_COPY, 0);
    }
}

/* The first child's sum comes straight into place, before the own input is folded. */
static void make_sum(struct plan *plan, const struct place *p)
{
    const struct plan_params *q = &plan->params;
    bool leaf = true;
    for (uint32_t bit = 1; bit < p->bit && p->behind + bit < q->world; bit *= 2) {
        plan_add_step(plan, 0, STEP_FOLD, rank_at(q, p->behind + bit));
        if (leaf) {
            plan_add_step(plan, 0, STEP_FOLD, q->rank);
        }
        leaf = false;
    }
    if (p->behind == 0) {
        if (leaf) { /* alone */
            plan_add_step(plan, 0, STEP_FOLD, q->rank);
        }
        plan_add_step(plan, 0, STEP_FINISH, 0);
        return;
    }
    plan_add_step(plan, 0, STEP_GIVE, rank_at(q, p->behind - p->bit));
    if (!leaf && q->kind == PLAN_REDUCE) {
        plan_to_scratch(plan, 0);
    }
}

static void make_all_reduce(struct plan *plan, const struct place *p)
{
    make_sum(plan, p);
    if (p->behind != 0) {
        plan_add_step(plan, 0, STEP_RECV, rank_at(&plan->params, p->behind - p->bit));
    }
    send_down(plan, p);
}

void plan_make_tree(struct plan *plan)
{
    struct place p = place_of(&plan->params);
    plan_cut(plan, 1, NULL);
    if (plan->params.kind == PLAN_ALL_REDUCE) {
        make_all_reduce(plan, &p);
    } else if (plan->params.kind == PLAN_REDUCE) {
        make_sum(plan, &p);
    } else {
        make_broadcast(plan, &p);
    }
}
