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
#include "engine/links/link.h"
#include "engine/links/bundle.h"
#include "engine/links/bundle_stripe.h"
#include "engine/links/dial.h"
#include "engine/tables/link_table.h"
#include "engine/tables/link_why.h"
#include "engine/lanes/stream.h"
#include "engine/threads/lane_hold.h"
#include "engine/threads/comm_step.h"

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
    if (was_up && l->bundle.by[TRANSPORT_SHM] > 0) {
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

/* A bundle could not be made.  That costs nothing while nobody needs it, and passes, as a rule. */
static void bundle_failed(struct link *l, const struct dial *d, struct comm_after *after)
{
    struct comm *c = l->comm;
    bundle_down(l, after);
    if (l->bundle.missing_since == 0 || clock_now_ns() - l->bundle.missing_since < c->machine.config.link_ns) {
        return;
    }
    if (!l->bundle.failed_told) {
        l->bundle.failed_told = true;
        comm_say(after, LOG_WARN, "peer " ID_FORMAT ": no data connection can be made: %s", ID_PARTS(l->peer), d->why);
    }
    comm_step(c, &(struct session_event){.kind = SESSION_DATA_FAILED, .peer = l->peer}, after);
}

void bundle_stream_down(struct stream *s)
{
    struct comm_after after;
    comm_lock(s->comm, &after);
    if (s->link->bundle.number == s->number) {
        s->link->bundle.fabric_failed |= transport_kind(&s->transport) == TRANSPORT_FABRIC && transport_fabric_failed(&s->transport);
        bundle_down(s->link, &after);
    }
    comm_unlock(s->comm, &after);
}

/* What carries all connections of the bundle; TCP, if they differ. */
static enum transport_kind bundle_kind(const struct link *l)
{
    for (enum transport_kind k = TRANSPORT_SHM; k <= TRANSPORT_FABRIC; k++) {
        if (l->bundle.by[k] == l->bundle.lanes) {
            return k;
        }
    }
    return TRANSPORT_TCP;
}

/* What was chosen, and why, once.  That hosts without a fabric speak TCP is what everybody expects. */
static void bundle_tell(struct link *l, struct comm_after *after)
{
    static const char *const by[] = {
        [TRANSPORT_TCP] = "goes over TCP", [TRANSPORT_SHM] = "goes through shared memory", [TRANSPORT_FABRIC] = "goes through libfabric, provider ",
    };
    enum transport_kind kind = bundle_kind(l);
    const uint8_t now[] = {(uint8_t)(1 + kind), l->bundle.share, l->bundle.net_here, l->bundle.net_there};
    bool expected = kind == TRANSPORT_TCP && l->bundle.share == SHARE_OTHER_HOST && l->bundle.net_here == NET_NONE && l->bundle.net_there == NET_NONE;
    char why[LINK_WHY_BYTES];
    if (memcmp(l->bundle.told, now, sizeof now) == 0) {
        return;
    }
    memcpy(l->bundle.told, now, sizeof now);
    link_why_data(l, kind, why);
    comm_say(after, expected ? LOG_DEBUG : LOG_INFO, "peer " ID_FORMAT ": data %s%s: %s", ID_PARTS(l->peer), by[kind],
             kind == TRANSPORT_FABRIC ? fabric_port_provider(l->comm->engine->lane[0]->fabric) : "", why);
}

/* The stream of one connection, through the fabric if both ends are to use it; null: no memory. */
static struct stream *bundle_stream(struct link *l, const struct bundle_end *end, struct conn *conn)
{
    struct stream *s = stream_new(l, end->number, end->lane, conn);
    struct fabric_port *port = end->theirs != NULL ? link_fabric(l, end->lane) : NULL;
    bool stripe = s != NULL && port == NULL && end->token != 0 && transport_kind(&s->transport) == TRANSPORT_TCP;
    if (s != NULL && ((port != NULL && transport_fabric_take(&s->transport, port, end->ours, end->theirs) != PCCL_OK) ||
                      (stripe && !bundle_stripe_begin(s, end)))) {
        stream_free(s);
        return NULL;
    }
    if (s != NULL) {
        s->untried = s->transport.ops->good != NULL;
    }
    return s;
}

/* One more connection of the bundle can be used. */
static void bundle_here(struct link *l, struct comm_after *after)
{
    if (++l->bundle.here == l->bundle.lanes) {
        l->bundle.up = true;
        l->bundle.retry_ns = 0;
        l->bundle.missing_since = 0;
        l->bundle.failed_told = false;
        comm_step(l->comm, &(struct session_event){.kind = SESSION_DATA_UP, .peer = l->peer, .number = l->bundle.number}, after);
        bundle_tell(l, after);
    }
}

void bundle_stream_good(struct stream *s)
{
    struct comm_after after;
    comm_lock(s->comm, &after);
    if (s->link->bundle.number == s->number) {
        bundle_here(s->link, &after);
    }
    comm_unlock(s->comm, &after);
}

/* A bundle of another number begins. */
static void bundle_begin(struct link *l, uint64_t number, uint16_t lanes)
{
    memset(l->bundle.streams, 0, sizeof l->bundle.streams);
    memset(l->bundle.by, 0, sizeof l->bundle.by);
    l->bundle.number = number;
    l->bundle.lanes = lanes;
    l->bundle.here = 0;
    l->bundle.share = SHARE_CAN;
    l->bundle.net_here = l->bundle.net_there = NET_CAN;
}

/* Of connections that differ the last that met something says what. */
static void bundle_met(struct link_bundle *b, const struct bundle_end *end)
{
    b->share = end->share != SHARE_CAN ? end->share : b->share;
    b->net_here = end->net_here != NET_CAN ? end->net_here : b->net_here;
    b->net_there = end->net_there != NET_CAN ? end->net_there : b->net_there;
}

void bundle_add(struct link *l, const struct bundle_end *end, struct conn *conn, struct comm_after *after)
{
    struct comm *c = l->comm;
    if (end->number < l->bundle.number || end->number <= l->bundle.last ||
        (end->number == l->bundle.number && end->lanes != l->bundle.lanes)) {
        conn_unref(conn); /* of a bundle that has been given up */
        return;
    }
    if (end->number != l->bundle.number) {
        if (l->bundle.number != 0) {
            l->bundle.last = l->bundle.number;
            bundle_down(l, after);
        }
        bundle_begin(l, end->number, end->lanes);
    }
    struct stream *s = l->bundle.streams[end->lane] == NULL ? bundle_stream(l, end, conn) : NULL;
    if (s == NULL) {
        if (l->bundle.streams[end->lane] != NULL) {
            conn_unref(conn);
        }
        bundle_down(l, after);
        return;
    }
    l->bundle.streams[end->lane] = s;
    l->bundle.by[transport_kind(&s->transport)]++;
    bundle_met(&l->bundle, end);
    bool here = !s->untried; /* from here on the lane knows */
    lane_post_surely(c->engine->lane[end->lane], &(struct lane_order){.kind = LANE_STREAM, .stream = s});
    after->lanes |= UINT64_C(1) << end->lane;
    if (here) {
        bundle_here(l, after);
    }
}

static void bundle_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    (void)stale_view; /* the control link says so, too */
    if (d->hello.number != l->bundle.number) {
        conn_unref(conn);
    } else if (conn == NULL) {
        bundle_failed(l, d, after);
    } else {
        bool fabric = transport_kind(&conn->transport) == TRANSPORT_TCP && d->hello.fabric.bytes > 0 &&
                      fabric_fits(link_fabric(l, d->hello.lane), &d->told_fabric);
        const struct bundle_end end = {
            .number = d->hello.number, .lane = d->hello.lane, .lanes = d->hello.lanes, .ours = &d->hello.fabric,
            .theirs = fabric ? &d->told_fabric : NULL, .share = d->hello.share, .net_here = d->hello.net, .net_there = d->told_net, .token = d->striped ? d->hello.token : 0, .dialled = true,
        };
        bundle_add(l, &end, conn, after);
    }
}

