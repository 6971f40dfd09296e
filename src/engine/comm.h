/* comm.h - a communicator: one session with its sockets, its operations and its waiting calls.
 *
 * The session sits behind comm.lock, held for one step.  comm_step runs it and carries out its actions: frames are appended to
 * connections before the lock is given back, and sent after (comm_unlock does both).
 *
 * Invariant: every entry of ops[] is in use by a call or a handle from comm_launch to comm_collect.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_COMM_H
#define PCCL_ENGINE_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/list.h"
#include "net/conn.h"
#include "engine/engine.h"
#include "session/session.h"

enum {
    COMM_MEMBERS = 256, /* the tables of a session take about 75 KB each */
    COMM_TAG_BUCKETS = 1024,
    COMM_FLUSH = 32,
    COMM_TRACES = 16,
};

/* A line for the log: the callback is the program's, which may hold locks of its own that other callers wait with. */
struct comm_trace {
    const char *text; /* static */
    uint64_t own, id, value;
};

/* Work that waits until no lock is held. */
enum { COMM_NOTICE = 320 };

struct comm_after {
    struct conn *flush[COMM_FLUSH]; /* one reference each */
    uint32_t count;
    uint64_t lanes; /* to poke */
    bool any_ended;
    struct comm_trace trace[COMM_TRACES];
    uint32_t traces; /* of one step and more; what finds no room is counted only */
    char notice[COMM_NOTICE]; /* a call waits for another program for long, or a peer is of another version; "" none */
};

/* What a call waits for: one operation, or any of a batch.  `changed` goes with comm.lock. */
struct comm_wait {
    atomic_bool over;
    atomic_bool driving;     /* by driving lane 0, which is to be poked when it is over */
    pthread_cond_t changed;
};

/* Operations of which any may be awaited: with comm.lock. */
struct comm_batch {
    struct comm_wait any;
    struct list ended;       /* comm_op.in_batch: returned, not collected */
};

struct comm_op {
    struct list by_tag;      /* in comm.tags while its handle is live */
    struct list in_batch;    /* in batch.ended once it has returned */
    struct comm_batch *batch; /* borrowed; null: it is awaited by itself */
    size_t index;            /* in the batch */
    struct comm *comm;
    uint64_t tag;
    uint32_t slot;
    bool awaited;            /* somebody is in await */
    void *backup;            /* owned, in place only */
    void *scratch;           /* owned: sums of a small operation in a wider type, or null */
    bool no_memory;          /* for one of the two: refused on all peers */
    size_t bytes, backup_bytes; /* of the buffers; of the backup's memory */
    void *out;               /* borrowed from the caller */
    uint32_t window, reserved; /* grants per sender told in READY; grants taken from each lane's room */
    struct comm_wait returned;
    bool detached;           /* outcome is stored, the session has forgotten it */
    struct session_outcome outcome;
    /* From LANE_START on: */
    bool started;
    bool failed, told_failed; /* no memory for its plan: given up after the step */
    uint64_t view;
    struct op_name name;
    struct numeric numeric;
    uint32_t world, rank;
    uint16_t lanes;
    bool verify;
    const void *in;
    uint64_t *ranks;         /* owned */
    struct plan plan;
    struct plan_segment *segments; /* owned */
    struct plan_step *steps; /* owned */
    atomic_uint done_left, idle_left;
    uint64_t launch;         /* number among this peer's launches */
    _Atomic uint64_t digest, tx_bytes, rx_bytes;
    _Atomic uint64_t moved;  /* payload bytes so far, both ways, those of frames in hand included */
};

/* What comm_step has done without knowing by whom. */
struct comm_seam {
    /* One action; *wanted: staging bytes that the session asks for. */
    void (*act)(struct comm *c, const struct action *a, struct comm_after *after, uint64_t *wanted);
    /* The actions of a step are carried out: what could not be begun is given up, in steps of its own. */
    void (*settled)(struct comm *c, struct comm_after *after);
};
extern const struct comm_seam comm_acts;

struct comm_params {
    struct net_address master;
    uint32_t group;
    uint16_t lanes;
    int64_t stall_ns, master_loss_ns, connect_ns, vote_ns, operation_ns; /* 0: none (vote, operation) */
};

