/* op_queue.c - operations and completion queues: attached, delivered, left behind by their communicator.
 *
 * What is in a queue leads to its communicator, whose end may come at any time.  So it is entered with the queue's lock, and
 * what is left in queues is cut off from it, with that lock too, before it goes.
 *
 * Invariant: an operation without a communicator is in a queue's list, was read, and has no holder but that queue.
 * SPDX-License-Identifier: MIT */
#include "engine/comm.h"
#include "engine/comm_calls.h"
#include "engine/threads/comm_step.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"
#include "engine/op_queue.h"

enum op_attached op_queue_attach(struct comm *c, uint8_t space, uint64_t tag, struct queue *q, uint64_t cookie)
{
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = comm_find(c, space, tag);
    enum op_attached how = op == NULL                           ? OP_UNKNOWN
                           : op_end_attach(c, op, q, cookie) ? OP_ATTACHED
                                                                : OP_ATTACHED_BEFORE;
    pthread_mutex_unlock(&c->lock);
    if (how == OP_ATTACHED) {
        comm_undriven(c);
    }
    return how;
}

/* Reads it for the queue, which has done with it. */
static void queue_deliver(struct comm *c, struct comm_op *op, struct op_ended *out)
{
    struct comm_after after;
    comm_lock(c, &after);
    op_await_read(c, op, &after);
    op_end_tell(op, out);
    bool last = op_end_detach(op);
    comm_unlock(c, &after);
    if (last) {
        comm_op_free(op);
    }
}

bool op_queue_take(struct queue *q, struct op_ended *out, uint64_t *cookie)
{
    struct queue_entry *entry = queue_take(q);
    struct comm_op *op = entry != NULL ? LIST_ENTRY(entry, struct comm_op, end.entry) : NULL;
    struct comm *c = op != NULL ? op->comm : NULL;
    if (c != NULL) {
        comm_enter(c); /* it is there until this lock is given back, and then until this call is out */
    }
    queue_let(q);
    if (op == NULL) {
        return false;
    }
    *cookie = entry->cookie;
    if (c != NULL) {
        queue_deliver(c, op, out);
        comm_exit(c);
        return true;
    }
    op_end_tell(op, out);
    if (op_end_detach(op)) {
        comm_op_free(op);
    }
    return true;
}

/* Cuts it off, unless a call that has entered takes it just now. */
static bool queue_orphan(struct comm_op *op)
{
    struct queue *q = op->end.entry.queue;
    pthread_mutex_lock(&q->lock);
    bool still = queue_has(&op->end.entry);
    if (still) {
        comm_op_orphan(op);
        (void)op_end_release(op); /* the caller's, before anybody else sees it */
    }
    queue_let(q);
    return still;
}

void op_queue_orphan(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    while (!list_empty(&c->ops.attached)) {
        struct comm_op *op = LIST_ENTRY(c->ops.attached.next, struct comm_op, end.attached);
        op_end_hold(op);
        op_await_read(c, op, &after);
        bool taken = op->end.entry.queue == NULL; /* and read, while the lock was not held */
        if (taken || !queue_orphan(op)) {
            if (!taken) {
                pthread_cond_wait(&c->changed, &c->lock);
            }
            if (op_end_release(op)) {
                comm_op_free(op);
            }
        }
    }
    comm_unlock(c, &after);
}
