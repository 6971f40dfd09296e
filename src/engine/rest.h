/* rest.h - what a communicator gives back when it rests; with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_REST_H
#define PCCL_ENGINE_REST_H

#include "engine/calls/comm_op.h"

/* Gives back what a communicator holds for when it is used, if it is not. */
void rest_tick(struct comm *c, int64_t now, struct comm_after *after);

#endif
