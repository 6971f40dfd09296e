/* control_link.c - control links: one connection per peer, on lane 0, for all but data.
 *
 * The newer member dials, later and later while that fails, now and then where the view does without the link.  That it
 * is there or not is told to the session; for how long it may be missing is counted here.
 *
 * Invariant: a link has an entry in controls.all for each of its control connections that is still read.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "engine/links/link.h"
#include "engine/links/bundle.h"
#include "engine/links/control_link.h"
#include "engine/links/dial.h"
#include "engine/links/knock.h"
#include "engine/tables/link_table.h"
#include "engine/tables/link_why.h"
#include "engine/threads/comm_step.h"

#define CONTROL_RETRY_NS INT64_C(10000000)
#define CONTROL_AGAIN_NS INT64_C(125000) /* of a link that was there */
#define CONTROL_RETRY_MOST_NS INT64_C(1000000000)
#define CONTROL_SPARE_NS INT64_C(500000000) /* of a link that the view does without */
#define CONTROL_SPARE_MOST_NS INT64_C(30000000000)

#define CONTROL_SHARE_NS INT64_C(10000000)
#define CONTROL_SHARE_MOST_NS INT64_C(1000000000)

enum { CONTROL_SHARE_AFTER = 16 }; /* frames of the dialling end but PINGs: memory is for links that are used, not merely alive */

void controls_init(struct comm *c)
{
    list_init(&c->controls.all);
}

void controls_forget_foreign(struct comm *c)
{
    c->controls.foreign[0] = 0;
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static void control_forget(struct link *l)
{
    if (l->control.conn != NULL) {
        conn_unref(l->control.conn);
        l->control.conn = NULL;
    }
}

static void control_missing(struct link *l)
{
    l->control.missing_since = clock_now_ns();
    l->control.retry_ns = l->want.spare ? CONTROL_SPARE_NS : CONTROL_AGAIN_NS;
    l->control.retry_at = l->want.spare ? l->control.missing_since + l->control.retry_ns : 0;
    knock_lost(l);
    engine_arm(l->comm->engine, 0);
}

void control_init(struct link *l, int64_t now)
{
    l->control.retry_ns = CONTROL_RETRY_NS;
    l->control.missing_since = now;
}

void control_wanted(struct link *l, bool spare, int64_t now)
{
    if (l->want.spare != spare) {
        l->control.retry_ns = spare ? CONTROL_SPARE_NS : CONTROL_RETRY_NS;
        l->control.retry_at = spare ? now + CONTROL_SPARE_NS : 0;
    }
    if (l->control.conn == NULL && l->control.missing_since == CLOCK_NEVER) {
        l->control.missing_since = now;
    }
}

void control_end(struct link *l, bool finish)
{
    if (l->control.conn != NULL) {
        if (finish) {
            conn_finish(l->control.conn);
        } else {
            conn_shutdown(l->control.conn);
        }
    }
    control_forget(l);
    l->control.dial = finish ? l->control.dial : NULL;
    l->control.share_dial = finish ? l->control.share_dial : NULL;
    if (!finish) {
        knock_forget(l);
    }
}

void control_unlink(struct comm *c, uint64_t peer)
{
    struct link *l = link_find(c, peer);
    if (l != NULL && l->control.conn != NULL) {
        conn_shutdown(l->control.conn);
        control_forget(l);
        control_missing(l);
    }
}

static void control_gone(struct control *k)
{
    struct comm *c = k->link->comm;
    conn_detach(k->conn);
    list_remove(&k->all);
    atomic_fetch_sub(&c->controls.near, k->near);
    conn_unref(k->conn);
    link_unref(k->link);
    free(k);
    comm_ended(c);
}

void control_detach_all(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    LIST_FOR_EACH(i, next, &c->controls.all) {
        struct control *k = LIST_ENTRY(i, struct control, all);
        if (k->link->control.conn == k->conn) {
            control_forget(k->link);
        }
        control_gone(k);
    }
    comm_unlock(c, &after);
}

void control_rest_all(struct comm *c)
{
    pthread_mutex_lock(&c->lock);
    LIST_FOR_EACH(i, next, &c->controls.all) {
        conn_rest(LIST_ENTRY(i, struct control, all)->conn);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- A connection ------------------------------------------------------------------------------------------------ */

static void control_frame(void *user, const struct frame_header *h, const void *payload, struct comm_after *after)
{
    struct control *k = user;
    struct link *l = k->link;
    if (l->control.conn == k->conn) {
        struct session_event e = {.kind = SESSION_PEER_FRAME, .peer = l->peer, .header = h, .payload = payload};
        comm_step(l->comm, &e, after);
    }
}

/* By the holder of lane 0. */
static void control_ready(struct source *source, uint32_t events)
{
    struct control *k = conn_of(source)->user;
    struct link *l = k->link;
    struct comm *c = l->comm;
    struct comm_after after;
    if (comm_receive(c, k->conn, events, control_frame, k, &after) != PCCL_ERR_AGAIN) {
        if (l->control.conn == k->conn) {
            if (conn_shares(k->conn)) {
                l->control.met = SHARE_BROKE;
                memcpy(l->control.distrusted, l->control.host_name, sizeof l->control.distrusted);
            }
            control_forget(l);
            control_missing(l);
            comm_step(c, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = l->peer, .number = knock_at_once(l, k->near)}, &after);
        }
        control_gone(k);
    }
    comm_unlock(c, &after);
}

void control_up(struct link *l, struct conn *conn, uint64_t number, struct comm_after *after)
{
    struct comm *c = l->comm;
    struct control *k = calloc(1, sizeof *k);
    if (k == NULL) {
        conn_unref(conn);
        return;
    }
    if (l->control.conn != NULL) {
        /* The other end has given the old one up. */
        conn_shutdown(l->control.conn);
        control_forget(l);
        comm_step(c, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = l->peer}, after);
    }
    k->conn = conn;
    k->link = l;
    k->near = sock_within_host(conn->source.fd);
    link_ref(l);
    list_append(&c->controls.all, &k->all);
    atomic_fetch_add(&c->controls.near, k->near);
    l->control.conn = conn_ref(conn);
    l->control.number = number;
    l->control.sent = 0;
    l->control.share_at = 0;
    l->control.share_ns = CONTROL_SHARE_NS;
    l->control.missing_since = CLOCK_NEVER;
    l->control.retry_ns = CONTROL_RETRY_NS;
    bundle_retry_now(l);
    comm_step(c, &(struct session_event){.kind = SESSION_LINK_UP, .peer = l->peer}, after);
    if (conn_attach(conn, &c->engine->lane[0]->loop, control_ready, k, NULL) != PCCL_OK) {
        control_forget(l);
        control_missing(l);
        comm_step(c, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = l->peer}, after);
        control_gone(k);
    }
    engine_arm(c->engine, 0);
}

