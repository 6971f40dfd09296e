/* membership_text.h - lines for everybody, of what happens to the membership.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_MEMBERSHIP_TEXT_H
#define PCCL_SESSION_MEMBERSHIP_TEXT_H

#include "session/session_state.h"

void membership_say_registered(const struct session *s, struct outbox *out);
void membership_say_master_lost(struct outbox *out, const char *why); /* why: null: not known */
void membership_say_master_back(const struct session *s, struct outbox *out);
void membership_say_freeze(const struct session *s, const struct msg_freeze *m, struct outbox *out);
/* The view is about to be installed: its members are in scratch_members, its edges in view.edge, those of before still in view.ids. */
void membership_say_view(const struct session *s, const struct msg_view *m, struct outbox *out);
void membership_say_left(const struct session *s, bool excluded, struct outbox *out);

#endif
