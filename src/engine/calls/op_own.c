/* op_own.c - messages of the library's own, which nobody but a queue holds.
 *
 * Its one idea: they are operations like any other, so that queues and the communicator's end know nothing new.
 * SPDX-License-Identifier: MIT */
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"
#include "engine/calls/op_own.h"

bool op_own_launch(struct comm *c, struct queue *q, struct op_own *list, uint32_t count)
{
    struct comm_after after;
    for (uint32_t i = 0; i < count; i++) {
        list[i].op = comm_op_new(c, &list[i].launch);
        if (list[i].op == NULL) {
            while (i-- > 0) {
                comm_op_free(list[i].op);
            }
            return false;
        }
    }
    comm_lock(c, &after);
    for (uint32_t i = 0; i < count; i++) {
        (void)op_end_attach(c, list[i].op, q, list[i].cookie);
        (void)op_end_release(list[i].op); /* there is no handle */
        comm_op_launch_own(c, &list[i].launch, list[i].op, &after);
    }
    comm_unlock(c, &after);
    comm_undriven(c);
    return true;
}

bool op_own_lent(struct comm *c, const struct comm_op *op)
{
    pthread_mutex_lock(&c->lock);
    bool lent = !op->place.detached && c->machine.session != NULL && session_lent(c->machine.session, op->place.slot);
    pthread_mutex_unlock(&c->lock);
    return lent;
}
