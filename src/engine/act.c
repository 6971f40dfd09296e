/* act.c - steps of a communicator's session, and what they want done.
 *
 * Invariant: nothing is sent, no thread woken and no line logged while comm.lock is held.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "engine/link.h"

void comm_lock(struct comm *c, struct comm_after *after)
{
    after->count = 0;
    after->lanes = 0;
    after->any_ended = false;
    after->traces = 0;
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

static void comm_send_peers(struct comm *c, const struct action *a, struct comm_after *after)
{
    for (uint32_t i = 0; i < a->dests; i++) {
        struct link *l = link_find(c, c->out.dest_ids[a->dest + i]);
        if (l != NULL && l->control != NULL) {
            comm_send(after, l->control, c->out.bytes + a->frame, a->frame_bytes, a->data, a->data_bytes);
        }
    }
}

static void comm_trace(const struct comm *c, const struct action *a, struct comm_after *after)
{
    if (log_enabled(LOG_DEBUG)) {
        if (after->traces < COMM_TRACES) {
            after->trace[after->traces] = (struct comm_trace){a->data, c->id, a->id, a->value};
        }
        after->traces++;
    }
}

/* One action; *wanted: staging bytes that the session asks for. */
static void comm_act(struct comm *c, const struct action *a, struct comm_after *after, uint64_t *wanted)
{
    switch ((enum session_action)a->kind) {
    case ACT_MASTER:
        if (c->master != NULL) {
            comm_send(after, c->master, c->out.bytes + a->frame, a->frame_bytes, NULL, 0);
        }
        break;
    case ACT_DIAL_MASTER:
        c->master_at = (int64_t)a->value;
        engine_arm(c->engine, c->master_at);
        break;
    case ACT_CLOSE_MASTER:
        uplink_close(c);
        break;
    case ACT_PEERS:
        comm_send_peers(c, a, after);
        break;
    case ACT_SYNC:
        if (a->dests == 1) {
            sync_link_send(c, c->out.dest_ids[a->dest], a->value == 1, c->out.bytes + a->frame, a->frame_bytes,
                           a->data, a->data_bytes, after);
        }
        break;
    case ACT_SYNC_CLOSE:
        sync_link_end_all(c);
        break;
    case ACT_LINKS:
        c->links_changed = true;
        engine_arm(c->engine, 0);
        break;
    case ACT_OP_START:
        comm_op_started(c, a, after);
        break;
    case ACT_OP_READY:
        comm_op_ready(c, a, after);
        break;
    case ACT_OP_STOP:
        comm_op_stopped(c, a, after);
        break;
    case ACT_OP_RETURN:
        comm_op_returned(c, a, after);
        break;
    case ACT_VOTED:
        c->voted = true;
        pthread_cond_broadcast(&c->changed);
        break;
    case ACT_CONNECTED:
        c->connected = true;
        pthread_cond_broadcast(&c->changed);
        break;
    case ACT_LEFT:
        sync_link_end_all(c);
        link_end_all(c);
        engine_arm(c->engine, 0);
        break;
    case ACT_SYNC_ALLOC:
        *wanted = a->value > 0 ? a->value : 1;
        break;
    case ACT_SYNC_APPLY:
        c->apply = true;
        break;
    case ACT_PROBE:
        probe_start(c, a->id, a->slot, a->value);
        break;
    case ACT_TRACE:
        comm_trace(c, a, after);
        break;
    }
}

/* The session's table of tags grows between steps, since a step never allocates. */
static void comm_grow_tags(struct comm *c)
{
    size_t bytes = session_tags_wanted(c->session);
    if (bytes > 0) {
        void *storage = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (storage != NULL) { /* otherwise launches of new tags fail once the table is full */
            free(session_grow_tags(c->session, storage, bytes));
            c->tag_table = storage;
        }
    }
}

void comm_step(struct comm *c, struct session_event *event, struct comm_after *after)
{
    struct session_event memory = {.kind = SESSION_MEMORY};
    for (struct session_event *e = event; e != NULL;) {
        uint64_t wanted = 0;
        outbox_reset(&c->out);
        session_step(c->session, clock_now_ns(), e, &c->out);
        for (uint32_t i = 0; i < c->out.count; i++) {
            comm_act(c, &c->out.actions[i], after, &wanted);
        }
        e = NULL;
        if (wanted > 0) {
            free(c->staging);
            c->staging = malloc(wanted);
            memory.memory = c->staging;
            e = &memory;
        }
    }
    comm_grow_tags(c);
    comm_ops_failed(c, after);
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

int64_t comm_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    int64_t next = CLOCK_NEVER;
    if (c->session == NULL) {
        return next;
    }
    if (session_deadline(c->session) <= now) {
        comm_step(c, &(struct session_event){.kind = SESSION_TICK}, after);
    }
    if (c->links_changed) {
        c->links_changed = false;
        link_refresh(c, after);
    }
    int64_t at[] = {uplink_tick(c, now, after), link_tick(c, now, after), probe_tick(c, now, after),
                    comm_ops_watch(c, now, after), CLOCK_NEVER};
    sync_link_tick(c, after);
    at[4] = session_deadline(c->session);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        next = at[i] < next ? at[i] : next;
    }
    return next;
}