struct comm {
    struct engine *engine;
    const struct comm_seam *seam;
    struct list in_engine;
    uint32_t generation;
    struct comm_params params;
    atomic_bool joined;      /* a user of the engine; once set, it stays */
    atomic_uint calls;       /* inside the library; destroy waits for none */

    pthread_mutex_t lock;    /* of what follows */
    struct session_config config;
    struct session *session; /* null before the first connect */
    void *arena;             /* owned */
    size_t arena_bytes;
    int64_t notice_at, noticed; /* when to look again for calls that wait for long; the last one told of began then */
    void *table[SESSION_TABLES]; /* owned; null: the one in the arena */
    bool was_member;         /* a connect has succeeded */
    uint64_t run, id;        /* of this membership */
    struct outbox out;
    void *out_storage[3];    /* owned */
    pthread_cond_t changed;  /* voted, connected, left, calls */
    bool voted, connected, connecting, closing;
    uint32_t voters;         /* calls between their vote and its collection */
    bool apply;              /* the answer is APPLY: the voter copies */
    void *staging;           /* owned */
    struct comm_op **ops;    /* owned; by slot */
    uint32_t *free_slots, free_count;
    struct list tags[COMM_TAG_BUCKETS];
    void *spare;             /* owned: a backup kept for the next in-place call */
    size_t spare_bytes;

    struct list links;       /* struct link */
    char foreign[BOUNDS_TEXT]; /* of this connect: which peer speaks another version of the protocol; "" none */
    struct list controls;    /* struct control */
    struct net_address advertised; /* by PCCL_ADVERTISE; family 0: nothing */
    struct net_address seen; /* this peer, as the master sees it */
    uint64_t newest;         /* view or proposal that the master has named */
    bool links_changed;
    uint64_t numbers;        /* of connections dialled */
    /* The master: */
    struct conn *master;     /* null: down; borrowed from its uplink */
    struct list uplinks;     /* struct uplink: the current one and those being closed */
    int64_t master_at;       /* dial then; CLOCK_NEVER: not wanted */
    struct dial *master_dial;
    uint8_t master_met;      /* enum dial_met: by the last attempt to reach it */
    struct list sync_links, probes;
    uint32_t running;        /* operations on lanes */
    int64_t look_at;         /* when lanes look next whether they move */
    bool failed_ops;         /* some of them are to be given up */
};

/* Life. */
pccl_status comm_new(struct engine *engine, const struct comm_params *params, struct comm **out) PCCL_MUST_CHECK;
/* Leaves, waits for the calls inside, frees. */
void comm_free(struct comm *c);
/* After a fork: frees memory only. */
void comm_abandon(struct comm *c);
void comm_leave(struct comm *c);

/* Calls of the program; each fills `outcome` (result RESULT_OK or why not). */
void comm_connect(struct comm *c, struct session_outcome *outcome);
struct comm_launch {
    uint64_t tag;
    struct op_params params;
    const void *in;
    void *out;
    size_t bytes;
    bool awaited;            /* by the caller, from the start: no handle leads to it */
    struct comm_batch *batch; /* it is to be awaited through; or null */
    size_t index;            /* what comm_batch_await calls it */
};
/* RESULT_PENDING: launched, *op_out is it; otherwise why not. */
void comm_launch(struct comm *c, const struct comm_launch *launch, struct comm_op **op_out,
                 struct session_outcome *outcome);
/* Waits for its end, spends it. */
void comm_await(struct comm *c, struct comm_op *op, struct session_outcome *outcome);
/* Batches: any of those launched into it may be awaited. */
void comm_batch_init(struct comm_batch *b);
void comm_batch_fini(struct comm_batch *b); /* nothing of it is in flight */
/* Whether comm_batch_await returns at once. */
bool comm_batch_ended(struct comm_batch *b);
/* Waits for one of them, spends it; returns its index. */
size_t comm_batch_await(struct comm *c, struct comm_batch *b, struct session_outcome *outcome);
/* Launches and waits, driving lane 0. */
void comm_reduce(struct comm *c, const struct comm_launch *launch, struct session_outcome *outcome);
/* The operation behind a handle that nobody awaits yet; null if there is none.  With comm.lock. */
struct comm_op *comm_find(struct comm *c, uint64_t tag);
/* Marks it as being awaited; null if unknown, spent, or awaited by another thread. */
struct comm_op *comm_claim(struct comm *c, uint64_t tag);
/* Gives it up on all peers: CAUSE_CANCEL, CAUSE_NO_MEMORY or CAUSE_INTERNAL. */
void comm_cancel(struct comm *c, struct comm_op *op, enum cause why);
/* The same by its handle; false: unknown or spent. */
bool comm_cancel_tag(struct comm *c, uint64_t tag);
void comm_vote(struct comm *c, const struct msg_vote *vote, struct sync_state *state, struct session_outcome *outcome);

