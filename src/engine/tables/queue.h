/* queue.h - completion queues: what has ended, in that order, for whoever comes to fetch it.
 *
 * An entry lies in what has ended, so that nothing is allocated when that happens.  A queue knows nothing of operations:
 * who appends an entry, and who takes it out, do.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_QUEUE_H
#define PCCL_ENGINE_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/list.h"
#include "core/status.h"

struct queue {
    pthread_mutex_t lock;  /* of all that follows */
    pthread_cond_t changed;
    struct list ended;     /* struct queue_entry.all */
    uint32_t users;        /* the program's handle, calls inside, attached entries */
    uint32_t sleepers;
    bool woken;            /* the next wait returns, or one of those under way */
    bool closed;           /* nothing is appended any more, nobody waits */
    int fd;                /* owned: readable while something is there; -1: nobody has asked for it */
    bool told;             /* ... and it is readable */
};

struct queue_entry {
    struct list all;       /* in queue.ended; in no list: not ended, or taken */
    struct queue *queue;   /* a user; null: not attached */
    uint64_t cookie;       /* the program's */
};

/* Why a wait is over.  WOKEN: by a wake, whatever is there; ENDED: something was there. */
enum queue_word { QUEUE_ENDED, QUEUE_WOKEN, QUEUE_TIMEOUT, QUEUE_CLOSED };

struct queue *queue_new(void); /* with one user; null: no memory */
void queue_use(struct queue *q);
void queue_drop(struct queue *q); /* the last one frees it */
/* After a fork: frees memory only. */
void queue_abandon(struct queue *q);

/* It has ended.  False: the queue is closed. */
bool queue_append(struct queue_entry *entry);
/* Waits until something is there, which others may have taken when the caller looks. */
enum queue_word queue_wait(struct queue *q, int64_t deadline);
void queue_wake(struct queue *q);
void queue_close(struct queue *q);
/* Its descriptor, which is opened by the first who asks. */
pccl_status queue_descriptor(struct queue *q, int *fd_out) PCCL_MUST_CHECK;

/* Takes the first out, and leaves queue.lock locked, so that the caller can make sure that what it belongs to stays; null: none. */
struct queue_entry *queue_take(struct queue *q);
void queue_let(struct queue *q);
/* Whether it has ended and was not taken.  With queue.lock. */
static inline bool queue_has(const struct queue_entry *entry)
{
    return !list_empty(&entry->all);
}

#endif
