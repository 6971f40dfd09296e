/* op_lanes.c - operations on the lanes: what the session wants done there, and what lanes report back.
 *
 * The executors report to the operation's counters; the last lane runs the session's step itself.
 *
 * Invariant: what is set here before LANE_START is not touched again until the last lane has let go.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/clock.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/calls/op_end.h"
#include "engine/calls/op_forecast.h"
#include "engine/calls/op_lanes.h"
#include "engine/calls/op_room.h"
#include "engine/threads/lane_hold.h"

enum { LANES_LOOKS = 4 }; /* for progress, in a stall time */

void op_lanes_init(struct comm *c)
{
    plan_cache_init(&c->running.plans);
}

void op_lanes_rest(struct comm *c)
{
    plan_cache_clear(&c->running.plans);
}

/* ---- What the session wants done --------------------------------------------------------------------------------- */

static bool lanes_plan(struct comm *c, struct comm_op *op, const struct session_op *run)
{
    op->plan.made = plan_cache_take(&c->running.plans, run->view, &run->plan, run->ranks);
    if (op->plan.made == NULL) {
        return false;
    }
    op->plan.plan = &op->plan.made->plan;
    if (!comm_op_sums(c, op, numeric_user_bytes(&run->numeric, op->plan.plan->scratch))) {
        return false;
    }
    op->plan.saved = op->memory.lazy ? calloc((size_t)op->plan.plan->frame_count + 1, sizeof *op->plan.saved) : NULL;
    return op->plan.saved != NULL || !op->memory.lazy;
}

static void lanes_post(struct comm *c, struct comm_op *op, struct lane_order order, struct comm_after *after)
{
    order.op = op;
    order.comm = c;
    order.view = op->run.view;
    order.name = op->run.name;
    for (uint32_t i = 0; i < op->run.lanes; i++) {
        lane_post_surely(c->engine->lane[i], &order);
        after->lanes |= UINT64_C(1) << i;
    }
}

void op_lanes_start(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops.at[a->slot];
    const struct session_op *run = session_op(c->machine.session, a->slot);
    op->run.started = true;
    c->running.count++;
    op->run.view = run->view;
    op->run.name = run->name;
    op->run.numeric = run->numeric;
    op->run.lanes = run->lanes < c->machine.config.lanes ? run->lanes : c->machine.config.lanes;
    op->run.verify = run->verify;
    op->run.in = run->in;
    op->run.launch = run->launch;
    op->run.stall_ns = session_stall_ns(c->machine.session);
    op_forecast_start(c, op, run);
    op_room_keep(c, op, a->value, op->run.lanes);
    atomic_store(&op->share.done_left, op->run.lanes);
    atomic_store(&op->share.idle_left, op->run.lanes);
    if (!lanes_plan(c, op, run)) {
        /* Nothing was handed to lanes: it is idle, and is asked to be given up once this step is over. */
        op_room_give(c, op);
        op->run.failed = true;
        c->running.failed = true;
        return;
    }
    lanes_post(c, op, (struct lane_order){.kind = LANE_START}, after);
    engine_arm(c->engine, clock_now_ns() + op->run.stall_ns / LANES_LOOKS);
}

void op_lanes_ready(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops.at[a->slot];
    uint32_t partner = op->run.failed ? PLAN_NOBODY : plan_made_partner(op->plan.made, a->id);
    if (partner != PLAN_NOBODY) { /* else no lane has anything to do with it */
        struct lane_order order = {
            .kind = LANE_READY, .peer = a->id, .partner = partner, .credit = (uint32_t)a->value, .launch = a->order,
        };
        lanes_post(c, op, order, after);
        op_forecast_ready(c, op, a->id);
    }
}

void op_lanes_stop(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops.at[a->slot];
    if (!op->run.failed) {
        lanes_post(c, op, (struct lane_order){.kind = LANE_STOP}, after);
    }
}

void op_lanes_failed(struct comm *c, struct comm_after *after)
{
    while (c->running.failed) {
        c->running.failed = false;
        for (uint32_t i = 0; i < c->ops.fresh; i++) {
            struct comm_op *op = c->ops.at[i];
            if (op != NULL && op->run.failed && op->run.started && !op->run.told) {
                op->run.told = true;
                c->running.count--;
                op_end_cancel(c, op, CAUSE_NO_MEMORY, after);
                comm_step(c, &(struct session_event){.kind = SESSION_IDLE, .slot = i}, after);
            }
        }
    }
}

/* ---- What lanes report ------------------------------------------------------------------------------------------- */

void op_lanes_done(struct comm_op *op, const struct exec *x)
{
    struct comm *c = op->comm;
    struct comm_after after;
    atomic_fetch_add(&op->share.digest, x->digest);
    if (atomic_fetch_sub(&op->share.done_left, 1) != 1) {
        return;
    }
    comm_lock(c, &after);
    op_forecast_done(c, op, &after);
    struct session_event e = {
        .kind = SESSION_DONE, .slot = op->place.slot, .digest = atomic_load(&op->share.digest),
    };
    comm_step(c, &e, &after);
    comm_unlock(c, &after);
}

/* Bytes are counted here and not when the result is complete: the last sends may leave after that. */
void op_lanes_idle(struct comm_op *op, uint64_t tx_bytes, uint64_t rx_bytes)
{
    struct comm *c = op->comm;
    struct comm_after after;
    atomic_fetch_add(&op->share.tx_bytes, tx_bytes);
    atomic_fetch_add(&op->share.rx_bytes, rx_bytes);
    if (atomic_fetch_sub(&op->share.idle_left, 1) != 1) {
        return;
    }
    comm_lock(c, &after);
    c->running.count--;
    struct session_event e = {
        .kind = SESSION_IDLE, .slot = op->place.slot,
        .tx_bytes = atomic_load(&op->share.tx_bytes), .rx_bytes = atomic_load(&op->share.rx_bytes),
    };
    comm_step(c, &e, &after);
    comm_unlock(c, &after);
}

void op_lanes_stalled(struct comm_op *op, uint64_t peer)
{
    struct comm *c = op->comm;
    struct comm_after after;
    comm_lock(c, &after);
    comm_step(c, &(struct session_event){.kind = SESSION_STALLED, .slot = op->place.slot, .peer = peer}, &after);
    comm_unlock(c, &after);
}

int64_t op_lanes_watch(struct comm *c, int64_t now, struct comm_after *after)
{
    if (c->running.count == 0) {
        return CLOCK_NEVER;
    }
    if (now >= c->running.look_at) {
        c->running.look_at = now + session_stall_ns(c->machine.session) / LANES_LOOKS;
        for (uint32_t i = 0; i < c->machine.config.lanes; i++) {
            lane_post_surely(c->engine->lane[i], &(struct lane_order){.kind = LANE_WATCH, .comm = c});
            after->lanes |= UINT64_C(1) << i;
        }
    }
    return c->running.look_at;
}
