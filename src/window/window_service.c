/* window_service.c - the windows of a communicator: their thread, which is told of every message that has ended.
 *
 * It passes the end on to whose message it was, then sees to what follows from it for the window: members that are lost, its end.
 * SPDX-License-Identifier: MIT */
#include "window/window_state.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/condition.h"
#include "engine/engine.h"

/* ---- The thread ---------------------------------------------------------------------------------------------------- */

/* What is open with members that are lost ends, and with the window all of it. */
static void window_follow(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        if (p->missing && !p->lost) {
            p->lost = true;
            origin_lost(p);
            target_lost(p);
        }
    }
    if (w->over.result != RESULT_PENDING) {
        origin_over(w);
    }
}

static void message_ended(struct window_message *m, const struct session_outcome *o)
{
    struct window *w = m->window;
    struct windows *ws = w->windows;
    w->under_way--;
    m->op = NULL;
    switch (m->role) {
    case WINDOW_HEARS:
        target_heard(w, o);
        break;
    case WINDOW_ASKS:
        origin_ended(m->owner, o);
        break;
    case WINDOW_SERVES:
        target_ended(m->owner, o);
        break;
    }
    window_follow(w);
    target_room(ws);
    pthread_cond_broadcast(&ws->changed);
}

static void windows_look(struct windows *ws)
{
    int64_t now = clock_now_ns();
    ws->look_at = CLOCK_NEVER;
    LIST_FOR_EACH(l, after, &ws->all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        origin_give_up(w);
        origin_late(w, now, &ws->look_at);
    }
}

/* With the lock from before it is taken, so that who cancels a message finds its operation there.  False: no message has ended. */
static bool windows_next(struct windows *ws)
{
    struct op_ended report;
    uint64_t cookie;
    pthread_mutex_lock(&ws->lock);
    bool any = op_queue_take(ws->queue, &report, &cookie);
    if (any) {
        message_ended((struct window_message *)(uintptr_t)cookie, &report.outcome);
    }
    pthread_mutex_unlock(&ws->lock);
    return any;
}

static void *windows_run(void *arg)
{
    struct windows *ws = arg;
    bool stop = false;
    while (!stop) {
        pthread_mutex_lock(&ws->lock);
        int64_t deadline = ws->look_at;
        pthread_mutex_unlock(&ws->lock);
        enum queue_word word = queue_wait(ws->queue, deadline);
        while (windows_next(ws)) {
        }
        pthread_mutex_lock(&ws->lock);
        if (word != QUEUE_ENDED || clock_now_ns() >= ws->look_at) {
            windows_look(ws);
        }
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
    ws->look_at = CLOCK_NEVER;
    list_init(&ws->all);
    list_init(&ws->backlog);
    pthread_mutex_init(&ws->lock, NULL);
    cond_init(&ws->changed);
    if (engine_thread(&ws->thread, windows_run, ws) != 0) {
        pthread_cond_destroy(&ws->changed);
        pthread_mutex_destroy(&ws->lock);
        queue_drop(q);
        free(ws);
        return NULL;
    }
    return ws;
}

static void windows_stop(struct windows *ws)
{
    pthread_mutex_lock(&ws->lock);
    ws->stop = true;
    pthread_mutex_unlock(&ws->lock);
    queue_wake(ws->queue);
    pthread_join(ws->thread, NULL);
    pthread_cond_destroy(&ws->changed);
    pthread_mutex_destroy(&ws->lock);
    queue_drop(ws->queue);
    free(ws);
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
        list_append(&ws->all, &w->all);
        w->windows = ws;
        *serial_out = ws->made++;
    }
    pthread_mutex_unlock(&ws->lock);
    return room;
}

void windows_remove(struct window *w)
{
    list_remove(&w->all);
    w->windows->count--;
    w->windows = NULL;
}

/* All messages have ended, or do so by themselves: the communicator has left. */
void windows_end(struct comm *c)
{
    struct windows *ws = c->windows;
    if (ws == NULL) {
        return;
    }
    pthread_mutex_lock(&ws->lock);
    while (!list_empty(&ws->all)) {
        struct window *w = LIST_ENTRY(ws->all.next, struct window, all);
        if (w->under_way > 0) {
            pthread_cond_wait(&ws->changed, &ws->lock);
            continue;
        }
        if (w->over.result == RESULT_PENDING) {
            w->over.result = RESULT_GONE;
        }
        origin_over(w);
        windows_remove(w);
    }
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
    LIST_FOR_EACH(l, after, &ws->all) {
        windows_remove(LIST_ENTRY(l, struct window, all));
    }
    c->windows = NULL;
    queue_abandon(ws->queue);
    free(ws);
}
