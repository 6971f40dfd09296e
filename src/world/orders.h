/* orders.h - what the shells of the master and its worlds say to each other: configuration, events, actions.
 *
 * An event is what a shell has seen, an action what a step wants done.  Its one idea: both are plain values, so that real
 * sockets and the simulator are the same to the step.  Invariant: an event concerns one world at most, but for time, which
 * comes to one world after the other.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_ORDERS_H
#define PCCL_WORLD_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/phase.h"
#include "wire/control.h"
#include "wire/outbox.h"

struct master_config {
    uint64_t run;              /* not 0 */
    uint32_t epoch;            /* of this incarnation, from 1 */
    uint32_t max_connections;
    uint32_t max_registered;   /* newcomers are refused beyond; the other connections are for those who resume, and strangers */
    uint32_t max_worlds;       /* the default one included */
    uint32_t max_used_names;   /* that are not forgotten, of those that were for one world only; 65,536 */
    uint32_t max_members, max_groups; /* of one world */
    uint32_t max_edges;        /* missing edges of a view, at most BOUNDS_EDGES: whoever has one more too many is refused */
    uint32_t idle_tags;        /* an update of a peer that knows more makes a view of the same members: they are forgotten with it */
    uint32_t max_operations;   /* operations on record in one freeze, all members' lists merged */
    int64_t heartbeat_ns;      /* default 1 s */
    int64_t dead_ns;           /* silence after which a member is excluded; default 10 s */
    int64_t reconnect_ns;      /* a member may resume a lost control connection for this long; 2 s */
    int64_t redial_ns;         /* ... and for this long if a link of the member broke, too; 1 s, at most reconnect_ns */
    int64_t register_ns;       /* REGISTER must arrive within; 5 s */
    int64_t admit_ns;          /* LINKED must arrive within; 5 s */
    int64_t collect_ns;        /* silence reports are collected for so long before one is blamed; 200 ms */
    int64_t probe_ns;          /* that a probe measures at least, once its rate has settled; 200 ms */
    int64_t measure_ns;        /* after which a vote begins no more probes; 15 s */
    int64_t replan_ns;         /* an update looks so seldom whether its view would count with other costs now; 30 s */
    struct plan_view plan;     /* frame_bytes, eager_bytes; lanes = most lanes of a view */
    uint32_t tour_moves;       /* budget of the ring search */
    uint64_t seed;
    uint32_t check_every;      /* steps between two looks at all invariants; 0: seldom enough to cost next to nothing */
};

enum master_event_kind {
    MASTER_OPENED = 1, /* connection accepted; address says from where */
    MASTER_CLOSED,     /* connection closed or reset by the other end (not after MASTER_CLOSE) */
    MASTER_FRAME,      /* one whole frame arrived */
    MASTER_FOREIGN,    /* bytes of version `number` of the protocol arrived, which is not ours */
    MASTER_TICK,       /* time passed: call at master_deadline at the latest */
    MASTER_PERSISTED,  /* the record of MASTER_PERSIST `number` is durable */
    MASTER_SOLVED,     /* the ring of MASTER_SOLVE `number`: order[] holds `count` ranks */
};

struct master_event {
    enum master_event_kind kind;
    uint32_t connection;           /* chosen by the shell, below max_connections; reused only after CLOSED or MASTER_CLOSE */
    struct net_address address;    /* OPENED */
    const struct frame_header *header; /* FRAME; borrowed for the step */
    const void *payload;
    uint64_t number;               /* PERSISTED, SOLVED, FOREIGN */
    const uint32_t *order;         /* SOLVED; borrowed */
    uint32_t count;
};

enum master_action {
    MASTER_SEND = 1, /* frame to each connection in dest_ids */
    MASTER_CLOSE,    /* connection action.slot, after what was sent to it */
    MASTER_PERSIST,  /* frame bytes are a journal record; answer with MASTER_PERSISTED action.value */
    MASTER_SOLVE,    /* find a ring: master_matrix of action.value gives the costs; answer with MASTER_SOLVED action.value */
    MASTER_TRACE,    /* data: a static text of what happened; id: member; value: view; order: world.  For logs and golden traces */
};

/* A table that is too small for the next event: so many bytes are wanted, aligned to 64. */
enum { WANT_SPARE = UINT32_MAX, WANT_PLACES = UINT32_MAX - 1, WANT_CONNS = UINT32_MAX - 2, WANT_USED = UINT32_MAX - 3,
       WANT_SIBLINGS = UINT32_MAX - 4 };
struct master_want {
    uint32_t world;   /* slot; WANT_SPARE: of the world that is made next; else of the master itself: worlds, connections, used names,
                       a formation of several worlds */
    uint32_t table;   /* 0: the world's own; else of its group table - 1 */
    union {
        struct world_size {
            uint32_t members, groups; /* places */
            uint32_t probed;          /* members that can be measured */
            uint32_t seats;           /* ranks of a world of a given size */
        } own;
        uint32_t entries;             /* of the master's own */
        struct group_size {
            uint32_t members;         /* of a view */
            uint32_t breaks, records;
        } group;
    } size;
    size_t bytes;
};

/* What oracles and status displays read. */
struct master_group_view {
    char world[BOUNDS_WORLD_NAME];
    uint64_t run;
    uint32_t group;        /* label */
    uint64_t view;         /* published */
    bool freezing;
    uint32_t members;
    uint64_t revision;     /* next expected by a sync, 0 none yet */
};

#endif
