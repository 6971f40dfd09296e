/* window.c - a window's life: memory and what is told of it, its members, its end; and the calls on it.
 *
 * Its members are those who made it, by id and by their ranks then, for as long as it lives.
 * SPDX-License-Identifier: MIT */
#include "window/window.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/condition.h"
#include "window/window_service.h"
#include "engine/comm_calls.h"

enum { LET_GO_NS = 1000000 }; /* lanes that were told to let go of a buffer are looked at so often */

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

struct window *window_new(struct comm *c, void *base, size_t bytes, uint32_t rights, uint32_t world, struct window_member *m)
{
    struct window *w = calloc(1, sizeof *w + world * sizeof w->peer[0]);
    struct windows *ws = w != NULL ? windows_get(c) : NULL;
    if (ws == NULL) {
        free(w);
        return NULL;
    }
    window_init(w, &ws->set, base, bytes, rights, world);
    w->shared_fd = -1;
    pccl_status status = base != NULL || bytes == 0 ? PCCL_OK : window_memory_make(w, bytes);
    uint64_t serial = 0;
    status = status == PCCL_OK && !windows_add(ws, w, &serial) ? PCCL_ERR_AGAIN : status;
    *m = (struct window_member){.bytes = bytes, .rights = rights, .token = {w->token[0], w->token[1]}, .status = (uint32_t)status, .serial = serial};
    if (w->shared != NULL) {
        m->process = (uint32_t)getpid();
        m->descriptor = (uint32_t)w->shared_fd;
    }
    return w;
}

void window_join(struct window *w, const struct window_member *members, uint32_t rank)
{
    struct windows *ws = w->windows;
    pthread_mutex_lock(&ws->lock);
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_JOINED, .window = w, .members = members, .rank = rank});
    for (uint32_t r = 0; r < w->world; r++) {
        if (r != rank) {
            window_memory_map(&w->peer[r], &members[r]);
        }
    }
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = w});
    pthread_mutex_unlock(&ws->lock);
}

/* With the lock: no operation or message of it is under way any more. */
static void window_quiet(struct window *w)
{
    struct windows *ws = w->windows;
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_QUIET, .window = w});
    while (w->under_way > 0 || w->calls > 0) {
        pthread_cond_wait(&ws->changed, &ws->lock);
    }
}

/* With the lock: the service has it from here on, and nothing touches the program's memory any more. */
static void window_leave(struct window *w)
{
    struct windows *ws = w->windows;
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_LEFT, .window = w});
    while (!ws->ended && windows_lend(ws, w)) {
        (void)cond_wait(&ws->changed, &ws->lock, clock_now_ns() + LET_GO_NS);
    }
}

void window_free(struct window *w)
{
    struct windows *ws = w->windows;
    bool kept = false;
    if (ws != NULL) {
        pthread_mutex_lock(&ws->lock);
        kept = !ws->ended && w->closing && !window_done(w);
        if (kept) {
            window_leave(w);
            kept = w->kept = !ws->ended; /* else the communicator has gone meanwhile */
        } else if (!ws->ended) {
            window_quiet(w);
        }
        if (kept) {
            queue_wake(ws->queue);
        } else {
            windows_remove(w);
        }
        pthread_mutex_unlock(&ws->lock);
    }
    if (!kept) {
        window_release(w);
    }
    if (ws != NULL) {
        windows_drop(ws);
    }
}

/* ---- Calls --------------------------------------------------------------------------------------------------------- */

static struct window_op *op_new(struct window *w, const struct window_call *call)
{
    struct window_op *op = malloc(sizeof *op);
    if (op != NULL) {
        window_op_init(op, w, call);
    }
    return op;
}

struct comm_op *window_begin(struct window *w, const struct window_call *call, uint64_t *number_out)
{
    struct windows *ws = w->windows;
    struct window_op *op = op_new(w, call);
    struct comm_op *of = op != NULL ? comm_op_begin(ws->comm, call->phase, ws->queue) : NULL;
    if (of == NULL) {
        free(op);
        return NULL;
    }
    op->call = of;
    *number_out = of->given.tag;
    pthread_mutex_lock(&ws->lock);
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_CALLED, .op = op});
    pthread_mutex_unlock(&ws->lock);
    return of;
}

uint32_t window_world(const struct window *w)
{
    return w->world;
}

uint32_t window_rank(const struct window *w)
{
    return w->rank;
}

uint64_t window_number(const struct window *w)
{
    return w->number;
}

bool window_served(const struct window *w)
{
    pthread_mutex_lock(&w->windows->lock);
    bool served = !w->windows->ended;
    pthread_mutex_unlock(&w->windows->lock);
    return served;
}

void window_tell(struct window *w, uint32_t rank, struct window_info *out)
{
    struct windows *ws = w->windows;
    struct window_peer *p = &w->peer[rank];
    pthread_mutex_lock(&ws->lock);
    windows_see(ws);
    *out = (struct window_info){.id = p->id, .bytes = p->bytes, .rights = p->rights, .address = p->reach,
                                .lost = p->missing || w->over.result != RESULT_PENDING};
    pthread_mutex_unlock(&ws->lock);
}

/* Waits while `goes_on` says so.  Operations with members that have been silent for the stall time end meanwhile. */
static void close_wait(struct window *w, bool (*goes_on)(const struct window *))
{
    struct windows *ws = w->windows;
    for (;;) {
        int64_t until = windows_silence(ws, w);
        bool lends = windows_lend(ws, w);
        windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_ABANDON, .window = w});
        if (!goes_on(w)) {
            return;
        }
        int64_t soon = clock_now_ns() + LET_GO_NS;
        (void)cond_wait(&ws->changed, &ws->lock, lends && soon < until ? soon : until);
    }
}

void window_close(struct window *w)
{
    struct windows *ws = w->windows;
    pthread_mutex_lock(&ws->lock);
    windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_CLOSING, .window = w});
    close_wait(w, window_acts); /* a member that has been told goes, and answers nothing more */
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_op *op = r == w->rank || w->peer[r].missing ? NULL
                                : op_new(w, &(struct window_call){.kind = WINDOW_CLOSE, .rank = r});
        if (op != NULL) {
            windows_step(ws, &(struct window_event){.kind = WINDOW_EVENT_CALLED, .op = op});
        } else if (r != w->rank && !w->peer[r].missing) {
            comm_leave(ws->comm, "no memory for the last message of a window"); /* the others would wait for it */
            break;
        }
    }
    close_wait(w, window_waits);
    pthread_mutex_unlock(&ws->lock);
}
