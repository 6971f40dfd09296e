/* comm_step.c - one step of a communicator's session: the lock, the event, its actions, and what waits until the lock is back.
 *
 * Its one idea: everything that happens to a communicator ends up here, and what follows from it is carried out by act.c,
 * through a seam, so that whoever reports an event needs to know nothing of those who carry out actions.
 * Invariant: nothing is sent, no thread woken and no line logged while comm.lock is held.
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/pages.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/threads/lane_hold.h"

enum { STEP_PAGED = 8 << 10 }; /* a table of so many bytes lies in pages of its own: it leaves no hole in the heap */

void comm_lock(struct comm *c, struct comm_after *after)
{
    after->count = 0;
    after->lanes = 0;
    after->any_ended = after->leaves = false;
    after->lends = UINT32_MAX;
    after->line = after->last_line = NULL;
    after->lines = 0;
    pthread_mutex_lock(&c->lock);
}

static void comm_flush(struct comm_after *after)
{
    for (uint32_t i = 0; i < after->count; i++) {
        if (after->leaves) {
            conn_leave(after->flush[i]);
        } else {
            conn_flush(after->flush[i]);
        }
        conn_unref(after->flush[i]);
    }
    after->count = 0;
}

void comm_say(struct comm_after *after, enum log_level level, const char *fmt, ...)
{
    if (!log_enabled(level)) {
        return;
    }
    char text[BOUNDS_LOG_LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t bytes = strlen(text) + 1;
    struct comm_line *line = after->lines++ < COMM_LINES ? malloc(sizeof *line + bytes) : NULL;
    if (line == NULL) {
        return;
    }
    line->next = NULL;
    line->level = level;
    memcpy(line->text, text, bytes);
    *(after->last_line != NULL ? &after->last_line->next : &after->line) = line;
    after->last_line = line;
}

static void comm_log(struct comm_after *after)
{
    uint32_t written = 0;
    while (after->line != NULL) {
        struct comm_line *line = after->line;
        log_line(line->level, "%s", line->text);
        after->line = line->next;
        free(line);
        written++;
    }
    if (after->lines > written) {
        log_line(LOG_INFO, "and %u lines more", after->lines - written);
    }
    after->last_line = NULL;
    after->lines = 0;
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

/* Something was appended to it, or could not be. */
static void said(struct comm_after *after, struct conn *conn, pccl_status appended)
{
    if (appended != PCCL_OK) {
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

void comm_send(struct comm_after *after, struct conn *conn, const void *bytes, size_t size, const void *data, size_t data_size)
{
    said(after, conn, conn_append(conn, bytes, size, data, data_size));
}

void comm_lend(struct comm_after *after, struct conn *conn, const void *bytes, size_t size, const void *data, size_t data_size)
{
    said(after, conn, conn_lend(conn, bytes, size, data, data_size));
}

/* What a step among so many members may say: there is memory for it. */
static bool out_bound(struct comm *c, uint32_t members)
{
    struct outbox_bounds bounds = session_out_bounds(&c->machine.config, members);
    if (!outboxes_reserve(&c->engine->outboxes, outbox_memory(&bounds))) {
        return false;
    }
    c->machine.out_members = members;
    c->machine.out_bounds = bounds;
    return true;
}

static uint32_t out_place(const struct comm *c)
{
    return (uint32_t)((uintptr_t)c / 64);
}

static struct outbox_box *out_take(struct comm *c)
{
    struct outbox_bounds bounds = c->machine.out_bounds;
    struct outbox_box *box = outboxes_take(&c->engine->outboxes, out_place(c), outbox_memory(&bounds));
    for (uint32_t m = c->machine.out_members; m > 0 && outbox_memory(&bounds) > outbox_box_room(box); m /= 2) {
        bounds = session_out_bounds(&c->machine.config, m / 2); /* no memory: a step that says more fails */
    }
    outbox_use(&c->machine.out, box->memory, &bounds);
    return box;
}

static struct comm_table table_new(size_t bytes)
{
    size_t all = (bytes + 63) / 64 * 64;
    return (struct comm_table){.at = all >= STEP_PAGED ? pages_new(all) : aligned_alloc(64, all), .bytes = all};
}

static void table_free(struct comm_table *t)
{
    if (t->bytes >= STEP_PAGED) {
        pages_free(t->at, t->bytes);
    } else {
        free(t->at);
    }
    t->at = NULL;
}

/* The session's tables grow between steps, since a step never allocates.  What there is no memory for, the step says. */
static void comm_grow(struct comm *c, const struct session_event *next)
{
    struct session_growth g[SESSION_TABLES];
    uint32_t count = session_growth(c->machine.session, next, g);
    for (uint32_t i = 0; i < count; i++) {
        struct comm_table *old = &c->machine.table[g[i].table], new_one = table_new(g[i].bytes);
        if (new_one.at != NULL) {
            session_grow(c->machine.session, &g[i], new_one.at);
            table_free(old);
            *old = new_one;
        }
    }
    uint32_t members = session_members(c->machine.session);
    if (members > c->machine.out_members && !out_bound(c, members)) {
        log_line(LOG_ERROR, "no memory for what a member among %u has to say", members); /* a step that says more fails */
    }
}

void comm_step(struct comm *c, struct session_event *event, struct comm_after *after)
{
    struct session_event memory = {.kind = SESSION_MEMORY};
    for (struct session_event *e = event; e != NULL;) {
        uint64_t wanted = 0;
        comm_grow(c, e);
        struct outbox_box *box = out_take(c);
        session_step(c->machine.session, clock_now_ns(), e, &c->machine.out);
        for (uint32_t i = 0; i < c->machine.out.count; i++) {
            c->seam->act(c, &c->machine.out.actions[i], after, &wanted);
        }
        outboxes_give(&c->engine->outboxes, out_place(c), box);
        e = NULL;
        if (wanted > 0) {
            free(c->machine.staging);
            c->machine.staging = malloc(wanted);
            memory.memory = c->machine.staging;
            e = &memory;
        }
    }
    c->seam->settled(c, after);
    engine_arm(c->engine, session_deadline(c->machine.session));
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

/* ---- The session's memory -------------------------------------------------------------------------------------- */

static void free_tables(struct comm_machine *m)
{
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        table_free(&m->table[i]);
    }
}

bool comm_session_start(struct comm *c, const struct session_config *config)
{
    struct comm_machine *m = &c->machine;
    m->session = NULL;
    free_tables(m);
    m->config = *config;
    if (m->arena == NULL) {
        m->arena_bytes = (session_arena_bytes(&m->config) + 63) / 64 * 64;
        m->arena = aligned_alloc(64, m->arena_bytes);
    }
    if (m->arena == NULL) {
        return false;
    }
    m->session = session_init(&m->config, m->arena);
    return m->session != NULL && out_bound(c, session_members(m->session));
}

void comm_staging_free(struct comm *c)
{
    free(c->machine.staging);
    c->machine.staging = NULL;
}

void comm_session_rest(struct comm *c)
{
    bool given[SESSION_TABLES];
    session_rest(c->machine.session, given);
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        if (given[i]) {
            table_free(&c->machine.table[i]);
        }
    }
}

void comm_session_free(struct comm *c)
{
    struct comm_machine *m = &c->machine;
    free_tables(m);
    free(m->arena);
    free(m->staging);
}
