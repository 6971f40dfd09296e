/* view_ring.h - the ring order of a new view.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_VIEW_RING_H
#define PCCL_WORLD_VIEW_RING_H

#include "world/world_state.h"

void ring_repair(struct world *w, const struct view_record *from, struct view_record *to);
uint32_t ring_costs(const struct world *w, const struct view_record *v, uint64_t *cost);

#endif
