/* master.c - entry of the master: arena, which world an event is for, deadlines, what others may read.
 *
 * Its one idea: an event reaches one world, which then comes to rest; time comes to one world after the other.
 * Invariant: between steps every world is settled.
 * SPDX-License-Identifier: MIT */
#include "master/master.h"

#include <string.h>

#include "core/layout.h"
#include "core/mutant.h"
#include "master/master_state.h"
#include "world/trees_make.h"

/* ---- arena --------------------------------------------------------------------------------------------------------- */

static bool config_valid(const struct master_config *c)
{
    return c->run != 0 && c->epoch != 0 && c->max_connections > 0 && c->max_connections <= BOUNDS_CONNECTIONS && c->max_registered > 0 &&
           c->max_registered <= c->max_connections && c->max_worlds > 0 &&
           c->max_worlds <= BOUNDS_WORLDS && c->max_used_names > 0 && c->max_used_names <= MASTER_USED_MAX && c->max_members > 0 &&
           c->max_members <= BOUNDS_MEMBERS && c->max_groups > 0 && c->max_groups <= BOUNDS_MEMBERS && c->max_operations > 0 &&
           c->max_operations <= MASTER_OPERATIONS_MAX && c->max_edges > 0 && c->max_edges <= BOUNDS_EDGES &&
           c->heartbeat_ns > 0 && c->dead_ns > c->heartbeat_ns &&
           c->reconnect_ns >= 0 && c->redial_ns >= 0 && c->register_ns > 0 && c->admit_ns > 0 && c->collect_ns >= 0 && c->probe_ns > 0 && c->measure_ns > 0 &&
           c->replan_ns > 0;
}

/* Where everything lies, first what has to be zero; `m` may be a scratch one when only the size is asked for. */
static size_t lay_out(struct layout *l, const struct master_config *c, struct master *m, size_t *cleared)
{
    struct common *s = &m->common;
    size_t n = c->max_members, ring = n < BOUNDS_RING ? n : BOUNDS_RING, trees = n < TREES_MEMBERS ? n : TREES_MEMBERS;
    (void)layout_take(l, 1, sizeof *m);
    *cleared = l->used;
    s->scratch_cost = layout_take(l, ring * ring, sizeof *s->scratch_cost);
    s->scratch_path = layout_take(l, ring * ring, sizeof *s->scratch_path);
    s->scratch_rates = layout_take(l, 3 * ring, sizeof *s->scratch_rates);
    s->scratch_delay = layout_take(l, trees * trees, sizeof *s->scratch_delay);
    s->scratch_trees = layout_take(l, trees_room((uint32_t)trees) / sizeof *s->scratch_trees + 1, sizeof *s->scratch_trees);
    s->scratch_order = layout_take(l, ring, sizeof *s->scratch_order);
    s->scratch_search = layout_take(l, 16 * ring, sizeof *s->scratch_search);
    s->scratch_ids = layout_take(l, 2 * n, sizeof *s->scratch_ids);
    s->scratch_keys = layout_take(l, ring, sizeof *s->scratch_keys);
    return l->used;
}

size_t master_arena_bytes(const struct master_config *config)
{
    struct layout l = {0};
    struct master scratch;
    size_t cleared;
    return config_valid(config) ? lay_out(&l, config, &scratch, &cleared) : 0;
}

struct master *master_init(const struct master_config *config, void *arena)
{
    struct layout count = {0}, l = {.base = arena};
    struct master *m = arena, scratch;
    size_t cleared;
    (void)lay_out(&count, config, &scratch, &cleared);
    memset(arena, 0, cleared);
    (void)lay_out(&l, config, m, &cleared);
    m->common.config = *config;
    m->used.most = config->max_used_names;
    m->common.edge_limit = common_edges(config, config->max_members);
    m->common.next_id = (uint64_t)config->epoch << 32 | 1;
    m->common.view_floor = (uint64_t)config->epoch << 32 | 1;
    m->common.next_persist = 1;
    m->common.next_solve = 1;
    m->common.stranger_first = m->common.stranger_last = SLOT_NONE;
    m->deadline = m->stranger_due = NEVER;
    m->spared_at = INT64_MIN / 2;
    return m;
}

