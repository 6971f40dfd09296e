/* link.c - control links and bundles of data connections.
 *
 * The newer member dials, again and again while the session wants the peer.  A control link is reported up and down; a
 * bundle is one number: up when all its connections are there, down when the first of them ends.
 * SPDX-License-Identifier: MIT */
#include "engine/link.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

#define LINK_RETRY_NS INT64_C(10000000)
#define LINK_RETRY_MOST_NS INT64_C(1000000000)
#define LINK_SPARE_NS INT64_C(500000000) /* of a link that the view does without */
#define LINK_SPARE_MOST_NS INT64_C(30000000000)

void link_init(struct comm *c)
{
    list_init(&c->links.all);
    list_init(&c->links.controls);
}

void link_forget_all(struct comm *c)
{
    LIST_FOR_EACH(i, next, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        list_remove(&l->all);
        link_unref(l);
    }
}

/* ---- Ends ----------------------------------------------------------------------------------------------------------------- */

static void link_end_streams(struct link *l)
{
    for (uint32_t i = 0; i < BOUNDS_LANES; i++) {
        if (l->streams[i] != NULL) {
            l->streams[i]->transport.ops->shutdown(&l->streams[i]->transport);
        }
    }
    l->bundle = 0;
    l->bundle_up = false;
}

static void link_forget_control(struct link *l)
{
    if (l->control != NULL) {
        conn_unref(l->control);
        l->control = NULL;
    }
}

static void link_cancel_dials(struct link *l)
{
    LIST_FOR_EACH(i, after, &l->comm->engine->dials) {
        struct dial *d = LIST_ENTRY(i, struct dial, all);
        if (d->user == l) {
            dial_cancel(d);
        }
    }
    l->control_dial = NULL;
}

void link_end_all(struct comm *c)
{
    LIST_FOR_EACH(i, next, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        l->wanted = false; /* the service thread takes it out of the table */
        if (l->control != NULL) {
            conn_finish(l->control);
        }
        link_forget_control(l);
        link_end_streams(l);
    }
    c->links.changed = true;
}

bool link_flushed(const struct comm *c)
{
    return list_empty(&c->links.controls) && list_empty(&c->master.uplinks);
}

/* ---- The table ------------------------------------------------------------------------------------------------------------ */

static void link_want(struct comm *c, const struct session_wanted *w, int64_t now)
{
    struct link *l = NULL;
    LIST_FOR_EACH(i, after, &c->links.all) {
        struct link *known = LIST_ENTRY(i, struct link, all);
        if (known->peer == w->info.id && !known->wanted) {
            l = known;
        }
    }
    if (l == NULL) {
        l = calloc(1, sizeof *l);
        if (l == NULL) {
            c->links.changed = true; /* looked at again with the next step */
            return;
        }
        l->comm = c;
        l->peer = w->info.id;
        atomic_init(&l->refs, 1);
        l->retry_ns = LINK_RETRY_NS;
        l->missing_since = now;
        list_append(&c->links.all, &l->all);
    }
    if (l->spare != w->spare) {
        l->retry_ns = w->spare ? LINK_SPARE_NS : LINK_RETRY_NS;
        l->retry_at = w->spare ? now + LINK_SPARE_NS : 0;
    }
    l->spare = w->spare;
    l->wanted = true;
    l->info = w->info;
    l->dial = w->dial;
    l->data = w->data;
    if (l->control == NULL && l->missing_since == CLOCK_NEVER) {
        l->missing_since = now;
    }
    if (l->spare && l->bundle != 0) { /* the view goes round this pair now */
        link_end_streams(l);
    }
}

void link_forget_foreign(struct comm *c)
{
    c->links.foreign[0] = 0;
}

void link_changed(struct comm *c)
{
    c->links.changed = true;
    engine_arm(c->engine, 0);
}

void link_refresh(struct comm *c)
{
    uint32_t count = session_wanted(c->machine.session, NULL, 0);
    struct session_wanted *wanted = calloc(count + 1, sizeof *wanted);
    int64_t now = clock_now_ns();
    c->links.changed = wanted == NULL;
    if (wanted == NULL) {
        return;
    }
    count = session_wanted(c->machine.session, wanted, count);
    LIST_FOR_EACH(i, next, &c->links.all) {
        LIST_ENTRY(i, struct link, all)->wanted = false;
    }
    for (uint32_t k = 0; k < count; k++) {
        link_want(c, &wanted[k], now);
    }
    free(wanted);
    LIST_FOR_EACH(i, next, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (!l->wanted) {
            if (l->control != NULL) {
                conn_shutdown(l->control);
            }
            link_forget_control(l);
            link_end_streams(l);
            link_cancel_dials(l);
            list_remove(&l->all);
            link_unref(l);
        }
    }
}

/* ---- Control links -------------------------------------------------------------------------------------------------------- */

static void link_control_gone(struct control *k)
{
    struct comm *c = k->link->comm;
    conn_detach(k->conn);
    list_remove(&k->all);
    conn_unref(k->conn);
    link_unref(k->link);
    free(k);
    comm_ended(c);
}

