/* stranger.c - connections that have not registered: until REGISTER names a world, they are the master's alone.
 *
 * Its one idea: a stranger's mistake costs it its connection, and nobody hears of it.  Invariant: a REGISTER that was taken
 * makes the connection that world's; any other end of a stranger closes it.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/mutant.h"
#include "master/master_state.h"

void stranger_opened(struct master *m, const struct master_event *e)
{
    if (e->connection >= m->common.conn_room) { /* no memory for it */
        outbox_add(m->common.out, MASTER_CLOSE)->slot = e->connection;
        return;
    }
    PCCL_ASSERT(m->common.conns[e->connection].state == CONN_FREE);
    common_opened(&m->common, e->connection,
                  &(struct conn){.number = ++m->opened, .member = SLOT_NONE, .opened = m->common.now, .seen = e->address});
}

static const char no_place[] = "the master has no place for more peers, in whatever world";
static const char open_name[] = "the world of that name is open to all who join: it has no size";
static const char no_world[] = "no room for another world at this master";

static void refuse(struct master *m, uint32_t conn, enum cause cause, const char *text)
{
    common_refuse(&m->common, conn, m->common.config.run, cause, text);
}

/* One of a given size that has begun; null: it has been refused. */
static struct world *world_joined(struct master *m, uint32_t conn, const struct msg_register *reg)
{
    char text[BOUNDS_TEXT];
    struct world *w = registry_newest(m, reg->world);
    if (common_full(&m->common)) {
        refuse(m, conn, CAUSE_KICK_FULL, no_place);
        return NULL;
    }
    if (w == NULL && registry_named(m, reg->world) != NULL) {
        refuse(m, conn, CAUSE_KICK_TAKEN, open_name);
        return NULL;
    }
    if (w == NULL) {
        bool forming = registry_forming(m, reg->world) != NULL;
        refuse(m, conn, CAUSE_KICK_NO_WORLD, forming ? "the world of that name has not begun" : "no world of that name has members");
        return NULL;
    }
    enum cause barred = world_bars(w, &reg->claim, text);
    if (barred != CAUSE_NONE) {
        refuse(m, conn, barred, text);
        return NULL;
    }
    return w;
}

/* Where it wants to go; null: it has been refused. */
static struct world *world_wanted(struct master *m, uint32_t conn, uint64_t run, const struct msg_register *reg)
{
    bool first = reg->id == 0 && run == 0;
    if (reg->id == 0 && reg->claim.join != 0) {
        return world_joined(m, conn, reg);
    }
    if (reg->id == 0 && common_full(&m->common)) {
        refuse(m, conn, CAUSE_KICK_FULL, no_place);
        return NULL;
    }
    struct world *w = run != 0 ? registry_run(m, run) : registry_named(m, reg->world);
    if (w != NULL && reg->id == 0 && world_sized(w)) { /* its members claim */
        refuse(m, conn, CAUSE_KICK_TAKEN, "that world has a size: it is joined with that, if its loss rule lets ranks become free");
        return NULL;
    }
    if (w == NULL && first && registry_forming(m, reg->world) != NULL) {
        refuse(m, conn, CAUSE_KICK_TAKEN, "a world of that name is being created, with a size, and this peer gives none");
        return NULL;
    }
    if (w == NULL && first && registry_used(m, reg->world)) {
        refuse(m, conn, CAUSE_KICK_USED, "a world was created under that name to be the only one");
        return NULL;
    }
    w = w == NULL && first ? registry_begin(m, reg->world, NULL) : w;
    if (w == NULL && first) {
        refuse(m, conn, CAUSE_KICK_FULL, no_world);
    } else if (w == NULL || strcmp(world_name(w), reg->world) != 0) {
        refuse(m, conn, CAUSE_KICK_STALE, "this master serves another run");
        w = NULL;
    }
    return w;
}

/* ---- worlds of a given size ---- */

/* It decides nothing: who is at the other end of a connection shows by an answer (W3). */
static void greet(struct master *m, uint32_t conn, uint64_t attempt)
{
    common_welcome(&m->common, conn, m->common.config.run, 0);
    m->common.conns[conn].attempt = attempt;
}