/* Of a world with so many places, since a step is for one. */
static void bounds_of(const struct master_config *c, uint32_t members, uint32_t group_places, uint32_t conns, struct outbox_bounds *out)
{
    enum { INFO_BYTES = 15 + BOUNDS_ADDRESSES * 19, FRAME = FRAME_HEADER_BYTES + 512, PROBE = FRAME_HEADER_BYTES + 16, EDGE = 24, ROUNDS = 4 };
    uint64_t n = members, groups = group_places < n ? group_places : n;
    uint64_t pairs = n * (n - 1) / 2 + groups, edges = groups * (uint64_t)common_edges(c, members);
    /* Lists over a group go out in a few versions, to sets that do not meet, and groups do not meet either: ids and edges of all
     * groups are bounded by those of one that holds everybody. A step settles a few times over at most. Twice of it all: who tells
     * each member something of its own (source_tell) stops at half of the box. */
    uint64_t elected = 2 * 8 * n + FRAME, views = 2 * EDGE * (edges < pairs ? edges : pairs);
    uint64_t wooded = n < groups * BOUNDS_TREE_MEMBERS ? n : groups * BOUNDS_TREE_MEMBERS; /* members of groups that may have trees */
    uint64_t trees = BOUNDS_TREES * (wooded * sizeof(uint16_t) + groups * sizeof(uint32_t));
    uint64_t alike = n < groups * TREES_MEMBERS ? n : groups * TREES_MEMBERS, probes = alike * TREES_MEMBERS; /* of all their edges at once */
    uint64_t round = 4 * trees + groups * 8 * FRAME + n * (INFO_BYTES + 64) * 4 + n * FRAME * 4 + 64 * (uint64_t)common_decisions(c);
    uint64_t total = 2 * (elected + views + ROUNDS * round + TOPOLOGY_PAGE_BYTES /* which is more than STATUS_PAGE_BYTES */ + probes * PROBE);
    out->actions = (uint32_t)(64 + conns + ROUNDS * 24 * (n + groups) + probes);
    out->bytes = total > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)total;
    out->dests = (uint32_t)(64 + conns + ROUNDS * 8 * n + probes);
}

struct outbox_bounds master_out_most(const struct master_config *c)
{
    struct outbox_bounds most;
    bounds_of(c, c->max_members, c->max_groups, c->max_connections, &most);
    return most;
}

