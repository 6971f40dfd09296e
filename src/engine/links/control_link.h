/* control_link.h - the control link with a peer; all with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_CONTROL_LINK_H
#define PCCL_ENGINE_CONTROL_LINK_H

#include "engine/links/link.h"

void controls_init(struct comm *c);
/* A connect begins. */
void controls_forget_foreign(struct comm *c);
void control_init(struct link *l, int64_t now);
/* A connection has been accepted or dialled and both ends have agreed.  Takes `conn`. */
void control_up(struct link *l, struct conn *conn, uint64_t number, struct comm_after *after);
/* What the greeting has said of sharing memory, enum share_why. */
void control_told(struct link *l, uint8_t share);
/* Memory for it has come: whether it is for the present connection; takes its transport, false: it could not be shared. */
bool control_may_share(const struct link *l, uint64_t number);
bool control_share(struct link *l, const struct transport *t, bool first);
/* Says something to the peer, if the link is there. */
void control_send(struct link *l, const void *bytes, size_t size, const void *data, size_t data_size, bool lent,
                  struct comm_after *after); /* `lent`: the data stay there as comm_lend has it */
/* The session gives it up. */
void control_unlink(struct comm *c, uint64_t peer);
/* Ends it: after what was sent, or at once, and the caller cancels its dial. */
void control_end(struct link *l, bool finish);
/* What the session wants of it has changed: how often it is tried, from when on its lack counts. */
void control_wanted(struct link *l, bool spare, int64_t now);
int64_t control_tick(struct link *l, int64_t now, struct comm_after *after);
/* By the holder of lane 0, no lock held: lets go of all of them; they give back what they do not use. */
void control_detach_all(struct comm *c);
void control_rest_all(struct comm *c);

#endif
