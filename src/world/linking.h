/* linking.h - one round of making links.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_LINKING_H
#define PCCL_WORLD_LINKING_H

#include "world/world_state.h"

bool linking_takes_part(const struct member *mb);
/* ADMIT of the next view, to one member or to all of it. */
void linking_send(struct world *w, struct group *g, uint32_t attempt, struct member *only);
/* A new attempt to link the members of the group's next view; returns its number. */
uint32_t linking_begin(struct world *w, struct group *g);

#endif
