/* parent.h - a world whose members create others together.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_PARENT_H
#define PCCL_WORLD_PARENT_H

#include "world/world_state.h"

void parent_look(struct world *w); /* at what its own members create, when some have gone */
void parent_ends(struct world *w);

#endif
