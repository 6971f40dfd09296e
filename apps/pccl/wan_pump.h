/* wan_pump.h - the thread that moves packets: from the devices into a wan_flow, and out of it when they are due.
 *
 * It runs under SCHED_FIFO where that is permitted.  Invariant: the flow is this thread's, or the caller's between wan_pump_lock and
 * wan_pump_unlock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_PUMP_H
#define PCCL_WAN_PUMP_H

#include "pccl/wan_flow.h"
#include "pccl/wan_space.h"

struct wan_pump;

/* Begins; everything is borrowed.  Null: `error` says why. */
struct wan_pump *wan_pump_start(struct wan_flow *f, const struct wan_space *spaces, unsigned count, char error[WAN_ERROR]);
/* Ends the thread. */
void wan_pump_stop(struct wan_pump *p);
void wan_pump_lock(struct wan_pump *p);
void wan_pump_unlock(struct wan_pump *p);
/* Whether the thread runs before all others that have no such priority. */
bool wan_pump_is_first(const struct wan_pump *p);

#endif