static void link_missing(struct link *l)
{
    l->missing_since = clock_now_ns();
    l->retry_ns = l->spare ? LINK_SPARE_NS : LINK_RETRY_NS;
    l->retry_at = l->spare ? l->missing_since + l->retry_ns : 0;
    engine_arm(l->comm->engine, 0);
}

static void link_control_frame(void *user, const struct frame_header *h, const void *payload, struct comm_after *after)
{
    struct control *k = user;
    struct link *l = k->link;
    if (l->control == k->conn) {
        struct session_event e = {.kind = SESSION_PEER_FRAME, .peer = l->peer, .header = h, .payload = payload};
        comm_step(l->comm, &e, after);
    }
}

void link_unlink(struct comm *c, uint64_t peer)
{
    struct link *l = link_find(c, peer);
    if (l != NULL && l->control != NULL) {
        conn_shutdown(l->control);
        link_forget_control(l);
        link_missing(l);
    }
}

/* By the holder of lane 0. */
static void link_control_ready(struct source *source, uint32_t events)
{
    struct control *k = conn_of(source)->user;
    struct link *l = k->link;
    struct comm *c = l->comm;
    struct comm_after after;
    if (comm_receive(c, k->conn, events, link_control_frame, k, &after) != PCCL_ERR_AGAIN) {
        if (l->control == k->conn) {
            link_forget_control(l);
            link_missing(l);
            comm_step(c, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = l->peer}, &after);
        }
        link_control_gone(k);
    }
    comm_unlock(c, &after);
}

void link_control_up(struct link *l, struct conn *conn, struct comm_after *after)
{
    struct comm *c = l->comm;
    struct control *k = calloc(1, sizeof *k);
    if (k == NULL) {
        conn_unref(conn);
        return;
    }
    if (l->control != NULL) {
        /* The other end has given the old one up. */
        conn_shutdown(l->control);
        link_forget_control(l);
        comm_step(c, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = l->peer}, after);
    }
    k->conn = conn;
    k->link = l;
    link_ref(l);
    list_append(&c->links.controls, &k->all);
    l->control = conn_ref(conn);
    l->missing_since = CLOCK_NEVER;
    l->retry_ns = LINK_RETRY_NS;
    l->data_retry_at = 0;
    comm_step(c, &(struct session_event){.kind = SESSION_LINK_UP, .peer = l->peer}, after);
    if (conn_attach(conn, &c->engine->lane[0]->loop, link_control_ready, k, NULL) != PCCL_OK) {
        link_forget_control(l);
        link_missing(l);
        comm_step(c, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = l->peer}, after);
        link_control_gone(k);
    }
    engine_arm(c->engine, 0);
}

void link_detach_controls(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    LIST_FOR_EACH(i, next, &c->links.controls) {
        struct control *k = LIST_ENTRY(i, struct control, all);
        if (k->link->control == k->conn) {
            link_forget_control(k->link);
        }
        link_control_gone(k);
    }
    comm_unlock(c, &after);
}

static void link_control_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    l->control_dial = NULL;
    if (conn != NULL) {
        link_control_up(l, conn, after);
        return;
    }
    int64_t most = l->spare ? LINK_SPARE_MOST_NS : LINK_RETRY_MOST_NS;
    l->retry_ns = l->retry_ns * 2 < most ? l->retry_ns * 2 : most;
    l->retry_at = clock_now_ns() + l->retry_ns;
    engine_arm(d->engine, l->retry_at);
    if (d->met == DIAL_MET_FOREIGN && !l->foreign) {
        l->foreign = true;
        memcpy(l->comm->links.foreign, d->why, sizeof l->comm->links.foreign);
        snprintf(after->notice, sizeof after->notice, "%s: run the same version of PCCL everywhere", d->why);
    }
    if (stale_view != 0) {
        struct session_event e = {.kind = SESSION_LINK_STALE, .peer = l->peer, .view = stale_view};
        comm_step(l->comm, &e, after);
    }
}

static struct msg_hello link_hello(const struct link *l, enum link_kind kind, uint64_t number)
{
    struct comm *c = l->comm;
    return (struct msg_hello){
        .kind = (uint8_t)kind, .group = c->params.group, .from = c->master.id, .to = l->peer, .view = c->master.newest, .number = number,
        .lanes = 1,
    };
}

/* ---- Bundles -------------------------------------------------------------------------------------------------------------- */

