/* claim.h - a call that creates a world of a given size.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_CLAIM_H
#define PCCL_SESSION_CLAIM_H

#include "session/session_state.h"

bool claim_expects(const struct session *s, const struct msg_welcome *m); /* the one that CLAIM answers */
bool claim_decline(struct session *s, struct outbox *out); /* it cannot go on with what it creates; false: it creates nothing */
void claim_send(struct session *s, const struct msg_welcome *m, const struct msg_register *reg, struct outbox *out);
void claim_begin(struct session *s); /* a call that connects */

#endif
