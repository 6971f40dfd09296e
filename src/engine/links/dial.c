/* dial.c - outgoing connections: candidates in order, HELLO, the verdict.
 *
 * Everything here runs on the service thread.  Invariant: `done` is called exactly once, unless the dial is cancelled.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "net/addr.h"
#include "net/sock.h"
#include "engine/links/link.h"
#include "engine/links/dial.h"
#include "engine/tables/link_table.h"
#include "engine/threads/comm_step.h"

enum { DIAL_TRY_NS = 2000000000, DIAL_TRIPS = 4 }; /* per candidate: five of them must not eat up a link's 5 s when the first answers */

static void dial_ready(struct source *source, uint32_t events);

/* What the try under way is connected to, or was. */
static const char *dial_where(const struct dial *d, char text[ADDR_TEXT])
{
    if (d->next == 0) {
        return "its Unix socket";
    }
    return addr_format(&d->address[d->next - 1], text);
}

static void dial_close_try(struct dial *d)
{
    if (d->conn != NULL) {
        conn_detach(d->conn);
        conn_unref(d->conn);
        d->conn = NULL;
    }
    d->greeting = false;
}

static void dial_free(struct dial *d)
{
    list_remove(&d->all);
    free(d);
}

void dial_cancel(struct dial *d)
{
    dial_close_try(d);
    dial_free(d);
}

/* Ends the dial; takes `conn`.  With comm.lock. */
static void dial_end(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    d->done(d, conn, stale_view, after);
    dial_close_try(d);
    dial_free(d);
}

/* Why the candidate before was of no use. */
static void dial_why(struct dial *d, const struct err *err)
{
    snprintf(d->why, sizeof d->why, "%.*s", (int)sizeof d->why - 1, err->text);
}

/* Takes the transport; from here on the loop tells of it. */
static bool dial_watch(struct dial *d, struct transport *t, struct err *err)
{
    d->conn = conn_new();
    if (d->conn == NULL) {
        t->ops->close(t);
        (void)err_set(err, PCCL_ERR_NOMEM, "no memory for a connection");
        return false;
    }
    conn_open_transport(d->conn, t);
    d->conn->single = true;
    d->conn->most = LINK_HELLO_BYTES;
    d->conn->source.ready = dial_ready;
    d->conn->user = d;
    d->conn->loop = &d->engine->service;
    if (loop_add(d->conn->loop, &d->conn->source, EPOLLOUT, err) != PCCL_OK) {
        d->conn->loop = NULL;
        dial_close_try(d);
        return false;
    }
    d->try_deadline = clock_now_ns() + DIAL_TRY_NS;
    engine_arm(d->engine, d->try_deadline);
    return true;
}

/* Begins with the Unix socket, once; false: that cannot be. */
static bool dial_host(struct dial *d)
{
    uint64_t name[2] = {d->host_name[0], d->host_name[1]};
    struct err err = {.text = ""};
    struct transport t;
    int fd = -1;
    if (name[0] == 0 && name[1] == 0) {
        return false;
    }
    d->host_name[0] = d->host_name[1] = 0;
    d->hello.share = SHARE_UNREACHED;
    if (sock_dial_host(name, &fd, &err) == PCCL_OK) {
        pccl_status st = transport_shm_dial(&t, fd, link_ring_bytes(d->comm, d->hello.kind), &err);
        d->hello.share = st == PCCL_ERR_PROTOCOL ? SHARE_OTHER_USER : SHARE_NO_MEMORY;
        if (st == PCCL_OK && dial_watch(d, &t, &err)) {
            d->hello.share = SHARE_CAN;
            return true;
        }
    }
    dial_why(d, &err);
    return false;
}

