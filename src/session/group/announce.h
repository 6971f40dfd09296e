/* announce.h - the launch of a collective, told to members and to lanes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_ANNOUNCE_H
#define PCCL_SESSION_ANNOUNCE_H

#include "session/session_state.h"

bool announce_hears(const struct session *s, const struct op *op, uint32_t rank);
bool announce_neighbour(const struct session *s, const struct op *op, uint32_t rank);
void announce_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void announce_to(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* READY or EAGER */
void announce_eager(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* rank NONE: to all reachable */
void announce_launch(struct session *s, struct op *op, struct outbox *out); /* READY to all who hear it; lanes hear of those heard before */

#endif
