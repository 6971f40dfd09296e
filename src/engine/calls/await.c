/* await.c - waiting for an operation, and giving it up.
 *
 * Who waits drives lane 0 if nobody else holds it, so that nobody is woken for its operation, and sleeps otherwise.
 * Any number may wait for one: the first that comes to read it has its outcome collected, and its input restored; for all.
 * Invariant: an operation is collected exactly once, and its handle spent by the thread that claimed it.
 * SPDX-License-Identifier: MIT */
#include <sched.h>
#include <string.h>

#include "core/clock.h"
#include "core/condition.h"
#include "core/mutant.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/threads/spin.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"
#include "engine/threads/lane_hold.h"

enum { AWAIT_TRIES = 64 }; /* to get lane 0 from a poller that is about to let go */

/* The holder of lane 0 polls until what it waits for is over, or the deadline has passed; while it looks it leaves the core to whoever
 * could run there.  PCCL_SPIN_US says for how long instead. */
static void await_drive(struct comm *c, struct comm_wait *w, int64_t deadline)
{
    static _Thread_local int64_t learnt_ns = SPIN_FIRST_NS;
    struct lane *lane = c->engine->lane[0];
    struct spin_wait wait = {.crowded = comm_crowded(c)};
    int64_t given_ns = c->engine->spin_ns, since = 0; /* since: nothing has happened; 0: something has */
    atomic_store(&w->driving, true);
    while (!atomic_load(&w->over)) {
        wait.spin_ns = given_ns >= 0 ? given_ns : learnt_ns;
        bool moved = lane_serve(lane, 0);
        if (!moved) {
            int64_t now = clock_now_ns();
            since = since == 0 ? now : since;
            if (now >= deadline) {
                break;
            }
            if (now - since < wait.spin_ns) {
                sched_yield();
            } else if (!atomic_load(&w->over)) {
                wait.slept = true;
                moved = lane_serve(lane, deadline == CLOCK_NEVER ? -1 : deadline - now);
            }
        }
        if (moved && since != 0) {
            wait.waited_ns = clock_now_ns() - since;
            learnt_ns = spin_learn(&wait);
            wait.slept = false;
            since = 0;
        }
    }
    atomic_store(&w->driving, false);
}

static bool await_take_lane(struct comm *c)
{
    struct lane *lane = atomic_load(&c->joined) ? c->engine->lane[0] : NULL;
    for (int i = 0; lane != NULL && i < AWAIT_TRIES; i++) {
        if (atomic_load(&lane->driven)) {
            return false;
        }
        if (lane_try(lane)) {
            atomic_store(&lane->driven, true);
            lane_mask(lane);
            return true;
        }
        sched_yield();
    }
    return false;
}

static void await_give_lane(struct comm *c)
{
    struct lane *lane = c->engine->lane[0];
    atomic_store(&lane->driven, false);
    lane_release(lane, true);
}

void comm_undriven(struct comm *c)
{
    if (atomic_load(&c->joined)) {
        lane_unmask(c->engine->lane[0]);
    }
}

/* Pollers see to lane 0 for as long as this thread sleeps. */
static void await_watched(struct comm *c, bool asleep)
{
    struct lane *lane = c->engine->lane[0];
    if (!asleep) {
        atomic_fetch_sub(&lane->sleepers, 1);
        return;
    }
    atomic_fetch_add(&lane->sleepers, 1);
    lane_unmask(lane);
}

static void await_sleep(struct comm *c, struct comm_wait *w, int64_t deadline)
{
    bool in_time = true;
    await_watched(c, true);
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&w->over) && in_time) {
        in_time = cond_wait(&w->changed, &c->lock, deadline);
    }
    pthread_mutex_unlock(&c->lock);
    await_watched(c, false);
}

static void await_over(struct comm *c, struct comm_wait *w, int64_t deadline)
{
    if (atomic_load(&w->over)) {
        return;
    }
    if (await_take_lane(c)) {
        await_drive(c, w, deadline);
        await_give_lane(c);
    } else {
        await_sleep(c, w, deadline);
    }
}

void op_await_read(struct comm *c, struct comm_op *op, struct comm_after *after)
{
    while (op->end.read == OP_READING) { /* by another thread */
        pthread_cond_wait(&op->end.returned.changed, &c->lock);
    }
    if (op->end.read == OP_READ) {
        return;
    }
    bool late = op->place.detached;
    if (!late) {
        op_end_collect(c, op, after);
        comm_op_vacate(c, op);
    }
    if (op->end.outcome.restore && !(late && MUTANT(RESTORE_NOT))) {
        op_end_read(op, OP_READING);
        pthread_mutex_unlock(&c->lock);
        comm_op_restore(op);
        pthread_mutex_lock(&c->lock);
    }
    op_end_read(op, OP_READ);
    comm_op_keep_backup(c, op);
    comm_ended(c);
}

