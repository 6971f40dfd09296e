/* op_lanes.h - operations on the lanes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_LANES_H
#define PCCL_ENGINE_OP_LANES_H

#include "engine/calls/comm_op.h"

void op_lanes_init(struct comm *c);
/* With comm.lock, if there are others: forgets the plans of earlier operations.  Another membership may call a view as the last one did. */
void op_lanes_rest(struct comm *c);
/* With comm.lock: ACT_OP_START, ACT_OP_READY, ACT_OP_STOP. */
void op_lanes_start(struct comm *c, const struct action *a, struct comm_after *after);
void op_lanes_ready(struct comm *c, const struct action *a, struct comm_after *after);
void op_lanes_stop(struct comm *c, const struct action *a, struct comm_after *after);
/* After a step: gives up those that could not be started. */
void op_lanes_failed(struct comm *c, struct comm_after *after);
/* Has the lanes look for operations that do not move; returns when to come back. */
int64_t op_lanes_watch(struct comm *c, int64_t now, struct comm_after *after);
/* From lanes: its share of the result is there; it has let go; it waits for that peer. */
void op_lanes_done(struct comm_op *op, const struct exec *x);
void op_lanes_idle(struct comm_op *op, uint64_t tx_bytes, uint64_t rx_bytes);
void op_lanes_stalled(struct comm_op *op, uint64_t peer);

#endif
