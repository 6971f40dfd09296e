/* await.h - waiting for operations, and giving them up.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_AWAIT_H
#define PCCL_ENGINE_AWAIT_H

#include "engine/calls/comm_op.h"

/* RESULT_PENDING: launched, *number_out is its tag or number; otherwise why not.  Returns when it has ended or `until` has passed; 0: at once. */
void comm_launch(struct comm *c, const struct comm_launch *launch, int64_t until, uint64_t *number_out, struct session_outcome *outcome);
/* Waits for its end, spends it. */
void comm_await(struct comm *c, struct comm_op *op, struct session_outcome *outcome);
/* Waits for one of them, spends it; returns its index. */
size_t comm_batch_await(struct comm *c, struct comm_batch *b, struct session_outcome *outcome);
/* Launches and waits, driving lane 0. */
void comm_reduce(struct comm *c, const struct comm_launch *launch, struct session_outcome *outcome);
/* Operations are in flight that nobody drives: the poller of lane 0 looks again. */
void comm_undriven(struct comm *c);
/* Waits for its end until then, spends nothing, beside any others; false: the time passed.  *known: there is such a handle. */
bool comm_wait_for(struct comm *c, uint8_t space, uint64_t tag, int64_t deadline, bool *known, struct op_ended *out);
/* Waits until no operation is in flight; returns how many are when the time has passed. */
uint32_t comm_drain(struct comm *c, int64_t deadline);
/* Once it has returned: its outcome is there, an in-place input restored; the lock is given back for that long. */
void op_await_read(struct comm *c, struct comm_op *op, struct comm_after *after);

#endif
