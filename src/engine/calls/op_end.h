/* op_end.h - how an operation ends, and who is told; with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_END_H
#define PCCL_ENGINE_OP_END_H

#include "engine/calls/comm_op.h"

/* Batches: any of those launched into it may be awaited. */
void comm_batch_init(struct comm_batch *b);
void comm_batch_fini(struct comm_batch *b); /* nothing of it is in flight */
/* Whether comm_batch_await returns at once. */
bool comm_batch_ended(struct comm_batch *b);
/* Who waits for any of several looks at them again when it ends (engine.any_cond).  With comm.lock. */
void comm_watch(struct comm_op *op);
/* Gives it up on all peers: CAUSE_CANCEL, CAUSE_NO_MEMORY or CAUSE_INTERNAL. */
void comm_cancel(struct comm *c, struct comm_op *op, enum cause why);
void op_end_init(struct comm_op *op);
void op_end_fini(struct comm_op *op);
/* ACT_OP_RETURN: wakes whoever waits for it. */
void op_end_returned(struct comm *c, struct comm_op *op, struct comm_after *after);
/* The same with an outcome that is none of the session's. */
void op_end_late(struct comm *c, struct comm_op *op, const struct session_outcome *outcome, struct comm_after *after);
/* Takes its outcome from the session, which forgets it. */
void op_end_collect(struct comm *c, struct comm_op *op, struct comm_after *after);
void op_end_tell(const struct comm_op *op, struct op_ended *out);
/* If the call failed for its own bad argument, *outcome gets the error that its launch was given. */
void op_end_explain(const struct comm_op *op, struct session_outcome *outcome);
/* One holder more; one less.  True: it was the last. */
void op_end_hold(struct comm_op *op);
bool op_end_release(struct comm_op *op);
/* Whether a thread waits for its end. */
bool op_end_awaited(const struct comm_op *op);
/* How far its outcome is read. */
void op_end_read(struct comm_op *op, enum op_read how);
/* Its communicator goes before its queue has delivered it. */
void op_end_unlist(struct comm_op *op);
/* The queue gets it when it has ended, with what is the program's.  False: one has it already. */
bool op_end_attach(struct comm *c, struct comm_op *op, struct queue *q, uint64_t cookie);
/* The queue has done with it.  True: it was the last holder. */
bool op_end_detach(struct comm_op *op);
/* One that has ended. */
struct comm_op *op_end_of_batch(struct comm_batch *b);
/* Gives it up on all peers, if it has not ended. */
void op_end_cancel(struct comm *c, struct comm_op *op, enum cause why, struct comm_after *after);

#endif
