/* member_rates.h - the network of a view's members, as the cost model sees it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEMBER_RATES_H
#define PCCL_WORLD_MEMBER_RATES_H

#include "topology/rates.h"
#include "world/world_state.h"

struct member_network {
    struct network net;       /* ranks are its members; in scratch memory of the master, until that is used again */
    struct rates_sites sites; /* room for those of `net` */
    double *share;            /* equal shares, likewise */
};

/* Of the members with these keys, at most BOUNDS_RING.  False, nothing to be used: no rate of theirs is known. */
bool member_network(const struct world *w, const uint64_t *keys, uint32_t count, struct member_network *out);

/* Of a cost that stands in a view. */
uint32_t member_rates_whole(double x);

/* The rates keys of members, until the next call; RATES_NOBODY for one that is gone.  At most BOUNDS_RING ids. */
const uint64_t *member_rates_keys(const struct world *w, const uint64_t *ids, uint32_t count);

#endif
