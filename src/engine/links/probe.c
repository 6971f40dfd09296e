/* probe.c - measuring an edge: bytes as fast as they go, until their rate has settled and was measured for a while.
 *
 * What has been delivered counts, in order or not, so that what queues on the way does not count as moved (topology/probe_meter.h).  Then the
 * connection is reset, so that what is left of it disturbs nobody.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/id.h"
#include "engine/links/link.h"
#include "engine/calls/op_forecast.h"
#include "engine/links/dial.h"
#include "engine/links/probe.h"
#include "engine/tables/link_table.h"
#include "net/tcp_estimate.h"
#include "net/tcp_info.h"
#include "topology/probe_meter.h"
#include "engine/threads/comm_step.h"

enum { PROBE_FRAME = 64 << 10, PROBE_QUEUE = 256 << 10, PROBE_BURSTS = 8, PROBE_LOOK_NS = 5000000, PROBE_MEASURE_MS = 10000,
       PROBE_HOST_US = 1 /* a round trip within a host that was not measured */ };

struct probe {
    struct list all;  /* in comm.probes */
    struct comm *comm;
    struct dial *dial;
    struct conn *conn;
    uint64_t peer;    /* 0: the other end measures, */
    uint64_t from;    /* ... which is this one; 0: this end does */
    struct probe_peak peak; /* of what comes from it */
    uint32_t round;   /* its number */
    int64_t measure_ns, look_at;
    struct probe_meter meter;
    bool wanted;
    bool shares;      /* others of its round have been there */
    bool ended;       /* of a membership that is over: tells nobody, the service thread frees it */
};

static void probe_gone(struct probe *p)
{
    if (p->conn != NULL) {
        conn_detach(p->conn);
        conn_unref(p->conn);
    }
    list_remove(&p->all);
    free(p);
}

/* The other end's measurement counts for as much as has come here. */
static void probe_heard(struct probe *p, struct comm_after *after)
{
    struct comm *c = p->comm;
    struct msg_measured m = {.round = MEASURED_HEARD | p->round, .to = p->from};
    m.bits_per_second = probe_peak_end(&p->peak, clock_now_ns(), atomic_load(&p->conn->rx_bytes));
    bool tell = !p->ended;
    probe_gone(p);
    if (tell) {
        comm_say(after, LOG_DEBUG, "peer " ID_FORMAT ": its probe came at %" PRIu64 " kb/s", ID_PARTS(m.to), m.bits_per_second / 1000);
        comm_step(c, &(struct session_event){.kind = SESSION_MEASURED, .measured = &m}, after);
    }
}

static uint32_t least_known(uint32_t one, uint32_t other)
{
    return one == 0 || (other != 0 && other < one) ? other : one;
}

/* The least round trip to a peer, from the TCP connection on which little is sent; 0: unknown. */
static uint32_t trip_us(struct link *l)
{
    struct tcp_numbers tcp;
    struct conn *conn = l != NULL ? l->control.conn : NULL;
    bool known = conn != NULL && !conn_shares(conn) && tcp_info_read(conn->source.fd, &tcp);
    return known ? tcp.least_rtt_us : 0;
}

/* bps 0: it could not be measured. */
static void probe_end(struct probe *p, uint64_t bps, const struct tcp_numbers *tcp, struct comm_after *after)
{
    struct comm *c = p->comm;
    struct msg_measured m = {.round = p->round, .to = p->peer, .bits_per_second = bps};
    struct link *link = !p->ended ? link_find(c, p->peer) : NULL;
    if (bps > 0) {
        m.rtt_us = least_known(tcp->least_rtt_us, trip_us(link)); /* its own queues delay a probe from the first packet on */
        m.loss_ppm = tcp->acked == 0 ? 0 : (uint32_t)((double)tcp->retransmitted / ((double)tcp->acked + (double)tcp->retransmitted) * 1e6);
    }
    bool tell = !p->ended;
    if (link != NULL && !p->meter.shared) {
        op_forecast_measured(link, bps);
    }
    probe_gone(p);
    if (tell) {
        comm_say(after, LOG_DEBUG, "peer " ID_FORMAT ": probe: %" PRIu64 " kb/s, round trip %" PRIu32 " us, %" PRIu32 " of a million bytes sent again",
                 ID_PARTS(m.to), bps / 1000, m.rtt_us, m.loss_ppm);
        comm_step(c, &(struct session_event){.kind = SESSION_MEASURED, .measured = &m}, after);
    }
}

