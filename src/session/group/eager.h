/* eager.h - small collectives, which travel with their launch.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_EAGER_H
#define PCCL_SESSION_EAGER_H

#include "session/session_state.h"

void eager_start(struct session *s, struct op *op, struct outbox *out);
bool eager_fits(const struct session *s, uint64_t sender, const struct msg_eager *m); /* what its parameters allow */
void eager_heard(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out);

#endif
