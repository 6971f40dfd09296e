/* queue.c - completion queues.
 *
 * Its one idea: the descriptor is readable exactly while a wait would return at once, and is written to only when that changes.
 * SPDX-License-Identifier: MIT */
#include "engine/tables/queue.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/condition.h"
#include "net/fds.h"

struct queue *queue_new(void)
{
    struct queue *q = calloc(1, sizeof *q);
    if (q == NULL) {
        return NULL;
    }
    pthread_mutex_init(&q->lock, NULL);
    cond_init(&q->changed);
    list_init(&q->ended);
    q->users = 1;
    q->fd = -1;
    return q;
}

void queue_use(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->users++;
    pthread_mutex_unlock(&q->lock);
}

void queue_drop(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool last = --q->users == 0;
    pthread_mutex_unlock(&q->lock);
    if (last) {
        fds_close(q->fd);
        pthread_cond_destroy(&q->changed);
        pthread_mutex_destroy(&q->lock);
        free(q);
    }
}

void queue_abandon(struct queue *q)
{
    free(q);
}

/* With the lock: the descriptor says what a wait would. */
static void queue_tell(struct queue *q)
{
    bool something = q->woken || !list_empty(&q->ended);
    uint64_t count = 1;
    if (q->fd < 0 || q->told == something) {
        return;
    }
    q->told = something;
    ssize_t rc = something ? write(q->fd, &count, sizeof count) : read(q->fd, &count, sizeof count);
    (void)rc; /* it is ours alone, and never full */
}

bool queue_append(struct queue_entry *entry)
{
    struct queue *q = entry->queue;
    pthread_mutex_lock(&q->lock);
    bool open = !q->closed;
    if (open) {
        list_append(&q->ended, &entry->all);
        queue_tell(q);
        if (q->sleepers > 0) {
            pthread_cond_signal(&q->changed);
        }
    }
    pthread_mutex_unlock(&q->lock);
    return open;
}

static enum queue_word queue_look(const struct queue *q)
{
    return q->closed                ? QUEUE_CLOSED
           : q->woken               ? QUEUE_WOKEN
           : !list_empty(&q->ended) ? QUEUE_ENDED
                                    : QUEUE_TIMEOUT;
}

enum queue_word queue_wait(struct queue *q, int64_t deadline)
{
    bool in_time = true;
    enum queue_word word;
    pthread_mutex_lock(&q->lock);
    q->sleepers++;
    while ((word = queue_look(q)) == QUEUE_TIMEOUT && in_time) {
        in_time = cond_wait(&q->changed, &q->lock, deadline);
    }
    q->sleepers--;
    if (word == QUEUE_WOKEN) {
        q->woken = false;
        queue_tell(q);
    }
    pthread_mutex_unlock(&q->lock);
    return word;
}

void queue_wake(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->woken = true;
    queue_tell(q);
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

pccl_status queue_descriptor(struct queue *q, int *fd_out)
{
    pthread_mutex_lock(&q->lock);
    if (q->fd < 0) {
        q->fd = fds_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        queue_tell(q);
    }
    *fd_out = q->fd;
    pthread_mutex_unlock(&q->lock);
    return *fd_out < 0 ? PCCL_ERR_SYSTEM : PCCL_OK;
}

struct queue_entry *queue_take(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct list *l = list_pop(&q->ended);
    queue_tell(q);
    if (!list_empty(&q->ended) && q->sleepers > 0) {
        pthread_cond_signal(&q->changed); /* who appended may have woken the one who is here */
    }
    return l != NULL ? LIST_ENTRY(l, struct queue_entry, all) : NULL;
}

void queue_let(struct queue *q)
{
    pthread_mutex_unlock(&q->lock);
}
