/* exec.h - one lane's share of one operation: the executor of plans.
 *
 * Frame f of an operation belongs to lane f mod L; an executor runs the plan on the frames of its lane.  It is pure: the
 * lane tells it what happened (exec_step with an event) and does what it asks (struct exec_out).  It calls kernels on the
 * buffers it was given, nothing else.  The simulator drives it the same way.
 *
 * Buffers: `in` is never written while the operation runs and never overlaps `out`, so a contribution can be sent at any time.  In
 * place (`backup`) it is `out`: each frame is saved before its first byte is written or, while it is in cache, when it is sent, and its
 * input is read from there once something was written; who stops the executor restores what `saved` says.  Contributions (phase 0) arrive in
 * staging slots of the lane's room; the contribution that comes first in the order of reduction, and final data (phase 1), of
 * plain types arrive straight in `out`.
 *
 * Flow: a sender sends a phase 0 frame only against credit.  The first credits (`window`) were reserved from half A of
 * the room by whoever launched, and travel in READY; later ones are granted here: from half A, or from half B only for a
 * frame that its sender has ready and that is next in its order of reduction (it comes at once and is folded on arrival, so the slot is
 * free again at once).  The own input is ready when READY is in; of sums of others' contributions, which wait for their programs and
 * their room, the sender says how many it has ready and may not send.  Frames that arrive straight in `out` need no room: exec_init
 * gives the window back and grants them all.  Hence no grant of half B ever waits for a program or for other room, and every frame at
 * the head of a connection can be consumed (docs/internals/decisions/0012-room-for-sums-of-others.md).  Frames of one sender and one segment
 * arrive in their order.
 * Where segments of many trees lie between each other (plan_orders), contributions go between two partners in the order of frames,
 * whichever is ready first: so the next one to be granted is known, and a frame waits for none behind it.  They are folded as their frames
 * get to them.
 *
 * What is packed waits for all frames before it (exec_work.c), which may come in any order: they have their own places in scratch.
 *
 * Whom it exchanges data with are the partners of the plan, by their numbers: of other members it knows nothing, and has nothing.
 *
 * Invariant: slots in use + grants outstanding = what this executor took from the room.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_EXEC_H
#define PCCL_COLLECTIVES_EXEC_H

#include "collectives/plan.h"
#include "kernels/numeric.h"

enum { ROOM_BLOCKS = 64 };

struct room_slot {
    uint32_t next;  /* behind it among the free ones, or in its sender's queue */
    uint32_t frame; /* in use: what is in it, where contributions may be folded in another order than they come in */
};

/* A lane's staging memory, shared by all its executors; counters are atomic because launches reserve from any thread,
 * slots themselves are taken and given back by the holder of the lane only.  At least two slots. */
struct room {
    unsigned char *block[ROOM_BLOCKS]; /* borrowed: block_slots x slot_bytes each */
    uint32_t blocks, block_slots, slot_bytes;
    uint32_t slot_count;    /* of all blocks */
    struct room_slot *slot; /* borrowed, of each slot */
    uint32_t free_first, free_slots;
    int32_t half_a, half_b; /* grants left in each half (atomic access) */
    int32_t reserve;        /* of half A: only launches take these */
};

/* `slot` has an entry for each slot that the room may ever have. */
void room_init(struct room *room, unsigned char *block, uint32_t slot_bytes, uint32_t block_slots, struct room_slot *slot);
/* By the holder of the lane: one more block of the same size, for half A; there are less than ROOM_BLOCKS. */
void room_grow(struct room *room, unsigned char *block);
/* By the holder of the lane: the last block, which the caller frees.  Null: it is the only one, a slot is in use, or grants are out. */
unsigned char *room_shrink(struct room *room);
/* Grants that a launch may take from half A for each of its senders, at most `most`.  A world that `holds` some for launches of before
 * gets half of what is free and leaves the reserve to others; one that holds none gets two for each sender as long as there are any. */
uint32_t room_window(const struct room *room, uint32_t senders, uint32_t most, bool holds);
/* Takes up to `want` grants from half A; returns how many. */
uint32_t room_reserve(struct room *room, uint32_t want);
void room_unreserve(struct room *room, uint32_t count);
/* Nobody holds a slot or a grant: so it must be when no executor is left, and none is about to be made. */
bool room_whole(const struct room *room);
bool room_has_a(const struct room *room); /* grants, in this half */
bool room_has_b(const struct room *room);

