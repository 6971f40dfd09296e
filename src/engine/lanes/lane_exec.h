/* lane_exec.h - the executors of a lane.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LANE_EXEC_H
#define PCCL_ENGINE_LANE_EXEC_H

#include "engine/lanes/lane.h"

/* The next pass looks at it. */
void stream_due(struct stream *s);
/* Before an executor goes: nothing may point at its buffers any more. */
void stream_let_go(struct stream *s, struct lane_exec *e);
void stream_drain(struct stream *s); /* what is left of the payload at hand is of no use */
/* Empties the inbox: begins executors; puts all other orders off, in their order, until no pass is under way. */
void lane_take(struct lane *lane);
/* Finds the executor of a frame, looking into the inbox if it is not there yet. */
struct lane_exec *lane_find(struct lane *lane, struct comm *comm, uint64_t view, const struct op_name *name);
void lane_step(struct lane *lane, struct lane_exec *e, const struct exec_event *event, struct exec_out *out);
bool lane_execs_init(struct lane *lane);
void lane_exec_start(struct lane *lane, struct comm_op *op);
/* Takes an executor out and tells its operation. */
void lane_exec_end(struct lane *lane, struct lane_exec *e);
void lane_exec_ready(struct lane *lane, struct lane_exec *e, struct stream *s, const struct lane_order *o);
/* After what may have moved it: tells its partners when it last did, if that is news. */
void lane_tell(struct lane *lane, struct lane_exec *e);
struct lane_exec *lane_exec_find(struct lane *lane, const struct comm *comm, uint64_t view, const struct op_name *name);
/* Makes sure that a frame of it finds a buffer; false: no memory, its operation is given up. */
bool lane_exec_buffer(struct lane *lane, struct lane_exec *e);
/* The connection with a partner, once for all: what was lost with it does not come over the next one.  False: it had another. */
bool lane_bind(struct lane_exec *e, uint32_t partner, struct stream *s);
void lane_unbind(struct lane_partner *p);
/* Executors that have finished or starve. */
void lane_sweep(struct lane *lane);

#endif
