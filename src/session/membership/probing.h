/* probing.h - what the master has asked to be measured.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PROBING_H
#define PCCL_SESSION_PROBING_H

#include "session/session_state.h"

void probing_clear(struct session *s);
void probing_add(struct session *s, const struct msg_probe *m, struct outbox *out);
void probing_measured(struct session *s, const struct session_event *e, struct outbox *out);

#endif
