/* sentence.h - texts that are put together piece by piece; one that does not fit is cut.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_SENTENCE_H
#define PCCL_SESSION_SENTENCE_H

#include "session/session_state.h"

struct sentence {
    char *out; /* borrowed */
    size_t size, used;
};

void say(struct sentence *t, const char *fmt, ...) PCCL_PRINTF(2, 3);
/* "peer 1.2 (10.0.0.3:48150)"; without an address where none is known. */
void say_member(struct sentence *t, const struct member_info *member);
/* The same of a peer that this one knows; "this peer" of itself. */
void say_peer(struct sentence *t, const struct session *s, uint64_t id);
/* "rank 2 (peer 1.6 at 10.0.0.3:48150)", by the view before a loss; "this peer" of itself. */
void say_rank(struct sentence *t, const struct session *s, uint64_t id);

#endif
