/* wan_loss.h - which packets of a path are lost.
 *
 * One idea: a hash of the seed and of the packet's number decides, so the same seed loses the same numbers, whatever the threads do.
 * With bursts a chain of two states, after Gilbert (1960), is driven by the same hash: its bad state loses every packet.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_LOSS_H
#define PCCL_WAN_LOSS_H

#include <stdbool.h>
#include <stdint.h>

struct wan_loss {
    uint64_t seed, count; /* count: packets so far */
    double share;         /* lost in the long run */
    double burst;         /* mean length of a run of losses; 1: each packet by itself */
    bool bad;
};

/* A number in [0, 1) that depends on both and on nothing else. */
double wan_loss_draw(uint64_t seed, uint64_t number);
/* Of the path between two hosts, by index. */
uint64_t wan_loss_seed(uint64_t seed, unsigned from, unsigned to);
/* Whether the next packet is lost. */
bool wan_loss_next(struct wan_loss *l);

#endif
