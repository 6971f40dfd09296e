/* finished.h - the operations that this peer has finished, told to others many at a time.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_FINISHED_H
#define PCCL_SESSION_FINISHED_H

#include "session/session_state.h"

void finished_note(struct session *s, const struct op_name *name, struct outbox *out); /* said later, with others */
void finished_flush(struct session *s, struct outbox *out);
void finished_forget(struct session *s); /* its view has ended */

#endif
