/* world.h - one world, as its master sees it: a membership domain with its own groups, votes, admission and freezes.
 *
 * The master hands each event to the world that it concerns, and then lets this world come to rest.  Its one idea: a world
 * knows of no other one; votes, sizes, conflicts and freezes reach exactly one world.
 * Invariant: between two steps nothing that could go on without a further event is left undone.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_WORLD_H
#define PCCL_WORLD_WORLD_H

#include "core/log.h"
#include "world/common.h"

struct world; /* its own table's first object */

/* ---- tables.c: memory, which the shell gives between steps ---- */

/* The table that a new world begins with. */
void world_first(const struct common *c, struct master_want *out);
struct world *world_init(struct common *c, const struct master_want *first, void *memory);

/* What the next event brings along. */
struct world_need {
    bool newcomer;     /* somebody registers, in this group, */
    uint32_t label;
    uint32_t seats;    /* ... of a world of so many, 0: of no given size */
    bool measures;     /* edges may have to be measured */
    bool complaints;   /* links may have broken */
    uint32_t reporter, reports; /* of a member, by its slot, on so many operations; 0 none */
    uint64_t view;              /* ... of this freeze, */
    uint32_t attempt;           /* ... whose attempt it answers */
    bool leaves;                /* ... or of this view, at its end */
};
/* Whether a table is too small for it; then *out says which. */
bool world_growth(const struct world *w, const struct world_need *need, struct master_want *out);
/* Moves a table into larger memory; returns what it has left, null if nothing.  *moved: the world, which may lie elsewhere now. */
void *world_grow(struct world *w, const struct master_want *want, void *memory, struct world **moved);
/* Takes a table away from a world that has ended, the world's own last; null: that was all. */
void *world_strip(struct world *w);

size_t world_bytes(const struct world *w); /* of all its tables */

/* ---- world.c: events ---- */

/* It has a place in the master's table, and who registers finds it. */
/* claim: it has a given size; null: it has none. */
void world_begin(struct world *w, uint32_t slot, uint64_t run, const char *name, const struct claim *claim);
/* seats.c: a call that creates it, whose connection has answered a WELCOME. */
void world_claim(struct world *w, uint32_t conn, const struct msg_register *reg);
void world_register(struct world *w, uint32_t conn, const struct msg_register *reg);
void world_frame(struct world *w, uint32_t conn, const struct frame_header *h, const void *payload);
void world_closed(struct world *w, uint32_t conn);
/* What came was no message of this version. */
void world_misunderstood(struct world *w, uint32_t conn);
void world_persisted(struct world *w, uint64_t number);
void world_solved(struct world *w, const struct master_event *e);
void world_tick(struct world *w);
/* Lets every part look at the whole state until nothing changes any more; behind each of the above. */
void world_settle(struct world *w);
/* It is over: on record; nobody is left in it. */
void world_end(struct world *w);
void world_check(struct world *w);

/* M7: silence of a master that stood still is nobody's; a tick later than this is of such a one. */
int64_t world_pause_ns(uint32_t stall_ms); /* 0: no peer asks for a stall time */
int64_t world_pause(const struct world *w);
void world_restart_timers(struct world *w); /* the master was away: whoever was lost may come back, too */
void world_hear_all(struct world *w);       /* ... too many seem silent at once */

/* ---- world_read.c ---- */

uint32_t world_slot(const struct world *w);
uint64_t world_run(const struct world *w);
const char *world_name(const struct world *w);
int64_t world_deadline(const struct world *w);
bool world_empty(const struct world *w); /* nobody is in it, pending ones included, or has still to be told of it */
bool world_sized(const struct world *w);
bool world_seats(const struct world *w, uint32_t size);                /* its table has room for so many ranks */
bool world_once(const struct world *w);                               /* it is forming under a name for one world only, */
bool world_uses_name(struct world *w);                                /* ... and now that name is used: said once */
bool world_joinable(const struct world *w);                           /* it has begun, and there are members who can admit */
/* Why this joiner is refused there at once; CAUSE_NONE: it waits for the next update. */
enum cause world_bars(const struct world *w, const struct claim *c, char out[BOUNDS_TEXT]);
bool world_forming(const struct world *w);                            /* its seats can still be claimed, or all given up */
bool world_knows(const struct world *w, const struct claim *c);       /* this call has a seat in it */
int64_t world_tombstone(const struct world *w);                       /* until when it is only remembered; NEVER: it is not */
/* It was given up and this rank's first call has not been told: until when it waits for that; NEVER: it does not. */
int64_t world_owes(const struct world *w, const struct claim *c);
/* Adds the registered ones, and those of them that are about to go for their silence, or soon. */
struct world_census {
    uint32_t registered, quiet;
};
void world_count(const struct world *w, struct world_census *c);
bool world_silent(struct world *w); /* whether the tick that comes finds somebody silent (roll.c) */
bool world_holds(const struct world *w, uint32_t member, uint32_t conn); /* this one is that one's */

void world_tell_status(struct world *w, struct world_status *out); /* world_status.c */
/* world_topology.c: a page. */
void world_tell_topology(const struct world *w, const struct msg_topology *asked, struct writer *to);

/* The costs between members of the group that a search is for; the number of members, 0: it is not wanted any more. */
uint32_t world_matrix(const struct world *w, uint64_t search, double *cost, uint32_t *current_ring, uint32_t capacity);

uint32_t world_group_count(const struct world *w);
void world_group_get(const struct world *w, uint32_t index, struct master_group_view *out, uint64_t *ids, uint32_t capacity);
uint32_t world_pending_count(const struct world *w);
uint64_t world_known_view(const struct world *w, uint64_t id);

/* trace_text.c: how much it matters, and as a line of the log. */
enum log_level world_trace_level(const struct action *a);
void world_trace_text(const struct world *w, const struct action *a, char *out, size_t size);

/* moves.c: the tables of its state machines, for diagrams. */
const struct phase_table *world_phases(uint32_t *count);

#endif
