/* carrier.h - what an operation has with one member, by its link or by a relay.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_CARRIER_H
#define PCCL_SESSION_CARRIER_H

#include "session/session_state.h"

bool carrier_relays(const struct session *s, const struct op *op, uint32_t rank); /* what it moves from here there, and back, goes by one */
void carrier_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* the launch, if there is anything to tell */
void carrier_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* lanes, or the relay, hear that it has launched */

#endif
