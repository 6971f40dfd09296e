/* fetch.h - how this peer receives the elected state.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_FETCH_H
#define PCCL_SESSION_FETCH_H

#include "session/session_state.h"

void fetch_elected(struct session *s, struct reader *r, struct outbox *out);
void fetch_down(struct session *s, uint64_t peer, struct outbox *out);
void fetch_memory(struct session *s, void *memory, struct outbox *out);
void fetch_again(struct session *s, struct outbox *out); /* the master's connection was resumed: STAGED again */
void fetch_members_changed(struct session *s, struct outbox *out);
/* The answer to election `round` came: ACT_SYNC_APPLY if anything is staged in it. */
bool fetch_apply(struct session *s, uint32_t round, struct outbox *out);
void fetch_reset(struct session *s, struct outbox *out);
void fetch_manifest(struct session *s, uint64_t peer, const struct msg_manifest *m, const void *hashes, struct outbox *out);
void fetch_leaf(struct session *s, uint64_t peer, const struct msg_leaf *m, const void *payload, struct outbox *out);
void fetch_entries(struct session *s, uint64_t peer, const struct msg_entries *m, struct reader *r, struct outbox *out);
void sync_frame(struct session *s, struct session_event *e, struct outbox *out);

#endif
