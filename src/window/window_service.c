/* window_service.c - the windows of a communicator: their thread, which is told of every message that has ended.
 *
 * It passes the end on to whose message it was, then sees to what follows from it for the window: members that are lost, its end.
 * SPDX-License-Identifier: MIT */
#include "window/window_service.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/condition.h"
#include "engine/engine.h"
#include "engine/op_queue.h"

/* ---- The thread ---------------------------------------------------------------------------------------------------- */

/* Those that the program has cancelled. */
static void unwanted(struct windows *ws, struct list *ops)
{
    LIST_FOR_EACH(l, after, ops) {
        struct window_op *op = LIST_ENTRY(l, struct window_op, in);
        op->unwanted = op->call != NULL && comm_op_given_up(ws->comm, op->call);
    }
}

static void windows_look(struct windows *ws)
{
    LIST_FOR_EACH(l, after, &ws->set.all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        for (uint32_t r = 0; r < w->world; r++) {
            unwanted(ws, &w->peer[r].ops);
            unwanted(ws, &w->peer[r].queued);
            unwanted(ws, &w->peer[r].waiters);
        }
    }
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_WOKEN});
}

/* With the lock from before it is taken, so that who cancels a message finds its operation there.  False: no message has ended. */
static bool windows_next(struct windows *ws)
{
    struct op_ended report;
    uint64_t cookie;
    pthread_mutex_lock(&ws->lock);
    bool any = op_queue_take(ws->queue, &report, &cookie);
    if (any) {
        struct window_message *m = (struct window_message *)(uintptr_t)cookie;
        m->handle = NULL;
        windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = m, .outcome = &report.outcome});
    }
    pthread_mutex_unlock(&ws->lock);
    return any;
}

void windows_remove(struct window *w)
{
    if (list_empty(&w->all)) {
        return; /* it was before */
    }
    window_out(w);
    w->windows->count--;
}

void window_release(struct window *w)
{
    window_memory_free(w);
    for (uint32_t r = 0; r < w->world; r++) {
        free(w->peer[r].answered);
    }
    free(w);
}

/* Out of the set, and freed if its program has left it. */
static void windows_forget(struct window *w)
{
    windows_remove(w);
    if (w->kept) {
        window_release(w);
    }
}

/* Windows that their program has left, when all is said. */
static void windows_bury(struct windows *ws)
{
    LIST_FOR_EACH(l, after, &ws->set.all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        if (!w->kept || !window_done(w)) {
            continue;
        }
        if (!w->quiet) {
            windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_QUIET, .window = w});
        }
        if (w->under_way == 0) {
            windows_forget(w);
        }
    }
}

static void *windows_run(void *arg)
{
    struct windows *ws = arg;
    bool stop = false;
    while (!stop) {
        pthread_mutex_lock(&ws->lock);
        windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_MARK});
        int64_t until = window_deadline(&ws->set);
        pthread_mutex_unlock(&ws->lock);
        enum queue_word word = queue_wait(ws->queue, until);
        for (uint32_t n = 0; n < WINDOW_SLOTS && windows_next(ws); n++) { /* as many as may have been there */
        }
        pthread_mutex_lock(&ws->lock);
        if (word != QUEUE_ENDED || clock_now_ns() >= ws->set.look_at) {
            windows_look(ws);
        }
        windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_FOLLOW});
        windows_bury(ws);
        stop = ws->stop;
        pthread_mutex_unlock(&ws->lock);
    }
    return NULL;
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static struct windows *windows_new(struct comm *c)
{
    struct windows *ws = calloc(1, sizeof *ws);
    struct queue *q = ws != NULL ? queue_new() : NULL;
    if (q == NULL) {
        free(ws);
        return NULL;
    }
    ws->comm = c;
    ws->queue = q;
    ws->users = 1;
    window_set_init(&ws->set);
    pthread_mutex_init(&ws->lock, NULL);
    cond_init(&ws->changed);
    if (engine_thread(&ws->thread, windows_run, ws) != 0) {
        windows_drop(ws);
        return NULL;
    }
    return ws;
}

void windows_drop(struct windows *ws)
{
    pthread_mutex_lock(&ws->lock);
    bool last = --ws->users == 0;
    pthread_mutex_unlock(&ws->lock);
    if (last) {
        pthread_cond_destroy(&ws->changed);
        pthread_mutex_destroy(&ws->lock);
        queue_drop(ws->queue);
        free(ws->set.spare);
        free(ws->set.spare_answers);
        free(ws);
    }
}

static void windows_stop(struct windows *ws)
{
    pthread_mutex_lock(&ws->lock);
    ws->stop = true;
    pthread_mutex_unlock(&ws->lock);
    queue_wake(ws->queue);
    pthread_join(ws->thread, NULL);
    windows_drop(ws);
}

struct windows *windows_get(struct comm *c)
{
    pthread_mutex_lock(&c->lock);
    struct windows *ws = c->windows;
    pthread_mutex_unlock(&c->lock);
    if (ws != NULL) {
        return ws;
    }
    struct windows *fresh = windows_new(c);
    if (fresh == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&c->lock);
    ws = c->windows = c->windows != NULL ? c->windows : fresh;
    pthread_mutex_unlock(&c->lock);
    if (ws != fresh) {
        windows_stop(fresh);
    }
    return ws;
}

bool windows_add(struct windows *ws, struct window *w, uint64_t *serial_out)
{
    pthread_mutex_lock(&ws->comm->lock);
    bool room = comm_ops_keep(ws->comm, WINDOW_SLOTS);
    pthread_mutex_unlock(&ws->comm->lock);
    pthread_mutex_lock(&ws->lock);
    room = room && ws->count < WINDOW_MOST;
    if (room) {
        ws->count++;
        ws->users++;
        list_append(&ws->set.all, &w->all);
        w->windows = ws;
        *serial_out = ws->made++;
    }
    pthread_mutex_unlock(&ws->lock);
    return room;
}

/* All messages have ended, or do so by themselves: the communicator has left. */
void windows_end(struct comm *c)
{
    struct windows *ws = c->windows;
    if (ws == NULL) {
        return;
    }
    pthread_mutex_lock(&ws->lock);
    while (!list_empty(&ws->set.all)) {
        struct window *w = LIST_ENTRY(ws->set.all.next, struct window, all);
        if (w->under_way > 0) {
            pthread_cond_wait(&ws->changed, &ws->lock);
            continue;
        }
        windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_QUIET, .window = w});
        windows_forget(w);
    }
    ws->ended = true;
    pthread_mutex_unlock(&ws->lock);
    c->windows = NULL;
    windows_stop(ws);
}

void windows_abandon(struct comm *c)
{
    struct windows *ws = c->windows;
    if (ws == NULL) {
        return;
    }
    LIST_FOR_EACH(l, after, &ws->set.all) {
        windows_forget(LIST_ENTRY(l, struct window, all));
    }
    c->windows = NULL;
    queue_abandon(ws->queue);
    free(ws->set.spare);
    free(ws->set.spare_answers);
    free(ws);
}
