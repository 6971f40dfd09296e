/* master_state.h - what the files of the master share: the places of its worlds, and what is the process's own.
 *
 * Invariant: a place that is over takes part in nothing any more; only its memory is still to be given back.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_MASTER_MASTER_STATE_H
#define PCCL_MASTER_MASTER_STATE_H

#include "core/heap.h"
#include "master/master.h"
#include "master/used_names.h"
#include "world/siblings.h"
#include "world/world.h"

enum {
    MASTER_DEFAULT = 0, /* the place of the default world */
    MASTER_OPERATIONS_MAX = 2 * BOUNDS_DECISIONS,
    MASTER_USED_MAX = 65536,   /* names for one world only that are not forgotten */
};

struct place {
    struct world *world; /* owned by the shell; null: free */
    uint64_t born;       /* counts worlds */
    bool over;           /* ended: memory to be reclaimed */
    bool once;           /* counted among the master's `onces` */
    uint32_t name_next, run_next; /* not over: the next place + 1 in the row of its name, of its run; 0: the last */
    uint32_t over_next;  /* over: the next place + 1 that is; 0: the last */
};

struct master {
    struct common common;
    bool poisoned;
    const char *failed_what, *failed_where; /* static: the assertion that poisoned it */
    uint32_t check_in;     /* steps until all connections are checked again */
    int64_t deadline;      /* after the last step */
    int64_t stranger_due;  /* when the first connection that has not registered is closed */
    int64_t spared_at;     /* silence timers were restarted since too many were silent (M7) */
    uint64_t opened;       /* connections so far */
    uint64_t worlds_begun; /* run ids are drawn from it */
    void *place_memory;    /* owned by the shell: the table of what follows */
    struct place *places;
    uint32_t *by_name, *by_run; /* hash tables of rows: a place + 1 */
    uint64_t *place_free;  /* set */
    struct heap due;       /* places by the next tick of their world */
    struct heap tombs;     /* ... that are only remembered, by how long they are */
    void *due_storage, *tomb_storage;
    uint32_t place_room, row_count; /* entries; rows of by_name and by_run */
    uint32_t place_count;  /* above are free ones only */
    uint32_t ended;        /* a place + 1 that is over, 0: none is */
    uint32_t most_members, most_groups; /* places of the largest world that there has been */
    struct used_names used; /* names that nobody creates a world under any more */
    uint32_t onces;         /* worlds that are forming and will use their name, after the last step */
    void *spare_siblings;  /* for the next formation of several worlds, of so many callers; null: none */
    uint32_t spare_callers;
    struct siblings *forgotten; /* memory to be reclaimed, by `next` */
    struct world *spare;   /* has room for the first of a new world; null: none */
};

/* ---- registry.c: worlds by name, by run, by number ---- */
/* The world at this place; null: none, or it is over. */
struct world *registry_at(const struct master *m, uint32_t place);
/* The next one that is not over, by place; the first after null, null after the last. */
struct world *registry_after(const struct master *m, const struct world *w);
/* By name: the one without a given size, the one that is forming. */
struct world *registry_named(const struct master *m, const char *name);
struct world *registry_forming(const struct master *m, const char *name);
struct world *registry_newest(const struct master *m, const char *name); /* of a given size, that can be joined */
/* The one in which this call has a seat, else the oldest given up that has to tell it so (W4, W7); null: none. */
struct world *registry_claimed(const struct master *m, const struct msg_register *reg);
struct world *registry_run(const struct master *m, uint64_t run);
/* Whether a world can begin in the places that there are. */
bool registry_has_place(const struct master *m, const char *name);
size_t registry_bytes(const struct master *m, uint32_t places); /* of a table of so many */
void registry_use(struct master *m, void *memory, uint32_t places); /* in place of the present one */
/* The world at this place has been taken away. */
void registry_forget(struct master *m, uint32_t place);
/* When this world's next tick is due. */
void registry_due_again(struct master *m, const struct world *w);
void registry_check(const struct master *m);
/* Nobody may create a world under this name any more. */
bool registry_used(const struct master *m, const char *name);
/* Makes the spare one the world of that name; null: no place, or no memory. */
struct world *registry_begin(struct master *m, const char *name, const struct claim *claim);
/* Behind each event of a world: it comes to rest, ends if it is a named one with nobody left, and says when it is due. */
void registry_rest(struct master *m, struct world *w);
/* The world that is due first; null: none yet. */
struct world *registry_due(const struct master *m, int64_t now);

/* ---- stranger.c: connections that have not registered ---- */
void stranger_opened(struct master *m, const struct master_event *e);
void stranger_frame(struct master *m, const struct master_event *e);
void stranger_foreign(struct master *m, uint32_t conn, uint64_t version);
void stranger_tick(struct master *m);

/* ---- creation.c: which world a call that creates one is for ---- */
/* The incarnation that is forming, begun if none is; null: the connection has been refused. */
struct world *creation_world(struct master *m, uint32_t conn, const struct msg_register *reg);
/* It answers the WELCOME of its connection; earlier connections of the call are closed unread (W3). */
bool creation_answers(struct master *m, uint32_t conn, const struct msg_claim *c);
bool creation_of_now(const struct master *m, const struct msg_claim *c); /* this master has counted it from the beginning (W8) */
void creation_take(struct master *m, const struct master_event *e, struct reader *r);

/* ---- derived.c: several worlds that are one formation (W10, W11) ---- */
void derived_take(struct master *m, const struct master_event *e, struct reader *r); /* EXPECT */
/* Whether a formation has to be made for this call. */
bool derived_new(const struct master *m, const struct msg_expect *x);
void derived_settle(struct master *m); /* behind each event: decides, gives up, forgets */

/* ---- own_pause.c: M7 ---- */
void pause_noticed(struct master *m, int64_t late_ns); /* it was the master that stood still, for so long at least */
void pause_spare(struct master *m, struct world *w); /* ... or so it seems; before the tick of a world */

/* master_check.c: asserts what must hold between two steps */
void master_check(struct master *m);

#endif
