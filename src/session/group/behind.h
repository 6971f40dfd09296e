/* behind.h - calls in the order of issue that wait for members which have not come to what was refused here.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_BEHIND_H
#define PCCL_SESSION_BEHIND_H

#include "session/session_state.h"

bool behind_waits(struct session *s, const struct tag *t);
void behind_settle(struct session *s, struct outbox *out); /* asks the master for another view, if one of them may not wait any longer */
/* The oldest number that not all members have come to; null: there is none, or no call waits for that.  `call`: the first that waits. */
const struct op *behind_number(const struct session *s, const struct slot **call);

#endif