/* A lane's buffers for frames in hand of types that travel encoded, shared by all its executors: they take one with a frame and
 * give it back when it has left or has been decoded.  The lane keeps it filled.  Linked through their first bytes. */
struct frame_pool {
    void *first;
    uint32_t count;
};

void frame_pool_give(struct frame_pool *pool, void *buffer);
void *frame_pool_take(struct frame_pool *pool); /* null: empty */

enum exec_event_kind {
    EXEC_READY,   /* partner announced the operation: it grants us `credit` frames; we may send to it from now on */
    EXEC_CREDIT,  /* partner grants `credit` more frames, before READY: contributions may go eagerly; and has `sums` ready */
    EXEC_HEADER,  /* a frame header came of partner, or of nobody of the plan: out.dst says where its bytes go; out.refused if it breaks it */
    EXEC_LENT,    /* the next bytes of the frame announced last by partner are at `data` for this step: none or all of a frame come so */
    EXEC_ARRIVED, /* all bytes of the frame announced last by partner are at out.dst, or were lent */
    EXEC_PULL,    /* partner's connection can take a frame: out.data is the next one, null if none */
    EXEC_SENT,    /* the frame pulled last for partner has left */
    EXEC_WINDOW,  /* partner may hold `credit` grants from now on, as its link fills */
    EXEC_MOVED,   /* partner is to be told of the operation's last move */
    EXEC_ROOM,    /* nobody's, like all below: the lane's room has grants again: serve starved senders */
    EXEC_WORK,    /* there is time for one of the copies that wait (exec.work) */
    EXEC_TELL,    /* this lane moves: whoever starves is to be told so */
    EXEC_STOP,    /* let go of all buffers and slots; every later event is ignored */
};

/* The last move of an operation: here, or `far` ranks further on, of whom each waits for the next. */
struct exec_move {
    int64_t at;
    uint16_t far;
};

struct exec_event {
    enum exec_event_kind kind;
    uint32_t partner; /* its number in the plan; HEADER: PLAN_NOBODY if the sender has none */
    uint32_t credit;  /* READY, CREDIT, WINDOW */
    uint32_t sums;    /* CREDIT: contributions to us, in all, with those sent; 0: nothing is said of them */
    uint32_t frame;   /* HEADER: as the sender calls it (plan_wire) */
    uint32_t phase;   /* HEADER: 0 contribution, 1 final */
    uint32_t bytes;   /* HEADER: payload length on the wire; LENT: of whole elements */
    const void *data; /* LENT */
    struct exec_move moved; /* TELL, MOVED */
};

struct exec_out {
    void *dst;          /* HEADER */
    uint32_t lend;      /* HEADER: not 0: what comes is folded at once, so its bytes may be lent, in elements of so many */
    bool refused;       /* HEADER: wrong frame, phase, length, or sent without credit: the sender broke the protocol */
    const void *data;   /* PULL: valid until EXEC_SENT for this partner, or EXEC_STOP */
    uint32_t frame, phase, bytes; /* PULL */
    bool no_buffer;     /* HEADER: the pool is empty; nothing has changed.  PULL gives null then */
    bool granted;       /* ROOM: some sender has got grants, which are to be told */
};

struct exec_peer;  /* per partner: credits, queues, order of arrival */
struct exec_frame; /* per frame of this lane: step reached, where its value is */

enum { EXEC_ACCS = 2, EXEC_WIRES = 4 };

