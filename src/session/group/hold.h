/* hold.h - how members agree that a collective is complete.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_HOLD_H
#define PCCL_SESSION_HOLD_H

#include "session/session_state.h"

void hold_complete(struct session *s, struct op *op, uint64_t digest, struct outbox *out);
void hold_arrived(struct session *s, struct op *op, struct outbox *out);
bool hold_heard(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out);
void hold_ready(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out);
bool hold_finished(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void hold_replay(struct session *s, struct op *op, uint32_t rank, struct outbox *out);

#endif
