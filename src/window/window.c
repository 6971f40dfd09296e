/* window.c - a window's life: memory and what is told of it, its members, its end; and the calls on it.
 *
 * Its members are those who made it, by id and by their ranks then, for as long as it lives.
 * SPDX-License-Identifier: MIT */
#include "window/window.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mix.h"
#include "window/window_state.h"

/* ---- What is told of it ------------------------------------------------------------------------------------------ */

void put_window_member(struct writer *w, const struct window_member *m)
{
    put_u64(w, m->id);
    put_u64(w, m->serial);
    put_u64(w, m->bytes);
    put_u64(w, m->token[0]);
    put_u64(w, m->token[1]);
    put_u32(w, m->rights);
    put_u32(w, m->process);
    put_u32(w, m->descriptor);
    put_u32(w, m->status);
    put_u64(w, 0);
}

bool get_window_member(struct reader *r, struct window_member *m)
{
    m->id = get_u64(r);
    m->serial = get_u64(r);
    m->bytes = get_u64(r);
    m->token[0] = get_u64(r);
    m->token[1] = get_u64(r);
    m->rights = get_u32(r);
    m->process = get_u32(r);
    m->descriptor = get_u32(r);
    m->status = get_u32(r);
    (void)get_u64(r);
    return !r->bad;
}

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

static void peers_init(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        p->window = w;
        list_init(&p->ops);
        list_init(&p->queued);
        list_init(&p->asks);
        list_init(&p->answers);
        list_init(&p->due);
        list_init(&p->owes);
        list_init(&p->waiters);
    }
}

struct window *window_new(struct comm *c, void *base, size_t bytes, uint32_t rights, uint32_t world, struct window_member *m)
{
    struct window *w = calloc(1, sizeof *w + world * sizeof w->peer[0]);
    struct windows *ws = w != NULL ? windows_get(c) : NULL;
    if (ws == NULL) {
        free(w);
        return NULL;
    }
    list_init(&w->all);
    list_init(&w->tasks);
    w->world = world;
    w->base = base;
    w->bytes = bytes;
    w->rights = rights;
    w->shared_fd = -1;
    w->hears = (struct window_message){.role = WINDOW_HEARS, .window = w};
    peers_init(w);
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
    w->rank = rank;
    w->joined = true;
    w->number = mix64(mix64(members[0].id, members[0].serial), 1) / WINDOW_TAGS * WINDOW_TAGS;
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        p->id = members[r].id;
        p->bytes = (size_t)members[r].bytes;
        p->rights = members[r].rights;
        if (r == rank) {
            p->reach = w->base;
        } else {
            window_memory_map(p, &members[r]);
        }
    }
    ws->others = w->world - 1 > ws->others ? w->world - 1 : ws->others;
    target_hear(w);
    pthread_mutex_unlock(&ws->lock);
}

/* With the lock: no operation or message of it is under way any more. */
static void window_quiet(struct window *w)
{
    struct windows *ws = w->windows;
    w->quiet = true;
    window_over(w, &(struct session_outcome){.result = RESULT_GONE});
    origin_over(w);
    target_stop(w);
    while (w->under_way > 0 || w->calls > 0) {
        pthread_cond_wait(&ws->changed, &ws->lock);
    }
}

void window_free(struct window *w)
{
    struct windows *ws = w->windows;
    if (ws != NULL) {
        pthread_mutex_lock(&ws->lock);
        if (!ws->ended) {
            window_quiet(w);
        }
        windows_remove(w);
        pthread_mutex_unlock(&ws->lock);
        windows_drop(ws);
    }
    window_memory_free(w);
    for (uint32_t r = 0; r < w->world; r++) {
        free(w->peer[r].answered);
    }
    free(w);
}

/* ---- Calls --------------------------------------------------------------------------------------------------------- */

struct comm_op *window_begin(struct window *w, const struct window_call *call, uint64_t *number_out)
{
    struct windows *ws = w->windows;
    struct window_op *op = origin_new(w, call);
    struct comm_op *of = op != NULL ? comm_op_begin(ws->comm, call->phase, ws->queue) : NULL;
    if (of == NULL) {
        free(op);
        return NULL;
    }
    op->call = of;
    *number_out = of->given.tag;
    pthread_mutex_lock(&ws->lock);
    origin_start(op);
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
    (void)window_look(w);
    *out = (struct window_info){.id = p->id, .bytes = p->bytes, .rights = p->rights, .address = p->reach,
                                .lost = p->missing || w->over.result != RESULT_PENDING};
    pthread_mutex_unlock(&ws->lock);
}

static bool closed_by_all(const struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        if (r != w->rank && !w->peer[r].closed && !w->peer[r].missing) {
            return false;
        }
    }
    return true;
}

void window_close(struct window *w)
{
    struct windows *ws = w->windows;
    pthread_mutex_lock(&ws->lock);
    (void)window_look(w);
    w->closing = true;
    w->peer[w->rank].closed = true;
    origin_signals(&w->peer[w->rank]);
    while (w->calls > w->waits) { /* a member that has been told goes, and answers nothing more */
        pthread_cond_wait(&ws->changed, &ws->lock);
    }
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_op *op = r == w->rank || w->peer[r].missing ? NULL
                                : origin_new(w, &(struct window_call){.kind = WINDOW_CLOSE, .rank = r});
        if (op != NULL) {
            origin_start(op);
        } else if (r != w->rank && !w->peer[r].missing) {
            window_broken(w); /* the others would wait for it */
            break;
        }
    }
    while (w->calls > 0 || (w->over.result == RESULT_PENDING && !closed_by_all(w))) {
        pthread_cond_wait(&ws->changed, &ws->lock);
    }
    pthread_mutex_unlock(&ws->lock);
}
