/* lane_hold.h - who holds a lane, who looks at it, and the orders that wait for its holder.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LANE_HOLD_H
#define PCCL_ENGINE_LANE_HOLD_H

#include "engine/lanes/lane.h"

/* Appends an order (copied); call lane_poke when no lock is held.  False: no memory. */
bool lane_post(struct lane *lane, const struct lane_order *order);
/* The same for what cannot be left undone: waits for memory. */
void lane_post_surely(struct lane *lane, const struct lane_order *order);
void lane_poke(struct lane *lane);
/* Takes the lane if nobody holds it. */
bool lane_try(struct lane *lane);
/* Gives it back and looks at nothing: lane_release does. */
void lane_let(struct lane *lane);
/* Hides the lane from its poller; shows it again. */
void lane_mask(struct lane *lane);
void lane_unmask(struct lane *lane);
/* Whether the calling thread holds this lane. */
bool lane_is_mine(const struct lane *lane);
struct list *lane_peers(struct lane *lane, uint64_t peer); /* those of that peer are among these */
uint32_t lane_peer_hash(struct list *by_peer);

#endif
