/* launch.h - calls of the program: entered, deferred, collected.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_LAUNCH_H
#define PCCL_SESSION_LAUNCH_H

#include "session/session_state.h"

void launch_call(struct session *s, struct session_event *e, struct outbox *out);
void launch_deferred(struct session *s, struct outbox *out); /* as many as the outbox takes: the rest in a later step */
bool launch_due(const struct session *s); /* a deferred call need not wait any longer */
void launch_collect(struct session *s, struct session_event *e);

#endif
