/* member_rates.c - under which keys the measured rates of members are kept, and the network that they make.
 * SPDX-License-Identifier: MIT */
#include "world/member_rates.h"
#include "world/roll.h"

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

bool member_network(const struct world *w, const uint64_t *keys, uint32_t count, struct member_network *out)
{
    size_t n = count;
    double *up = w->common->scratch_rates, *down = up + n;
    if (!rates_fill(&w->bandwidth, keys, n, up, down, w->common->scratch_path)) {
        return false;
    }
    out->net = (struct network){.n = n, .up_bps = up, .down_bps = down, .path_bps = w->common->scratch_path};
    out->share = down + n;
    for (size_t i = 0; i < n; i++) {
        out->share[i] = 1.0 / (double)n;
    }
    rates_add_sites(&w->bandwidth, keys, &out->sites, &out->net);
    return true;
}

uint32_t member_rates_whole(double x)
{
    return x < (double)UINT32_MAX ? (uint32_t)x : UINT32_MAX;
}
