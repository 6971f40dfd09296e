/* pair.h - messages from one member to another.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PAIR_H
#define PCCL_SESSION_PAIR_H

#include "session/session_state.h"

void pair_launch(struct session *s, uint32_t slot, struct outbox *out); /* its turn has come, in this view */
void pair_ready(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out); /* READY was heard */
void pair_eager(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out);
void pair_complete(struct session *s, struct op *op, uint64_t digest, struct outbox *out);
bool pair_hold(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out);
bool pair_finished(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* its sender has heard the word */
bool pair_refusal(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out);
void pair_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out); /* deadline, cancel, no memory */
void pair_give_up(struct session *s, uint32_t slot, uint8_t cause, struct outbox *out); /* a receive without a number */
void pair_replay(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void pair_match(struct session *s, struct tag *box, struct outbox *out); /* the first of the line, as long as it can be */
bool pair_ended_by_view(struct session *s, uint32_t slot, struct outbox *out); /* a call that nobody can answer in this view */
enum session_result pair_check(struct session *s, const struct session_launch *l, struct call_of *call);
enum session_result pair_check_window(struct session *s, const struct session_launch *l, struct call_of *call);
bool pair_tells(const struct session *s, const struct op *op);
bool pair_wanted(const struct session *s, const struct op *op, uint32_t rank);
void pair_arrived(struct session *s, struct op *op, struct outbox *out);
void pair_stop(struct session *s, struct op *op);
void pair_new_view(struct session *s, const struct msg_view *m, struct outbox *out); /* it is installed */
bool pair_wait(struct session *s, uint32_t slot); /* the last of its tag; false: no memory */
void heard_listen(struct session *s, struct op *op); /* announced: a receive may be matched with it */
void heard_unlist(struct session *s, struct op *op);
void pair_close_lines(struct session *s); /* all calls have ended */
void pair_leave_line(struct session *s, struct tag *box, uint32_t slot);
/* What the first of those that wait is matched with: the pair's entry; null: nothing yet. */
struct tag *pair_next(struct session *s, struct tag *box, uint64_t *source);
struct tag *heard_box(struct session *s, uint8_t space, uint64_t tag, bool make); /* the receives of that tag here */

#endif
