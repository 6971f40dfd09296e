/* join.h - the connection with the master, from registration to leaving.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_JOIN_H
#define PCCL_SESSION_JOIN_H

#include "session/session_state.h"

void join_connect(struct session *s, struct session_event *e, struct outbox *out);
void join_master_up(struct session *s, uint64_t away_ns, struct outbox *out);
void join_master_down(struct session *s, const char *text, struct outbox *out);
void join_master_frame(struct session *s, struct session_event *e, struct outbox *out);
void join_tick(struct session *s, struct outbox *out);
void join_settle(struct session *s, struct outbox *out); /* what the step has decided about the membership */
/* What the master is told by who leaves. */
enum leave_word { LEAVE_UNSAID, LEAVE_SAID, LEAVE_REVOKES };
void join_leave(struct session *s, uint8_t cause, enum session_result result, const char *text, enum leave_word word,
                struct outbox *out);
void join_collect(struct session *s, struct session_event *e); /* the outcome of the call that connects */

#endif
