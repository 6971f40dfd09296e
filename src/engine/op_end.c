/* op_end.c - how an operation ends: who waits for it is woken, its outcome is taken, or it is given up.
 *
 * Invariant: an operation in a batch's list has returned and was not collected.
 * SPDX-License-Identifier: MIT */
#include "engine/comm.h"

static void wait_init(struct comm_wait *w)
{
    pthread_condattr_t attr;
    atomic_init(&w->over, false);
    atomic_init(&w->driving, false);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
}

void op_end_init(struct comm_op *op)
{
    list_init(&op->end.in_batch);
    wait_init(&op->end.returned);
}

void op_end_fini(struct comm_op *op)
{
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

void op_end_returned(struct comm *c, struct comm_op *op, struct comm_after *after)
{
    end_wake(c, &op->end.returned, after);
    if (op->given.batch != NULL) {
        list_append(&op->given.batch->ended, &op->end.in_batch);
        end_wake(c, &op->given.batch->any, after);
    }
    comm_ended(c);
    after->any_ended |= op->end.watched && atomic_load(&c->engine->any_waiters) > 0;
}

void comm_watch(struct comm_op *op)
{
    op->end.watched = true;
}

void op_end_collect(struct comm *c, struct comm_op *op, struct comm_after *after)
{
    struct session_event e = {.kind = SESSION_COLLECT, .slot = op->place.slot};
    comm_step(c, &e, after);
    op->end.outcome = e.outcome;
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