/* Only the round trip is asked for. */
static void probe_end_trip(struct probe *p, struct comm_after *after)
{
    struct comm *c = p->comm;
    struct link *link = link_find(c, p->peer);
    bool shares = link != NULL && link->control.conn != NULL && conn_shares(link->control.conn);
    struct msg_measured m = {.round = p->round, .to = p->peer, .rtt_us = shares ? PROBE_HOST_US : trip_us(link)};
    probe_gone(p);
    comm_step(c, &(struct session_event){.kind = SESSION_MEASURED, .measured = &m}, after);
}

static void probe_failed(struct probe *p, struct comm_after *after)
{
    if (p->peer != 0) {
        probe_end(p, 0, NULL, after);
    } else {
        probe_heard(p, after);
    }
}

static bool probe_frame(struct probe *p)
{
    static const unsigned char zeros[PROBE_FRAME];
    unsigned char head[FRAME_HEADER_BYTES];
    frame_put(head, &(struct frame_header){.type = FRAME_PROBE_DATA, .length = PROBE_FRAME, .run = p->comm->master.run});
    return conn_append(p->conn, head, sizeof head, zeros, PROBE_FRAME) == PCCL_OK;
}

/* Keeps the queue full, unless the connection has broken: then its loop ends the probe.  A socket that takes all at once tells nobody when it
 * wants more: the timer comes back then, so that other work of the thread gets its turn. */
static void probe_push(struct probe *p)
{
    for (int burst = 0; burst < PROBE_BURSTS && (burst == 0 || conn_queued(p->conn) == 0); burst++) {
        for (size_t queued = conn_queued(p->conn); queued < PROBE_QUEUE; queued += PROBE_FRAME) {
            if (!probe_frame(p)) {
                return;
            }
        }
        pccl_status st = conn_flush(p->conn);
        if (st != PCCL_OK && st != PCCL_ERR_AGAIN) {
            return;
        }
    }
}

static bool same_round(const struct probe *p, const struct probe *q)
{
    return q->peer != 0 && !q->ended && q->round == p->round;
}

/* Probes of one round begin at the same time, and share this host's link: they end at the same time, too, since one that is alone at last would
 * measure what the others have left.  True: this one may not end yet. */
static bool probe_waits(struct probe *p, int64_t now)
{
    uint32_t others = 0;
    bool warm = probe_meter_warm(&p->meter, now);
    LIST_FOR_EACH(l, after, &p->comm->probes) {
        const struct probe *q = LIST_ENTRY(l, struct probe, all);
        if (q != p && same_round(p, q)) {
            others++;
            warm = warm && q->conn != NULL && probe_meter_warm(&q->meter, now);
        }
    }
    if (p->meter.shared || (others == 0 && !p->shares)) {
        return false;
    }
    LIST_FOR_EACH(l, after, &p->comm->probes) {
        struct probe *q = LIST_ENTRY(l, struct probe, all);
        if (same_round(p, q)) {
            q->shares = true;
            if (warm) {
                probe_meter_share(&q->meter, now);
            }
        }
    }
    return true;
}

/* Looks at what has been acknowledged; true: that was enough, the probe has ended. */
static bool probe_look(struct probe *p, int64_t now, struct comm_after *after)
{
    struct tcp_numbers tcp;
    int fd = p->conn->source.fd;
    if (!tcp_info_read(fd, &tcp)) {
        probe_failed(p, after);
        return true;
    }
    p->look_at = now + PROBE_LOOK_NS;
    bool enough = probe_meter_look(&p->meter, now, tcp.delivered, (int64_t)tcp.rtt_us * 1000, tcp_estimate_bps(fd));
    bool waits = probe_waits(p, now) && !probe_meter_late(&p->meter, now);
    if (!enough || waits) {
        return false;
    }
    sock_reset_on_close(fd);
    probe_end(p, probe_meter_bps(&p->meter, now), &tcp, after);
    return true;
}

