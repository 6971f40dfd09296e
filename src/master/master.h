/* master.h - many worlds at one place: the master as a step function.
 *
 * master_step turns one event into actions; it never blocks, allocates, reads a clock or sees a socket.  Its shells are
 * server.c (real sockets) and the simulator.  What belongs to the process is here: connections, counters, the pause of its
 * own, the journal; what belongs to the peers of one run is a world's (src/world).
 *
 * Life of a connection: OPENED, then a REGISTER frame makes it a newcomer's (id 0) of the world that it names, or resumes a
 * member's (its id; the old connection is void).  Life of a member: PENDING (registered), ACCEPTED (in a view), GONE (its id
 * is never used again).  Life of a group: NORMAL, FREEZING (a view is being ended: FREEZE out, FROZEN coming in), PERSISTING
 * (the decision is with the journal).  Admission is one for all groups of a world: ADMITTING (ADMIT out, LINKED coming in),
 * then PERSISTING.  Life of a world: from the first that names it to the last that leaves it; the default one never ends.
 *
 * Rules M1 to M10 and the decision table are stated in docs/internals/RULES.md; each is named where it is kept.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_MASTER_MASTER_H
#define PCCL_MASTER_MASTER_H

#include "core/log.h"
#include "world/orders.h"

struct master; /* the arena's first object */

/* Bytes of arena for a configuration; 0 if a limit is out of range.  Worlds lie outside of it. */
size_t master_arena_bytes(const struct master_config *config);
/* `arena` is cleared by the call and must live as long as the master; aligned to 64. */
struct master *master_init(const struct master_config *config, void *arena);

/* Before each event: whether a table is too small for it; *out then says which.  The shell hands over that much memory with
 * master_grow, which returns what it may free now (or null), and asks again.  If it has none, the step does without. */
bool master_growth(const struct master *m, const struct master_event *next, struct master_want *out);
void *master_grow(struct master *m, const struct master_want *want, void *memory);
/* After each event: memory of worlds that have ended, for the shell to free; null: no more. */
void *master_reclaim(struct master *m);
/* The same of all worlds: the master is used no more. */
void *master_release(struct master *m);

/* Runs one event.  A failed assertion inside poisons the master: it closes all connections and ignores everything later. */
void master_step(struct master *m, int64_t now, const struct master_event *event, struct outbox *out);

/* When MASTER_TICK is due, INT64_MAX if never.  One tick is for one world: the next may be due at once. */
int64_t master_deadline(const struct master *m);

bool master_poisoned(const struct master *m);
/* The assertion that poisoned it, and where; static. */
const char *master_failure(const struct master *m, const char **where);

/* For MASTER_SOLVE `number`: members of the view in rank order and their cost matrix, cost[from * n + to] in seconds per
 * gigabit, infinity where there is no edge; returns n, 0 if the search is not wanted any more. */
uint32_t master_matrix(const struct master *m, uint64_t number, double *cost, uint32_t *current_ring, uint32_t capacity);

/* Size of an outbox that no step overflows: whatever worlds there will be; and the next one, when it has grown what it wants. */
struct outbox_bounds master_out_most(const struct master_config *config);
struct outbox_bounds master_out_need(const struct master *m);

/* How much a MASTER_TRACE matters: a warning, news of members and worlds for everybody, or for those who look closer. */
enum log_level master_trace_level(const struct action *a);
/* What one of the last step says, for the log: who, where, what, why; before master_reclaim. */
void master_trace_text(const struct master *m, const struct action *a, char *out, size_t size);

/* The place of the world whose record, or search, that is: below max_worlds, another world's when this one has ended. */
uint32_t master_place(uint64_t number);
/* Of the world at this slot; "" for the default one, and for none. */
const char *master_world_name(const struct master *m, uint32_t slot);

/* What oracles and status displays read, of all worlds. */
uint32_t master_world_count(const struct master *m);
size_t master_world_bytes(const struct master *m); /* of all tables together */
uint32_t master_group_count(const struct master *m);
void master_group_get(const struct master *m, uint32_t index, struct master_group_view *out, uint64_t *ids,
                      uint32_t capacity);
uint32_t master_pending_count(const struct master *m);

/* The newest view that this accepted member surely has; 0: none, or no such member. */
uint64_t master_known_view(const struct master *m, uint64_t id);

#endif
