/* master_memory.c - memory of the worlds: asked for before an event, handed over, taken back when a world has ended.
 *
 * Its one idea: the event says by itself which world it is for and what it brings; everything else is that world's to
 * know.  Invariant: all memory that was handed over comes back by master_grow, master_reclaim or master_release, once.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/layout.h"
#include "master/master_state.h"

/* ---- before an event ----------------------------------------------------------------------------------------------- */

enum { FIRST_PLACES = 8, FIRST_CONNS = 64 };

/* Places of worlds. */
static bool places_growth(const struct master *m, struct master_want *out)
{
    uint32_t most = m->common.config.max_worlds;
    if (m->place_room == most) {
        return false;
    }
    uint32_t entries = layout_doubled(m->place_room, FIRST_PLACES, m->place_room + 1, most);
    *out = (struct master_want){.world = WANT_PLACES, .size.entries = entries, .bytes = registry_bytes(m, entries)};
    return true;
}

static bool conns_growth(const struct master *m, uint32_t conn, struct master_want *out)
{
    if (conn < m->common.conn_room || conn >= m->common.config.max_connections) {
        return false;
    }
    uint32_t entries = layout_doubled(m->common.conn_room, FIRST_CONNS, conn + 1, m->common.config.max_connections);
    *out = (struct master_want){.world = WANT_CONNS, .size.entries = entries, .bytes = entries * sizeof(struct conn)};
    return true;
}

/* A formation of several worlds, whose first call this is. */
static bool siblings_growth(const struct master *m, const struct msg_expect *x, struct master_want *out)
{
    if (m->spare_callers >= x->callers || !derived_new(m, x)) {
        return false;
    }
    *out = (struct master_want){.world = WANT_SIBLINGS, .size.entries = x->callers, .bytes = siblings_bytes(x->callers)};
    return true;
}

/* A newcomer's: into a world that is there, or the one that would begin. */
static bool register_growth(const struct master *m, const struct master_event *e, struct master_want *out)
{
    struct msg_claim c;
    struct reader r;
    reader_init(&r, e->payload, e->header->length);
    struct msg_expect x;
    bool derives = e->header->type == FRAME_EXPECT && get_expect(&r, &x);
    if (derives) {
        c = x.claim;
    }
    bool claims = derives || (e->header->type == FRAME_CLAIM && get_claim(&r, &c));
    claims = claims && c.reg.claim.size <= m->common.config.max_members;
    bool joins = e->header->type == FRAME_REGISTER && get_register(&r, &c.reg) && c.reg.id == 0;
    bool enters = joins && c.reg.claim.join != 0; /* no world is made for it */
    joins = joins && (c.reg.claim.size == 0 || enters);
    if ((!claims && !joins) || common_full(&m->common) || (claims && registry_claimed(m, &c.reg) != NULL)) {
        return false;
    }
    if (derives && siblings_growth(m, &x, out)) {
        return true;
    }
    uint32_t names = claims && c.reg.claim.once != 0 ? used_wanted(&m->used, m->onces + 1) : m->used.room;
    if (names > m->used.room) {
        *out = (struct master_want){.world = WANT_USED, .size.entries = names, .bytes = used_bytes(names)};
        return true;
    }
    const struct world *w = claims   ? registry_forming(m, c.reg.world)
                            : enters ? registry_newest(m, c.reg.world)
                                     : registry_named(m, c.reg.world);
    if (w == NULL && enters) {
        return false;
    }
    if (w == NULL && !registry_has_place(m, c.reg.world) && places_growth(m, out)) {
        return true;
    }
    w = w != NULL ? w : m->spare;
    if (w == NULL) {
        world_first(&m->common, out);
        return true;
    }
    return world_growth(w, &(struct world_need){.newcomer = true, .label = c.reg.group, .seats = claims ? c.reg.claim.size : 0}, out);
}

