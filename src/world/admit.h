/* admit.h - newcomers come in, and what an update does.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_ADMIT_H
#define PCCL_WORLD_ADMIT_H

#include "world/world_state.h"

void admit_stop(struct world *w, const char *why); /* nothing of it is under way any more */
void admit_settle(struct world *w);
void admit_linked(struct world *w, struct member *mb, uint64_t view, struct reader *r);
void admit_persisted(struct world *w, uint64_t number);
void admit_decided(struct world *w, uint64_t number); /* the record of this number is made of what stands ready */
void admit_tick(struct world *w);
/* Fixes the sizes that the answers of this decision carry. */
void admit_fix_sizes(struct world *w);
/* Publishes the views of the batch and answers everybody else who waits in this kind of vote. */
void admit_publish(struct world *w, enum vote_kind kind);

#endif