struct outbox_bounds master_out_need(const struct master *m)
{
    struct outbox_bounds need;
    bounds_of(&m->common.config, m->most_members, m->most_groups, m->common.conn_room, &need);
    return need;
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

/* The mistake against W1: the end of one connection is taken for that of all from its address. */
static void close_all_of(struct master *m, uint32_t ended)
{
    for (uint32_t i = 0; i < m->common.conn_room; i++) {
        const struct conn *c = &m->common.conns[i];
        struct world *w = c->state == CONN_MEMBER && i != ended ? registry_at(m, c->world) : NULL;
        if (w != NULL && memcmp(c->seen.ip, m->common.conns[ended].seen.ip, sizeof c->seen.ip) == 0) {
            world_closed(w, i);
            registry_rest(m, w);
        }
    }
}

/* Of a connection that belongs to a world. */
static void on_member(struct master *m, const struct master_event *e)
{
    struct world *w = registry_at(m, m->common.conns[e->connection].world);
    PCCL_ASSERT(w != NULL);
    if (e->kind == MASTER_CLOSED) {
        if (MUTANT(EXCLUDE_ALL)) {
            close_all_of(m, e->connection);
        }
        world_closed(w, e->connection);
    } else if (e->kind == MASTER_FRAME) {
        world_frame(w, e->connection, e->header, e->payload);
    } else {
        world_misunderstood(w, e->connection);
    }
    registry_rest(m, w);
}

static void on_stranger(struct master *m, const struct master_event *e)
{
    if (e->kind == MASTER_CLOSED) {
        common_gone(&m->common, e->connection);
    } else if (e->kind == MASTER_FRAME) {
        stranger_frame(m, e);
    } else {
        stranger_foreign(m, e->connection, e->number);
    }
    stranger_tick(m);
}

static void on_connection(struct master *m, const struct master_event *e)
{
    PCCL_ASSERT(e->connection < m->common.config.max_connections);
    if (e->connection >= m->common.conn_room) { /* refused for want of memory */
        return;
    }
    switch ((enum conn_state)m->common.conns[e->connection].state) {
    case CONN_FREE: /* closed by us in the meantime */
        break;
    case CONN_OPEN:
        on_stranger(m, e);
        break;
    case CONN_MEMBER:
        on_member(m, e);
        break;
    }
}

static void on_tick(struct master *m)
{
    struct world *w = registry_due(m, m->common.now);
    if (m->common.now >= m->stranger_due) {
        stranger_tick(m);
    }
    if (w != NULL) {
        pause_spare(m, w);
        world_tick(w);
        registry_rest(m, w);
    }
}

static void master_event_take(struct master *m, const struct master_event *e)
{
    struct world *w = registry_at(m, common_world_of(e->number));
    switch (e->kind) {
    case MASTER_OPENED:
        PCCL_ASSERT(e->connection < m->common.config.max_connections);
        stranger_opened(m, e);
        stranger_tick(m);
        break;
    case MASTER_CLOSED:
    case MASTER_FRAME:
    case MASTER_FOREIGN:
        on_connection(m, e);
        break;
    case MASTER_TICK:
        on_tick(m);
        break;
    case MASTER_PERSISTED:
    case MASTER_SOLVED:
        if (w == NULL) { /* it has ended meanwhile */
            break;
        }
        if (e->kind == MASTER_PERSISTED) {
            world_persisted(w, e->number);
        } else {
            world_solved(w, e);
        }
        registry_rest(m, w);
        break;
    }
}

static void master_run(struct master *m, const struct master_event *e)
{
    if (m->deadline != NEVER && m->common.now > m->deadline) {
        pause_noticed(m, m->common.now - m->deadline);
    }
    master_event_take(m, e);
    derived_settle(m);
    m->deadline = master_deadline(m);
    PCCL_ASSERT(!m->common.out->overflow);
    master_check(m);
}

static void master_poison(struct master *m, const struct check_pad *pad, struct outbox *out)
{
    m->poisoned = true;
    m->failed_what = pad->what;
    m->failed_where = pad->where;
    outbox_reset(out);
    for (uint32_t i = 0; i < m->common.conn_room; i++) {
        if (m->common.conns[i].state != CONN_FREE) {
            common_close(&m->common, i);
        }
    }
}

void master_step(struct master *m, int64_t now, const struct master_event *event, struct outbox *out)
{
    if (m->poisoned) {
        return;
    }
    m->common.now = now;
    m->common.out = out;
    struct check_pad pad = {.outer = check_current};
    if (setjmp(pad.env) == 0) {
        check_current = &pad;
        master_run(m, event);
        check_current = pad.outer;
    } else {
        master_poison(m, &pad, out); /* check_fail has put the outer pad back */
    }
    m->common.out = NULL;
}

int64_t master_deadline(const struct master *m)
{
    if (m->poisoned) {
        return NEVER;
    }
    int64_t due = heap_least(&m->due);
    return due < m->stranger_due ? due : m->stranger_due;
}

bool master_poisoned(const struct master *m)
{
    return m->poisoned;
}

const char *master_failure(const struct master *m, const char **where)
{
    *where = m->failed_where;
    return m->failed_what;
}
