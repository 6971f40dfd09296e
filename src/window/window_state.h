/* window_state.h - what the files of windows say to each other, inside a step and around it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WINDOW_WINDOW_STATE_H
#define PCCL_WINDOW_WINDOW_STATE_H

#include "window/window_set.h"

/* window_todo.c */
void window_message_init(struct window_message *m, struct window *w, enum window_role role, void *owner);
/* A message of that tag to or from a member. */
struct window_launch window_launch(const struct window *w, uint32_t tag, uint64_t partner, bool receives, void *buffer, size_t bytes);
void window_say(struct window_message *m, const struct window_launch *launch, bool behind); /* under way from now on */
void window_stop(struct window_message *m); /* if it is */
void window_broken(struct window *w);
void window_over(struct window *w, const struct session_outcome *o); /* this peer is no member any more, for that reason */

/* The same, found when one of its messages had ended: which may say why, or have ended for a reason of its own before. */
void window_over_by(struct window *w, const struct session_outcome *o);

/* window_access.c */
/* What can be done at once, at memory that this process reaches. */
void window_memory_do(void *base, struct window_op *op);
uint64_t window_memory_number(void *at, const struct window_request *r); /* what lay there */
bool window_allows(size_t bytes, uint32_t rights, uint8_t kind, uint64_t offset, uint64_t length);

/* window_origin.c */
void origin_start(struct window_op *op);
void origin_ended(struct window_op *op, const struct session_outcome *o);
void origin_unsent(struct window_op *op);
void origin_give_up(struct window *w); /* those that the program has cancelled */
void origin_signals(struct window_peer *p); /* for those who wait */
void origin_late(struct window *w, int64_t now, int64_t *next); /* waits whose time has passed */
void origin_lost(struct window_peer *p); /* all that is open with it ends */
void origin_over(struct window *w); /* the same with all, by w->over */
void origin_abandon(struct window_peer *p); /* ends what the program has open with it, which has been silent for long */

/* window_target.c */
void target_hear(struct window *w); /* the next request */
void target_heard(struct window *w, const struct session_outcome *o);
void target_ended(struct window_task *t, const struct session_outcome *o);
void target_unsent(struct window_message *m);
void target_lost(struct window_peer *p);
void target_launch(struct window_set *s); /* what is due, as far as there is room */
void target_leave(struct window *w); /* gives up what touches the program's memory */
void target_stop(struct window *w); /* gives up what is open for others */

#endif
