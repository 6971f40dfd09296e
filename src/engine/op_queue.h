/* op_queue.h - operations and completion queues.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_QUEUE_H
#define PCCL_ENGINE_OP_QUEUE_H

#include "engine/calls/comm_op.h"

enum op_attached { OP_ATTACHED, OP_ATTACHED_BEFORE, OP_UNKNOWN };
/* The queue gets the operation of that handle when it has ended. */
enum op_attached op_queue_attach(struct comm *c, uint8_t space, uint64_t tag, struct queue *q, uint64_t cookie);
/* The next of the queue, whose it is no more; false: none has ended. */
bool op_queue_take(struct queue *q, struct op_ended *out, uint64_t *cookie);
/* The communicator goes, and its handles; what queues have of it stays theirs. */
void op_queue_orphan(struct comm *c);

#endif
