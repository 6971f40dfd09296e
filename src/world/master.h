/* master.h - membership, votes and outcomes: the master as a step function.
 *
 * master_step turns one event into actions; it never blocks, allocates, reads a clock or sees a socket.  Its shells are
 * server.c (real sockets) and the simulator.  State lives in one arena sized at init; the limits are parameters.
 *
 * Life of a connection: OPENED, then a REGISTER frame makes it a newcomer's (id 0) or resumes a member's (its id; the old
 * connection is void).  Life of a member: PENDING (registered), ACCEPTED (in a view), GONE (its id is never used again).
 * Life of a group: NORMAL, FREEZING (a view is being ended: FREEZE out, FROZEN coming in), PERSISTING (the decision is
 * with the journal).  Admission is one for all groups: ADMITTING (ADMIT out, LINKED coming in), then PERSISTING.
 *
 * Rules M1 to M10 and the decision table are stated in docs/RULES.md; each is named where it is kept.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MASTER_H
#define PCCL_WORLD_MASTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/phase.h"
#include "wire/control.h"
#include "wire/outbox.h"

struct master; /* the arena's first object */

struct master_config {
    uint64_t run;              /* not 0 */
    uint32_t epoch;            /* of this incarnation, from 1 */
    uint32_t max_connections, max_members, max_groups;
    uint32_t max_edges;        /* missing edges of a view, at most BOUNDS_EDGES: whoever has one more too many is refused */
    uint32_t idle_tags;        /* an update of a peer that knows more makes a view of the same members: they are forgotten with it */
    uint32_t max_operations;   /* operations on record in one freeze, all members' lists merged */
    int64_t heartbeat_ns;      /* default 1 s */
    int64_t dead_ns;           /* silence after which a member is excluded; default 10 s */
    int64_t reconnect_ns;      /* a lost control connection may be resumed for so long (unless a link of the peer broke too); 2 s */
    int64_t register_ns;       /* REGISTER must arrive within; 5 s */
    int64_t admit_ns;          /* LINKED must arrive within; 5 s */
    int64_t collect_ns;        /* silence reports are collected for so long before one is blamed; 200 ms */
    int64_t probe_ns;          /* length of one probe; 200 ms */
    struct plan_view plan;     /* frame_bytes, eager_bytes, algorithm; lanes = most lanes of a view */
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
    MASTER_SOLVE,    /* find a ring for group action.slot: master_matrix gives the costs; answer with MASTER_SOLVED action.value */
    MASTER_TRACE,    /* data: a static text of what happened; id: member; value: view.  For logs and golden traces */
};

/* Bytes of arena for a configuration; 0 if a limit is out of range. */
size_t master_arena_bytes(const struct master_config *config);
/* `arena` is zeroed by the call and must live as long as the master; aligned to 64. */
struct master *master_init(const struct master_config *config, void *arena);

/* Runs one event.  A failed assertion inside poisons the master: it closes all connections and ignores everything later. */
void master_step(struct master *m, int64_t now, const struct master_event *event, struct outbox *out);

/* When MASTER_TICK is due, INT64_MAX if never. */
int64_t master_deadline(const struct master *m);

bool master_poisoned(const struct master *m);
/* The assertion that poisoned it, and where; static. */
const char *master_failure(const struct master *m, const char **where);

/* For MASTER_SOLVE: members of the view of the group in rank order and their cost matrix, cost[from * n + to] in seconds per gigabit,
 * infinity where there is no edge; returns n.  For status displays too. */
uint32_t master_matrix(const struct master *m, uint32_t group, double *cost, uint32_t *current_ring, uint32_t capacity);

/* Size of an outbox that no step overflows. */
void master_out_bounds(const struct master_config *config, uint32_t *actions, uint32_t *bytes, uint32_t *dests);

/* What a MASTER_TRACE of the last step says, for the log: who, where, what, why.  True: of members, for everybody; false: for
 * those who look closer. */
bool master_trace_text(const struct master *m, const struct action *a, char *out, size_t size);

/* The tables of its state machines, for diagrams. */
const struct phase_table *master_phases(uint32_t *count);

/* What oracles and status displays read. */
struct master_group_view {
    uint32_t group;        /* label */
    uint64_t view;         /* published */
    bool freezing;
    uint32_t members;
    uint64_t revision;     /* next expected by a sync, 0 none yet */
};
uint32_t master_group_count(const struct master *m);
void master_group_get(const struct master *m, uint32_t index, struct master_group_view *out, uint64_t *ids,
                      uint32_t capacity);
uint32_t master_pending_count(const struct master *m);

/* The newest view that this accepted member surely has; 0: none, or no such member. */
uint64_t master_known_view(const struct master *m, uint64_t id);

#endif
