/* op_forecast.h - operations that miss their predictions; with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OP_FORECAST_H
#define PCCL_ENGINE_OP_FORECAST_H

#include "engine/calls/comm_op.h"

#include "engine/links/link.h"

/* A probe has measured the edge to a peer. */
void op_forecast_measured(struct link *l, uint64_t bps);

/* Its lanes begin; one more partner is known to have launched it; its result is there. */
void op_forecast_start(struct comm *c, struct comm_op *op, const struct session_op *run);
void op_forecast_ready(struct comm *c, struct comm_op *op, uint64_t peer);
void op_forecast_done(struct comm *c, const struct comm_op *op, struct comm_after *after);

#endif
