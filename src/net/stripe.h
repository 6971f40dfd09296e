/* stripe.h - the inside of a stripe: its sockets and what each of them is in the middle of.
 *
 * The thread that polls owns everything but `arrived`, where another thread puts a socket that joins; whoever changes which
 * sockets there are, or looks at them from elsewhere, holds `lock`.
 *
 * Invariant: between two calls at most one record is open, one whose bytes the caller still has; every other record that a socket
 * has begun to send is whole in its tail.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_STRIPE_H
#define PCCL_NET_STRIPE_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/stripe_pace.h"
#include "net/stripe_policy.h"
#include "net/transport.h"
#include "wire/stripe_record.h"

struct stripe_socket {
    int fd;               /* owned */
    bool can_in, can_out;
    int bound;            /* bytes that may wait in it to be sent first */
    bool leaving;         /* takes no new record, says LEAVE and goes */
    bool left_in, left_out; /* LEAVE has come; has been said */
    /* receiving */
    unsigned char in_head[STRIPE_HEAD_BYTES];
    uint32_t in_used;     /* of the head under way */
    bool held;            /* a head has come: */
    uint32_t in_number, in_left;
    /* sending: this head, then this tail */
    unsigned char out_head[STRIPE_HEAD_BYTES];
    uint32_t out_at, out_used;
    unsigned char *tail;  /* owned */
    uint32_t tail_at, tail_used;
    struct stripe_pace pace;
};

/* What the kernel has counted, over sockets: bytes, time. */
struct stripe_totals {
    uint64_t acked, retransmitted, busy_us, window_us, buffer_us;
};

struct stripe {
    int epoll;            /* owned: what the transport's descriptor is */
    struct stripe_config config; /* of which `wants` is called by the thread that polls */
    pthread_mutex_t lock;
    struct stripe_socket *socket[STRIPE_SOCKETS]; /* owned; the first never leaves */
    uint32_t count;
    struct stripe_socket *arrived[STRIPE_SOCKETS]; /* owned: not yet among those */
    uint32_t arrivals;
    uint64_t joined;      /* bit i: number highest - i has joined */
    uint32_t highest;     /* of a socket that has joined */
    atomic_uint wanted, there; /* sockets: wanted in all, by the end that dials; that there are */
    bool broken;          /* a socket has ended without LEAVE, or the other end has broken the rules */
    bool unsettled;       /* a socket has something to say that is no record of data */
    /* receiving */
    struct stripe_socket *current; /* its record is the next one */
    uint32_t next_in;     /* number of the next record */
    /* sending */
    struct stripe_socket *open; /* the caller has the rest of its record */
    uint32_t open_left;
    uint32_t next_out;
    uint32_t turn;        /* the socket that is asked next */
    uint32_t use;         /* sockets that records are sent on, */
    uint32_t keep;        /* ... and that this end wants: never fewer */
    uint32_t asked;       /* the accepting end: what it has said with WANT */
    uint32_t theirs;      /* the dialling end: what the other has said */
    /* measuring */
    struct stripe_policy policy;
    bool answers_loss;    /* its congestion control does */
    bool near;            /* ... and its other end is near: one socket fills a slow line there, and more would only take from others */
    bool far;             /* counted in the budget as one on a long path */
    bool found;           /* the policy begins with what was found out on this path */
    uint64_t begun;       /* bytes until its policy says how many; then STRIPE_BEGUN and no more are counted */
    int64_t looked_at, look_at;
    int64_t pace_at;      /* when the sockets are looked at for their rates */
    int64_t full_since, full_ns; /* no socket took more: since then (0: one does); so long since the last sample */
    struct stripe_totals looked, gone; /* of all sockets at the last sample; of those that have left */
};

enum {
    STRIPE_PARTS = 8,        /* of the caller's that one call looks at */
    STRIPE_BEGUN = 64 << 10, /* bytes of data: a stripe that sends less keeps to the sockets that it began with */
    STRIPE_DATA_LEAST = 4 << 10, /* bytes at once: grants are less, and a lost one has nothing behind it that would tell */
    STRIPE_SHARE = 8,        /* one part of so many of the sockets that are left */
    STRIPE_UNSENT_LEAST = 32 << 10, /* may wait in each of several sockets, whatever their windows: the records of others wait for it */
};

/* stripe_push.c */
bool stripe_idle(const struct stripe *s, const struct stripe_socket *k); /* it has nothing under way */
void stripe_head(struct stripe_socket *k, const struct stripe_record *m); /* the next one; the last has left */
/* Sends what the socket owes and then, of the caller's parts, at most `most` bytes; *moved counts those. */
pccl_status stripe_push(struct stripe_socket *k, const struct iovec *parts, int count, size_t most, size_t *moved);
/* Says what is due on each socket: rests of records, WANT, LEAVE. */
void stripe_say(struct stripe *s);

/* stripe_send.c */
pccl_status stripe_send(struct transport *t, struct iovec *parts, int count, size_t *moved);

/* stripe_receive.c */
pccl_status stripe_receive(struct transport *t, struct iovec *parts, int count, size_t *moved);

/* stripe_settle.c */
void stripe_measure(struct stripe *s, int64_t now); /* what it carries, and whether other sockets are wanted for that */
/* It is made: on a long path over BBR it wants so many at once, so that the first call finds them there. */
void stripe_start(struct stripe *s, uint32_t first);
void stripe_sent(struct stripe *s, size_t bytes); /* data: with the first of them it wants the sockets that its path is known to need */
void stripe_bound_unsent(struct stripe_socket *k, int bytes); /* not more than so many may wait in it to be sent first */
void stripe_bound(struct stripe *s, int64_t now); /* binds the rates of sockets that flood their path, has BBR begin anew */
void stripe_settle(struct stripe *s); /* wants, says, and drops those that have left */
/* Frees a socket with its descriptor.  With the lock, but where nobody else knows the stripe. */
void stripe_socket_close(struct stripe *s, struct stripe_socket *k);

#endif