static void bundle_dial(struct link *l, struct comm_after *after)
{
    struct comm *c = l->comm;
    uint16_t lanes = l->want.info.lanes < c->machine.config.lanes ? l->want.info.lanes : c->machine.config.lanes;
    const uint64_t *name = link_shares(l, l->bundle.distrusted) ? l->control.host_name : NULL;
    bundle_begin(l, dial_number(c), lanes);
    for (uint16_t i = 0; i < lanes; i++) {
        struct msg_hello m = link_hello(l, LINK_DATA, l->bundle.number);
        m.lane = i;
        m.lanes = lanes;
        m.share = name != NULL ? SHARE_CAN : l->control.share != SHARE_CAN ? l->control.share : SHARE_BROKE;
        m.net = link_net_own(l, i);
        m.token = bundle_token(c->engine);
        const struct fabric_port *port = link_fabric(l, i);
        if (port != NULL && !fabric_port_offer(port, &m.fabric)) {
            m.fabric.bytes = 0; /* TCP, then */
            m.net = NET_NONE;
        }
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
    if (l->control.conn == NULL || !l->want.dial || !l->want.data) {
        l->bundle.missing_since = 0;
        return CLOCK_NEVER;
    }
    if (l->bundle.number != 0) {
        return bundle_stripe_tick(l, now);
    }
    if (l->bundle.missing_since == 0) {
        l->bundle.missing_since = now;
    }
    if (l->bundle.retry_at <= now) {
        bundle_dial(l, after);
    }
    return l->bundle.number == 0 ? l->bundle.retry_at : CLOCK_NEVER;
}
