/* peer_watch.h - see peer_watch.c.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SIM_PEER_WATCH_H
#define PCCL_SIM_PEER_WATCH_H

#include "sim_cluster.h"

void watch_start(struct cluster *cl, struct node *n);
void watch_look(struct cluster *cl, struct node *n);
void watch_again(struct cluster *cl, struct node *n, uint32_t slot, uint32_t lane); /* a partner is READY */
void watch_heard(struct cluster *cl, struct node *n, uint32_t slot, uint32_t lane, uint32_t partner, const struct msg_credit *m);

#endif
