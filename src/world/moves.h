/* moves.h - the phases of a world's machines, the moves that each allows, and the one writer of phases.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MOVES_H
#define PCCL_WORLD_MOVES_H

#include "world/world_state.h"

/* The one writer of phases: asserts the edge, traces it.  `id` and `view` go into the trace. */
void world_move(struct world *w, enum phase_machine machine, uint8_t *phase, uint8_t to, uint64_t id, uint64_t view,
                const char *why);
void world_tell(struct world *w, const char *what); /* traces what concerns all of the world */

#endif
