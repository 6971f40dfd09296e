/* greet.c - incoming connections until they have said who they are, and for whom.
 *
 * At most 64 at once, 5 s each, 4 KiB of HELLO.  A dialler ahead of our view is held and asked about again when the session's
 * wants change (P8).  Invariant: a HELLO is acknowledged only when its receiver has taken the connection.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "net/addr.h"
#include "net/sock.h"
#include "engine/links/link.h"
#include "engine/links/bundle.h"
#include "engine/links/bundle_stripe.h"
#include "engine/links/control_link.h"
#include "engine/links/greet.h"
#include "engine/links/knock.h"
#include "engine/links/probe.h"
#include "engine/links/state_link.h"
#include "engine/tables/link_table.h"
#include "engine/tables/link_why.h"
#include "engine/threads/comm_step.h"

enum { GREET_NS = 5000000000, GREET_PAUSE_NS = 100000000, GREET_TOLD_NS = 10000000000 };

static void greet_ready(struct source *source, uint32_t events);

static void greet_close(struct greeting *g)
{
    list_remove(&g->all);
    g->engine->greeting_count--;
    if (g->conn != NULL) {
        conn_detach(g->conn);
        conn_unref(g->conn);
    }
    free(g);
}

/* Takes one that waits. */
static pccl_status greet_take(struct engine *e, bool host, struct transport *t, struct net_address *from)
{
    int fd = -1;
    if (!host) {
        pccl_status st = sock_accept(e->listener.fd, &fd, from, NULL);
        if (st == PCCL_OK) {
            const struct sock_bulk bulk = engine_bulk(e);
            transport_tcp_take(t, fd, &bulk);
        }
        return st;
    }
    pccl_status st = sock_accept_host(e->host_listener.fd, &fd, NULL);
    *t = (struct transport){.fd = -1};
    *from = (struct net_address){.family = 0};
    if (st == PCCL_OK && transport_shm_accept(t, fd, NULL) != PCCL_OK) {
        t->fd = -1; /* refused: the next one */
    }
    return st;
}

static void greet_watch(struct engine *e, uint32_t events)
{
    loop_change(&e->service, &e->listener, events);
    if (e->host_listener.fd >= 0) {
        loop_change(&e->service, &e->host_listener, events);
    }
}

bool greet_accept(struct engine *e, bool host)
{
    struct transport t;
    struct net_address from;
    pccl_status st = greet_take(e, host, &t, &from);
    if (st == PCCL_OK && t.fd < 0) {
        return true;
    }
    if (st != PCCL_OK) {
        if (st != PCCL_ERR_AGAIN) { /* no descriptors: they wait with the system, and this thread does not spin */
            int64_t now = clock_now_ns();
            greet_watch(e, 0);
            e->accept_at = now + GREET_PAUSE_NS;
            engine_arm(e, e->accept_at);
            if (now >= e->want_at) {
                e->want_at = now + GREET_TOLD_NS;
                log_line(LOG_WARN, "no descriptor or no memory left: peers that connect to this one have to wait");
            }
        }
        return false;
    }
    struct conn *conn = conn_new();
    struct greeting *g = calloc(1, sizeof *g);
    if (conn == NULL || g == NULL || e->greeting_count >= ENGINE_GREETINGS) {
        t.ops->close(&t);
        conn_unref(conn);
        free(g);
        return true;
    }
    conn_open_transport(conn, &t);
    conn->single = true;
    conn->most = LINK_HELLO_BYTES;
    g->engine = e;
    g->conn = conn;
    g->from = from;
    g->deadline = clock_now_ns() + GREET_NS;
    list_append(&e->greetings, &g->all);
    e->greeting_count++;
    if (conn_attach(conn, &e->service, greet_ready, g, NULL) != PCCL_OK) {
        greet_close(g);
        return true;
    }
    engine_arm(e, g->deadline);
    return true;
}

/* The name of our Unix socket is for control links within this host: both ends have one address. */
static void greet_name(const struct comm *c, struct conn *conn, struct msg_hello_ack *ack)
{
    ack->share = sock_within_host(conn->source.fd) ? link_share_own(c) : SHARE_OTHER_HOST;
    if (ack->share == SHARE_CAN) {
        memcpy(ack->host_name, c->engine->host_name, sizeof ack->host_name);
    }
}

/* Takes the fabric that is offered, if this end has the same. */
static void greet_fabric(const struct link *l, const struct msg_hello *m, struct msg_hello_ack *ack)
{
    const struct fabric_port *port = link_fabric(l, m->lane);
    ack->net = link_net_own(l, m->lane);
    if (ack->net != NET_CAN || m->net != NET_CAN) {
        return;
    }
    if (!fabric_fits(port, &m->fabric)) {
        ack->net = NET_OTHER;
    } else if (!fabric_port_offer(port, &ack->fabric)) {
        ack->fabric.bytes = 0;
        ack->net = NET_NONE;
    }
}

