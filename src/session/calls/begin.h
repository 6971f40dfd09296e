/* begin.h - what every call goes through when its turn has come.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_BEGIN_H
#define PCCL_SESSION_BEGIN_H

#include "session/session_state.h"

bool begin_owed(struct session *s, uint32_t slot, struct tag *t, struct outbox *out); /* the call has ended with what was owed */
bool begin_too_far(struct session *s, const struct tag *t);
void begin_number(struct session *s, uint32_t slot, struct tag *t, struct op *op); /* the call is the tag's next operation */
void begin_lanes(struct session *s, struct op *op, uint32_t slot, struct outbox *out);

#endif
