/* hosts.c - direct, where some pairs have no link: what a rank cannot do with all others, a host does for it.
 *
 * Its one idea: members with a weight are linked with all, whoever has none is linked with these at least.  So the next one with
 * a weight is the host of one that has none: it passes on what that one has for all, and gets what all have for that one.  Every step
 * is between two of which one has a weight.  Parts that a rank hosts lie behind its own one, since what a rank gives another, or sends
 * it from its input, has to lie one behind the other (exec.c).
 * Invariant: what is not the host's own goes to its scratch, but for parts that it needs itself (all-gather, broadcast).
 * Cost per peer as direct; a host sends and gets a part more for each that it hosts, after one more one-way delay.
 * Source: none; the relays of a view's missing edges (docs/PROTOCOL.md), for data.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

/* To all others but one. */
static void send_all(struct plan *plan, uint32_t segment, uint32_t but)
{
    uint32_t world = plan->params.world, rank = plan->params.rank;
    for (uint32_t i = 1; i < world; i++) {
        if ((rank + i) % world != but) {
            plan_add_step(plan, segment, STEP_SEND, (rank + i) % world);
        }
    }
}

static void fold_all(struct plan *plan, uint32_t segment)
{
    for (uint32_t r = 0; r < plan->params.world; r++) {
        plan_add_step(plan, segment, STEP_FOLD, r);
    }
    plan_add_step(plan, segment, STEP_FINISH, 0);
}

static void make_all_gather(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    plan_parts(plan);
    for (uint32_t owner = 0; owner < q->world; owner++) {
        uint32_t host = plan_host(q, owner);
        plan_begin_segment(plan, owner);
        if (q->rank == owner) {
            if (host == owner) {
                send_all(plan, owner, owner);
            } else {
                plan_add_step(plan, owner, STEP_SEND, host);
            }
            plan_add_step(plan, owner, STEP_COPY, 0);
            continue;
        }
        plan_add_step(plan, owner, STEP_RECV, q->rank == host ? owner : host);
        if (q->rank == host) {
            send_all(plan, owner, owner);
        }
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
        uint32_t owner = broadcast_owner(q, s);
        plan_begin_segment(plan, s);
        if (q->weights[s] == 0) {
            continue; /* it is empty */
        }
        if (q->rank == q->root) {
            if (owner == q->root) {
                send_all(plan, s, owner);
            } else {
                plan_add_step(plan, s, STEP_SEND, owner);
            }
            plan_add_step(plan, s, STEP_COPY, 0);
            continue;
        }
        plan_add_step(plan, s, STEP_RECV, q->rank == owner ? q->root : owner);
        if (q->rank == owner) {
            send_all(plan, s, q->root);
        }
    }
}

/* The root's host has the sum, in scratch, and sends it. */
static void make_reduce(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    uint32_t host = plan_host(q, q->root);
    plan_cut(plan, 1, NULL);
    plan_begin_segment(plan, 0);
    if (q->rank != host) {
        plan_add_step(plan, 0, STEP_GIVE, host);
        if (q->rank == q->root) {
            plan_add_step(plan, 0, STEP_RECV, host);
        }
        return;
    }
    fold_all(plan, 0);
    if (host != q->root) {
        plan_to_scratch(plan, 0);
        plan_add_step(plan, 0, STEP_SEND, q->root);
    }
}

static void reduce_part(struct plan *plan, uint32_t owner, uint32_t host)
{
    const struct plan_params *q = &plan->params;
    uint32_t segment = plan_add_part(plan, owner);
    if (q->rank != host) {
        plan_add_step(plan, segment, STEP_GIVE, host);
        if (q->rank == owner) {
            plan_add_step(plan, segment, STEP_RECV, host);
        }
        return;
    }
    fold_all(plan, segment);
    if (host != owner) {
        plan_to_scratch(plan, segment);
        plan_add_step(plan, segment, STEP_SEND, owner);
    }
}

static void scatter_part(struct plan *plan, uint32_t owner, uint32_t host)
{
    const struct plan_params *q = &plan->params;
    uint32_t segment = plan_add_part(plan, owner), via = plan_host(q, q->root) == q->root ? owner : host;
    if (owner == q->root) {
        if (q->rank == owner) {
            plan_add_step(plan, segment, STEP_COPY, 0);
        }
    } else if (q->rank == q->root) {
        plan_add_step(plan, segment, STEP_SEND, via);
    } else if (q->rank == owner) {
        plan_add_step(plan, segment, STEP_RECV, via == owner ? q->root : via);
    } else if (q->rank == via) {
        plan_to_scratch(plan, segment);
        plan_add_step(plan, segment, STEP_RECV, q->root);
        plan_add_step(plan, segment, STEP_SEND, owner);
    }
}

static void gather_part(struct plan *plan, uint32_t owner, uint32_t host)
{
    const struct plan_params *q = &plan->params;
    uint32_t segment = plan_add_part(plan, owner), via = plan_host(q, q->root) == q->root ? owner : host;
    if (owner == q->root) {
        if (q->rank == owner) {
            plan_add_step(plan, segment, STEP_COPY, 0);
        }
    } else if (q->rank == q->root) {
        plan_add_step(plan, segment, STEP_RECV, via);
    } else if (q->rank == owner) {
        plan_add_step(plan, segment, STEP_SEND, via == owner ? q->root : via);
    } else if (q->rank == via) {
        plan_to_scratch(plan, segment);
        plan_add_step(plan, segment, STEP_RECV, owner);
        plan_add_step(plan, segment, STEP_SEND, q->root);
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
    case PLAN_SCATTER:
        make_parts(plan, scatter_part);
        break;
    default:
        make_parts(plan, gather_part);
        break;
    }
}
