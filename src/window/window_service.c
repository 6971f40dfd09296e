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

/* Whoever is missing now is lost once the messages that have ended so far have been looked at: some may be signals of theirs. */
static void window_mark(struct window *w)
{
    if (w->followed == w->seen) {
        return;
    }
    w->followed = w->seen;
    w->follows = true;
    for (uint32_t r = 0; r < w->world; r++) {
        w->peer[r].going = w->peer[r].missing;
    }
}

/* What is open with members that are lost ends, and with the window all of it. */
static void window_follow(struct window *w)
{
    for (uint32_t r = 0; w->follows && r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        if (p->going && !p->lost) {
            p->lost = true;
            origin_lost(p);
            target_lost(p);
        }
    }
    w->follows = false;
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
    target_launch(ws);
    pthread_cond_broadcast(&ws->changed);
}

/* What has been cancelled, has no time left, or lasts until this peer leaves. */
static void windows_look(struct windows *ws)
{
    int64_t now = clock_now_ns();
    ws->look_at = CLOCK_NEVER;
    LIST_FOR_EACH(l, after, &ws->all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        if (!w->joined) {
            continue;
        }
        (void)window_look(w);
        if (!window_alive(w)) {
            window_over(w, &(struct session_outcome){.result = RESULT_GONE});
        }
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

/* The time until when it may sleep: no longer where somebody was found missing meanwhile. */
static int64_t windows_mark(struct windows *ws)
{
    int64_t until = ws->look_at;
    LIST_FOR_EACH(l, after, &ws->all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        window_mark(w);
        until = w->follows ? 0 : until;
    }
    return until;
}

static void windows_follow(struct windows *ws)
{
    LIST_FOR_EACH(l, after, &ws->all) {
        window_follow(LIST_ENTRY(l, struct window, all));
    }
    pthread_cond_broadcast(&ws->changed);
}

static void *windows_run(void *arg)
{
    struct windows *ws = arg;
    bool stop = false;
    while (!stop) {
        pthread_mutex_lock(&ws->lock);
        int64_t until = windows_mark(ws);
        pthread_mutex_unlock(&ws->lock);
        enum queue_word word = queue_wait(ws->queue, until);
        for (uint32_t n = 0; n < WINDOW_SLOTS && windows_next(ws); n++) { /* as many as may have been there */
        }
        pthread_mutex_lock(&ws->lock);
        if (word != QUEUE_ENDED || clock_now_ns() >= ws->look_at) {
            windows_look(ws);
        }
        windows_follow(ws);
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
    ws->users = 1;
    list_init(&ws->all);
    list_init(&ws->asking);
    list_init(&ws->due);
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
        list_append(&ws->all, &w->all);
        w->windows = ws;
        *serial_out = ws->made++;
    }
    pthread_mutex_unlock(&ws->lock);
    return room;
}

void windows_remove(struct window *w)
{
    if (list_empty(&w->all)) {
        return; /* it was before */
    }
    list_remove(&w->all);
    for (uint32_t r = 0; r < w->world; r++) {
        list_remove(&w->peer[r].asks);
        list_remove(&w->peer[r].owes);
    }
    w->windows->count--;
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
        target_stop(w);
        windows_remove(w);
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
    LIST_FOR_EACH(l, after, &ws->all) {
        windows_remove(LIST_ENTRY(l, struct window, all));
    }
    c->windows = NULL;
    queue_abandon(ws->queue);
    free(ws);
}