void control_send(struct link *l, const void *bytes, size_t size, const void *data, size_t data_size, bool lent,
                  struct comm_after *after)
{
    if (l->control.conn == NULL) {
        return;
    }
    (lent ? comm_lend : comm_send)(after, l->control.conn, bytes, size, data, data_size);
    struct frame_header h;
    if (l->control.sent < CONTROL_SHARE_AFTER && frame_get(bytes, &h) && h.type != FRAME_PING &&
        ++l->control.sent == CONTROL_SHARE_AFTER && link_shares(l, l->control.distrusted)) {
        engine_arm(l->comm->engine, 0);
    }
}

/* ---- Shared memory --------------------------------------------------------------------------------------------------- */

void control_told(struct link *l, uint8_t share)
{
    l->control.share = share;
}

bool control_may_share(const struct link *l, uint64_t number)
{
    return l->control.conn != NULL && l->control.number == number;
}

bool control_share(struct link *l, const struct transport *t, bool first)
{
    return conn_share(l->control.conn, t, first) == PCCL_OK; /* else it stays with its socket */
}

/* Among many the other end may have had no room for one more greeting: again, later and later, then no more. */
static void control_share_later(struct link *l)
{
    if (l->control.share_ns <= CONTROL_SHARE_MOST_NS) {
        l->control.share_at = clock_now_ns() + l->control.share_ns;
        l->control.share_ns *= 2;
        l->control.sent = CONTROL_SHARE_AFTER;
        engine_arm(l->comm->engine, l->control.share_at);
    }
}

