/* op_end.c - how an operation ends: who waits for it is woken, its outcome is taken, or it is given up.
 *
 * An operation that is attached to a queue is like a call asleep on it, until it returns: lane 0 is not masked for long, and its
 * communicator's end waits for it.
 *
 * Invariant: an operation in a batch's or a queue's list has returned and was not collected, or taken.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/condition.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/calls/op_end.h"
#include "engine/threads/lane_hold.h"

static void wait_init(struct comm_wait *w)
{
    atomic_init(&w->over, false);
    atomic_init(&w->driving, false);
    cond_init(&w->changed);
}

void op_end_init(struct comm_op *op)
{
    list_init(&op->end.in_batch);
    list_init(&op->end.attached);
    list_init(&op->end.entry.all);
    op->end.holders = 1;
    wait_init(&op->end.returned);
}

/* Of a forked process: the threads that wait with it are the parent's, and nobody will come. */
static bool end_inherited(const struct comm_op *op)
{
    return op->comm != NULL && op->comm->generation != atomic_load(&op->comm->engine->generation);
}

void op_end_fini(struct comm_op *op)
{
    if (end_inherited(op)) {
        return;
    }
    pthread_cond_destroy(&op->end.returned.changed);
}

static void end_wake(struct comm *c, struct comm_wait *w, struct comm_after *after)
{
    atomic_store(&w->over, true);
    pthread_cond_broadcast(&w->changed);
    if (atomic_load(&w->driving) && !lane_is_mine(c->engine->lane[0])) {
        after->lanes |= 1;
    }
}

static void end_asleep(struct comm *c)
{
    atomic_fetch_add(&c->engine->lane[0]->sleepers, 1);
    comm_enter(c);
}

static void end_awake(struct comm *c)
{
    atomic_fetch_sub(&c->engine->lane[0]->sleepers, 1);
    comm_out(c);
}

void op_end_returned(struct comm *c, struct comm_op *op, struct comm_after *after)
{
    if (!op->place.own) {
        comm_closed(c);
    }
    end_wake(c, &op->end.returned, after);
    if (op->given.batch != NULL) {
        list_append(&op->given.batch->ended, &op->end.in_batch);
        end_wake(c, &op->given.batch->any, after);
    }
    if (op->end.entry.queue != NULL) {
        end_awake(c);
        if (!queue_append(&op->end.entry)) {
            op_end_detach(op); /* its handle still holds it */
        }
    }
    comm_ended(c);
    after->any_ended |= op->end.watched && atomic_load(&c->engine->any_waiters) > 0;
}

void op_end_late(struct comm *c, struct comm_op *op, const struct session_outcome *outcome, struct comm_after *after)
{
    op->end.outcome = *outcome;
    op_end_returned(c, op, after);
}

void op_end_tell(const struct comm_op *op, struct op_ended *out)
{
    out->phase = op->given.phase;
    out->space = op->given.space;
    out->kind = op->given.kind;
    out->receives = op->given.receives;
    out->tag = op->given.tag;
    out->outcome = op->end.outcome;
}

void op_end_hold(struct comm_op *op)
{
    op->end.holders++;
}

bool op_end_release(struct comm_op *op)
{
    return --op->end.holders == 0;
}

bool op_end_awaited(const struct comm_op *op)
{
    return op->given.awaited || op->end.holders > (op->end.entry.queue != NULL ? 2u : 1u);
}

void op_end_read(struct comm_op *op, enum op_read how)
{
    if (op->end.read == OP_READING) {
        pthread_cond_broadcast(&op->end.returned.changed);
    }
    op->end.read = how;
}

void op_end_unlist(struct comm_op *op)
{
    list_remove(&op->end.attached);
}

bool op_end_attach(struct comm *c, struct comm_op *op, struct queue *q, uint64_t cookie)
{
    bool over = atomic_load(&op->end.returned.over);
    if (op->end.entry.queue != NULL) {
        return false;
    }
    queue_use(q);
    op->end.entry.queue = q;
    op->end.entry.cookie = cookie;
    op_end_hold(op);
    comm_attached(c, &op->end.attached);
    if (!over) {
        end_asleep(c);
    } else if (!queue_append(&op->end.entry)) {
        op_end_detach(op); /* closed by another thread meanwhile: as if it had been before */
    }
    return true;
}

bool op_end_detach(struct comm_op *op)
{
    struct queue *q = op->end.entry.queue;
    list_remove(&op->end.attached);
    op->end.entry.queue = NULL;
    queue_drop(q);
    return op_end_release(op);
}

void comm_watch(struct comm_op *op)
{
    op->end.watched = true;
}

void op_end_explain(const struct comm_op *op, struct session_outcome *outcome)
{
    outcome->own = op->memory.why != NULL && (outcome->result == RESULT_ARGUMENT || outcome->result == RESULT_MISMATCH);
    if (outcome->own) {
        snprintf(outcome->text, sizeof outcome->text, "%s", op->memory.why);
    }
}

void op_end_collect(struct comm *c, struct comm_op *op, struct comm_after *after)
{
    struct session_event e = {.kind = SESSION_COLLECT, .slot = op->place.slot};
    comm_step(c, &e, after);
    op->end.outcome = e.outcome;
    op_end_explain(op, &op->end.outcome);
}

/* ---- Batches ----------------------------------------------------------------------------------------------------- */

void comm_batch_init(struct comm_batch *b)
{
    wait_init(&b->any);
    list_init(&b->ended);
}

void comm_batch_fini(struct comm_batch *b)
{
    pthread_cond_destroy(&b->any.changed);
}

bool comm_batch_ended(struct comm_batch *b)
{
    return atomic_load(&b->any.over);
}

struct comm_op *op_end_of_batch(struct comm_batch *b)
{
    struct comm_op *op = LIST_ENTRY(list_pop(&b->ended), struct comm_op, end.in_batch);
    atomic_store(&b->any.over, !list_empty(&b->ended));
    return op;
}

/* ---- Giving up --------------------------------------------------------------------------------------------------- */

void op_end_cancel(struct comm *c, struct comm_op *op, enum cause why, struct comm_after *after)
{
    if (!op->place.detached && !atomic_load(&op->end.returned.over)) {
        comm_step(c, &(struct session_event){.kind = SESSION_CANCEL, .slot = op->place.slot, .number = why}, after);
    }
}

void comm_cancel(struct comm *c, struct comm_op *op, enum cause why)
{
    struct comm_after after;
    comm_lock(c, &after);
    op_end_cancel(c, op, why, &after);
    comm_unlock(c, &after);
}
