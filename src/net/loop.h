/* loop.h - a set of descriptors and who wants to know about them.
 *
 * One thread at a time polls (a lane's lock says which); others may add and change sources and wake it.  A source is
 * removed only by the thread that polls, or while nobody does.  Invariant: ready() is never called for a removed source.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_LOOP_H
#define PCCL_NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "core/list.h"
#include "core/status.h"

struct source {
    int fd; /* borrowed */
    void (*ready)(struct source *source, uint32_t events);
};

/* What can be looked at without a system call while it has something to say; at rest its descriptor tells.  Both are called by the
 * thread that polls; look may take it out. */
struct polled {
    struct list all;     /* in loop.polled; in no list: at rest */
    uint32_t idle;       /* looks in a row that found nothing */
    bool (*look)(struct polled *p); /* serves it if something has come */
    bool (*rest)(struct polled *p); /* from now on its descriptor tells; false: something has come */
};

enum {
    LOOP_BATCH = 64,
    LOOP_LOOKS = 16,  /* in a row that found something before descriptors are asked, too */
    LOOP_IDLE = 4096, /* ... that found nothing before it is put to rest: of many links few are used at a time */
};

struct loop {
    int epoll, wake;     /* owned; -1 when not open */
    atomic_bool woken;   /* a wake-up is on its way */
    struct epoll_event batch[LOOP_BATCH];
    int at, count;       /* of the batch being served */
    struct list polled;  /* of the thread that polls: those not at rest */
    int looks;           /* since descriptors were asked */
    atomic_bool any_polled;
};

pccl_status loop_open(struct loop *loop, struct err *err) PCCL_MUST_CHECK;
void loop_close(struct loop *loop); /* sources must be removed before */

/* `events` as for epoll: EPOLLIN, EPOLLOUT, EPOLLET... */
pccl_status loop_add(struct loop *loop, struct source *source, uint32_t events, struct err *err) PCCL_MUST_CHECK;
void loop_change(struct loop *loop, struct source *source, uint32_t events);
void loop_remove(struct loop *loop, struct source *source);

/* By the thread that polls; may be repeated. */
void loop_look_at(struct loop *loop, struct polled *p);
void loop_look_away(struct loop *loop, struct polled *p);
/* Nobody may poll for a while: descriptors tell of everything from now on; false: something has come.  By who may poll. */
bool loop_rest(struct loop *loop);

/* Waits at most timeout_ns (0: not at all, negative: without limit; rounded up to milliseconds), serves what is ready;
 * returns how many sources were served, wake-ups included. */
int loop_poll(struct loop *loop, int64_t timeout_ns);

/* Ends the wait of the thread that polls; async-signal-safe. */
void loop_wake(struct loop *loop);

#endif
