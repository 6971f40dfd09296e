/* member_entry.h - what VIEW and ADMIT say of a member, one that is gone included.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEMBER_ENTRY_H
#define PCCL_WORLD_MEMBER_ENTRY_H

#include "world/world_state.h"

/* Writes what others are told of it; of one lost since: its key, and nowhere to link with, for a newer list is on its way. */
void member_put(const struct world *w, struct writer *frame, uint64_t id);

#endif
