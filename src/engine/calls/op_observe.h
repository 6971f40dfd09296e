/* op_observe.h - what operations move over each edge in a while, told to the master; with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_OBSERVE_H
#define PCCL_ENGINE_OP_OBSERVE_H

#include "engine/calls/comm_op.h"

/* A long operation begins while no other runs; a peer has launched it, too; one has ended: what was moved meanwhile may be news for the master. */
void op_observe_begin(struct comm *c, int64_t now);
void op_observe_ready(struct comm *c, uint64_t peer, int64_t now);
void op_observe_end(struct comm *c, int64_t now, struct comm_after *after);

#endif