struct exec {
    const struct plan *plan;       /* borrowed until stopped */
    const struct numeric *numeric; /* borrowed */
    struct room *room;             /* borrowed */
    struct frame_pool *pool;       /* borrowed; null: its type travels as it is */
    const unsigned char *in;       /* borrowed */
    unsigned char *out;            /* borrowed */
    unsigned char *scratch;        /* borrowed: of plan.scratch elements; for segments that say so */
    unsigned char *backup;         /* borrowed, of the size of in; null: not in place */
    uint8_t *saved;                /* borrowed: by frame, of all lanes; with backup */
    uint32_t lane, lanes;
    bool verify;        /* compute the digest */
    bool stopped;
    bool failed;        /* an assertion failed in a step: stopped, report an internal error */
    const char *failed_what, *failed_where; /* ... which, and its file:line; static */
    bool done;          /* every frame of this lane is complete in `out` */
    bool idle;          /* done, and every send has left */
    bool large;         /* more than caches hold */
    bool work;          /* a frame waits to be copied, or packed: send EXEC_WORK until none does */
    bool starved;       /* a sender waits for room: send EXEC_ROOM when the room has some */
    uint64_t digest;    /* sum over frames of hash(number, bytes): independent of lanes and order */
    uint64_t tx_bytes, rx_bytes; /* payload */
    uint64_t progress;  /* counts every frame moved: the progress watch compares */
    uint32_t pending;   /* frames not complete */
    uint32_t unsent;    /* sends not yet left */
    uint32_t oldest;    /* frame: all frames of this lane before it are complete */
    uint32_t copy_next, copy_end; /* frames of the own input that become final by a COPY; equal: none is left */
    /* All below lies in the caller's arena. */
    struct exec_peer *peers;   /* by partner */
    struct exec_frame *frames; /* of this lane */
    uint32_t *cursors;         /* per plan step that receives: the next frame to be announced */
    uint32_t *queues;          /* the peers' queues of sends */
    uint32_t *folds;           /* ordered: the frames that each peer contributes to */
    uint32_t *touched;         /* partners, see exec_touched */
    uint32_t touched_count;
    uint64_t *starving;        /* a bit for each partner that starves */
    unsigned char *accs;       /* not plain: accumulators */
    unsigned char *wires;      /* encoded: results that leave */
    unsigned char *own;        /* encoded: the own contribution as it would travel */
    size_t acc_stride, wire_stride;
    uint32_t wire_refs[EXEC_WIRES]; /* sends of each result not yet left */
    uint32_t fold_first, fold_frames, finished; /* not plain: first of the frames reduced here, how many, finished ones */
    uint32_t starved_peers, starved_next; /* senders that wait for room; those whom half B may serve, too */
    uint32_t check_every, check_in; /* steps until all invariants are looked at again */
    bool direct_bytes;  /* wire bytes are user bytes: send from and receive into the user's buffers */
    bool ordered;       /* contributions go and come in the order of frames, of whichever segments (plan_orders) */
    bool sums;          /* contributions may be sums of others': who sends them says what is ready */
};

struct exec_config {
    const struct plan *plan;
    const struct numeric *numeric;
    struct room *room;
    struct frame_pool *pool; /* of buffers of room.slot_bytes */
    const void *in;
    void *out;
    void *scratch;   /* of plan.scratch elements, for all lanes; null if it is 0 */
    void *backup;    /* in place: in is out, what is overwritten goes here first; else null */
    uint8_t *saved;  /* with backup: of plan.frame_count entries, zero; those of this lane's frames are set */
    uint32_t lane, lanes;
    uint32_t window; /* grants per folding sender already reserved from half A and told in READY */
    bool verify;
    uint32_t check_every; /* steps between two looks at all invariants; 0: seldom enough to cost next to nothing */
};

/* Bytes of arena that exec_init needs for this configuration (aligned to 64). */
size_t exec_arena_bytes(const struct exec_config *config);

/* `arena` must live until the executor is stopped or idle and dropped.  Grants may already wait to be told afterwards. */
void exec_init(struct exec *x, const struct exec_config *config, void *arena);

void exec_step(struct exec *x, const struct exec_event *event, struct exec_out *out);

/* What a CREDIT frame tells: grants, which may be none, sums that are ready for it (see EXEC_CREDIT), and the last move of the
 * operation (at 0: nothing is told of it). */
struct exec_credit {
    uint32_t frames, sums;
    struct exec_move moved;
};

/* Whether one is to be sent to that partner, and what waits to be told in it; reading takes it. */
bool exec_take_credit(struct exec *x, uint32_t partner, struct exec_credit *credit);
bool exec_has_credit(const struct exec *x, uint32_t partner);

/* A partner for which exec_has_frame or exec_has_credit may have become true since it was last given here; PLAN_NOBODY: no more. */
uint32_t exec_touched(struct exec *x);

/* The first partner from this one on that is to have more grants than the room has; PLAN_NOBODY: none. */
uint32_t exec_starving(const struct exec *x, uint32_t partner);
struct exec_grants {
    uint32_t held, window; /* contributions that a partner may have under way, or here and not folded; those that it is to have */
};
struct exec_grants exec_grants(const struct exec *x, uint32_t partner);

/* Whether a PULL for this partner would give a frame now. */
bool exec_has_frame(const struct exec *x, uint32_t partner);

#endif
