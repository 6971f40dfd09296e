/* waits.h - the members that the calls of this session wait for.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_WAITS_H
#define PCCL_SESSION_WAITS_H

#include "session/session_state.h"

/* All that have to launch it before it can go on here have done so: what stands still now waits for a machine. */
bool waits_launched(const struct session *s, const struct op *op);
void waits_oldest(const struct session *s, struct peer_wait *out); /* for the heartbeat */

#endif
