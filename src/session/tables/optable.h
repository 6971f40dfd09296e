/* optable.h - the operations of the installed view.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_OPTABLE_H
#define PCCL_SESSION_OPTABLE_H

#include "session/session_state.h"

struct op *op_find(struct session *s, const struct op_name *name);
struct op *op_make(struct session *s, const struct op_name *name); /* finds or adds a ghost; null if full */
/* The operation that the member of this rank speaks of over the link of peer `from`; null if it is over here, or if the sender may not. */
struct op *op_hear(struct session *s, uint32_t from, uint32_t rank, const struct op_name *name);
struct op *op_hear_refusal(struct session *s, uint32_t from, uint32_t rank, const struct msg_refuse *m);
/* Whether a refusal is about this member: it says so for itself, not in answer to another. */
bool op_refusal_of(uint8_t cause, uint64_t culprit, const struct op_clash *clash, uint64_t id);
void op_taken(struct session *s, struct op *op); /* launched here, or forgotten: counts as opened by nobody */
size_t op_table_bytes(const struct session_growth *g);
void op_table_use(struct session *s, void *storage, const struct session_growth *g); /* in place of the present one */
bool op_untaken(const struct op *op); /* refused, and on record for members that may not have come to it (P10) */
void op_drop(struct session *s, struct op *op);
void op_drop_marks(struct session *s, struct op *op);
bool op_finished(struct session *s, struct op *op, uint32_t rank); /* that one has finished it, of all members: true, so has everybody */
bool op_has_finished(const struct session *s, const struct op *op, uint32_t rank);
void op_clear(struct session *s); /* all of them: a new view */
bool op_past(struct session *s, const struct op_name *name); /* launched here, finished and forgotten */
void op_record(struct session *s, struct op *op); /* it has ended here, and is kept until all members are known to have come to it */
bool op_take_passed(struct session *s); /* in this step one was heard of that is not launched here */
void op_table_forget(struct session *s); /* it has no entries; the next that is used finds nothing to move */

#endif
