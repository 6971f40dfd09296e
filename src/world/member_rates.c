/* member_rates.c - under which keys the measured rates of members are kept.
 * SPDX-License-Identifier: MIT */
#include "topology/rates.h"
#include "world/world_state.h"

const uint64_t *member_rates_keys(const struct world *w, const uint64_t *ids, uint32_t count)
{
    uint64_t *keys = w->common->scratch_keys;
    PCCL_ASSERT(count <= BOUNDS_RING);
    for (uint32_t i = 0; i < count; i++) {
        const struct member *mb = member_find(w, ids[i]);
        keys[i] = mb != NULL ? mb->rates_key : RATES_NOBODY;
    }
    return keys;
}
