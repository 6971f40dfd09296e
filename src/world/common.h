/* common.h - what all worlds of a master share: configuration, connections, counters, the outbox and scratch memory.
 *
 * Its one idea: a world reaches what is not its own by this one pointer, so nothing of another world is in its hands.  Ids
 * and numbers are counted here, so that they never mean two things at one master.
 * Invariant: a connection of state MEMBER belongs to one world from its REGISTER on, and to nobody else.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_COMMON_H
#define PCCL_WORLD_COMMON_H

#include "core/bounds.h"
#include "core/check.h"
#include "world/orders.h"

struct siblings;

#define SLOT_NONE UINT32_MAX
#define NEVER INT64_MAX

enum conn_state { CONN_FREE, CONN_OPEN, CONN_MEMBER };
struct conn {
    uint8_t state;
    uint64_t number;        /* counts all that were ever opened */
    uint64_t attempt;       /* OPEN: has had the WELCOME that CLAIM of this attempt answers; 0: none */
    uint32_t world, member; /* slots, with CONN_MEMBER */
    int64_t opened;
    uint32_t before, after; /* OPEN: its neighbours among the strangers, by when they came; SLOT_NONE */
    struct net_address seen;
};

struct common {
    struct master_config config;
    int64_t now;             /* of this step */
    struct outbox *out;      /* borrowed, during a step */
    uint64_t next_id;
    uint64_t view_floor;     /* of a world that begins: a name's views go on counting when it is used again */
    uint64_t next_persist, next_solve; /* use common_number */
    uint32_t stall_ms;       /* shortest stall time that was ever asked for, in any world; 0: none was */
    uint32_t edge_limit;     /* missing edges of any view */
    uint64_t used_recorded;  /* names for one world only, so far */
    uint32_t registered;     /* connections with CONN_MEMBER */
    uint32_t stranger_first, stranger_last; /* connections with CONN_OPEN; SLOT_NONE */
    struct siblings *touched; /* borrowed: formations that the master looks at behind this event */
    struct conn *conns;      /* borrowed, as all here: of conn_room entries, which grow with the highest one used */
    uint32_t conn_room;
    uint64_t *scratch_cost;  /* a matrix over one group */
    double *scratch_path, *scratch_rates; /* rates of one group: pairs; up, down, share */
    double *scratch_delay;   /* of its pairs, where it may have trees */
    uint64_t *scratch_trees; /* trees_room */
    uint16_t *scratch_order, *scratch_search;
    uint64_t *scratch_ids;
    uint64_t *scratch_keys;  /* of the members of one group: their rates keys */
};

enum { COMMON_NUMBER_BITS = 48 }; /* of a record's or a search's number; above them stands the slot of its world */

/* Newcomers find no place, in whatever world. */
static inline bool common_full(const struct common *c)
{
    return c->registered >= c->config.max_registered;
}

/* Missing edges that a view of so many members may have. */
static inline uint32_t common_edges(const struct master_config *c, uint32_t members)
{
    uint32_t all = bounds_edges(members);
    return all < c->max_edges ? all : c->max_edges;
}

/* Most that one view decides. */
static inline uint32_t common_decisions(const struct master_config *c)
{
    return c->max_operations < BOUNDS_DECISIONS ? c->max_operations : BOUNDS_DECISIONS;
}

/* The next of such a counter, for something of this world; the same, for what another one has in common with it. */
uint64_t common_number(uint64_t *counter, uint32_t world);
static inline uint64_t common_number_of(uint64_t number, uint32_t world)
{
    return (uint64_t)world << COMMON_NUMBER_BITS | (number & (((uint64_t)1 << COMMON_NUMBER_BITS) - 1));
}
static inline uint32_t common_world_of(uint64_t number)
{
    return (uint32_t)(number >> COMMON_NUMBER_BITS);
}

/* What is in the writer of `o` is to be made durable: MASTER_PERSIST of this number. */
void common_persist(struct outbox *o, uint64_t number);
/* Whoever registers is answered; id 0: with CLAIM it says so once more. */
void common_welcome(struct common *c, uint32_t conn, uint64_t run, uint64_t id);
/* A connection comes, a stranger's. */
void common_opened(struct common *c, uint32_t conn, const struct conn *as);
/* It is this member's from now on. */
void common_bind(struct common *c, uint32_t conn, uint32_t world, uint32_t member);
/* A connection has ended, or is about to. */
void common_gone(struct common *c, uint32_t conn);
/* Ends a connection, after what was sent to it. */
void common_close(struct common *c, uint32_t conn);
/* Says why to whoever is put out, or not let in. */
void common_fence(struct common *c, uint32_t conn, uint64_t run, uint64_t view, enum cause cause, const char *text);
/* Both: who registers is not let in. */
void common_refuse(struct common *c, uint32_t conn, uint64_t run, enum cause cause, const char *text);

#endif
