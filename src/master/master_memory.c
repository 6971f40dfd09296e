/* master_memory.c - memory of the worlds: asked for before an event, handed over, taken back when a world has ended.
 *
 * Its one idea: the event says by itself which world it is for and what it brings; everything else is that world's to
 * know.  Invariant: all memory that was handed over comes back by master_grow, master_reclaim or master_release, once.
 * SPDX-License-Identifier: MIT */
#include "master/master_state.h"

/* ---- before an event ----------------------------------------------------------------------------------------------- */

/* A newcomer's: into a world that is there, or the one that would begin. */
static bool register_growth(const struct master *m, const struct master_event *e, struct master_want *out)
{
    struct msg_claim c;
    struct reader r;
    reader_init(&r, e->payload, e->header->length);
    bool claims = e->header->type == FRAME_CLAIM && get_claim(&r, &c) && c.reg.claim.size <= m->common.config.max_members;
    bool joins = e->header->type == FRAME_REGISTER && get_register(&r, &c.reg) && c.reg.id == 0 && c.reg.claim.size == 0;
    if ((!claims && !joins) || common_full(&m->common) || (claims && registry_claimed(m, &c.reg) != NULL)) {
        return false;
    }
    const struct world *w = claims ? registry_forming(m, c.reg.world) : registry_named(m, c.reg.world);
    w = w != NULL ? w : m->spare;
    if (w == NULL) {
        world_first(&m->common, out);
        return true;
    }
    return world_growth(w, &(struct world_need){.newcomer = true, .label = c.reg.group, .seats = c.reg.claim.size}, out);
}

static bool member_growth(const struct master *m, const struct master_event *e, struct master_want *out)
{
    const struct conn *c = &m->common.conns[e->connection];
    struct world_need need = {.reporter = c->member};
    struct msg_frozen f;
    struct msg_vote v;
    struct reader r;
    reader_init(&r, e->payload, e->header->length);
    switch (e->header->type) {
    case FRAME_FROZEN:
        if (get_frozen(&r, &f)) {
            need.reports = f.reports;
            need.view = f.view;
            need.attempt = f.attempt;
        }
        break;
    case FRAME_VOTE:
        need.measures = get_vote(&r, &v) && v.kind == VOTE_OPTIMISE;
        break;
    case FRAME_SUSPECT:
        need.complaints = true;
        break;
    default:
        return false;
    }
    const struct world *w = registry_at(m, c->world);
    return w != NULL && world_growth(w, &need, out);
}

bool master_growth(const struct master *m, const struct master_event *next, struct master_want *out)
{
    if (m->poisoned) {
        return false;
    }
    if (next->kind == MASTER_FRAME && next->connection < m->common.config.max_connections) {
        uint8_t state = m->common.conns[next->connection].state;
        return state == CONN_OPEN     ? register_growth(m, next, out)
               : state == CONN_MEMBER ? member_growth(m, next, out)
                                      : false;
    }
    const struct world *w = next->kind == MASTER_TICK ? registry_due(m, NEVER - 1) : NULL;
    return w != NULL && world_growth(w, &(struct world_need){.complaints = true}, out);
}

void *master_grow(struct master *m, const struct master_want *want, void *memory)
{
    if (want->world == SLOT_NONE && m->spare == NULL) {
        m->spare = world_init(&m->common, want, memory);
        return NULL;
    }
    struct world **at = want->world == SLOT_NONE ? &m->spare : &m->places[want->world].world;
    return world_grow(*at, want, memory, at);
}

/* ---- when worlds have ended ---------------------------------------------------------------------------------------- */

/* One table; the world's own is the last. */
static void *strip(struct master *m, struct place *p)
{
    void *memory = world_strip(p->world);
    if (memory == p->world) {
        *p = (struct place){.due = NEVER};
        while (m->place_count > 0 && m->places[m->place_count - 1].world == NULL) {
            m->place_count--;
        }
    }
    return memory;
}

void *master_reclaim(struct master *m)
{
    for (uint32_t i = 0; m->ended > 0 && i < m->place_count; i++) {
        if (m->places[i].over) {
            void *memory = strip(m, &m->places[i]);
            m->ended -= m->places[i].world == NULL;
            return memory;
        }
    }
    return NULL;
}

void *master_release(struct master *m)
{
    if (m->place_count > 0) {
        return strip(m, &m->places[m->place_count - 1]);
    }
    void *memory = m->spare != NULL ? world_strip(m->spare) : NULL;
    m->spare = memory == m->spare ? NULL : m->spare;
    return memory;
}
