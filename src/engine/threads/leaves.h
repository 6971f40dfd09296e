/* leaves.h - hashing all leaves of a shared state, with helpers where there is much of it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LEAVES_H
#define PCCL_ENGINE_LEAVES_H

#include "session/state/sync.h"

/* Fills leaf_hash; `cores`: how many threads may be of use. */
void leaves_hash(struct sync_state *state, uint32_t cores);

#endif
