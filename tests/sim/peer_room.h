/* peer_room.h - the staging room of one process, on all of its lanes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_PEER_ROOM_H
#define PCCL_TESTS_SIM_PEER_ROOM_H

#include "sim_cluster.h"

void rooms_new(const struct cluster *cl, struct node *n);
/* A frame has arrived: the window of its sender may grow, and the room with it, as lane_room.c does.  True: the window is not the first one. */
bool room_flow(const struct cluster *cl, struct node *n, struct data_connection *d, uint32_t lane);
uint32_t lanes_reserve(struct node *n, uint32_t senders, uint32_t want);
void lanes_unreserve(struct node *n, uint32_t grants); /* on every lane */
bool room_may_grant(const struct node *n, const struct exec *x, uint32_t lane); /* a sender that starves would get room now */
bool room_any(const struct node *n); /* there is some on a lane */
void room_buffer(const struct cluster *cl, struct node *n); /* one at least for the next frame, if its type travels encoded */

#endif
