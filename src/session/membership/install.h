/* install.h - the end of a view, and the next one.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_INSTALL_H
#define PCCL_SESSION_INSTALL_H

#include "session/session_state.h"

void install_freeze(struct session *s, struct reader *r, struct outbox *out);
void install_view(struct session *s, struct reader *r, struct outbox *out);

#endif