/* Inside the peer layer. */
void comm_wait_init(struct comm_wait *w);
/* With comm.lock: no session, or one that is neither a member nor becoming one. */
bool comm_idle(struct comm *c);
void comm_fail(struct session_outcome *outcome, enum session_result result, const char *text);
void comm_lock(struct comm *c, struct comm_after *after);
void comm_step(struct comm *c, struct session_event *event, struct comm_after *after);
void comm_unlock(struct comm *c, struct comm_after *after);
/* For the loop's callback of a connection: sends what is left, reads what has come, takes comm.lock, which stays taken, and hands
 * on every frame.  AGAIN: more may come; PROTOCOL: the bytes are no frames; CLOSED, NOMEM: the end as well. */
typedef void comm_frame_fn(void *user, const struct frame_header *h, const void *payload, struct comm_after *after);
pccl_status comm_receive(struct comm *c, struct conn *conn, uint32_t events, comm_frame_fn *frame, void *user,
                         struct comm_after *after) PCCL_MUST_CHECK;
/* Appends a frame to a connection; it is sent when the lock is given back. */
void comm_send(struct comm_after *after, struct conn *conn, const void *bytes, size_t size, const void *data,
               size_t data_size);
/* With comm.lock: carries out actions about operations (comm_op.c). */
void comm_op_started(struct comm *c, const struct action *a, struct comm_after *after);
void comm_op_ready(struct comm *c, const struct action *a, struct comm_after *after);
void comm_op_stopped(struct comm *c, const struct action *a, struct comm_after *after);
void comm_op_returned(struct comm *c, const struct action *a, struct comm_after *after);
/* After a step: gives up those that could not be started. */
void comm_ops_failed(struct comm *c, struct comm_after *after);
void comm_ops_detach(struct comm *c, struct comm_after *after);
/* Has the lanes look for operations that do not move; returns when to come back. */
int64_t comm_ops_watch(struct comm *c, int64_t now, struct comm_after *after);
/* The two halves of comm_launch: memory and the copy of an in-place input, which takes its time; then the launch itself.
 * True: pending; false: *outcome says why not, and `op`, which may be null, is freed. */
struct comm_op *comm_op_new(struct comm *c, const struct comm_launch *launch);
bool comm_op_launch(struct comm *c, const struct comm_launch *launch, struct comm_op *op, struct session_outcome *outcome);
void comm_op_free(struct comm_op *op);
void comm_op_cancel(struct comm *c, struct comm_op *op, enum cause why, struct comm_after *after);
/* Gives back what it has taken from the lanes' rooms, unless they have it by now; all that were never started. */
void comm_op_unreserve(struct comm *c, struct comm_op *op);
void comm_ops_unreserve(struct comm *c);
/* Keeps the larger of two backups for the next call, since fresh memory costs a page fault per page. */
void comm_op_keep_backup(struct comm *c, struct comm_op *op);
bool comm_ops_init(struct comm *c);
void comm_ops_fini(struct comm *c);
/* From lanes: all have the result; all have let go; one of two. */
void comm_op_lane_done(struct comm_op *op, const struct exec *x);
void comm_op_lane_idle(struct comm_op *op, uint64_t tx_bytes, uint64_t rx_bytes);
void comm_op_stalled(struct comm_op *op, uint64_t peer);
/* On the service thread, comm.lock held: timers; returns when to come back. */
int64_t comm_tick(struct comm *c, int64_t now, struct comm_after *after);

#endif
