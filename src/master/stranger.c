/* stranger.c - connections that have not registered: until REGISTER names a world, they are the master's alone.
 *
 * Its one idea: a stranger's mistake costs it its connection, and nobody hears of it.  Invariant: a REGISTER that was taken
 * makes the connection that world's; any other end of a stranger closes it.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "master/master_state.h"

void stranger_opened(struct master *m, const struct master_event *e)
{
    struct conn *c = &m->common.conns[e->connection];
    PCCL_ASSERT(c->state == CONN_FREE);
    *c = (struct conn){.state = CONN_OPEN, .member = SLOT_NONE, .opened = m->common.now, .seen = e->address};
}

static void refuse(struct master *m, uint32_t conn, enum cause cause, const char *text)
{
    common_refuse(&m->common, conn, m->common.config.run, cause, text);
}

/* Where it wants to go; null: it has been refused. */
static struct world *world_wanted(struct master *m, uint32_t conn, uint64_t run, const struct msg_register *reg)
{
    bool first = reg->id == 0 && run == 0;
    if (reg->id == 0 && common_full(&m->common)) {
        refuse(m, conn, CAUSE_KICK_FULL, "the master has no place for more peers, in whatever world");
        return NULL;
    }
    struct world *w = run != 0 ? registry_run(m, run) : registry_named(m, reg->world);
    w = w == NULL && first ? registry_begin(m, reg->world) : w;
    if (w == NULL && first) {
        refuse(m, conn, CAUSE_KICK_FULL, "no room for another world at this master");
    } else if (w == NULL || strcmp(world_name(w), reg->world) != 0) {
        refuse(m, conn, CAUSE_KICK_STALE, "this master serves another run");
        w = NULL;
    }
    return w;
}

void stranger_frame(struct master *m, const struct master_event *e)
{
    struct msg_register reg;
    struct reader r;
    const struct frame_header *h = e->header;
    reader_init(&r, e->payload, h->length);
    if (h->type != FRAME_REGISTER || !get_register(&r, &reg)) {
        common_close(&m->common, e->connection);
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
    const struct master_config *cfg = &m->common.config;
    m->stranger_due = NEVER;
    for (uint32_t i = 0; i < cfg->max_connections; i++) {
        const struct conn *c = &m->common.conns[i];
        int64_t due = c->opened + cfg->register_ns;
        if (c->state == CONN_OPEN && m->common.now >= due) {
            common_close(&m->common, i);
        } else if (c->state == CONN_OPEN) {
            m->stranger_due = due < m->stranger_due ? due : m->stranger_due;
        }
    }
}