/* The call is over: takes the outcome, spends the handle. */
static void await_collect(struct comm *c, struct comm_op *op, struct session_outcome *outcome)
{
    struct comm_after after;
    comm_lock(c, &after);
    op_await_read(c, op, &after);
    *outcome = op->end.outcome;
    bool last = comm_op_spend(op);
    comm_unlock(c, &after);
    if (last) {
        comm_op_free(op);
    }
}

bool comm_wait_for(struct comm *c, uint8_t space, uint64_t tag, int64_t deadline, bool *known, struct op_ended *out)
{
    struct comm_after after;
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = comm_find(c, space, tag);
    *known = op != NULL;
    if (op != NULL) {
        op_end_hold(op);
    }
    pthread_mutex_unlock(&c->lock);
    if (op == NULL) {
        return false;
    }
    await_over(c, &op->end.returned, deadline);
    comm_lock(c, &after);
    bool over = atomic_load(&op->end.returned.over);
    if (over) {
        op_await_read(c, op, &after);
        op_end_tell(op, out);
    }
    bool last = op_end_release(op);
    comm_unlock(c, &after);
    if (last) {
        comm_op_free(op);
    }
    return over;
}

uint32_t comm_drain(struct comm *c, int64_t deadline)
{
    bool in_time = true;
    if (!atomic_load(&c->joined)) {
        return 0;
    }
    await_watched(c, true);
    pthread_mutex_lock(&c->lock);
    comm_drains(c, true);
    while (c->ops.open > 0 && in_time) {
        in_time = cond_wait(&c->changed, &c->lock, deadline);
    }
    comm_drains(c, false);
    uint32_t left = c->ops.open;
    pthread_mutex_unlock(&c->lock);
    await_watched(c, false);
    return left;
}

void comm_await(struct comm *c, struct comm_op *op, struct session_outcome *outcome)
{
    await_over(c, &op->end.returned, CLOCK_NEVER);
    await_collect(c, op, outcome);
}

size_t comm_batch_await(struct comm *c, struct comm_batch *b, struct session_outcome *outcome)
{
    await_over(c, &b->any, CLOCK_NEVER);
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = op_end_of_batch(b);
    pthread_mutex_unlock(&c->lock);
    size_t index = op->given.index;
    await_collect(c, op, outcome);
    return index;
}

/* Launches and waits; false: it was not launched.  What is passed is freed then. */
static bool await_launched(struct comm *c, const struct comm_launch *launch, struct comm_op *op, int64_t deadline,
                           struct session_outcome *outcome)
{
    bool mine = await_take_lane(c); /* before the launch: nobody is to be woken for its start */
    bool pending = comm_op_launch(c, launch, &op, 1, outcome) == 1;
    if (mine) {
        if (pending) {
            await_drive(c, &op->end.returned, deadline);
        }
        await_give_lane(c);
    } else if (pending) {
        await_sleep(c, &op->end.returned, deadline);
    }
    return pending;
}

void comm_reduce(struct comm *c, const struct comm_launch *launch, struct session_outcome *outcome)
{
    struct comm_op *op = comm_op_new(c, launch); /* may copy its input: for that long no lane may be held */
    if (await_launched(c, launch, op, CLOCK_NEVER, outcome)) {
        await_collect(c, op, outcome);
    }
}

/* As comm_launch, for a while.  It is held: another thread that guesses its number may spend it. */
static void await_for_a_while(struct comm *c, const struct comm_launch *launch, struct comm_op *op, int64_t until, uint64_t *number_out,
                              struct session_outcome *outcome)
{
    op_end_hold(op);
    if (!await_launched(c, launch, op, until, outcome)) {
        return;
    }
    *number_out = op->given.tag;
    pthread_mutex_lock(&c->lock);
    bool over = atomic_load(&op->end.returned.over), last = op_end_release(op);
    pthread_mutex_unlock(&c->lock);
    if (last) {
        comm_op_free(op);
    }
    if (!over) {
        comm_undriven(c);
    }
}

void comm_launch(struct comm *c, const struct comm_launch *launch, int64_t until, uint64_t *number_out, struct session_outcome *outcome)
{
    struct comm_op *op = comm_op_new(c, launch);
    if (until != 0 && op != NULL) {
        await_for_a_while(c, launch, op, until, number_out, outcome);
    } else if (comm_op_launch(c, launch, &op, 1, outcome) == 1) {
        *number_out = op->given.tag;
        comm_undriven(c);
    }
}
