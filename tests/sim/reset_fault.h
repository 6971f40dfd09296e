/* reset_fault.h - all connections of a process closed at once, and how others find out whether it lives.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_RESET_FAULT_H
#define PCCL_TESTS_SIM_RESET_FAULT_H

#include "sim_cluster.h"

void reset_draw(struct cluster *cl);
/* Every connection of the process breaks, with the master and with all peers, in all its worlds. */
void reset_fire(struct cluster *cl, uint16_t node);
void reset_touch(struct cluster *cl, uint16_t node); /* that is about to happen */
/* Nothing has happened in the world of this session that may cost a member its place. */
bool reset_keeps(const struct cluster *cl, const struct node *n);

/* The control link with a peer has closed; a dial of it has failed; EVENT_KNOCK. */
void reset_lost(struct cluster *cl, struct node *n, struct link *l);
void reset_failed(struct cluster *cl, struct node *n, struct link *l);
void reset_event(struct cluster *cl, struct node *n, const struct event *e);

#endif
