/* comm_op.h - operations: what the program gave, what the session made of it, what the lanes do with it, how it ends.
 *
 * An operation is cut like its communicator by who writes it: each part has one file that alone does, and says when.
 *
 * Invariant: the memory of an operation goes when its slot has been collected; lanes have let go of it by then.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_COMM_OP_H
#define PCCL_ENGINE_COMM_OP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/tables/took.h"
#include "core/list.h"
#include "engine/tables/plan_cache.h"
#include "engine/tables/queue.h"
#include "kernels/numeric.h"
#include "session/session.h"

struct comm;
struct comm_after;
struct comm_op;
struct exec;

/* What a call waits for: one operation, or any of a batch.  `changed` goes with comm.lock. */
struct comm_wait {
    atomic_bool over;        /* op_end.c */
    atomic_bool driving;     /* await.c: by driving lane 0, which is to be poked when it is over */
    pthread_cond_t changed;
};

/* Operations of which any may be awaited.  Written by op_end.c, with comm.lock. */
struct comm_batch {
    struct comm_wait any;
    struct list ended;       /* op_end.in_batch: returned, not collected */
};

/* What the program gave.  Written by comm_op.c before the launch; `awaited` later too, with comm.lock. */
struct op_given {
    uint8_t space;           /* what handles lead to it: enum op_space, TAG or ORDERED, which serves PAIR as well */
    uint64_t tag;            /* ORDERED: a number of its own, never used again, by which a handle leads to it */
    uint8_t kind;            /* enum plan_kind */
    bool receives;           /* PLAN_SEND */
    uint32_t *source;        /* borrowed: where a receive's source goes, or null */
    void *out;               /* borrowed from the caller */
    size_t bytes;            /* of its buffers */
    struct comm_batch *batch; /* borrowed; null: it is awaited by itself */
    size_t index;            /* in the batch */
    bool awaited;            /* somebody is in the await that spends its handle */
    const char *phase;       /* static: what errors call it; null: by its kind */
    struct queue *keeper;    /* borrowed: whoever carries it out waits there, and no session knows of it; null: a session does */
    bool given_up;           /* with a keeper: the program wants no more of it */
};

/* What it needs of its own.  Written by comm_op.c. */
struct op_memory {
    void *backup;            /* owned, in place only */
    bool lazy;               /* it is filled frame by frame by the executors: plan.saved says which */
    size_t backup_bytes;     /* if lazy: of the block */
    void *scratch;           /* owned: sums of a small operation in a wider type, or null */
    size_t *lists;           /* owned: counts and places of uneven parts, or null; */
    struct part_lists parts, out_parts; /* ... and where they lie in it */
    bool lacking;            /* for one of these: refused on all peers */
    char *why;               /* owned: of a call with a bad argument, its error; null: none */
    void *sums;              /* owned: plan.scratch, or null */
    size_t sums_bytes;       /* of the block */
};

/* Where it is kept.  Written by comm_op.c, with comm.lock. */
struct op_place {
    struct list by_tag;      /* in ops.tags while its handle is live */
    uint32_t slot;
    bool detached;           /* outcome is stored, the session has forgotten it: it has no slot */
    bool own;                /* SPACE_WINDOW: its slot is one of those kept for them */
};

/* Grants taken for it from the lanes' rooms before the launch.  Written by op_room.c, with comm.lock. */
struct op_room {
    uint32_t window;         /* per sender, told in READY */
    uint32_t reserved;       /* of each lane */
    bool holds;              /* counted in comm.room: it has taken some */
};

/* Whether its outcome is there for all who ask, an in-place input restored. */
enum op_read { OP_UNREAD, OP_READING, OP_READ };

/* How it ends.  Written by op_end.c, with comm.lock. */
struct op_end {
    struct comm_wait returned; /* `changed` also tells of OP_READ */
    uint32_t holders;        /* the handle or the call that made it, calls that wait for it, its queue: the last one frees it */
    enum op_read read;
    struct list attached;    /* in ops.attached from its attachment to its delivery */
    struct queue_entry entry;
    struct list in_batch;    /* in batch.ended once it has returned */
    bool watched;            /* somebody waits for any of several, of which it is one, or has done so */
    struct session_outcome outcome;
};

/* What the session has decided.  Written by op_lanes.c before LANE_START; `failed` and `told` with comm.lock. */
struct op_run {
    bool started;
    bool failed, told;       /* no memory for its plan: given up after the step */
    uint64_t view;
    struct op_name name;
    struct numeric numeric;
    uint16_t lanes;
    bool verify;
    const void *in;
    uint64_t launch;         /* number among this peer's launches */
    int64_t stall_ns;        /* of its view */
};

/* How long it should take.  Written by op_forecast.c, with comm.lock. */
struct op_forecast {
    int64_t predicted_ns;    /* 0: nothing is predicted */
    struct took_forecast took;
    uint64_t beside;         /* operations that had begun beside another one when this one did; UINT64_MAX: it is one of them */
    int64_t begun_at;
    int64_t ready_at;        /* its partners are known to have launched it, since then */
};

