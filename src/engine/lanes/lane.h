/* lane.h - lanes: the data plane of this process, and who polls it.
 *
 * A lane is a passive object: an epoll set with one data connection (stream) per peer, the executors of its share of each
 * operation, and staging memory.  Whoever holds its lock polls it: one of the poller threads, or a blocking call that
 * drives lane 0.  Commands for a lane (start, ready, stop an operation; let go of a communicator) come through its inbox, so
 * that nobody ever waits for the lock.
 *
 * A pass looks only at streams that something has happened to: an event of their descriptor, or a frame or grant that came up for them.
 *
 * Invariant: executors, streams and their buffers are touched by the holder of the lock only, and are freed between passes only,
 * but for an executor that a pass itself finds at its end.  Of a partner only one connection ever moves frames of an executor.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LANE_H
#define PCCL_ENGINE_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/exec_wait.h"
#include "collectives/flow_window.h"
#include "core/bounds.h"
#include "core/buckets.h"
#include "core/turns.h"
#include "net/loop.h"
#include "net/transport.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/p2p.h"

struct comm;
struct conn;
struct fabric_port;
struct stream;
struct comm_op;
struct engine;
struct link;

enum {
    LANE_ROOM_BYTES = 16 << 20,
    LANE_SLOT_BYTES = BOUNDS_FRAME_BYTES,
    LANE_SLOTS = LANE_ROOM_BYTES / LANE_SLOT_BYTES,
    LANE_SCRATCH = 64 << 10,
};

enum lane_order_kind {
    LANE_START,  /* op */
    LANE_READY,  /* op, peer, partner, credit */
    LANE_STOP,   /* op */
    LANE_STREAM, /* stream: take it over, from now on the lane owns it */
    LANE_DROP,   /* comm: let go of everything of it, then post `done` */
    LANE_REST,   /* comm: give back what its connections hold for when they are used */
    LANE_WATCH,  /* comm: look whether its operations move; tell the session whom those wait for that do not */
};

struct lane_order {
    struct list all;
    enum lane_order_kind kind;
    struct comm *comm;
    struct comm_op *op;    /* LANE_START: alive until this lane has let go of it */
    uint64_t view;         /* of the operation, which may be gone by now; with its comm */
    struct op_name name;
    uint64_t peer;
    uint32_t partner;      /* the peer's number in the plan of op */
    uint64_t launch;       /* LANE_READY: number among the peer's launches */
    uint32_t credit;
    struct stream *stream;
    struct lane_done *done;
};

/* Counts lanes that have let go. */
struct lane_done {
    pthread_mutex_t lock;
    pthread_cond_t zero;
    uint32_t left;
};

/* What a lane reports, and to whom, which it need not know: on its holder's thread, no lock held but the lane's. */
struct lane_calls {
    void (*done)(struct comm_op *op, const struct exec *x);          /* its share of the result is complete */
    void (*idle)(struct comm_op *op, uint64_t tx_bytes, uint64_t rx_bytes); /* it has let go of the operation */
    void (*stalled)(struct comm_op *op, uint64_t peer);              /* it waits for that peer */
    void (*cancel)(struct comm *comm, struct comm_op *op, enum cause why);
    void (*good)(struct stream *s);                                  /* a data connection can be used, which was not so from the first */
    void (*broken)(struct stream *s);                                /* one broke */
    void (*gone)(struct stream *s);                                  /* it is about to be freed */
    void (*drop)(struct comm *comm);                                 /* lane 0: lets go of the control links */
    void (*rest)(struct comm *comm);                                 /* lane 0: they give back what they do not use */
};

/* Why a room is smaller than the windows of its streams ask for. */
enum lane_bound { LANE_BOUND_NONE, LANE_BOUND_PROCESS, LANE_BOUND_ROOM };

struct lane {
    pthread_mutex_t lock;
    const struct lane_calls *calls;
    struct engine *engine; /* borrowed */
    uint32_t index;
    struct loop loop;
    struct source outer;   /* the lane's epoll set in its poller's */
    struct loop *poller;   /* borrowed */
    struct fabric_port *fabric; /* owned; null: none */
    pthread_mutex_t mask_lock;
    bool masked;           /* the poller does not look */
    atomic_bool driven;    /* a blocking call holds it and may sleep in it */
    atomic_uint sleepers;  /* calls that found it held */
    _Atomic int64_t grace_until; /* masked until then, since the same thread is likely to be back */
    atomic_bool grace_timed; /* the timer will tell */
    atomic_bool busy;      /* work is left although no descriptor says so */
    pthread_mutex_t inbox_lock;
    struct list inbox;     /* owned struct lane_order */
    atomic_bool inbox_full;
    /* The holder's: */
    struct list streams;
    struct buckets peers;  /* the same by peer */
    struct list due;       /* streams that a pass looks at: something came, or may be sent */
    struct list execs;     /* in the order of launches */
    struct list *buckets;  /* owned: executors by name */
    uint32_t bucket_count, exec_count;
    struct list stepped;   /* executors to be looked at after the pass */
    struct turns starving, starving_next; /* executors that lack grants, by launch; those whom half B of the room may serve, too */
    struct list later;     /* owned struct lane_order: taken out of the inbox, carried out when no pass is under way */
    uint64_t received;     /* payload bytes, of all operations */
    bool moved;            /* something happened in this pass */
    bool again;            /* something to send has come up behind the streams of this pass */
    struct room room;
    enum lane_bound bound; /* what a grant has met last that the room should have had */
    struct frame_pool pool; /* of owned buffers */
    uint64_t windows;      /* frames beyond FLOW_BASE in the windows of its streams */
    struct room_slot slot[LANE_SLOTS * ROOM_BLOCKS];
    unsigned char scratch[LANE_SCRATCH];
};