static void control_share_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    (void)stale_view;
    (void)after;
    struct transport t;
    l->control.share_dial = NULL;
    if (!control_may_share(l, d->hello.number)) {
        conn_unref(conn);
        engine_arm(l->comm->engine, 0); /* there may be another one by now, which waits for this dial to be over */
    } else if (conn == NULL) {
        l->control.met = d->hello.share;
        control_share_later(l);
    } else {
        conn_give_transport(conn, &t);
        (void)control_share(l, &t, true);
    }
}

static void control_share_dial(struct link *l, int64_t now)
{
    if (l->control.conn == NULL || l->control.sent != CONTROL_SHARE_AFTER || l->control.share_dial != NULL || l->control.share_at > now ||
        !link_shares(l, l->control.distrusted)) {
        return;
    }
    struct msg_hello m = link_hello(l, LINK_SHARE, l->control.number);
    l->control.sent++;
    l->control.share_dial = dial_start(l->comm, &m, l->control.host_name, NULL, 0, control_share_dialled, l);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void control_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    l->control.dial = NULL;
    if (conn != NULL) {
        memcpy(l->control.host_name, d->told_name, sizeof l->control.host_name);
        control_told(l, d->told_share == SHARE_OTHER_HOST || d->hello.share == SHARE_CAN ? link_share_told(d->told_share) : d->hello.share);
        knock_reached(l, &d->address[d->next - 1]);
        control_up(l, conn, d->hello.number, after);
        return;
    }
    int64_t most = l->want.spare ? CONTROL_SPARE_MOST_NS : CONTROL_RETRY_MOST_NS;
    l->control.retry_ns = l->control.retry_ns * 2 < most ? l->control.retry_ns * 2 : most;
    l->control.retry_at = clock_now_ns() + l->control.retry_ns;
    engine_arm(d->engine, l->control.retry_at);
    if (d->met == DIAL_MET_FOREIGN && !l->control.foreign) {
        l->control.foreign = true;
        memcpy(l->comm->controls.foreign, d->why, sizeof l->comm->controls.foreign);
        comm_say(after, LOG_WARN, "%s: run the same version of PCCL everywhere", d->why);
    }
    if (stale_view != 0) {
        struct session_event e = {.kind = SESSION_LINK_STALE, .peer = l->peer, .view = stale_view};
        comm_step(l->comm, &e, after);
    }
    knock_dialled(l, d, after);
}

static void control_dial(struct link *l, int64_t now)
{
    struct net_address address[BOUNDS_ADDRESSES];
    bool known = false;
    uint8_t count = knock_addresses(l, address, &known);
    struct msg_hello m = link_hello(l, LINK_CONTROL, dial_number(l->comm));
    m.share = link_share_own(l->comm);
    l->control.dial = dial_start(l->comm, &m, NULL, address, count, control_dialled, l);
    if (l->control.dial != NULL) {
        l->control.dial->known = known;
    }
    l->control.retry_at = now + CONTROL_RETRY_MOST_NS;
}

int64_t control_tick(struct link *l, int64_t now, struct comm_after *after)
{
    struct comm *c = l->comm;
    int64_t next = CLOCK_NEVER;
    if (l->control.conn == NULL && l->control.missing_since != CLOCK_NEVER) {
        int64_t by = l->control.missing_since + c->machine.config.link_ns;
        if (by <= now) {
            l->control.missing_since = CLOCK_NEVER; /* said once */
            comm_step(c, &(struct session_event){.kind = SESSION_LINK_FAILED, .peer = l->peer}, after);
        } else {
            next = by;
        }
    }
    if (l->control.conn == NULL && l->want.dial && l->control.dial == NULL) {
        if (l->control.retry_at <= now) {
            control_dial(l, now);
        } else {
            next = l->control.retry_at < next ? l->control.retry_at : next;
        }
    }
    control_share_dial(l, now);
    int64_t knock_at = knock_tick(l, now);
    next = knock_at < next ? knock_at : next;
    bool later = l->control.sent == CONTROL_SHARE_AFTER && l->control.share_at > now && l->control.share_at < next;
    return later ? l->control.share_at : next;
}
