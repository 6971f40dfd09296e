/* view_parts.h - a VIEW or ADMIT of the master that comes in parts, read as one message.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_VIEW_PARTS_H
#define PCCL_SESSION_VIEW_PARTS_H

#include "session/session_state.h"

void view_parts_use(struct session *s, void *storage, uint32_t bytes); /* in place of the present one */
/* One more piece; false: it is none of what comes. */
bool view_parts_take(struct session *s, struct reader *r);
/* The payload of a message of the master, whole: that of `e`, or all pieces if it is what they are of. */
struct reader view_parts_payload(const struct session *s, const struct session_event *e);
/* They have been read, or their connection is over. */
void view_parts_drop(struct session *s);

#endif
