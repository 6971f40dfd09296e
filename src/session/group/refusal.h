/* refusal.h - how a collective fails alike on all members.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_REFUSAL_H
#define PCCL_SESSION_REFUSAL_H

#include "session/session_state.h"

void refusal_send(struct session *s, struct op *op, uint8_t cause, uint64_t culprit, struct outbox *out);
void refusal_again(struct session *s, const struct op *op, uint32_t rank, struct outbox *out); /* what was sent last, to one */
void refusal_mismatch(struct session *s, struct op *op, uint64_t with, struct outbox *out); /* our call and theirs differ */
bool refusal_heard(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out);
void refusal_check(struct session *s, struct op *op, struct outbox *out);
void refusal_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out); /* deadline, cancel */
void refusal_skip(struct session *s, uint32_t settled); /* those first refused before so many votes were settled, that one included */
void refusal_taken(struct session *s, struct op *op, uint32_t rank); /* that member has */
void refusal_taken_before(struct session *s, const struct op_name *name); /* all have come to this number of that tag */
void refusal_forget(struct session *s); /* its view has ended */

#endif