/* ---- who only asks ---- */

/* From a place in the table of worlds on; those that begin and end between two pages are seen or not. */
static void tell_status(struct master *m, uint32_t conn, uint32_t from)
{
    struct msg_status_page page = {0};
    struct world_status s;
    uint32_t at = from;
    for (; at < m->place_count && page.worlds < STATUS_PAGE_WORLDS; at++) {
        page.worlds += registry_at(m, at) != NULL;
    }
    page.next = at < m->place_count ? at : 0;
    struct writer *frame = outbox_frame(m->common.out, FRAME_STATUS_PAGE, m->common.config.run, 0);
    put_status_page(frame, &page);
    for (uint32_t i = from; i < at; i++) {
        struct world *w = registry_at(m, i);
        if (w != NULL) {
            world_tell_status(w, &s);
            put_world_status(frame, &s);
        }
    }
    outbox_send(m->common.out, MASTER_SEND, conn);
    common_close(&m->common, conn);
}

/* Of the world with that run, or of that name, whose members are asked for. */
static void tell_topology(struct master *m, uint32_t conn, const struct msg_topology *asked)
{
    struct world *w = asked->run != 0 ? registry_run(m, asked->run) : registry_named(m, asked->world);
    w = w == NULL && asked->run == 0 ? registry_newest(m, asked->world) : w;
    struct writer *frame = outbox_frame(m->common.out, FRAME_TOPOLOGY_PAGE, m->common.config.run, 0);
    if (w != NULL) {
        world_tell_topology(w, asked, frame);
    } else {
        put_topology_page(frame, &(struct msg_topology_page){.state = TOPOLOGY_NO_WORLD});
    }
    outbox_send(m->common.out, MASTER_SEND, conn);
    common_close(&m->common, conn);
}

void stranger_frame(struct master *m, const struct master_event *e)
{
    struct msg_register reg;
    struct reader r;
    const struct frame_header *h = e->header;
    reader_init(&r, e->payload, h->length);
    if (h->type == FRAME_CLAIM) {
        creation_take(m, e, &r);
        return;
    }
    if (h->type == FRAME_EXPECT) {
        derived_take(m, e, &r);
        return;
    }
    struct msg_status asked;
    if (h->type == FRAME_STATUS && get_status(&r, &asked)) {
        tell_status(m, e->connection, asked.from);
        return;
    }
    struct msg_topology links;
    if (h->type == FRAME_TOPOLOGY && get_topology(&r, &links)) {
        tell_topology(m, e->connection, &links);
        return;
    }
    if (h->type != FRAME_REGISTER || !get_register(&r, &reg)) {
        common_close(&m->common, e->connection);
        return;
    }
    if (reg.id == 0 && reg.claim.size > 0 && reg.claim.join == 0) {
        greet(m, e->connection, reg.claim.attempt);
        return;
    }
    if (h->run != 0 && reg.run != 0 && h->run != reg.run) {
        refuse(m, e->connection, CAUSE_KICK_STALE, "this master serves another run");
        return;
    }
    struct world *w = world_wanted(m, e->connection, h->run != 0 ? h->run : reg.run, &reg);
    if (w != NULL) {
        world_register(w, e->connection, &reg);
        registry_rest(m, w);
    }
}

/* Told so: whatever it makes of FENCE, the header names our version. */
void stranger_foreign(struct master *m, uint32_t conn, uint64_t version)
{
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "this master speaks version %d of the protocol, the peer version %llu", FRAME_VERSION,
             (unsigned long long)version);
    refuse(m, conn, CAUSE_KICK_VERSION, text);
}

void stranger_tick(struct master *m)
{
    struct common *c = &m->common;
    m->stranger_due = NEVER;
    while (c->stranger_first != SLOT_NONE && m->stranger_due == NEVER) { /* who came first is due first */
        int64_t due = c->conns[c->stranger_first].opened + c->config.register_ns;
        if (c->now >= due) {
            common_close(c, c->stranger_first);
        } else {
            m->stranger_due = due;
        }
    }
}
