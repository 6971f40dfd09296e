/* complaint.h - what the master is told of links and operations that do not move.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_COMPLAINT_H
#define PCCL_SESSION_COMPLAINT_H

#include "session/session_state.h"

/* The link with a member of the view broke, is silent or cannot be made. */
void complaint_link(struct session *s, struct peer *p, enum cause cause, struct outbox *out);
bool complaint_silent(const struct session *s, const struct peer *p); /* suspected of it, and still is */
void complaint_path(struct session *s, struct peer *p); /* behind a missing edge: its relay has lost it */
/* An operation that only the master can settle.  `text` is static. */
void complaint_op(struct session *s, struct op *op, enum cause cause, uint64_t peer, const char *text, struct outbox *out);
/* Calls that wait for members behind this one: another view is wanted, and why (behind.c). */
void complaint_behind(struct session *s, uint8_t cause, struct outbox *out);
void complaint_forget(struct session *s); /* the view of that has ended */
void complaint_spare(struct session *s, const struct peer *p, struct outbox *out); /* LINKED is taken back */
void complaint_again(struct session *s, struct outbox *out); /* the master is back: it may not have heard */
/* Since when the operation cannot end without the master; INT64_MAX: it can. */
int64_t complaint_stuck(const struct session *s, const struct op *op);
void complaint_pass(struct session *s); /* time has passed, or operations have ended: what moves again is not stuck */
/* Since when a call that is open here cannot end without the master, which is lost; INT64_MAX: each may end without it. */
int64_t complaint_since(const struct session *s);
void complaint_ends(struct session *s, uint32_t slot); /* the call does not run any more */
void complaint_table_use(struct session *s, void *storage, uint32_t calls); /* of heap_bytes, in place of the present one */
void complaint_table_forget(struct session *s);

#endif
