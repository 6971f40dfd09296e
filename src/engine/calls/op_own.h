/* op_own.h - messages of the library's own, which nobody but a queue holds.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_OWN_H
#define PCCL_ENGINE_OP_OWN_H

#include "engine/calls/comm_op.h"

/* One right after the other.  False: no memory, nothing was launched. */
bool op_own_launch(struct comm *c, struct queue *q, struct op_own *list, uint32_t count);
/* Whether lanes hold its buffers.  After a cancel they let go, and no one touches the buffers again, however long its end is in coming. */
bool op_own_lent(struct comm *c, const struct comm_op *op);

#endif
