/* source.h - who gives the elected state to whom.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_SOURCE_H
#define PCCL_WORLD_SOURCE_H

#include "world/world_state.h"

/* Voters of the group's sync in rank order: the next at or behind *at, null at the end. */
struct member *voter_next(const struct world *w, const struct group *g, uint32_t *at);
bool source_has(const struct member *mb); /* it holds what this round has elected, or has staged it */
/* ELECTED to all that can be told and were not. */
void source_tell(struct world *w, struct group *g);
/* ... once more to this one alone, if it was told. */
void source_tell_again(struct world *w, struct group *g, const struct member *mb);

#endif
