/* peer_links.h - the links with peers, and what is said again over new ones.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PEER_LINKS_H
#define PCCL_SESSION_PEER_LINKS_H

#include "session/session_state.h"

void links_admit(struct session *s, struct reader *r, struct outbox *out);
void links_check(struct session *s, struct outbox *out);
void links_hello(struct session *s, struct session_event *e);
void links_up(struct session *s, struct session_event *e, struct outbox *out);
void links_down(struct session *s, uint64_t id, bool refused, struct outbox *out);
void links_bad(struct session *s, uint64_t id, struct outbox *out); /* it sent what it must not: its link is given up */
void links_failed(struct session *s, uint64_t id, struct outbox *out);
void links_refused(struct session *s, uint64_t id, struct outbox *out);
void links_stale(struct session *s, uint64_t view);
void links_data_up(struct session *s, struct session_event *e, struct outbox *out);
void links_data_down(struct session *s, struct session_event *e, struct outbox *out);
void links_data_failed(struct session *s, uint64_t id, struct outbox *out);
void links_spare(struct session *s, struct outbox *out); /* a view was installed: which links it does without */
void links_healed_again(struct session *s, struct outbox *out); /* the master's connection was resumed */
void links_ping(struct session *s, uint32_t peer, uint64_t view, struct outbox *out);
void links_announce(struct session *s, struct outbox *out); /* PING to all linked members */
void links_tick(struct session *s, struct outbox *out);
void replay_settle(struct session *s, struct outbox *out); /* as much as the outbox takes: the rest in a later step */
void links_no_proposal(struct session *s); /* no next view is proposed any more */

#endif
