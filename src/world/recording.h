/* recording.h - what a world puts on record.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_RECORDING_H
#define PCCL_WORLD_RECORDING_H

#include "world/world_state.h"

/* Each into `to`, as a record of the batch of this number with `left` records behind it. */
void recording_view(struct world *w, struct group *g, struct writer *to, uint64_t number, uint32_t left); /* the next view of the group */
void recording_used(struct world *w, struct writer *to, uint64_t number, uint32_t left); /* W12: with the first view of its world */
/* Alone in their batches. */
void recording_revision(struct world *w, struct group *g, struct writer *to, uint64_t number);
void recording_end(struct world *w, struct writer *to, uint64_t number);

#endif
