/* bundle.c - bundles of data connections: one per lane, all of one number.
 *
 * A bundle is up when all its connections are there and down when the first of them ends; then the next number is
 * dialled by the newer member, later and later while that fails.
 *
 * Invariant: streams[] holds connections of one bundle only: the current one or, if there is none, the last.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "core/id.h"
#include "engine/link.h"

#define BUNDLE_RETRY_NS INT64_C(10000000)
#define BUNDLE_RETRY_MOST_NS INT64_C(1000000000)

void bundle_end(struct link *l)
{
    for (uint32_t i = 0; i < BOUNDS_LANES; i++) {
        if (l->bundle.streams[i] != NULL) {
            l->bundle.streams[i]->transport.ops->shutdown(&l->bundle.streams[i]->transport);
        }
    }
    l->bundle.number = 0;
    l->bundle.up = false;
}

void bundle_stream_gone(struct stream *s)
{
    struct comm *c = s->comm;
    pthread_mutex_lock(&c->lock);
    if (s->link->bundle.streams[s->index] == s) {
        s->link->bundle.streams[s->index] = NULL;
    }
    pthread_mutex_unlock(&c->lock);
}

/* The bundle is of no use any more; it is dialled again. */
static void bundle_down(struct link *l, struct comm_after *after)
{
    uint64_t number = l->bundle.number;
    bool was_up = l->bundle.up;
    bundle_end(l);
    if (was_up && l->bundle.shared > 0) {
        memcpy(l->bundle.distrusted, l->control.host_name, sizeof l->bundle.distrusted);
    }
    l->bundle.retry_ns = was_up || l->bundle.retry_ns == 0 ? BUNDLE_RETRY_NS : l->bundle.retry_ns * 2;
    l->bundle.retry_ns = l->bundle.retry_ns < BUNDLE_RETRY_MOST_NS ? l->bundle.retry_ns : BUNDLE_RETRY_MOST_NS;
    l->bundle.retry_at = clock_now_ns() + l->bundle.retry_ns;
    engine_arm(l->comm->engine, l->bundle.retry_at);
    if (was_up) {
        comm_step(l->comm, &(struct session_event){.kind = SESSION_DATA_DOWN, .peer = l->peer, .number = number}, after);
    }
}

void bundle_stream_down(struct stream *s)
{
    struct comm_after after;
    comm_lock(s->comm, &after);
    if (s->link->bundle.number == s->number) {
        bundle_down(s->link, &after);
    }
    comm_unlock(s->comm, &after);
}

void bundle_add(struct link *l, uint64_t number, uint16_t lane, uint16_t lanes, struct conn *conn,
                    struct comm_after *after)
{
    struct comm *c = l->comm;
    if (number < l->bundle.number || number <= l->bundle.last ||
        (number == l->bundle.number && lanes != l->bundle.lanes)) {
        conn_unref(conn); /* of a bundle that has been given up */
        return;
    }
    if (number != l->bundle.number) {
        if (l->bundle.number != 0) {
            l->bundle.last = l->bundle.number;
            bundle_down(l, after);
        }
        memset(l->bundle.streams, 0, sizeof l->bundle.streams);
        l->bundle.number = number;
        l->bundle.lanes = lanes;
        l->bundle.here = l->bundle.shared = 0;
    }
    struct stream *s = l->bundle.streams[lane] == NULL ? stream_new(l, number, lane, conn) : NULL;
    if (s == NULL) {
        if (l->bundle.streams[lane] != NULL) {
            conn_unref(conn);
        }
        bundle_down(l, after);
        return;
    }
    l->bundle.streams[lane] = s;
    l->bundle.shared += s->transport.shm != NULL;
    lane_post_surely(c->engine->lane[lane], &(struct lane_order){.kind = LANE_STREAM, .stream = s});
    after->lanes |= UINT64_C(1) << lane;
    if (++l->bundle.here == lanes) {
        l->bundle.up = true;
        l->bundle.retry_ns = 0;
        comm_step(c, &(struct session_event){.kind = SESSION_DATA_UP, .peer = l->peer, .number = number}, after);
    }
}

static bool bundle_offered(const struct link *l)
{
    return (l->control.host_name[0] | l->control.host_name[1]) != 0;
}

/* What was chosen, once; by the end that dialled, which knows why. */
static void bundle_tell(struct link *l, const char *why, struct comm_after *after)
{
    uint8_t now = l->bundle.shared == l->bundle.lanes ? 2 : 1;
    if (!l->bundle.up || l->bundle.told == now) {
        return;
    }
    l->bundle.told = now;
    if (now == 2) {
        comm_say(after, LOG_INFO, "peer " ID_FORMAT ": data goes through shared memory", ID_PARTS(l->peer));
    } else if (!bundle_offered(l)) {
        comm_say(after, LOG_DEBUG, "peer " ID_FORMAT ": data goes over TCP: it is on another host, or its shared memory is off", ID_PARTS(l->peer));
    } else {
        comm_say(after, LOG_INFO, "peer " ID_FORMAT ": data goes over TCP: %s", ID_PARTS(l->peer), link_shares(l, l->bundle.distrusted) ? why
                 : l->comm->engine->host_listener.fd < 0 ? "shared memory is off here" : "a connection through shared memory broke");
    }
}

static void bundle_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    (void)stale_view; /* the control link says so, too */
    if (d->hello.number != l->bundle.number) {
        conn_unref(conn);
    } else if (conn == NULL) {
        bundle_down(l, after);
    } else {
        bundle_add(l, d->hello.number, d->hello.lane, d->hello.lanes, conn, after);
        bundle_tell(l, d->why, after);
    }
}

static void bundle_dial(struct link *l, struct comm_after *after)
{
    struct comm *c = l->comm;
    uint16_t lanes = l->want.info.lanes < c->machine.config.lanes ? l->want.info.lanes : c->machine.config.lanes;
    const uint64_t *name = link_shares(l, l->bundle.distrusted) ? l->control.host_name : NULL;
    memset(l->bundle.streams, 0, sizeof l->bundle.streams);
    l->bundle.number = dial_number(c);
    l->bundle.lanes = lanes;
    l->bundle.here = l->bundle.shared = 0;
    for (uint16_t i = 0; i < lanes; i++) {
        struct msg_hello m = link_hello(l, LINK_DATA, l->bundle.number);
        m.lane = i;
        m.lanes = lanes;
        if (dial_start(c, &m, name, l->want.info.address, l->want.info.addresses, bundle_dialled, l) == NULL) {
            bundle_down(l, after);
            return;
        }
    }
}

void bundle_retry_now(struct link *l)
{
    l->bundle.retry_at = 0;
}

int64_t bundle_tick(struct link *l, int64_t now, struct comm_after *after)
{
    if (l->control.conn == NULL || !l->want.dial || !l->want.data || l->bundle.number != 0) {
        return CLOCK_NEVER;
    }
    if (l->bundle.retry_at <= now) {
        bundle_dial(l, after);
    }
    return l->bundle.number == 0 ? l->bundle.retry_at : CLOCK_NEVER;
}
