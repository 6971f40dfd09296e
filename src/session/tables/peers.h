/* peers.h - the table of peers, by id and by rank, and what is sent to members.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PEERS_H
#define PCCL_SESSION_PEERS_H

#include "session/session_state.h"
#include "session/tables/storage.h"

uint32_t peer_find(const struct session *s, uint64_t id);
uint32_t peer_get(struct session *s, uint64_t id); /* adds; NONE if full */
size_t peer_table_bytes(uint32_t count);
void peer_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
void peers_index(struct session *s); /* entries have gone, or the table lies elsewhere */
uint32_t view_rank(const struct session *s, uint64_t id); /* NONE if not a member */
bool peer_reachable(const struct session *s, uint32_t rank); /* linked and known to be in our view */
bool edge_before(const struct missing_edge *e, uint64_t a, uint64_t b); /* in the order of a view's missing edges */
uint64_t view_relay(const struct session *s, uint64_t a, uint64_t b); /* 0: linked directly */
uint32_t origin_rank(const struct session *s, uint32_t from, uint64_t origin); /* NONE: may not speak for it */
/* Passes on what `from` said for itself to the members it has no link with, if we stand in for that link. */
void peers_relay(struct session *s, uint32_t from, uint64_t origin, const struct frame_header *h, const void *payload,
                 struct outbox *out);
/* Ends the frame under way: to one member, or to the relay that stands in for it.  It is dropped if neither is reachable yet: it is
 * said again at PING. */
void peers_send(const struct session *s, uint32_t rank, struct outbox *out);
/* With every member who has to hear it from us: all reachable ones, and the relays of the others hear it too. */
void peers_send_all(const struct session *s, struct outbox *out);
void peers_drop_unwanted(struct session *s);
void peers_unheard(struct session *s, uint64_t id); /* no memory for what it says: that is said again over the next link that brings it */
void peers_clear(struct session *s); /* no peer is known */
void peers_replay(struct session *s, struct peer *p); /* what was said in this view is said to it again */
void peers_replaying(struct session *s, bool goes_on);
void peers_bad(struct session *s, uint64_t id); /* at the end of the step its link is given up */
uint64_t peers_take_bad(struct session *s); /* 0: no peer's */

#endif