/* What its executors run.  Written by op_lanes.c before LANE_START. */
struct op_plan {
    struct plan_made *made;  /* held; null: none yet */
    const struct plan *plan; /* in it */
    uint8_t *saved;          /* owned: by frame, whether its input lies in memory.backup; written by the frame's lane; null: not lazy */
};

/* What the lanes have reported.  Written by op_lanes.c, on any lane. */
struct op_share {
    atomic_uint done_left, idle_left;
    _Atomic uint64_t digest, tx_bytes, rx_bytes;
};

struct comm_op {
    struct comm *comm;       /* comm_op.c; null: it has gone, a queue still has this */
    struct op_given given;
    struct op_memory memory;
    struct op_place place;
    struct op_room room;
    struct op_end end;
    struct op_run run;
    struct op_forecast forecast;
    struct op_plan plan;
    struct op_share share;
    _Atomic uint64_t moved;  /* stream.c: payload bytes so far, both ways, those of frames in hand included */
};

/* One that has ended. */
struct op_ended {
    uint8_t space, kind;     /* as in op_given; and the next three */
    const char *phase;
    bool receives;
    uint64_t tag;
    struct session_outcome outcome;
};

struct comm_launch {
    struct op_call call;     /* its lists: borrowed for the call, of `world` entries */
    const char *why;         /* borrowed for the call: the error of a bad argument, for this program alone; null: none */
    size_t bytes;
    struct comm_batch *batch; /* it is to be awaited through; or null */
    size_t index;            /* what comm_batch_await calls it */
    uint32_t *source;        /* of a receive: where its source is stored when it has succeeded; or null */
};
/* Messages of the library's own: nobody but a queue holds them, which delivers them with their cookies, whatever becomes of them. */
struct op_own {
    struct comm_launch launch;
    uint64_t cookie;
    struct comm_op *op;      /* filled in: for comm_cancel, until it is delivered */
};
/* A call that no session knows: its maker carries it out, is woken by way of `keeper` when it is cancelled (comm_op_given_up) and when the
 * communicator leaves, and settles it.  Null: no memory. */
struct comm_op *comm_op_begin(struct comm *c, const char *phase, struct queue *keeper);
void comm_wake_keepers(struct comm *c); /* with c->lock */
bool comm_op_given_up(struct comm *c, const struct comm_op *op);
void comm_op_settle(struct comm *c, struct comm_op *op, const struct session_outcome *outcome);
void comm_op_settle_locked(struct comm *c, struct comm_op *op, const struct session_outcome *outcome, struct comm_after *after);
/* The operation behind a handle that nobody awaits yet; null if there is none.  With comm.lock. */
struct comm_op *comm_find(struct comm *c, uint8_t space, uint64_t tag);
/* Marks it as being awaited; null if unknown, spent, or awaited by another thread. */
struct comm_op *comm_claim(struct comm *c, uint8_t space, uint64_t tag);
/* The same by its handle; false: unknown or spent. */
bool comm_cancel_tag(struct comm *c, uint8_t space, uint64_t tag);

void comm_ops_init(struct comm *c);
void comm_ops_fini(struct comm *c);
void comm_ops_rest(struct comm *c); /* gives back what the next call may do without */
/* The two halves of comm_launch: memory and the copy of an in-place input, which takes its time; then the launch itself, of as many as
 * go: what they say goes out in one piece.  Returns how many are pending; of the first that is not, *outcome says why, and that one
 * and all behind it are freed (any may be null). */
struct comm_op *comm_op_new(struct comm *c, const struct comm_launch *launch);
uint32_t comm_op_launch(struct comm *c, const struct comm_launch *list, struct comm_op **ops, uint32_t count, struct session_outcome *outcome);
/* With comm.lock: of a new one, with its queue, which alone holds it from then on. */
void comm_op_launch_own(struct comm *c, const struct comm_launch *launch, struct comm_op *op, struct comm_after *after);
/* With comm.lock: so many slots are kept for operations of SPACE_WINDOW; false: the program's take them. */
bool comm_ops_keep(struct comm *c, uint32_t slots);
/* With comm.lock: the session has forgotten it. */
void comm_op_vacate(struct comm *c, struct comm_op *op);
/* With comm.lock: no handle leads to it any more, or the call that made it is over.  True: nobody holds it. */
bool comm_op_spend(struct comm_op *op);
/* With its queue's lock, too: what it is left in is all that still knows it. */
void comm_op_orphan(struct comm_op *op);
/* An in-place input as it was; no lane has it any more. */
void comm_op_restore(const struct comm_op *op);
/* With comm.lock: memory for what its plan only sums up or hands on here; of 0 bytes none.  False: there is none. */
bool comm_op_sums(struct comm *c, struct comm_op *op, size_t bytes);
/* With comm.lock: keeps its backup, and that memory, for later calls. */
void comm_op_keep_backup(struct comm *c, struct comm_op *op);
void comm_op_free(struct comm_op *op);
/* With comm.lock: the session goes; all operations keep their outcomes for those who will ask. */
void comm_ops_detach(struct comm *c, struct comm_after *after);
/* What was never started gives back its grants. */
void comm_ops_unreserve(struct comm *c);

#endif
