/* listing.h - what a member reports of its operations when a view ends.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_LISTING_H
#define PCCL_SESSION_LISTING_H

#include "session/session_state.h"

void listing_frozen(struct session *s, struct outbox *out);
void listing_leave(struct session *s, bool revoke, struct outbox *out);

#endif
