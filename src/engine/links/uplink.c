/* uplink.c - connections with the master: dialling, frames, closing after what was sent.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "net/addr.h"
#include "net/sock.h"
#include "engine/links/link.h"
#include "engine/links/dial.h"
#include "engine/links/uplink.h"
#include "engine/threads/comm_step.h"

void uplink_init(struct comm *c)
{
    list_init(&c->master.uplinks);
    c->master.dial_at = CLOCK_NEVER;
}

void uplink_dial_at(struct comm *c, int64_t when)
{
    c->master.dial_at = when;
    engine_arm(c->engine, when);
}

static void uplink_gone(struct uplink *u)
{
    struct comm *c = u->comm;
    conn_detach(u->conn);
    conn_unref(u->conn);
    list_remove(&u->all);
    free(u);
    comm_ended(c);
}

/* What the shell itself must know of a frame: who we are, and the newest view that exists. */
static void uplink_look(struct comm *c, const struct frame_header *h, const void *payload)
{
    struct session_info info;
    struct reader r;
    reader_init(&r, payload, h->length);
    if (h->type == FRAME_WELCOME) {
        struct msg_welcome m;
        if (get_welcome(&r, &m)) {
            c->master.seen = m.seen;
        }
    } else if ((h->type == FRAME_ADMIT || h->type == FRAME_VIEW) && h->view > c->master.newest) {
        c->master.newest = h->view;
    }
    session_info(c->machine.session, &info);
    if (info.id != c->master.id || info.run != c->master.run) {
        c->master.id = info.id;
        c->master.run = info.run;
    }
}

static void uplink_frame(void *user, const struct frame_header *h, const void *payload, struct comm_after *after)
{
    struct uplink *u = user;
    struct comm *c = u->comm;
    if (c->master.conn == u->conn) {
        c->master.met = DIAL_MET_OTHER;
        struct session_event e = {.kind = SESSION_MASTER_FRAME, .header = h, .payload = payload};
        comm_step(c, &e, after);
        uplink_look(c, h, payload);
    }
}

/* Tells the session that the connection, which is still the master's, is of no use any more. */
static void uplink_down(struct uplink *u, pccl_status st, struct comm_after *after)
{
    struct comm *c = u->comm;
    uint8_t version = st == PCCL_ERR_PROTOCOL ? conn_other_version(u->conn) : 0;
    char where[ADDR_TEXT], text[BOUNDS_TEXT];
    struct session_event e = {.kind = SESSION_MASTER_DOWN, .text = "the connection to the master closed"};
    c->master.conn = NULL;
    if (version != 0) {
        snprintf(text, sizeof text, "the master at %s speaks version %u of the protocol, this peer version %d",
                 addr_format(&c->params.master, where), version, FRAME_VERSION);
        e = (struct session_event){.kind = SESSION_MASTER_FOREIGN, .text = text};
    } else if (st == PCCL_ERR_PROTOCOL) {
        e.text = "the master sent bytes that are no message";
    }
    comm_step(c, &e, after);
}

static void uplink_ready(struct source *source, uint32_t events)
{
    struct uplink *u = conn_of(source)->user;
    struct comm *c = u->comm;
    struct comm_after after;
    pccl_status st = comm_receive(c, u->conn, events, uplink_frame, u, &after);
    if (st != PCCL_ERR_AGAIN) {
        if (c->master.conn == u->conn) {
            uplink_down(u, st, &after);
        }
        uplink_gone(u);
    } else {
        conn_rest(u->conn); /* a master says little, and not often */
    }
    comm_unlock(c, &after);
}

static void uplink_dialled(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct comm *c = d->comm;
    struct uplink *u = conn != NULL ? calloc(1, sizeof *u) : NULL;
    (void)stale_view;
    c->master.dial = NULL;
    if (u == NULL) {
        c->master.met = conn == NULL ? d->met : DIAL_MET_OTHER;
        conn_unref(conn);
        comm_step(c, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = d->why}, after);
        return;
    }
    u->comm = c;
    u->conn = conn;
    list_append(&c->master.uplinks, &u->all);
    if (conn_attach(conn, &c->engine->service, uplink_ready, u, NULL) != PCCL_OK) {
        uplink_gone(u);
        comm_step(c, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "no descriptors left: raise the limit of open files (ulimit -n)"}, after);
        return;
    }
    c->master.conn = conn;
    c->master.met = DIAL_MET_STRANGER; /* until it says something that a master says */
    comm_step(c, &(struct session_event){.kind = SESSION_MASTER_UP, .number = (uint64_t)sock_away_ns(conn->source.fd)}, after);
}

int64_t uplink_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    (void)after;
    if (c->master.dial_at == CLOCK_NEVER || c->master.dial != NULL || c->master.conn != NULL) {
        return CLOCK_NEVER;
    }
    if (c->master.dial_at > now) {
        return c->master.dial_at;
    }
    struct msg_hello none = {.kind = 0};
    c->master.dial_at = CLOCK_NEVER;
    c->master.dial = dial_start(c, &none, NULL, &c->params.master, 1, uplink_dialled, c);
    if (c->master.dial == NULL) {
        c->master.dial_at = now + CLOCK_S; /* no memory: later */
    }
    return c->master.dial_at;
}

void uplink_close(struct comm *c)
{
    if (c->master.conn != NULL) {
        conn_finish(c->master.conn);
        c->master.conn = NULL;
    }
}

void uplink_drop_all(struct comm *c)
{
    c->master.conn = NULL;
    LIST_FOR_EACH(l, after, &c->master.uplinks) {
        uplink_gone(LIST_ENTRY(l, struct uplink, all));
    }
}