/* Null: err says why. */
struct lane *lane_new(struct engine *engine, uint32_t index, const struct lane_calls *calls, struct err *err);
void lane_free(struct lane *lane);
/* Gives it back and serves what came into the inbox meanwhile; `grace`: keep it masked for a moment, since the same
 * thread is likely to be back. */
void lane_release(struct lane *lane, bool grace);
/* The timer of the grace has run out. */
void lane_grace_over(struct lane *lane);
/* The holder's: serves what is ready, waiting at most timeout_ns (negative: without limit).  True if anything happened. */
bool lane_serve(struct lane *lane, int64_t timeout_ns);

enum {
    STREAM_HEAD = FRAME_HEADER_BYTES + P2P_DATA_PREFIX,
    STREAM_AHEAD = 192,    /* read beyond what is known to come */
    STREAM_CREDITS = 1024, /* bytes of credits sent in front of a frame */
    STREAM_ELEMENT = 8,    /* bytes of the largest */
};

/* What an executor has to do with one partner of its plan. */
struct lane_partner {
    struct lane_exec *exec;
    struct stream *stream; /* its connection; null: not known yet, or gone */
    uint64_t bundle;       /* the number of that connection's bundle; 0: not known yet */
    struct list bound;     /* in stream.partners */
    struct turn work;      /* in stream.work: there may be a frame for it */
    struct list grants;    /* in stream.grants: there may be grants to tell it */
    uint64_t launch;       /* number among its launches, from 1; 0: its READY is not in */
    bool bounded;          /* it is counted in stream.bound.operations */
};

struct lane_exec {
    struct list all;       /* in lane.execs, in the order of launches */
    struct list by_name;   /* in its bucket */
    struct list stepped;
    struct turn starving, starving_next;
    struct comm_op *op;    /* borrowed */
    struct exec x;
    void *arena;           /* owned */
    struct exec_watch watch;
    bool told_done;
    bool given_up;         /* no memory: what comes for it is drained, until it is stopped */
    struct lane_partner partner[]; /* by their numbers */
};

/* What a connection's window was, for whoever asks: frames.  Written by the holder of its lane. */
struct stream_bound {
    atomic_uint window;    /* of its peer, as the link asks for */
    atomic_uint granted;   /* what the last of these operations had for it: */
    _Atomic uint64_t operations; /* for which the lane's bound left so little that it does not show what the link carries */
};

struct stream {
    struct source source;
    struct transport transport;
    struct list all;       /* in lane.streams */
    struct list by_peer;   /* in lane.peers */
    struct list due;       /* in lane.due */
    struct polled polled;  /* shared memory */
    struct list partners, grants; /* struct lane_partner: all; with grants to tell */
    struct turns work;     /* struct lane_partner with a frame, by launch */
    struct lane *lane;     /* null until its lane has taken it over */
    uint16_t index;        /* of that lane */
    struct link *link;     /* one reference */
    uint64_t number;       /* of its bundle */
    uint64_t peer;
    struct comm *comm;
    bool can_in, can_out, broken;
    bool untried;          /* its transport has yet to show that it works; then its link counts on it */
    struct exec_edge edge; /* what it has moved since the last look */
    struct flow_window flow; /* of what its peer contributes */
    uint32_t beside;       /* peers of its communicator when it was made, this one included: they share first windows */
    struct stream_bound bound;
    uint32_t flow_look;    /* frames until the round trip is read again */
    int64_t rtt_ns;        /* 0: the peer is near, or nothing is known */
    int64_t looked_at;     /* since then bytes are counted; rx_bytes at that time */
    uint64_t looked_bytes;
    _Atomic uint64_t tx_bytes, rx_bytes;
    /* the sockets of its stripe: bundle_stripe.c, with comm.lock */
    uint32_t dials;        /* under way */
    uint32_t dialled;      /* number of the last one */
    int64_t dial_at;       /* the next one not before */
    int64_t dial_wait_ns;  /* after the last one that failed; 0: it did not */
    /* receiving */
    unsigned char small[STREAM_AHEAD]; /* frame heads and credits */
    uint32_t small_at, small_used;
    unsigned char *rx_dst; /* where the payload goes; null: scratch */
    uint32_t rx_left;
    struct lane_exec *rx_exec; /* null: drained */
    uint32_t rx_partner;   /* of rx_exec: the peer */
    bool rx_contributes;   /* what comes was sent against a grant */
    uint32_t rx_element;   /* not 0: the payload is lent to the executor, in elements of so many bytes; */
    uint32_t part_used;    /* ... of the next one there are so many */
    unsigned char part[STREAM_ELEMENT];
    /* sending */
    unsigned char head[STREAM_CREDITS + STREAM_HEAD]; /* credits, then at most one frame head */
    uint32_t head_at, head_used;
    const unsigned char *tx_data;
    uint32_t tx_left;      /* of the payload */
    struct lane_exec *tx_exec; /* null: from scratch */
    uint32_t tx_partner;   /* of tx_exec: the peer */
    bool tx_open;          /* a frame is being sent */
    unsigned char *tx_scratch; /* owned */
};

#endif