static bool member_growth(const struct master *m, const struct master_event *e, struct master_want *out)
{
    const struct conn *c = &m->common.conns[e->connection];
    struct world_need need = {.reporter = c->member};
    struct msg_frozen f;
    struct msg_leave l;
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
    case FRAME_LEAVE:
        need.leaves = true;
        if (get_leave(&r, &l)) {
            need.reports = l.reports;
            need.view = l.view;
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
    if (next->kind == MASTER_OPENED) {
        return conns_growth(m, next->connection, out);
    }
    if (next->kind == MASTER_FRAME && next->connection < m->common.conn_room) {
        uint8_t state = m->common.conns[next->connection].state;
        return state == CONN_OPEN     ? register_growth(m, next, out)
               : state == CONN_MEMBER ? member_growth(m, next, out)
                                      : false;
    }
    const struct world *w = next->kind == MASTER_TICK ? registry_due(m, NEVER - 1) : NULL;
    return w != NULL && world_growth(w, &(struct world_need){.complaints = true}, out);
}

static void *conns_use(struct common *c, void *memory, uint32_t entries)
{
    struct conn *old = c->conns;
    c->conns = memory;
    memset(c->conns, 0, entries * sizeof *c->conns);
    if (c->conn_room > 0) {
        memcpy(c->conns, old, c->conn_room * sizeof *old);
    }
    c->conn_room = entries;
    return old;
}

void *master_grow(struct master *m, const struct master_want *want, void *memory)
{
    if (want->world == WANT_CONNS) {
        return conns_use(&m->common, memory, want->size.entries);
    }
    if (want->world == WANT_PLACES) {
        void *old = m->place_memory;
        registry_use(m, memory, want->size.entries);
        return old;
    }
    if (want->world == WANT_USED) {
        return used_move(&m->used, want->size.entries, memory);
    }
    if (want->world == WANT_SIBLINGS) {
        void *old = m->spare_siblings;
        m->spare_siblings = memory;
        m->spare_callers = want->size.entries;
        return old;
    }
    struct world **at = want->world == WANT_SPARE ? &m->spare : &m->places[want->world].world;
    void *old = NULL;
    if (*at == NULL) {
        *at = world_init(&m->common, want, memory);
    } else {
        old = world_grow(*at, want, memory, at);
    }
    if (want->table == 0) {
        const struct world_size *own = &want->size.own;
        m->most_members = own->members > m->most_members ? own->members : m->most_members;
        m->most_groups = own->groups > m->most_groups ? own->groups : m->most_groups;
    }
    return old;
}

/* ---- when worlds have ended ---------------------------------------------------------------------------------------- */

/* One table; the world's own is the last. */
static void *strip(struct master *m, uint32_t place)
{
    struct world *w = m->places[place].world;
    void *memory = world_strip(w);
    if (memory == w) {
        registry_forget(m, place);
    }
    return memory;
}

static void *reclaim_siblings(struct master *m)
{
    struct siblings *s = m->forgotten;
    m->forgotten = s != NULL ? s->next : NULL;
    return s;
}

void *master_reclaim(struct master *m)
{
    if (m->forgotten != NULL) {
        return reclaim_siblings(m);
    }
    if (m->ended == 0) {
        return NULL;
    }
    uint32_t place = m->ended - 1, next = m->places[place].over_next;
    void *memory = strip(m, place);
    m->ended = m->places[place].world == NULL ? next : m->ended;
    return memory;
}

/* Those of worlds that are forming, or remembered; their worlds go next. */
static void *release_siblings(struct master *m)
{
    void *memory = m->spare_siblings;
    m->spare_siblings = NULL;
    for (uint32_t i = 0; memory == NULL && i < m->place_count; i++) {
        struct world *w = m->places[i].world;
        memory = w != NULL ? world_drop_remembered(w) : NULL;
    }
    for (uint32_t i = 0; memory == NULL && i < m->place_count; i++) {
        struct world *w = m->places[i].world;
        struct siblings *s = w != NULL ? world_drop_siblings(w) : NULL;
        struct world *parent = s != NULL ? registry_run(m, s->parent) : NULL;
        if (parent != NULL) {
            world_forgets(parent, s);
        }
        memory = s;
    }
    return memory != NULL ? memory : reclaim_siblings(m);
}

void *master_release(struct master *m)
{
    void *memory = release_siblings(m);
    if (memory != NULL) {
        return memory;
    }
    if (m->place_count > 0) {
        return strip(m, m->place_count - 1);
    }
    if (m->spare != NULL) {
        memory = world_strip(m->spare);
        m->spare = memory == m->spare ? NULL : m->spare; /* its own table is the last */
        return memory;
    }
    if (m->used.hash != NULL) {
        memory = m->used.hash;
        m->used = (struct used_names){.most = m->used.most};
        return memory;
    }
    if (m->place_memory != NULL) {
        memory = m->place_memory;
        m->place_memory = NULL;
        return memory;
    }
    memory = m->common.conns;
    m->common.conns = NULL;
    return memory;
}
