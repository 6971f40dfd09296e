/* holder.h - what a holder of the elected state gives to a receiver.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_HOLDER_H
#define PCCL_SESSION_HOLDER_H

#include "session/session_state.h"

bool holder_is_voting(const struct session *s);
bool holder_has_room(const struct session *s); /* for its leaf hashes in one message */
void holder_give_manifest(struct session *s, uint64_t peer, const struct msg_manifest_want *want, struct outbox *out);
void holder_give_leaf(struct session *s, uint64_t peer, const struct msg_leaf_want *want, struct outbox *out);
void holder_give_entries(struct session *s, uint64_t peer, const struct msg_entries_want *want, struct outbox *out);

#endif
