/* op_frames.h - what peers say of operations.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_OP_FRAMES_H
#define PCCL_SESSION_OP_FRAMES_H

#include "session/session_state.h"

void op_frame(struct session *s, const struct said *said, struct outbox *out); /* of a member, in this view or one before */

#endif
