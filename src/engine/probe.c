/* probe.c - measuring an edge: bytes as fast as they go for a short time, then the other end's word that all have come.
 *
 * The rate is what was sent over the time until that word, so that what queues on the way does not count as moved.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "engine/link.h"
#include "topology/rates.h"

enum { PROBE_FRAME = 64 << 10, PROBE_QUEUE = 256 << 10, PROBE_BURSTS = 8 };
#define PROBE_PATIENCE_NS INT64_C(5000000000) /* as an enumerator it would make the others wider, too */

struct probe {
    struct list all;  /* in comm.probes */
    struct comm *comm;
    struct dial *dial;
    struct conn *conn;
    uint64_t peer;    /* 0: the other end measures */
    uint32_t round;
    int64_t duration_ns, start, deadline;
    uint64_t sent_bytes;
    bool wanted, all_sent;
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

/* bps 0: it could not be measured. */
static void probe_end(struct probe *p, uint64_t bps, struct comm_after *after)
{
    struct comm *c = p->comm;
    struct session_event e = {.kind = SESSION_MEASURED, .peer = p->peer, .slot = p->round, .number = bps};
    bool tell = p->peer != 0 && !p->ended;
    probe_gone(p);
    if (tell) {
        comm_step(c, &e, after);
    }
}

static bool probe_frame(struct probe *p, uint8_t type, uint32_t bytes)
{
    static const unsigned char zeros[PROBE_FRAME];
    unsigned char head[FRAME_HEADER_BYTES];
    frame_put(head, &(struct frame_header){.type = type, .length = bytes, .run = p->comm->master.run});
    if (conn_append(p->conn, head, sizeof head, bytes > 0 ? zeros : NULL, bytes) != PCCL_OK) {
        return false;
    }
    p->sent_bytes += bytes;
    return true;
}

/* Keeps the queue full until the time is over, or the connection, whose loop then ends the probe.  A socket that takes all at once tells nobody when it wants more: the timer
 * comes back then, so that other work of the thread gets its turn. */
static void probe_push(struct probe *p)
{
    bool over = false;
    for (int burst = 0; burst < PROBE_BURSTS && !over && (burst == 0 || conn_queued(p->conn) == 0); burst++) {
        over = clock_now_ns() - p->start >= p->duration_ns;
        for (size_t queued = conn_queued(p->conn); !over && queued < PROBE_QUEUE; queued += PROBE_FRAME) {
            if (!probe_frame(p, FRAME_PROBE_DATA, PROBE_FRAME)) {
                return;
            }
        }
        if (over) {
            p->all_sent = true;
            probe_frame(p, FRAME_PROBE_DONE, 0);
        }
        pccl_status st = conn_flush(p->conn);
        if (st != PCCL_OK && st != PCCL_ERR_AGAIN) {
            return;
        }
    }
    if (!over && conn_queued(p->conn) == 0) {
        engine_arm(p->comm->engine, clock_now_ns());
    }
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
    bool done = false;
    if ((events & EPOLLOUT) != 0) {
        conn_flush(conn);
    }
    pccl_status st = conn_receive(conn);
    comm_lock(c, &after);
    while ((next = conn_next(conn, &h, &payload)) == PCCL_OK) {
        if (h.type == FRAME_PROBE_DONE && p->peer != 0) {
            done = p->all_sent;
        } else if (h.type == FRAME_PROBE_DONE) {
            probe_frame(p, FRAME_PROBE_DONE, 0);
            conn_flush(conn);
        }
    }
    if (done) {
        probe_end(p, rate_of(p->sent_bytes, clock_now_ns() - p->start), &after);
    } else if (next == PCCL_ERR_PROTOCOL || (st != PCCL_OK && st != PCCL_ERR_AGAIN)) {
        probe_end(p, 0, &after);
    } else if (p->peer != 0 && !p->all_sent) {
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
        probe_end(p, 0, after);
        return;
    }
    p->start = clock_now_ns();
    p->deadline = p->start + p->duration_ns + PROBE_PATIENCE_NS;
    engine_arm(d->engine, p->deadline);
    probe_push(p);
}

static struct probe *probe_new(struct comm *c)
{
    struct probe *p = calloc(1, sizeof *p);
    if (p != NULL) {
        p->comm = c;
        p->deadline = CLOCK_NEVER;
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
        p->duration_ns = (int64_t)(duration_ms < 10000 ? duration_ms : 10000) * CLOCK_MS;
        p->wanted = true;
        engine_arm(c->engine, 0);
    }
}

void probe_adopt(struct comm *c, struct conn *conn)
{
    struct probe *p = probe_new(c);
    if (p == NULL) {
        conn_unref(conn);
        return;
    }
    p->conn = conn;
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
        if (p->wanted) {
            struct link *link = link_find(c, p->peer);
            struct msg_hello m = {
                .kind = LINK_PROBE, .group = c->params.group, .from = c->master.id, .to = p->peer, .view = c->master.newest,
                .number = dial_number(c), .lanes = 1,
            };
            p->wanted = false;
            p->dial = link != NULL ? dial_start(c, &m, NULL, link->want.info.address, link->want.info.addresses, probe_dialled, p) : NULL;
            if (p->dial == NULL) {
                probe_end(p, 0, after);
                continue;
            }
        }
        if (p->deadline <= now) {
            probe_end(p, 0, after);
            continue;
        }
        next = p->deadline < next ? p->deadline : next;
        if (p->peer != 0 && p->conn != NULL && !p->all_sent && conn_queued(p->conn) == 0) {
            probe_push(p);
            next = !p->all_sent && conn_queued(p->conn) == 0 ? now : next;
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