static void greet_say(struct conn *conn, uint64_t run, const struct msg_hello_ack *ack)
{
    unsigned char frame[FRAME_HEADER_BYTES + 256];
    struct writer w;
    writer_init(&w, frame + FRAME_HEADER_BYTES, sizeof frame - FRAME_HEADER_BYTES);
    put_hello_ack(&w, ack);
    frame_put(frame, &(struct frame_header){.type = FRAME_HELLO_ACK, .length = (uint32_t)w.used, .run = run});
    conn_append(conn, frame, FRAME_HEADER_BYTES + w.used, NULL, 0);
    conn_flush(conn);
}

static void greet_answer(struct conn *conn, uint64_t run, uint8_t verdict, uint64_t view)
{
    greet_say(conn, run, &(struct msg_hello_ack){.verdict = verdict, .view = view});
}

/* Hands the connection to whom it is for.  With comm.lock. */
static void greet_hand_over(struct comm *c, struct greeting *g, struct comm_after *after)
{
    const struct msg_hello *m = &g->hello;
    struct link *l = link_find(c, m->from);
    struct conn *conn = g->conn;
    g->conn = NULL;
    conn_detach(conn);
    conn->single = false;
    conn->most = UINT32_MAX;
    struct msg_hello_ack ack = {.verdict = HELLO_OK};
    if (conn->transport.shm == NULL) {
        bool data = m->kind == LINK_DATA || m->kind == LINK_STRIPE;
        sock_tune(conn->source.fd, c->params.stall_ns + (data ? c->params.stall_ns / 2 : 0));
    }
    if (m->kind == LINK_CONTROL) {
        greet_name(c, conn, &ack);
        knock_reached(l, &g->from);
        control_told(l, ack.share != SHARE_CAN ? ack.share : link_share_told(m->share));
    }
    if (m->kind == LINK_SHARE) { /* the dialler moves as soon as it is told so */
        struct transport t = conn->transport;
        if (control_share(l, &t, false)) {
            greet_say(conn, g->run, &ack);
        }
        conn_give_transport(conn, &t); /* which is the link's now, or closed */
        return;
    }
    if (m->kind == LINK_DATA && conn->transport.shm == NULL) {
        greet_fabric(l, m, &ack);
    }
    greet_say(conn, g->run, &ack);
    switch ((enum link_kind)m->kind) {
    case LINK_CONTROL:
        control_up(l, conn, m->number, after);
        break;
    case LINK_DATA:
        bundle_add(l, &(struct bundle_end){.number = m->number, .lane = m->lane, .lanes = m->lanes, .ours = &ack.fabric,
                                           .theirs = ack.fabric.bytes > 0 ? &m->fabric : NULL, .share = link_share_met(c, m->share),
                                           .net_here = ack.net, .net_there = m->net, .token = m->token}, conn, after);
        break;
    case LINK_SYNC:
        sync_link_adopt(c, m->from, conn, after);
        break;
    case LINK_PROBE:
        probe_adopt(c, m->from, (uint32_t)m->number, conn);
        break;
    case LINK_STRIPE:
        bundle_stripe_join(l, m, conn);
        break;
    case LINK_SHARE:
        break;
    }
}

static bool greet_fits(struct comm *c, const struct msg_hello *m)
{
    return m->kind != LINK_SHARE && m->kind != LINK_STRIPE &&
           (m->kind != LINK_DATA || (m->lanes >= 1 && m->lanes <= c->machine.config.lanes && m->lane < m->lanes));
}

/* Asks the session; true: the greeting is over. */
static bool greet_ask(struct comm *c, struct greeting *g)
{
    struct comm_after after;
    struct session_event e = {.kind = SESSION_HELLO, .peer = g->hello.from, .hello = &g->hello};
    bool over = true;
    comm_lock(c, &after);
    if (g->hello.kind == LINK_SHARE) { /* of a link that the session knows */
        const struct link *l = link_find(c, g->hello.from);
        if (l != NULL && control_may_share(l, g->hello.number)) {
            greet_hand_over(c, g, &after);
        }
    } else if (g->hello.kind == LINK_STRIPE) { /* the same of a data connection */
        const struct link *l = link_find(c, g->hello.from);
        if (l != NULL && bundle_stripe_may_join(l, &g->hello)) {
            greet_hand_over(c, g, &after);
        }
    } else if (greet_fits(c, &g->hello)) {
        comm_step(c, &e, &after);
        if (e.verdict == HELLO_OK && link_find(c, g->hello.from) == NULL) {
            link_refresh(c); /* wanted, but the table is a step behind */
        }
        if (e.verdict == HELLO_OK && link_find(c, g->hello.from) != NULL) {
            greet_hand_over(c, g, &after);
        } else if (e.verdict == HELLO_STALE) {
            greet_answer(g->conn, g->run, HELLO_STALE, e.view);
        } else {
            over = false; /* held: ahead of us */
        }
    }
    comm_unlock(c, &after);
    return over;
}

