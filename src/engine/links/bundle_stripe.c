/* bundle_stripe.c - the sockets of a data connection: more are dialled while its stripe wants them.
 *
 * The end that dialled the connection dials its sockets, too, to where the first one leads; HELLO of kind STRIPE names the bundle,
 * the lane, the stripe's token and the socket's number.  Invariant: a stream whose stripe a socket joins is the one in bundle.streams.
 * SPDX-License-Identifier: MIT */
#include <sys/random.h>

#include "core/clock.h"
#include "core/id.h"
#include "core/mix.h"
#include "engine/links/link.h"
#include "engine/links/bundle.h"
#include "engine/links/bundle_stripe.h"
#include "engine/links/dial.h"
#include "engine/tables/link_table.h"
#include "wire/stripe_record.h"
#include "engine/threads/comm_step.h"

enum { STRIPE_DIALS = 16 }; /* at once: the other end hears few greetings at a time */
#define STRIPE_RETRY_NS INT64_C(1000000000)
#define STRIPE_RETRY_MOST_NS INT64_C(64000000000)

uint64_t bundle_token(const struct engine *e)
{
    uint64_t token = 0;
    return e->stripe != 1 && getrandom(&token, sizeof token, 0) == (ssize_t)sizeof token ? token : 0;
}

/* By the thread that polls the lane, which holds no lock but that. */
static void more_wanted(void *user)
{
    struct stream *s = user;
    struct comm_after after;
    comm_lock(s->comm, &after);
    if (s->link->bundle.number == s->number) {
        s->link->widen = true;
        engine_arm(s->comm->engine, 0);
    }
    comm_unlock(s->comm, &after);
}

/* Names the way to a host, whatever peers of it come and go. */
static uint64_t path_to(int fd)
{
    struct net_address to = {.family = 0};
    pccl_status st = sock_remote(fd, &to);
    uint64_t path = st == PCCL_OK ? to.family : 0;
    for (size_t i = 0; i < sizeof to.ip; i++) {
        path = mix64(path, to.ip[i]);
    }
    return path;
}

bool bundle_stripe_begin(struct stream *s, const struct bundle_end *end)
{
    struct engine *e = s->comm->engine;
    const struct stripe_config config = {
        .token = end->token, .dials = end->dialled, .fixed = e->stripe, .most = e->stripe != 0 ? e->stripe : STRIPE_SOCKETS,
        .budget = &e->stripes, .paths = &e->paths, .path = path_to(s->transport.fd), .lanes = end->lanes, .stripes = end->lanes * s->beside,
        .wants = more_wanted, .user = s,
    };
    if (transport_stripe_take(&s->transport, &config) != PCCL_OK) {
        return false;
    }
    s->source.fd = s->transport.fd;
    return true;
}

/* The connection that a socket is to join; null: it is gone. */
static struct stream *striped(const struct link *l, const struct msg_hello *m)
{
    struct stream *s = m->number == l->bundle.number && m->number != 0 && m->lane < BOUNDS_LANES ? l->bundle.streams[m->lane] : NULL;
    return s != NULL && m->token != 0 && transport_stripe_token(&s->transport) == m->token ? s : NULL;
}

bool bundle_stripe_may_join(const struct link *l, const struct msg_hello *m)
{
    struct stream *s = striped(l, m);
    return s != NULL && transport_stripe_admit(&s->transport, m->token, m->socket);
}

void bundle_stripe_join(struct link *l, const struct msg_hello *m, struct conn *conn)
{
    struct stream *s = striped(l, m);
    struct transport t;
    conn_give_transport(conn, &t);
    t.ops->begin(&t);
    if (s == NULL || !transport_stripe_add(&s->transport, t.fd)) {
        t.ops->close(&t);
    }
}

/* The other end may have no descriptors left for hours. */
static int64_t later(int64_t wait_ns)
{
    int64_t twice = wait_ns > 0 ? 2 * wait_ns : STRIPE_RETRY_NS;
    return twice < STRIPE_RETRY_MOST_NS ? twice : STRIPE_RETRY_MOST_NS;
}

static void dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    struct stream *s = striped(l, &d->hello);
    (void)stale_view;
    if (s != NULL) {
        s->dials--;
        l->widen = true; /* there may be more to dial */
        s->dial_wait_ns = conn != NULL ? 0 : later(s->dial_wait_ns);
        s->dial_at = conn != NULL ? 0 : clock_now_ns() + s->dial_wait_ns;
        engine_arm(l->comm->engine, s->dial_at);
    }
    if (conn != NULL) {
        bundle_stripe_join(l, &d->hello, conn);
    } else {
        comm_say(after, LOG_DEBUG, "peer " ID_FORMAT ": no further socket for lane %u: %s", ID_PARTS(l->peer), d->hello.lane, d->why);
    }
}

/* Dials what a connection lacks; returns when to come back. */
static int64_t widen(struct link *l, struct stream *s, int64_t now)
{
    uint32_t missing = transport_stripe_missing(&s->transport);
    struct net_address to;
    if (missing <= s->dials) {
        return CLOCK_NEVER;
    }
    if (s->dial_at > now || sock_remote(transport_stripe_first(&s->transport), &to) != PCCL_OK) {
        return s->dial_at > now ? s->dial_at : CLOCK_NEVER;
    }
    while (s->dials < missing && s->dials < STRIPE_DIALS) {
        struct msg_hello m = link_hello(l, LINK_STRIPE, l->bundle.number);
        m.lane = s->index;
        m.lanes = l->bundle.lanes;
        m.token = transport_stripe_token(&s->transport);
        m.socket = ++s->dialled;
        s->dials++;
        if (dial_start(l->comm, &m, NULL, &to, 1, dialled, l) == NULL) {
            s->dials--;
            s->dial_at = now + STRIPE_RETRY_NS;
            return s->dial_at;
        }
    }
    return CLOCK_NEVER; /* each dial looks again at its end */
}

int64_t bundle_stripe_tick(struct link *l, int64_t now)
{
    int64_t next = CLOCK_NEVER;
    if (!l->widen) {
        return next;
    }
    for (uint16_t i = 0; i < l->bundle.lanes; i++) {
        struct stream *s = l->bundle.streams[i];
        if (s != NULL && transport_stripe_token(&s->transport) != 0) {
            int64_t at = widen(l, s, now);
            next = at < next ? at : next;
        }
    }
    l->widen = next != CLOCK_NEVER;
    return next;
}
