/* state_link.c - connections on which shared state travels, one per direction of asking.
 *
 * They live on the service thread and as long as a vote.  A request may be queued before its connection is there.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/clock.h"
#include "net/sock.h"
#include "engine/links/link.h"
#include "engine/links/dial.h"
#include "engine/links/state_link.h"
#include "engine/tables/link_table.h"
#include "engine/threads/comm_step.h"

static void sync_link_gone(struct sync_link *s)
{
    conn_detach(s->conn);
    conn_unref(s->conn);
    list_remove(&s->all);
    free(s);
}

static struct sync_link *sync_link_new(struct comm *c, uint64_t peer, bool dialled, struct conn *conn)
{
    struct sync_link *s = conn != NULL ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        conn_unref(conn);
        return NULL;
    }
    s->comm = c;
    s->peer = peer;
    s->dialled = dialled;
    s->wanted = dialled;
    s->conn = conn;
    list_append(&c->sync_links, &s->all);
    return s;
}

static void sync_link_down(struct sync_link *s, struct comm_after *after)
{
    struct comm *c = s->comm;
    struct session_event e = {.kind = SESSION_SYNC_DOWN, .peer = s->peer};
    bool tell = s->dialled && !s->ended;
    sync_link_gone(s);
    if (tell) {
        comm_step(c, &e, after);
    }
}

static void sync_link_frame(void *user, const struct frame_header *h, const void *payload, struct comm_after *after)
{
    struct sync_link *s = user;
    if (!s->ended) {
        struct session_event e = {.kind = SESSION_SYNC_FRAME, .peer = s->peer, .header = h, .payload = payload};
        comm_step(s->comm, &e, after);
    }
}

static void sync_link_ready(struct source *source, uint32_t events)
{
    struct sync_link *s = conn_of(source)->user;
    struct comm *c = s->comm;
    struct comm_after after;
    if (comm_receive(c, s->conn, events, sync_link_frame, s, &after) != PCCL_ERR_AGAIN) {
        sync_link_down(s, &after);
    }
    comm_unlock(c, &after);
}

/* The youngest one that still counts. */
static struct sync_link *sync_link_find(struct comm *c, uint64_t peer, bool dialled)
{
    struct sync_link *found = NULL;
    LIST_FOR_EACH(l, after, &c->sync_links) {
        struct sync_link *s = LIST_ENTRY(l, struct sync_link, all);
        if (s->peer == peer && s->dialled == dialled && !s->ended) {
            found = s;
        }
    }
    return found;
}

void sync_link_send(struct comm *c, uint64_t peer, bool answer, const void *bytes, size_t size, const void *data,
                    size_t data_size, struct comm_after *after)
{
    struct sync_link *s = sync_link_find(c, peer, !answer);
    if (s == NULL && answer) {
        return; /* whoever asked has gone */
    }
    if (s == NULL) {
        s = sync_link_new(c, peer, true, conn_new());
        engine_arm(c->engine, 0);
    }
    struct link *l = s == NULL ? link_find(c, peer) : NULL;
    if (s != NULL) {
        comm_send(after, s->conn, bytes, size, data, data_size);
    } else if (l != NULL) {
        l->sync_lost = true;
    }
}

static void sync_link_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct sync_link *s = d->user;
    (void)stale_view;
    s->dial = NULL;
    if (conn == NULL) {
        sync_link_down(s, after);
        return;
    }
    conn_give_socket(conn, s->conn);
    const struct sock_bulk bulk = engine_bulk(d->engine);
    sock_tune_bulk(s->conn->source.fd, &bulk);
    if (conn_attach(s->conn, &d->engine->service, sync_link_ready, s, NULL) != PCCL_OK) {
        sync_link_down(s, after);
        return;
    }
    conn_flush(s->conn);
}

void sync_link_adopt(struct comm *c, uint64_t peer, struct conn *conn, struct comm_after *after)
{
    struct sync_link *s = sync_link_new(c, peer, false, conn);
    (void)after;
    if (s != NULL) {
        const struct sock_bulk bulk = engine_bulk(c->engine);
        sock_tune_bulk(conn->source.fd, &bulk);
        if (conn_attach(conn, &c->engine->service, sync_link_ready, s, NULL) != PCCL_OK) {
            sync_link_gone(s);
        }
    }
}

void sync_link_end_all(struct comm *c)
{
    LIST_FOR_EACH(l, after, &c->sync_links) {
        LIST_ENTRY(l, struct sync_link, all)->ended = true;
    }
    if (!list_empty(&c->sync_links)) {
        engine_arm(c->engine, 0);
    }
}

static void sync_link_dial(struct sync_link *s, struct comm_after *after)
{
    struct comm *c = s->comm;
    struct link *l = link_find(c, s->peer);
    s->wanted = false;
    if (l != NULL) {
        struct msg_hello m = {
            .kind = LINK_SYNC, .group = c->params.group, .from = c->master.id, .to = s->peer, .view = c->master.newest,
            .number = dial_number(c), .lanes = 1,
        };
        s->dial = dial_start(c, &m, NULL, l->want.info.address, l->want.info.addresses, sync_link_dialled, s);
    }
    if (s->dial == NULL) {
        sync_link_down(s, after);
    }
}

void sync_link_tick(struct comm *c, struct comm_after *after)
{
    LIST_FOR_EACH(i, next, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (l->sync_lost) {
            l->sync_lost = false;
            comm_step(c, &(struct session_event){.kind = SESSION_SYNC_DOWN, .peer = l->peer}, after);
        }
    }
    LIST_FOR_EACH(l, next, &c->sync_links) {
        struct sync_link *s = LIST_ENTRY(l, struct sync_link, all);
        if (s->ended) {
            if (s->dial != NULL) {
                dial_cancel(s->dial);
            }
            sync_link_gone(s);
        } else if (s->wanted) {
            sync_link_dial(s, after);
        }
    }
}

void sync_link_drop_all(struct comm *c)
{
    LIST_FOR_EACH(l, after, &c->sync_links) {
        sync_link_gone(LIST_ENTRY(l, struct sync_link, all));
    }
}
