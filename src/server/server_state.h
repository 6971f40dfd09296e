/* server_state.h - what the files of the server share: its clients, its queues, the ring search.
 *
 * One idea: a step's actions never cause another step while they are being carried out; what they cause (a client that
 * does not read, a record that has become durable) waits in a queue until they are done.
 * Invariant: a client with a slot is in exactly one of the lists fresh, registered, lost; one without is in `leaving`.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SERVER_SERVER_STATE_H
#define PCCL_SERVER_SERVER_STATE_H

#include <pthread.h>
#include <sys/types.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "core/list.h"
#include "master/journal.h"
#include "master/master.h"
#include "server/server.h"
#include "net/conn.h"
#include "net/loop.h"
#include "topology/tour_local.h"

enum {
    SERVER_FRESH = 64,            /* connections that have not registered */
    SERVER_FRESH_HOST = 16,       /* of one host, once all places are taken */
    SERVER_FRESH_BYTES = 4096,    /* read from one before it has registered */
    SERVER_LEAVING = 64,          /* closed by us, kept open for the last words to arrive */
    SERVER_ACCEPTS = 16,          /* per turn, so that those already here are heard in between */
    SERVER_READS = 8,             /* of one client per turn */
    SERVER_QUEUE_BYTES = 8 << 20, /* not yet taken by a client */
    SERVER_SLICE_MOVES = 20000,   /* of a ring search per turn: about 100 us */
};
#define SERVER_FRAME_NS (10 * CLOCK_S)     /* a frame that has begun must be complete */
#define SERVER_LINGER_NS (1 * CLOCK_S)     /* for the last words */
#define SERVER_SWEEP_NS (CLOCK_S / 2)      /* between looks at unfinished frames */
#define SERVER_ACCEPT_NS (CLOCK_S / 10)    /* rest when the system has no descriptor left */

enum client_phase { CLIENT_FRESH, CLIENT_REGISTERED, CLIENT_LOST, CLIENT_LEAVING, CLIENT_DONE };

struct client {
    struct server *server;  /* borrowed */
    struct conn *conn;      /* owned */
    struct list link;
    struct list dirty;      /* in server->dirty: has bytes to flush */
    struct net_address from;
    enum client_phase phase;
    uint32_t slot;          /* the master's number of this connection */
    bool silenced;          /* leaving: our direction is closed */
    int64_t since;          /* opened; leaving: began to leave */
    int64_t unfinished_at;  /* an unfinished frame has been here since; CLOCK_NEVER */
};

/* Ring searches: those asked for, and the one under way.  Memory for the largest is taken when the server is made. */
struct solve {
    uint64_t *wanted;    /* owned: numbers; first come, first served */
    uint32_t wanted_count, wanted_capacity;
    bool begun;
    uint32_t count;      /* peers of the one under way, */
    uint32_t capacity;   /* ... at most */
    double *matrix;      /* owned, as what follows */
    uint64_t *cost;
    uint32_t *order;
    uint16_t *ring, *storage;
    struct tour_local search;
};

struct server {
    struct net_address listen;
    struct master_config config;
    struct loop loop;
    struct source listener;
    int64_t accept_at;       /* accepting rests until then; 0: it does not */
    void *arena;             /* owned */
    struct master *master;   /* in the arena */
    struct outbox out;
    void *out_memory;        /* owned */
    struct client **clients; /* owned: by slot */
    uint32_t *free_slots;    /* owned: a stack of those below slot_count that are free */
    uint32_t free_count, slot_count;
    struct list fresh, registered, lost, leaving, dirty;
    uint32_t fresh_count, leaving_count;
    int64_t sweep_at;
    struct journal *journals; /* owned: by place, of the worlds that have had it: a record drops those that it replaces */
    uint32_t journal_count;
    uint64_t *durable;       /* owned: batches on record, the master not told yet */
    uint32_t durable_count, durable_capacity;
    struct solve solve;
    pthread_t thread;
    pid_t owner; /* the process that has the thread */
    int64_t idle_ns;         /* how long it may be without a registered peer; 0: for ever */
    int64_t idle_at;         /* it ends then; CLOCK_NEVER: a peer is registered, or it may be without */
    bool ending;             /* the thread's: the run ends */
    int64_t end_at;
    atomic_bool stop;        /* asked for */
    atomic_int phase;        /* enum server_phase */
    pthread_mutex_t lock;    /* of the wait for the end */
    pthread_cond_t ended;
};

enum server_phase { SERVER_NEW, SERVER_RUNNING, SERVER_ENDED };

/* ---- server_client.c ---- */
/* Takes it out of its list and puts it into another: the one writer of phases. */
void client_move(struct client *c, enum client_phase phase, struct list *to);
/* Puts a frame into the client's queue; lost if it does not read. */
void client_send(struct client *c, const void *bytes, size_t size);
/* The master closes it: last words, then the end. */
void client_leave(struct client *c);
/* The connection is no longer of use: the master is told when the actions in hand are done. */
void client_lose(struct client *c);
/* Ends it at once and gives its slot back. */
void client_drop(struct client *c);
void client_flush(struct client *c);
void client_flush_dirty(struct server *s);
void client_free(struct client *c);

/* ---- server_step.c ---- */
/* Aligned for tables of the master; free() frees it. */
void *server_memory(size_t bytes);
/* Makes the outbox as large as the next step may need it; false: no memory. */
bool server_fit(struct server *s);
/* One event and everything that follows from it. */
void server_run(struct server *s, const struct master_event *e);

/* ---- server_serve.c ---- */
void client_accept_ready(struct source *listener, uint32_t events);
/* Ends what has taken too long, frees what has ended. */
void client_sweep(struct server *s, int64_t now);
/* When client_sweep has something to do. */
int64_t client_deadline(const struct server *s);

/* ---- server_solve.c ---- */
bool solve_init(struct solve *v, uint32_t members);
void solve_fini(struct solve *v);
void solve_add(struct server *s, uint64_t number);
/* Works for a moment; true: a ring is found, *out is the event. */
bool solve_work(struct server *s, struct master_event *out);

#endif