/* Begins with the next candidate that can be begun with; false: there is none left. */
static bool dial_next(struct dial *d)
{
    if (d->conn != NULL && d->conn->transport.shm != NULL) {
        d->hello.share = SHARE_REFUSED;
    }
    dial_close_try(d);
    if (dial_host(d)) {
        return true;
    }
    while (d->next < d->addresses) {
        struct net_address to = d->address[d->next++];
        struct err err = {.text = ""};
        int fd = -1;
        if (to.port == 0 || addr_is_any(&to)) {
            continue;
        }
        pccl_status st = sock_dial(&to, &fd, &err);
        d->met = st == PCCL_ERR_NOMEM ? DIAL_MET_WANT : st != PCCL_OK ? DIAL_MET_OTHER : DIAL_MET_SILENCE;
        if (st != PCCL_OK) {
            dial_why(d, &err);
            continue;
        }
        struct transport t;
        const struct sock_bulk bulk = engine_bulk(d->engine);
        transport_tcp_take(&t, fd, &bulk);
        if (dial_watch(d, &t, &err)) {
            return true;
        }
        dial_why(d, &err);
    }
    return false;
}

/* The candidate under way is of no use.  With comm.lock. */
static void dial_failed(struct dial *d, struct comm_after *after)
{
    if (!dial_next(d)) {
        dial_end(d, NULL, 0, after);
    }
}

static bool dial_is_data(const struct dial *d)
{
    return d->hello.kind == LINK_DATA || d->hello.kind == LINK_STRIPE;
}

/* How long the connection may be silent. */
static int64_t dial_silence_ns(const struct dial *d)
{
    return d->comm->params.stall_ns + (dial_is_data(d) ? d->comm->params.stall_ns / 2 : 0);
}

/* How long the acknowledgement of HELLO may take: both may be lost once.  The other end has taken the connection when it sends that, and
 * its end breaks an operation.  So a data connection has the time that a link may be missing, and a further socket, whose end breaks a
 * stripe that works, the time that the stripe may be silent. */
static int64_t dial_greeting_ns(const struct dial *d, bool host)
{
    int64_t rtt = host ? 0 : 2 * sock_away_ns(d->conn->source.fd), patience = DIAL_TRY_NS + DIAL_TRIPS * rtt;
    int64_t least = d->hello.kind == LINK_STRIPE ? dial_silence_ns(d) : d->hello.kind == LINK_DATA ? d->comm->machine.config.link_ns : 0;
    least = d->next < d->addresses ? 0 : least; /* another address may answer */
    return patience > least ? patience : least;
}

/* With comm.lock. */
static void dial_connected(struct dial *d, struct comm_after *after)
{
    struct err err;
    struct conn *c = d->conn;
    unsigned char frame[FRAME_HEADER_BYTES + 256];
    bool host = d->next == 0;
    pccl_status st = host ? PCCL_OK : sock_connected(c->source.fd, &d->address[d->next - 1], &err);
    if (st != PCCL_OK) {
        d->met = st == PCCL_ERR_CLOSED ? DIAL_MET_NOBODY : DIAL_MET_OTHER;
        dial_why(d, &err);
        if (d->known && d->next == 1 && st == PCCL_ERR_CLOSED) {
            dial_end(d, NULL, 0, after);
        } else {
            dial_failed(d, after);
        }
        return;
    }
    if (!host) {
        sock_tune(c->source.fd, dial_silence_ns(d));
    }
    if (d->hello.kind == 0) {
        conn_detach(c);
        d->conn = NULL;
        c->single = false;
        c->most = UINT32_MAX;
        dial_end(d, c, 0, after);
        return;
    }
    struct writer w;
    writer_init(&w, frame + FRAME_HEADER_BYTES, sizeof frame - FRAME_HEADER_BYTES);
    struct msg_hello hello = d->hello;
    if (hello.kind == LINK_DATA) { /* within a host one socket is enough, unless more are asked for */
        bool near = host || sock_within_host(c->source.fd);
        hello.token = host || (near && d->engine->stripe == 0) ? 0 : hello.token;
        d->striped = hello.token != 0;
    }
    put_hello(&w, &hello);
    frame_put(frame, &(struct frame_header){.type = FRAME_HELLO, .length = (uint32_t)w.used, .run = d->comm->master.run});
    conn_append(c, frame, FRAME_HEADER_BYTES + w.used, NULL, 0);
    conn_flush(c);
    d->greeting = true;
    d->try_deadline = clock_now_ns() + dial_greeting_ns(d, host);
    engine_arm(d->engine, d->try_deadline);
    loop_change(c->loop, &c->source, EPOLLIN);
    c->armed = false;
}

