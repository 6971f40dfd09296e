/* direct.c - one hop to the owner of a part, one hop from it to all.
 *
 * Its one idea: shard sizes follow the weights, so a peer with a slow link owns little or nothing and still gives and
 * gets every element once.  Reduce-scatter is the first half of an all-reduce, all-gather the second; a broadcast hands each
 * other rank a shard, which passes it on to the rest.  Invariant: the owner folds in rank order, its own input in its place, so
 * the bits depend on nothing but the ranks.
 * Cost per peer, n bytes in all: all-reduce 2 (W-1)/W n each way in two one-way delays; reduce-scatter and all-gather
 * (W-1)/W n in one; reduce n, at the root (W-1) n in, in one; broadcast n, at the root n and elsewhere (W-2)/(W-1) n out, in two.
 * Source: van de Geijn, "On global combine operations", 1994; Barnett et al., "Interprocessor collective communication library", 1994.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

static void make_all_reduce(struct plan *plan)
{
    uint32_t world = plan->params.world, rank = plan->params.rank;
    plan_cut(plan, world, plan->params.weights);
    for (uint32_t owner = 0; owner < world; owner++) {
        plan_begin_segment(plan, owner);
        if (owner == rank) {
            plan_fold_all(plan, owner);
            plan_send_others(plan, owner, rank);
        } else {
            plan_add_step(plan, owner, STEP_GIVE, owner);
            plan_add_step(plan, owner, STEP_RECV, owner);
        }
    }
}

static void make_reduce_scatter(struct plan *plan)
{
    plan_parts(plan);
    for (uint32_t owner = 0; owner < plan->params.world; owner++) {
        plan_begin_segment(plan, owner);
        if (owner == plan->params.rank) {
            plan_fold_all(plan, owner);
        } else {
            plan_add_step(plan, owner, STEP_GIVE, owner);
        }
    }
}

static void make_all_gather(struct plan *plan)
{
    plan_parts(plan);
    for (uint32_t owner = 0; owner < plan->params.world; owner++) {
        plan_begin_segment(plan, owner);
        if (owner == plan->params.rank) {
            plan_send_others(plan, owner, owner);
            plan_add_step(plan, owner, STEP_COPY, 0);
        } else {
            plan_add_step(plan, owner, STEP_RECV, owner);
        }
    }
}

static void make_broadcast(struct plan *plan)
{
    uint32_t world = plan->params.world, rank = plan->params.rank, root = plan->params.root;
    plan_cut(plan, world - 1, NULL);
    for (uint32_t s = 0; s < world - 1; s++) {
        uint32_t owner = s < root ? s : s + 1; /* all but the root */
        plan_begin_segment(plan, s);
        if (rank == root) {
            plan_add_step(plan, s, STEP_SEND, owner);
            plan_add_step(plan, s, STEP_COPY, 0);
        } else {
            plan_add_step(plan, s, STEP_RECV, owner == rank ? root : owner);
        }
        if (owner == rank) {
            plan_send_others(plan, s, root);
        }
    }
}

/* In one hop: whoever is no root has no place to sum anything up in. */
static void make_reduce(struct plan *plan)
{
    plan_cut(plan, 1, NULL);
    plan_begin_segment(plan, 0);
    if (plan->params.rank == plan->params.root) {
        plan_fold_all(plan, 0);
    } else {
        plan_add_step(plan, 0, STEP_GIVE, plan->params.root);
    }
}

void plan_make_direct(struct plan *plan)
{
    if (plan->params.kind == PLAN_ALL_TO_ALL) {
        plan_make_relayed(plan);
        return;
    }
    if (plan->params.kind != PLAN_ALL_REDUCE && (plan->params.weights != NULL || plan_kind_pairs((uint8_t)plan->params.kind))) {
        plan_make_hosts(plan);
        return;
    }
    switch ((int)plan->params.kind) {
    case PLAN_REDUCE:
        make_reduce(plan);
        break;
    case PLAN_ALL_REDUCE:
        make_all_reduce(plan);
        break;
    case PLAN_REDUCE_SCATTER:
        make_reduce_scatter(plan);
        break;
    case PLAN_ALL_GATHER:
        make_all_gather(plan);
        break;
    default:
        make_broadcast(plan);
        break;
    }
}
