/* comm_step.c - one step of a communicator's session: the lock, the event, its actions, and what waits until the lock is back.
 *
 * Its one idea: everything that happens to a communicator ends up here, and what follows from it is carried out by act.c,
 * through a seam, so that whoever reports an event needs to know nothing of those who carry out actions.
 * Invariant: nothing is sent, no thread woken and no line logged while comm.lock is held.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "engine/comm.h"

void comm_lock(struct comm *c, struct comm_after *after)
{
    after->count = 0;
    after->lanes = 0;
    after->any_ended = false;
    after->traces = 0;
    after->notice[0] = 0;
    pthread_mutex_lock(&c->lock);
}

static void comm_flush(struct comm_after *after)
{
    for (uint32_t i = 0; i < after->count; i++) {
        conn_flush(after->flush[i]);
        conn_unref(after->flush[i]);
    }
    after->count = 0;
}

static void comm_log(const struct comm_after *after)
{
    if (after->notice[0] != 0) {
        log_line(LOG_WARN, "%s", after->notice);
    }
    for (uint32_t i = 0; i < after->traces && i < COMM_TRACES; i++) {
        const struct comm_trace *t = &after->trace[i];
        log_line(LOG_DEBUG, "peer %llu: %s (%llu, %llu)", (unsigned long long)t->own, t->text,
                 (unsigned long long)t->id, (unsigned long long)t->value);
    }
    if (after->traces > COMM_TRACES) {
        log_line(LOG_DEBUG, "and %u lines more", after->traces - COMM_TRACES);
    }
}

void comm_unlock(struct comm *c, struct comm_after *after)
{
    struct engine *e = c->engine;
    pthread_mutex_unlock(&c->lock);
    comm_flush(after);
    for (uint32_t i = 0; after->lanes != 0; i++, after->lanes >>= 1) {
        if ((after->lanes & 1) != 0) {
            lane_poke(e->lane[i]);
        }
    }
    if (after->any_ended) {
        engine_any_ended(e);
    }
    comm_log(after);
}

void comm_send(struct comm_after *after, struct conn *conn, const void *bytes, size_t size, const void *data,
               size_t data_size)
{
    if (conn_append(conn, bytes, size, data, data_size) != PCCL_OK) {
        conn_shutdown(conn); /* it does not read, or we have no memory: either way the link is of no use */
        return;
    }
    for (uint32_t i = 0; i < after->count; i++) {
        if (after->flush[i] == conn) {
            return;
        }
    }
    if (after->count == COMM_FLUSH) {
        comm_flush(after);
    }
    after->flush[after->count++] = conn_ref(conn);
}

/* The session's tables grow between steps, since a step never allocates.  What there is no memory for, the step says. */
static void comm_grow(struct comm *c, const struct session_event *next)
{
    struct session_growth g[SESSION_TABLES];
    uint32_t count = session_growth(c->session, next, g);
    for (uint32_t i = 0; i < count; i++) {
        void *storage = aligned_alloc(64, (g[i].bytes + 63) / 64 * 64);
        if (storage != NULL) {
            session_grow(c->session, &g[i], storage);
            free(c->table[g[i].table]);
            c->table[g[i].table] = storage;
        }
    }
}

void comm_step(struct comm *c, struct session_event *event, struct comm_after *after)
{
    struct session_event memory = {.kind = SESSION_MEMORY};
    for (struct session_event *e = event; e != NULL;) {
        uint64_t wanted = 0;
        comm_grow(c, e);
        outbox_reset(&c->out);
        session_step(c->session, clock_now_ns(), e, &c->out);
        for (uint32_t i = 0; i < c->out.count; i++) {
            c->seam->act(c, &c->out.actions[i], after, &wanted);
        }
        e = NULL;
        if (wanted > 0) {
            free(c->staging);
            c->staging = malloc(wanted);
            memory.memory = c->staging;
            e = &memory;
        }
    }
    c->seam->settled(c, after);
    engine_arm(c->engine, session_deadline(c->session));
}

pccl_status comm_receive(struct comm *c, struct conn *conn, uint32_t events, comm_frame_fn *frame, void *user,
                         struct comm_after *after)
{
    struct frame_header h;
    const void *payload;
    pccl_status next;
    if ((events & EPOLLOUT) != 0) {
        conn_flush(conn);
    }
    pccl_status st = conn_receive(conn);
    comm_lock(c, after);
    while ((next = conn_next(conn, &h, &payload)) == PCCL_OK) {
        frame(user, &h, payload, after);
    }
    return next == PCCL_ERR_PROTOCOL ? next : st == PCCL_OK ? PCCL_ERR_AGAIN : st;
}

void comm_fail(struct session_outcome *o, enum session_result result, const char *text)
{
    memset(o, 0, sizeof *o);
    o->result = result;
    size_t n = strlen(text);
    n = n < sizeof o->text - 1 ? n : sizeof o->text - 1;
    memcpy(o->text, text, n);
}
