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

#include "core/status.h"

struct source {
    int fd; /* borrowed */
    void (*ready)(struct source *source, uint32_t events);
};

enum { LOOP_BATCH = 64 };

struct loop {
    int epoll, wake;     /* owned; -1 when not open */
    atomic_bool woken;   /* a wake-up is on its way */
    struct epoll_event batch[LOOP_BATCH];
    int at, count;       /* of the batch being served */
};

pccl_status loop_open(struct loop *loop, struct err *err) PCCL_MUST_CHECK;
void loop_close(struct loop *loop); /* sources must be removed before */

/* `events` as for epoll: EPOLLIN, EPOLLOUT, EPOLLET... */
pccl_status loop_add(struct loop *loop, struct source *source, uint32_t events, struct err *err) PCCL_MUST_CHECK;
void loop_change(struct loop *loop, struct source *source, uint32_t events);
void loop_remove(struct loop *loop, struct source *source);

/* Waits at most timeout_ns (0: not at all, negative: without limit; rounded up to milliseconds), serves what is ready;
 * returns how many sources were served, wake-ups included. */
int loop_poll(struct loop *loop, int64_t timeout_ns);

/* Ends the wait of the thread that polls; async-signal-safe. */
void loop_wake(struct loop *loop);

#endif
