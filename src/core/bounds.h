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
    BOUNDS_WORLD_NAME = 64,

    /* Addresses and links. */
    BOUNDS_ADDRESSES = 8, /* candidate addresses of a member */
    BOUNDS_LANES = 64,    /* p2p_connection_pool_size */

    /* Frames, bytes. */
    BOUNDS_FRAME_BYTES = 131072,    /* payload of one data frame */
    BOUNDS_EAGER_BYTES = 65536,     /* messages up to this travel with their launch, in a view of two */
    BOUNDS_PREMUL_OPS = 65536,      /* operators with a factor, of a communicator */
    BOUNDS_CONTROL_FRAME = 1 << 20, /* one control message, header included */
    BOUNDS_VIEW_BYTES = 1 << 22,    /* payload of the largest VIEW or ADMIT, which travels in parts */

    BOUNDS_STALL_LEAST_MS = 50, /* shorter stall times take a busy machine for a dead one */

    /* Tables, entries. */
    BOUNDS_OPS = 1024,     /* unfinished operations of a peer */
    BOUNDS_RECORDS = 4096, /* finished ones that are on record there */
    BOUNDS_REFUSALS = 64,  /* refused operations of a tag that some member may not have launched */
    BOUNDS_BEHIND = 256,   /* the same of the order of issue */
    BOUNDS_OWED = 1 << 24, /* errors of calls not made yet: 64 neighbours' BOUNDS_OPS, lost 256 times over without an update */
    BOUNDS_MEMBERS = 16384, /* members of a view, and of a world at one time */
    BOUNDS_ABSENT = 64,     /* members that have left, and of whose edges the rates are remembered */
    BOUNDS_RING = 1024,     /* of a group whose edges are measured and whose ring is searched: that takes tables of n^2 entries */
    BOUNDS_TREES = 32,        /* trees of a view, which carry a slice of large sums each */
    BOUNDS_TREE_MEMBERS = 256, /* members of a view that has trees */
    BOUNDS_WORLDS = 65536, /* worlds of a master: the place of one has 16 bits in the numbers of records and searches */
    BOUNDS_WAIT_CHAIN = 64, /* members along which a heartbeat follows who waits for whom */
    BOUNDS_TOMBSTONES = 1024, /* ... that are only remembered, a quarter at most */
    BOUNDS_CONNECTIONS = 65536, /* of a master */
    BOUNDS_EDGES = 8192,   /* missing edges of a view: the master counts, sessions have room for as many */

    /* Operations of one report: what a member has launched, at most BOUNDS_OPS + BOUNDS_RECORDS, and of what it only heard to be
     * refused as much as then fits the frame.  The rest of that it owes its own calls without being told. */
    BOUNDS_LISTED = 16384,
    BOUNDS_LAST_WORDS = 1024, /* messages to a member that leaves, on which it has had the last word */
    /* Operations that one view decides: so many fit its frame beside all members and missing edges.  That is ten members with
     * BOUNDS_OPS calls each that nobody else has made.  What remains: if survivors wait for more than that, or list twice as many
     * in all, half of which last words may be, those whose reports come last lose their place. */
    BOUNDS_DECISIONS = 10240,
    BOUNDS_CLASHES = 16, /* operations of one view of which it is told whose calls differ; of more only that they do */
};

/* Missing edges that a view of so many members can have. */
static inline uint32_t bounds_edges(uint32_t members)
{
    uint32_t pairs = members < 2 ? 0 : members * (members - 1) / 2;
    return pairs < BOUNDS_EDGES ? pairs : BOUNDS_EDGES;
}

#endif
