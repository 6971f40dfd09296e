/* common.c - see common.h.
 * SPDX-License-Identifier: MIT */
#include "world/common.h"

#include <stdio.h>

uint64_t common_number(uint64_t *counter, uint32_t world)
{
    return (uint64_t)world << COMMON_NUMBER_BITS | (*counter)++;
}

void common_welcome(struct common *c, uint32_t conn, uint64_t run, uint64_t id)
{
    const struct master_config *cfg = &c->config;
    struct msg_welcome welcome = {.run = run, .id = id, .epoch = cfg->epoch, .seen = c->conns[conn].seen};
    welcome.heartbeat_ms = (uint32_t)(cfg->heartbeat_ns / 1000000);
    welcome.dead_ms = (uint32_t)(cfg->dead_ns / 1000000);
    put_welcome(outbox_frame(c->out, FRAME_WELCOME, run, 0), &welcome);
    outbox_send(c->out, MASTER_SEND, conn);
}

static void stranger_add(struct common *c, uint32_t conn)
{
    struct conn *s = &c->conns[conn];
    s->before = c->stranger_last;
    s->after = SLOT_NONE;
    *(s->before == SLOT_NONE ? &c->stranger_first : &c->conns[s->before].after) = conn;
    c->stranger_last = conn;
}

static void stranger_remove(struct common *c, const struct conn *s)
{
    *(s->before == SLOT_NONE ? &c->stranger_first : &c->conns[s->before].after) = s->after;
    *(s->after == SLOT_NONE ? &c->stranger_last : &c->conns[s->after].before) = s->before;
}

/* The one writer of a connection's state. */
static void conn_move(struct common *c, uint32_t conn, enum conn_state to)
{
    struct conn *s = &c->conns[conn];
    if (s->state == CONN_OPEN) {
        stranger_remove(c, s);
    }
    c->registered -= s->state == CONN_MEMBER;
    s->state = (uint8_t)to;
    c->registered += s->state == CONN_MEMBER;
    if (to == CONN_OPEN) {
        stranger_add(c, conn);
    }
}

void common_opened(struct common *c, uint32_t conn, const struct conn *as)
{
    c->conns[conn] = *as;
    conn_move(c, conn, CONN_OPEN);
}

void common_bind(struct common *c, uint32_t conn, uint32_t world, uint32_t member)
{
    conn_move(c, conn, CONN_MEMBER);
    c->conns[conn].world = world;
    c->conns[conn].member = member;
}

void common_gone(struct common *c, uint32_t conn)
{
    conn_move(c, conn, CONN_FREE);
}

void common_close(struct common *c, uint32_t conn)
{
    struct action *a = outbox_add(c->out, MASTER_CLOSE);
    a->slot = conn;
    common_gone(c, conn);
}

void common_fence(struct common *c, uint32_t conn, uint64_t run, uint64_t view, enum cause cause, const char *text)
{
    struct msg_fence f = {.view = view, .cause = (uint8_t)cause};
    snprintf(f.text, sizeof f.text, "%s", text);
    put_fence(outbox_frame(c->out, FRAME_FENCE, run, view), &f);
    outbox_send(c->out, MASTER_SEND, conn);
}

void common_refuse(struct common *c, uint32_t conn, uint64_t run, enum cause cause, const char *text)
{
    common_fence(c, conn, run, 0, cause, text);
    common_close(c, conn);
}

void common_persist(struct outbox *o, uint64_t number)
{
    struct action *a = outbox_add(o, MASTER_PERSIST);
    a->frame = o->used;
    a->frame_bytes = (uint32_t)o->writer.used;
    a->value = number;
    o->used += a->frame_bytes;
    o->overflow = o->overflow || o->writer.bad;
}
