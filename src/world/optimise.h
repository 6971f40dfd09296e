/* optimise.h - the vote for a better ring.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_OPTIMISE_H
#define PCCL_WORLD_OPTIMISE_H

#include "world/world_state.h"

void optimise_settle(struct world *w);
void optimise_measured(struct world *w, struct member *mb, const struct msg_measured *ms);
void optimise_solved(struct world *w, const struct master_event *e);
void optimise_persisted(struct world *w, uint64_t number);
void optimise_tick(struct world *w);

#endif