static void probe_ready(struct source *source, uint32_t events)
{
    struct conn *conn = conn_of(source);
    struct probe *p = conn->user;
    struct comm *c = p->comm;
    struct comm_after after;
    struct frame_header h;
    const void *payload;
    pccl_status next;
    if ((events & EPOLLOUT) != 0) {
        conn_flush(conn);
    }
    pccl_status st = conn_receive(conn);
    comm_lock(c, &after);
    if (p->from != 0) {
        probe_peak_look(&p->peak, clock_now_ns(), atomic_load(&conn->rx_bytes), 0);
    }
    while ((next = conn_next(conn, &h, &payload)) == PCCL_OK) {
    }
    if (next == PCCL_ERR_PROTOCOL || (st != PCCL_OK && st != PCCL_ERR_AGAIN)) {
        probe_failed(p, &after);
    } else if (p->peer != 0) {
        probe_push(p);
    }
    comm_unlock(c, &after);
}

static void probe_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct probe *p = d->user;
    (void)stale_view;
    p->dial = NULL;
    p->conn = conn;
    if (conn == NULL || conn_attach(conn, &d->engine->service, probe_ready, p, NULL) != PCCL_OK) {
        probe_failed(p, after);
        return;
    }
    const struct sock_bulk bulk = engine_bulk(d->engine);
    int64_t now = clock_now_ns();
    sock_tune_bulk(conn->source.fd, &bulk);
    probe_meter_init(&p->meter, now, p->measure_ns);
    p->look_at = now + PROBE_LOOK_NS;
    engine_arm(d->engine, p->look_at);
    probe_push(p);
}

static struct probe *probe_new(struct comm *c)
{
    struct probe *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->comm = c;
        p->look_at = CLOCK_NEVER;
        list_append(&c->probes, &p->all);
    }
    return p;
}

void probe_start(struct comm *c, uint64_t peer, uint32_t round, uint64_t duration_ms)
{
    struct probe *p = probe_new(c);
    if (p != NULL) { /* otherwise the master's patience ends the round */
        p->peer = peer;
        p->round = round;
        p->measure_ns = (int64_t)(duration_ms < PROBE_MEASURE_MS ? duration_ms : PROBE_MEASURE_MS) * CLOCK_MS;
        p->wanted = true;
        engine_arm(c->engine, 0);
    }
}

void probe_adopt(struct comm *c, uint64_t from, uint32_t number, struct conn *conn)
{
    struct probe *p = probe_new(c);
    if (p == NULL) {
        conn_unref(conn);
        return;
    }
    p->conn = conn;
    p->from = from;
    p->round = number & ~MEASURED_HEARD;
    if (conn_attach(conn, &c->engine->service, probe_ready, p, NULL) != PCCL_OK) {
        probe_gone(p);
    }
}

int64_t probe_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    int64_t next = CLOCK_NEVER;
    LIST_FOR_EACH(l, following, &c->probes) {
        struct probe *p = LIST_ENTRY(l, struct probe, all);
        if (p->ended) {
            if (p->dial != NULL) {
                dial_cancel(p->dial);
            }
            probe_gone(p);
            continue;
        }
        if (p->wanted && p->measure_ns == 0) {
            probe_end_trip(p, after);
            continue;
        }
        if (p->wanted) {
            struct link *link = link_find(c, p->peer);
            struct msg_hello m = {
                .kind = LINK_PROBE, .group = c->params.group, .from = c->master.id, .to = p->peer, .view = c->master.newest,
                .number = p->round, .lanes = 1,
            };
            p->wanted = false;
            p->dial = link != NULL ? dial_start(c, &m, NULL, link->want.info.address, link->want.info.addresses, probe_dialled, p) : NULL;
            if (p->dial == NULL) {
                probe_failed(p, after);
                continue;
            }
        }
        if (p->look_at <= now && probe_look(p, now, after)) {
            continue;
        }
        next = p->look_at < next ? p->look_at : next;
        if (p->peer != 0 && p->conn != NULL && conn_queued(p->conn) == 0) {
            probe_push(p);
            next = conn_queued(p->conn) == 0 ? now : next;
        }
    }
    return next;
}

void probe_end_all(struct comm *c)
{
    LIST_FOR_EACH(l, after, &c->probes) {
        LIST_ENTRY(l, struct probe, all)->ended = true;
    }
    if (!list_empty(&c->probes)) {
        engine_arm(c->engine, 0);
    }
}

void probe_drop_all(struct comm *c)
{
    LIST_FOR_EACH(l, after, &c->probes) {
        probe_gone(LIST_ENTRY(l, struct probe, all));
    }
}
