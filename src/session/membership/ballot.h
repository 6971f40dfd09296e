/* ballot.h - votes of this peer.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_BALLOT_H
#define PCCL_SESSION_BALLOT_H

#include "session/session_state.h"

/* What stands in the way of a call that returns RESULT_USAGE. */
void ballot_in_the_way(const struct session *s, char *out, size_t size);
void ballot_call(struct session *s, struct session_event *e, struct outbox *out);
void ballot_send(struct session *s, struct outbox *out);
void ballot_words(struct session *s, struct outbox *out); /* once each step: sends what was kept */
void ballot_answer(struct session *s, struct reader *r, struct outbox *out);
void ballot_by_view(struct session *s, const struct msg_view *m, struct outbox *out);
void ballot_end(struct session *s, enum session_result result, uint8_t cause, struct outbox *out);
void ballot_collect(struct session *s, struct session_event *e);
/* Others go on with an operation that was not launched here: the master is told if this peer waits in its first update. */
void ballot_passed(struct session *s, struct outbox *out);
void ballot_connect(struct session *s); /* no vote has been answered */
void ballot_member(struct session *s);  /* nothing was launched or voted since the admission */
void ballot_launched(struct session *s);
void ballot_told(struct session *s, const struct msg_heartbeat *m); /* whom the vote or the admission waits for */
void ballot_new_view(struct session *s); /* or none */
void ballot_admitted(struct session *s, uint32_t answered); /* by an update of that number */
void ballot_left(struct session *s, enum session_result result, uint8_t cause, struct outbox *out);

#endif
