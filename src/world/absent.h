/* absent.h - members that have left, as far as the measured rates of their edges are remembered.
 *
 * Its one idea: a rate belongs to a host, not to a membership.  A newcomer from the host of a member that left takes over the key of that
 * member, with all that is known under it.  A host is the address that the master sees and the addresses that the member gave, without ports.
 * So a member that gives the addresses of another machine takes over nothing.
 * Invariant: a key belongs to one present member or to one absent one, never to two.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_ABSENT_H
#define PCCL_WORLD_ABSENT_H

#include "core/bounds.h"
#include "wire/control.h"

struct member;
struct world;

#define ABSENT_NS 3600000000000 /* remembered so long */

struct absent {
    uint64_t key;
    int64_t since;
    uint32_t group; /* its label: edges lead to members of the same group only */
    struct net_address seen;
    uint8_t addresses;
    struct net_address address[BOUNDS_ADDRESSES];
};

struct absent_list {
    struct absent *entries; /* borrowed, the one that left first comes first */
    uint32_t room, count;
};

/* So many are remembered where so many members can be measured. */
static inline uint32_t absent_room(uint32_t probed)
{
    return probed < BOUNDS_ABSENT ? probed : BOUNDS_ABSENT;
}

/* A member goes, and its key to a newcomer of its host that waits already.  Where all room is taken, the one that left first is forgotten. */
void absent_add(struct world *w, const struct member *mb);
/* A newcomer, whose addresses are known, gets its rates key: that of an absent one of its host and group, preferably with the same ports, or a
 * new one. */
void absent_recall(struct world *w, struct member *mb);
void absent_check(const struct world *w);

#endif
