/* bounds.h - the named limit of every queue, table and length.
 *
 * One place, so that a reader sees what the library can be made to hold, and a reviewer finds the number that is missing.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_BOUNDS_H
#define PCCL_CORE_BOUNDS_H

#include <stdint.h>

enum {
    /* Texts, bytes with the zero. */
    BOUNDS_TEXT = 200,     /* reasons that travel on the wire */
    BOUNDS_LOG_LINE = 512,

    /* Addresses and links. */
    BOUNDS_ADDRESSES = 8, /* candidate addresses of a member */
    BOUNDS_LANES = 64,    /* p2p_connection_pool_size */

    /* Frames, bytes. */
    BOUNDS_FRAME_BYTES = 131072,    /* payload of one data frame */
    BOUNDS_EAGER_BYTES = 16384,     /* messages up to this travel with their launch */
    BOUNDS_CONTROL_FRAME = 1 << 20, /* one control message, header included */

    /* Tables, entries. */
    BOUNDS_OPS = 1024,     /* unfinished operations of a peer */
    BOUNDS_RECORDS = 4096, /* operations on record in a report */
    BOUNDS_REFUSALS = 64,  /* refusals that a member has not taken yet, per tag */
    BOUNDS_OWED = 1 << 24, /* errors of calls not made yet: 64 neighbours with BOUNDS_OPS each, lost 256 times over without an update */
    BOUNDS_MEMBERS = 1024, /* members of a view */
    BOUNDS_EDGES = 8192,   /* missing edges of a view: the master counts, sessions have room for as many */
};

/* Missing edges that a view of so many members can have. */
static inline uint32_t bounds_edges(uint32_t members)
{
    uint32_t pairs = members < 2 ? 0 : members * (members - 1) / 2;
    return pairs < BOUNDS_EDGES ? pairs : BOUNDS_EDGES;
}

#endif