/* With comm.lock. */
static void dial_answered(struct dial *d, struct comm_after *after)
{
    struct frame_header h;
    const void *payload;
    struct msg_hello_ack ack;
    struct reader r;
    pccl_status st = conn_receive(d->conn);
    pccl_status next = conn_next(d->conn, &h, &payload);
    if (next == PCCL_ERR_AGAIN && (st == PCCL_OK || st == PCCL_ERR_AGAIN)) {
        return;
    }
    if (next == PCCL_OK && h.type == FRAME_HELLO_ACK) {
        reader_init(&r, payload, h.length);
        if (get_hello_ack(&r, &ack) && ack.verdict == HELLO_OK) {
            struct conn *c = d->conn;
            conn_detach(c);
            c->single = false;
            c->most = UINT32_MAX;
            d->conn = NULL;
            memcpy(d->told_name, ack.host_name, sizeof d->told_name);
            d->told_share = ack.share;
            d->told_net = ack.net;
            d->told_fabric = ack.fabric;
            dial_end(d, c, 0, after);
            return;
        }
        if (!r.bad && ack.verdict == HELLO_STALE) {
            dial_end(d, NULL, ack.view, after);
            return;
        }
    }
    uint8_t version = next == PCCL_ERR_PROTOCOL ? conn_other_version(d->conn) : 0;
    char where[ADDR_TEXT];
    d->met = version != 0 ? DIAL_MET_FOREIGN : DIAL_MET_OTHER;
    if (version != 0) {
        snprintf(d->why, sizeof d->why, "the peer at %s speaks version %u of the protocol, this peer version %d",
                 dial_where(d, where), version, FRAME_VERSION);
    } else {
        snprintf(d->why, sizeof d->why, "the other end closed the connection at the greeting");
    }
    dial_failed(d, after);
}

static void dial_ready(struct source *source, uint32_t events)
{
    struct dial *d = conn_of(source)->user;
    struct comm *c = d->comm;
    struct comm_after after;
    (void)events;
    comm_lock(c, &after);
    if (d->greeting) {
        dial_answered(d, &after);
    } else {
        dial_connected(d, &after);
    }
    comm_unlock(c, &after);
}

uint64_t dial_number(struct comm *c)
{
    return ++c->dialled;
}

struct dial *dial_start(struct comm *c, const struct msg_hello *hello, const uint64_t *host_name,
                        const struct net_address *address, uint8_t addresses, void (*done)(struct dial *, struct conn *, uint64_t, struct comm_after *),
                        void *user)
{
    struct dial *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return NULL;
    }
    d->engine = c->engine;
    d->comm = c;
    d->hello = *hello;
    if (host_name != NULL) {
        memcpy(d->host_name, host_name, sizeof d->host_name);
    }
    d->addresses = addresses < BOUNDS_ADDRESSES ? addresses : BOUNDS_ADDRESSES;
    if (d->addresses > 0) {
        memcpy(d->address, address, d->addresses * sizeof *address);
    }
    d->done = done;
    d->user = user;
    snprintf(d->why, sizeof d->why, "no address to connect to");
    list_append(&c->engine->dials, &d->all);
    if (!dial_next(d)) {
        d->try_deadline = 0; /* reported by the next tick: the caller is not called back while it calls */
        engine_arm(d->engine, 0);
    }
    return d;
}

int64_t dial_tick(struct engine *e, int64_t now)
{
    struct comm_after after;
    int64_t next = CLOCK_NEVER;
    LIST_FOR_EACH(l, following, &e->dials) {
        struct dial *d = LIST_ENTRY(l, struct dial, all);
        if (d->try_deadline > now) {
            next = d->try_deadline < next ? d->try_deadline : next;
            continue;
        }
        struct comm *c = d->comm;
        comm_lock(c, &after);
        if (d->conn != NULL) {
            char text[ADDR_TEXT];
            d->met = DIAL_MET_SILENCE;
            snprintf(d->why, sizeof d->why, d->greeting ? "greet %s: connected, but no acknowledgement in time" : "connect to %s: no answer for 2 s",
                     dial_where(d, text));
        }
        if (dial_next(d)) {
            next = d->try_deadline < next ? d->try_deadline : next;
        } else {
            dial_end(d, NULL, 0, &after);
        }
        comm_unlock(c, &after);
    }
    return next;
}
