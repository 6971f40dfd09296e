/* link_table.h - which links a communicator has, how long each lives, and what its connections say at first.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LINK_TABLE_H
#define PCCL_ENGINE_LINK_TABLE_H

#include "engine/comm.h"

#include "engine/links/link.h"

uint32_t link_hash(struct list *by_peer);
void link_ref(struct link *l);
void link_unref(struct link *l);
/* Puts it into the table of its communicator; takes it out, with the table's reference. */
void link_enter(struct link *l);
void link_remove(struct link *l);
struct link *link_find(struct comm *c, uint64_t peer); /* listed */
struct link *link_unlisted(struct comm *c, uint64_t peer);
struct msg_hello link_hello(const struct link *l, enum link_kind kind, uint64_t number);
/* Whether memory shared with the peer is worth a try, unless it is at the Unix socket that is not trusted. */
bool link_shares(const struct link *l, const uint64_t distrusted[2]);
/* The most for such a connection (enum link_kind), and what is used here. */
uint32_t link_ring_most(uint8_t kind);
uint32_t link_ring_bytes(const struct comm *c, uint8_t kind);
/* The fabric's end of this process for such a connection; null: none, or it is not to be used with that peer. */
struct fabric_port *link_fabric(const struct link *l, uint16_t lane);
uint8_t link_net_own(const struct link *l, uint16_t lane); /* enum net_why: why there is none */

/* With comm.lock: tells of each connection (link_table.c). */
void comm_traffic(struct comm *c, void (*tell)(void *user, const struct comm_traffic *one), void *user);

#endif
