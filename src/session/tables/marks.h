/* marks.h - what each member has said of each operation.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_MARKS_H
#define PCCL_SESSION_MARKS_H

#include "session/session_state.h"

/* What that rank has said of it; of who has said nothing an empty one.  Until the next one is made. */
const struct mark *op_mark(const struct session *s, const struct op *op, uint32_t rank);
bool marks_begin(struct session *s, struct op *op); /* the own one; false: no memory */
/* The same to be written, made if it is new: null if there is no memory; which mark_heard takes out on the link that brings it. */
struct mark *mark_of(struct session *s, struct op *op, uint32_t rank);
struct mark *mark_heard(struct session *s, struct op *op, uint32_t rank);
void marks_drop(struct session *s, struct op *op);
size_t mark_table_bytes(uint32_t count);
void mark_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
void mark_table_forget(struct session *s); /* it has no entries; the next that is used finds nothing to move */

#endif
