/* hosts.c - direct, where some pairs have no link: what a rank cannot do with all others, a host does for it.
 *
 * Its one idea: members with a weight are linked with all, whoever has none is linked with these at least.  So the next one with
 * a weight is the host of one that has none: it passes on what that one has for all, and gets what all have for that one.  Every step
 * is between two of which one has a weight.  Parts that a rank hosts lie behind its own one, since what a rank gives another, or sends
 * it from its input, has to lie one behind the other (exec.c).
 * Invariant: what is not the host's own goes to its scratch, but for parts that it needs itself (all-gather, broadcast).
 * Cost per peer as direct; a host sends and gets a part more for each that it hosts, after one more one-way delay.
 * Source: none; the relays of a view's missing edges (docs/internals/PROTOCOL.md), for data.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

/* From one rank to all others, which get it of `via`: of that rank itself, or of one that passes it on. */
static void spread(struct plan *plan, uint32_t segment, uint32_t from, uint32_t via)
{
    uint32_t rank = plan->params.rank;
    if (rank != from) {
        plan_add_step(plan, segment, STEP_RECV, rank == via ? from : via);
    } else if (via != from) {
        plan_add_step(plan, segment, STEP_SEND, via);
    }
    if (rank == via) {
        plan_send_others(plan, segment, from);
    }
    if (rank == from) {
        plan_add_step(plan, segment, STEP_COPY, 0);
    }
}

/* From one rank to another; `via` is one of them if they are linked, else who hands it on. */
static void pass(struct plan *plan, uint32_t segment, uint32_t from, uint32_t via, uint32_t to)
{
    uint32_t rank = plan->params.rank;
    bool linked = via == from || via == to;
    if (rank == from) {
        plan_add_step(plan, segment, STEP_SEND, linked ? to : via);
    } else if (rank == to) {
        plan_add_step(plan, segment, STEP_RECV, linked ? from : via);
    } else if (rank == via) {
        plan_to_scratch(plan, segment);
        plan_add_step(plan, segment, STEP_RECV, from);
        plan_add_step(plan, segment, STEP_SEND, to);
    }
}

/* The owner's host has the sum, if that is another one in scratch, and sends it. */
static void sum_up(struct plan *plan, uint32_t segment, uint32_t owner, uint32_t host)
{
    uint32_t rank = plan->params.rank;
    if (rank != host) {
        plan_add_step(plan, segment, STEP_GIVE, host);
        if (rank == owner) {
            plan_add_step(plan, segment, STEP_RECV, host);
        }
        return;
    }
    plan_fold_all(plan, segment);
    if (host != owner) {
        plan_to_scratch(plan, segment);
        plan_add_step(plan, segment, STEP_SEND, owner);
    }
}

static void make_all_gather(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    plan_parts(plan);
    for (uint32_t owner = 0; owner < q->world; owner++) {
        plan_begin_segment(plan, owner);
        spread(plan, owner, owner, plan_host(q, owner));
    }
}

/* The root's own shard is the nearest other one's, whose own lies beside it; its own again if it is the only one with a weight. */
static uint32_t broadcast_owner(const struct plan_params *q, uint32_t shard)
{
    uint32_t other = shard;
    while (shard == q->root && ++other < q->world) {
        if (q->weights[other] > 0) {
            return other;
        }
    }
    for (other = shard; shard == q->root && other-- > 0;) {
        if (q->weights[other] > 0) {
            return other;
        }
    }
    return shard;
}

static void make_broadcast(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    plan_cut(plan, q->world, q->weights);
    for (uint32_t s = 0; s < q->world; s++) {
        plan_begin_segment(plan, s);
        if (q->weights[s] > 0) { /* else it is empty */
            spread(plan, s, q->root, broadcast_owner(q, s));
        }
    }
}

static void make_reduce(struct plan *plan)
{
    uint32_t root = plan->params.root;
    plan_cut(plan, 1, NULL);
    plan_begin_segment(plan, 0);
    sum_up(plan, 0, root, plan_host(&plan->params, root));
}

static void reduce_part(struct plan *plan, uint32_t owner, uint32_t host)
{
    sum_up(plan, plan_add_part(plan, owner), owner, host);
}

/* Of a scatter it comes from the root, of a gather it goes there; by its host only where the root has none but others'. */
static void rooted_part(struct plan *plan, uint32_t owner, uint32_t host)
{
    const struct plan_params *q = &plan->params;
    uint32_t segment = plan_add_part(plan, owner), via = plan_host(q, q->root) == q->root ? owner : host;
    if (owner != q->root) {
        bool scatter = q->kind == PLAN_SCATTER;
        pass(plan, segment, scatter ? q->root : owner, via, scatter ? owner : q->root);
    } else if (q->rank == owner) {
        plan_add_step(plan, segment, STEP_COPY, 0);
    }
}

/* Each host's own part, and behind it those that it hosts; of a scatter or gather the root's, which goes nowhere, before all of them. */
static void make_parts(struct plan *plan, void (*make)(struct plan *plan, uint32_t owner, uint32_t host))
{
    const struct plan_params *q = &plan->params;
    bool first = plan_kind_has_root((uint8_t)q->kind);
    if (first) {
        make(plan, q->root, plan_host(q, q->root));
    }
    for (uint32_t host = 0; host < q->world; host++) {
        if (plan_host(q, host) != host) {
            continue;
        }
        for (uint32_t i = 0; i < q->world; i++) {
            uint32_t owner = (host + q->world - i) % q->world; /* they are before it: the next with a weight is the host */
            if (i > 0 && plan_host(q, owner) == owner) {
                break;
            }
            if (!first || owner != q->root) {
                make(plan, owner, host);
            }
        }
    }
}

void plan_make_hosts(struct plan *plan)
{
    switch ((int)plan->params.kind) {
    case PLAN_ALL_GATHER:
        make_all_gather(plan);
        break;
    case PLAN_BROADCAST:
        make_broadcast(plan);
        break;
    case PLAN_REDUCE:
        make_reduce(plan);
        break;
    case PLAN_REDUCE_SCATTER:
        make_parts(plan, reduce_part);
        break;
    default:
        make_parts(plan, rooted_part);
        break;
    }
}
