/* op_room.h - grants taken for an operation before its launch; with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_ROOM_H
#define PCCL_ENGINE_OP_ROOM_H

#include "engine/calls/comm_op.h"

/* The same window in every lane, or none at all: what is not granted now will be by the lanes. */
void op_room_reserve(struct comm *c, struct comm_op *op, const struct op_params *params, uint32_t root_rank);
/* Its start in `window` of the senders and on `lanes` lanes: what is too much goes back. */
void op_room_keep(struct comm *c, struct comm_op *op, uint64_t window, uint32_t lanes);
/* All goes back. */
void op_room_give(struct comm *c, struct comm_op *op);
/* It has ended: whatever it had taken, its lanes have let go of it. */
void op_room_end(struct comm *c, struct comm_op *op);

#endif