/* Whom it is for; only this thread takes communicators out of the engine. */
static struct comm *greet_receiver(struct greeting *g)
{
    struct engine *e = g->engine;
    struct comm *found = NULL;
    pthread_mutex_lock(&e->lock);
    LIST_FOR_EACH(l, after, &e->comms) {
        struct comm *c = LIST_ENTRY(l, struct comm, in_engine);
        pthread_mutex_lock(&c->lock);
        bool match = c->machine.session != NULL && c->master.id == g->hello.to && c->master.run == g->run && c->master.id != 0 &&
                     c->params.group == g->hello.group;
        pthread_mutex_unlock(&c->lock);
        if (match) {
            found = c;
            break;
        }
    }
    pthread_mutex_unlock(&e->lock);
    return found;
}

/* Ends the greeting if that settles it. */
static void greet_settle(struct greeting *g)
{
    struct comm *receiver = greet_receiver(g);
    if (receiver == NULL || greet_ask(receiver, g)) { /* for nobody here: closed, the dialler tries its next candidate */
        greet_close(g);
    }
}

/* The answer is ours in its header, which is what the other end, of another version, can read of it. */
static void greet_misunderstood(struct greeting *g)
{
    char where[ADDR_TEXT];
    uint8_t version = conn_other_version(g->conn);
    int64_t now = clock_now_ns();
    if (version == 0) {
        return;
    }
    greet_answer(g->conn, 0, HELLO_STALE, 0);
    if (now >= g->engine->foreign_at) {
        g->engine->foreign_at = now + GREET_TOLD_NS;
        log_line(LOG_WARN, "a peer at %s speaks version %u of the protocol, this peer version %d: refused; run the same "
                 "version of PCCL everywhere", addr_format(&g->from, where), version, FRAME_VERSION);
    }
}

static void greet_ready(struct source *source, uint32_t events)
{
    struct greeting *g = conn_of(source)->user;
    struct frame_header h;
    const void *payload;
    struct reader r;
    (void)events;
    pccl_status st = conn_receive(g->conn);
    if (g->heard) {
        if (st != PCCL_ERR_AGAIN) {
            greet_close(g); /* it went away, or speaks before it is asked */
        }
        return;
    }
    pccl_status next = conn_next(g->conn, &h, &payload);
    if (next == PCCL_ERR_AGAIN && (st == PCCL_OK || st == PCCL_ERR_AGAIN)) {
        return;
    }
    if (next != PCCL_OK || h.type != FRAME_HELLO) {
        greet_misunderstood(g);
        greet_close(g);
        return;
    }
    reader_init(&r, payload, h.length);
    if (!get_hello(&r, &g->hello)) {
        greet_close(g);
        return;
    }
    bool shared = g->conn->transport.shm != NULL, fits = g->hello.kind == LINK_DATA || shared == (g->hello.kind == LINK_SHARE);
    if (!fits || (shared && transport_shm_map(&g->conn->transport, link_ring_most(g->hello.kind), NULL) != PCCL_OK)) {
        greet_close(g); /* the dialler takes TCP */
        return;
    }
    g->heard = true;
    g->run = h.run;
    greet_settle(g);
}

int64_t greet_tick(struct engine *e, int64_t now)
{
    int64_t next = e->accept_at != 0 ? e->accept_at : CLOCK_NEVER;
    if (next <= now) {
        e->accept_at = 0;
        next = CLOCK_NEVER;
        greet_watch(e, EPOLLIN);
    }
    LIST_FOR_EACH(l, after, &e->greetings) {
        struct greeting *g = LIST_ENTRY(l, struct greeting, all);
        if (g->deadline <= now) {
            if (g->heard) {
                greet_answer(g->conn, g->run, HELLO_NOT_YET, 0);
            }
            greet_close(g);
            continue;
        }
        next = g->deadline < next ? g->deadline : next;
        if (g->heard) {
            greet_settle(g);
        }
    }
    return next;
}

void greet_drop_all(struct engine *e)
{
    LIST_FOR_EACH(l, after, &e->greetings) {
        greet_close(LIST_ENTRY(l, struct greeting, all));
    }
}
