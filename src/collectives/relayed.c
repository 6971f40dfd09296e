/* relayed.c - all-to-all of equal parts, where some pairs have no link: the host of who gets a part hands it on.
 *
 * Its one idea: frames are numbered by pair, as in pairwise.c, and a part that takes two hops has the same number on both, by the sum of
 * its two ends: no two of those that share a hop have the same.  What a rank sends from its input to one neighbour has to lie one behind
 * the other (exec.c), first what is for that one itself; so the sender's order says in which lane a part that is handed on begins, and
 * the others let it begin there.
 * Invariant: first stands what comes from each rank for this one, by rank; from plan.relayed on what comes from a rank beside that, by
 * rank and number.
 * Cost: a member without a weight sends as many parts as in pairwise.c; a host, for each that it hosts, one more in and out for each
 * other one without a weight, after one more one-way delay.
 * Source: none; the relays of a view's missing edges (docs/internals/PROTOCOL.md), for data.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

static bool lacks(const struct plan_params *q, uint32_t rank)
{
    return q->weights != NULL && q->weights[rank] == 0;
}

/* How far a rank stands before its host: all between have the same one. */
static uint32_t before(const struct plan_params *q, uint32_t rank, uint32_t host)
{
    return (host + q->world - rank) % q->world;
}

/* Frames of a part. */
static uint32_t frames_of(const struct plan_params *q)
{
    return (uint32_t)(q->count / q->frame_elements + (q->count % q->frame_elements != 0));
}

/* The lane of the first frame of a part that is handed on: before it the sender has the host's own, and those that lie nearer to it. */
static uint32_t lane_of(const struct plan_params *q, uint32_t from, uint32_t host, uint32_t to)
{
    uint32_t nearer = before(q, to, host), itself = before(q, from, host) < nearer;
    return (uint32_t)((uint64_t)(nearer - itself) * frames_of(q) % q->lanes);
}

/* What its first frame is called: beyond all frames of a part that has a link.  One end of a hop is an end of the part, and knows it. */
static uint32_t name_of(const struct plan_params *q, uint32_t from, uint32_t host, uint32_t to)
{
    uint64_t apart = (frames_of(q) / q->lanes + UINT64_C(2)) * q->lanes, name = ((uint64_t)from + to) * apart;
    PCCL_ASSERT(name <= UINT32_MAX - 2 * apart);
    return (uint32_t)name + lane_of(q, from, host, to);
}

/* Opened, under its name. */
static uint32_t add(struct plan *plan, size_t in, size_t out, size_t count, uint32_t name)
{
    plan_add_segment(plan, in, out, count)->wire = name;
    return plan->segment_count - 1;
}

/* The next segment begins in that lane. */
static void begin_in(struct plan *plan, uint32_t lane)
{
    uint32_t lanes = plan->params.lanes;
    PCCL_ASSERT(plan->frame_count <= UINT32_MAX - 2 * lanes);
    plan->frame_count = (plan->frame_count + lanes - 1) / lanes * lanes + lane;
}

/* What comes from each that there is a link with, and the own part. */
static void take(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    for (uint32_t r = 0; r < q->world; r++) {
        bool own = r == q->rank, comes = own || !lacks(q, r) || !lacks(q, q->rank);
        if (comes) {
            begin_in(plan, 0);
            uint32_t s = add(plan, own ? plan_place_in(q, r) : 0, plan_place_out(q, r), q->count, 0);
            plan_add_step(plan, s, own ? STEP_COPY : STEP_RECV, r);
        }
    }
    plan->taken = plan->segment_count;
}

/* To each of them its part, and behind it those of the ones that it hosts. */
static void give(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    bool alone = lacks(q, q->rank);
    for (uint32_t r = 0; r < q->world; r++) {
        if (r == q->rank || (alone && lacks(q, r))) {
            continue;
        }
        begin_in(plan, 0);
        plan_add_step(plan, add(plan, plan_place_in(q, r), 0, q->count, 0), STEP_SEND, r);
        for (uint32_t i = 1; alone && lacks(q, (r + q->world - i) % q->world); i++) {
            uint32_t to = (r + q->world - i) % q->world;
            if (to != q->rank) {
                plan_add_step(plan, add(plan, plan_place_in(q, to), 0, q->count, name_of(q, q->rank, r, to)), STEP_SEND, r);
            }
        }
    }
}

/* A part that takes two hops, at its host and at who gets it. */
static void hand_on(struct plan *plan, uint32_t from, uint32_t host, uint32_t to)
{
    const struct plan_params *q = &plan->params;
    bool own = q->rank == to;
    begin_in(plan, lane_of(q, from, host, to));
    uint32_t s = add(plan, 0, own ? plan_place_out(q, from) : 0, q->count, name_of(q, from, host, to));
    plan_add_step(plan, s, STEP_RECV, own ? host : from);
    if (!own) {
        plan_to_scratch(plan, s);
        plan_add_step(plan, s, STEP_SEND, to);
    }
}

void plan_make_relayed(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    uint32_t host = plan_host(q, q->rank), hosted = 0;
    PCCL_ASSERT(q->lanes > 0);
    plan->pairwise = true;
    take(plan);
    give(plan);
    plan->relayed = plan->segment_count;
    while (lacks(q, (host + q->world - hosted - 1) % q->world)) {
        hosted++;
    }
    for (uint32_t from = 0; from < q->world; from++) {
        for (uint32_t to = 0; lacks(q, from) && to < q->world; to++) {
            bool ours = host == q->rank ? before(q, to, host) - 1 < hosted : to == q->rank; /* the host itself is 0 before it */
            if (ours && from != to) {
                hand_on(plan, from, host, to);
            }
        }
    }
}