void link_stream_gone(struct stream *s)
{
    struct comm *c = s->comm;
    pthread_mutex_lock(&c->lock);
    if (s->link->streams[s->index] == s) {
        s->link->streams[s->index] = NULL;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The bundle is of no use any more; it is dialled again. */
static void link_bundle_down(struct link *l, struct comm_after *after)
{
    uint64_t number = l->bundle;
    bool was_up = l->bundle_up;
    link_end_streams(l);
    l->data_retry_ns = was_up || l->data_retry_ns == 0 ? LINK_RETRY_NS : l->data_retry_ns * 2;
    l->data_retry_ns = l->data_retry_ns < LINK_RETRY_MOST_NS ? l->data_retry_ns : LINK_RETRY_MOST_NS;
    l->data_retry_at = clock_now_ns() + l->data_retry_ns;
    engine_arm(l->comm->engine, l->data_retry_at);
    if (was_up) {
        comm_step(l->comm, &(struct session_event){.kind = SESSION_DATA_DOWN, .peer = l->peer, .number = number}, after);
    }
}

void link_stream_down(struct stream *s)
{
    struct comm_after after;
    comm_lock(s->comm, &after);
    if (s->link->bundle == s->number) {
        link_bundle_down(s->link, &after);
    }
    comm_unlock(s->comm, &after);
}

void link_stream_up(struct link *l, uint64_t number, uint16_t lane, uint16_t lanes, struct conn *conn,
                    struct comm_after *after)
{
    struct comm *c = l->comm;
    if (number < l->bundle || number <= l->bundle_last || (number == l->bundle && lanes != l->bundle_lanes)) {
        conn_unref(conn); /* of a bundle that has been given up */
        return;
    }
    if (number != l->bundle) {
        if (l->bundle != 0) {
            l->bundle_last = l->bundle;
            link_bundle_down(l, after);
        }
        memset(l->streams, 0, sizeof l->streams);
        l->bundle = number;
        l->bundle_lanes = lanes;
        l->bundle_here = 0;
    }
    struct stream *s = l->streams[lane] == NULL ? stream_new(l, number, lane, conn) : NULL;
    if (s == NULL) {
        if (l->streams[lane] != NULL) {
            conn_unref(conn);
        }
        link_bundle_down(l, after);
        return;
    }
    l->streams[lane] = s;
    lane_post_surely(c->engine->lane[lane], &(struct lane_order){.kind = LANE_STREAM, .stream = s});
    after->lanes |= UINT64_C(1) << lane;
    if (++l->bundle_here == lanes) {
        l->bundle_up = true;
        l->data_retry_ns = 0;
        comm_step(c, &(struct session_event){.kind = SESSION_DATA_UP, .peer = l->peer, .number = number}, after);
    }
}

static void link_data_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    (void)stale_view; /* the control link says so, too */
    if (d->hello.number != l->bundle) {
        conn_unref(conn);
    } else if (conn == NULL) {
        link_bundle_down(l, after);
    } else {
        link_stream_up(l, d->hello.number, d->hello.lane, d->hello.lanes, conn, after);
    }
}

static void link_dial_bundle(struct link *l, struct comm_after *after)
{
    struct comm *c = l->comm;
    uint16_t lanes = l->info.lanes < c->machine.config.lanes ? l->info.lanes : c->machine.config.lanes;
    memset(l->streams, 0, sizeof l->streams);
    l->bundle = dial_number(c);
    l->bundle_lanes = lanes;
    l->bundle_here = 0;
    for (uint16_t i = 0; i < lanes; i++) {
        struct msg_hello m = link_hello(l, LINK_DATA, l->bundle);
        m.lane = i;
        m.lanes = lanes;
        if (dial_start(c, &m, l->info.address, l->info.addresses, link_data_dialled, l) == NULL) {
            link_bundle_down(l, after);
            return;
        }
    }
}

/* ---- Time ----------------------------------------------------------------------------------------------------------------- */

static int64_t link_tick_one(struct link *l, int64_t now, struct comm_after *after)
{
    struct comm *c = l->comm;
    int64_t next = CLOCK_NEVER;
    if (l->control == NULL && l->missing_since != CLOCK_NEVER) {
        int64_t by = l->missing_since + c->machine.config.link_ns;
        if (by <= now) {
            l->missing_since = CLOCK_NEVER; /* said once */
            comm_step(c, &(struct session_event){.kind = SESSION_LINK_FAILED, .peer = l->peer}, after);
        } else {
            next = by;
        }
    }
    if (l->control == NULL && l->dial && l->control_dial == NULL) {
        if (l->retry_at <= now) {
            struct msg_hello m = link_hello(l, LINK_CONTROL, dial_number(c));
            l->control_dial = dial_start(c, &m, l->info.address, l->info.addresses, link_control_dialled, l);
            l->retry_at = now + LINK_RETRY_MOST_NS;
        } else {
            next = l->retry_at < next ? l->retry_at : next;
        }
    }
    if (l->control != NULL && l->dial && l->data && l->bundle == 0) {
        if (l->data_retry_at <= now) {
            link_dial_bundle(l, after);
        }
        if (l->bundle == 0) {
            next = l->data_retry_at < next ? l->data_retry_at : next;
        }
    }
    return next;
}

int64_t link_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    int64_t next = CLOCK_NEVER;
    LIST_FOR_EACH(i, following, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (l->wanted) {
            int64_t at = link_tick_one(l, now, after);
            next = at < next ? at : next;
        }
    }
    return next;
}
