/* culprit.h - rank and address of the member that an outcome names.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_CULPRIT_H
#define PCCL_SESSION_CULPRIT_H

#include "session/session_state.h"

/* A member of the view that ends; the next view is without it. */
void culprit_remember(struct session *s, uint32_t rank);
/* By the installed view, else by the last view that had it. */
struct member_name culprit_find(const struct session *s, uint64_t id);
void culprit_forget(struct session *s); /* all that were remembered */

#endif
