/* poison.h - what is left to do when an assertion has failed.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_POISON_H
#define PCCL_SESSION_POISON_H

#include "session/session_state.h"

void poison_machine(struct session *s, const struct check_pad *pad, struct session_event *e, struct outbox *out);
void poison_step(struct session *s, struct session_event *e, struct outbox *out); /* every step from then on */

#endif
