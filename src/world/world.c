/* world.c - entry of the master: arena, dispatch of events, deadlines, what others may read.
 *
 * An event is noted by the part it belongs to; then master_settle lets every part look at the whole state until nothing
 * changes any more.  Invariant: between steps the state is settled: nothing that could go on without a further event is
 * left undone.
 * SPDX-License-Identifier: MIT */
#include "world/master.h"

#include <math.h>
#include <string.h>

#include "world/world_state.h"
#include "topology/tour.h"

/* ---- arena --------------------------------------------------------------------------------------------------------- */

struct arena {
    unsigned char *base; /* null: only counting */
    size_t used;
};

static void *arena_take(struct arena *a, size_t count, size_t size)
{
    size_t at = a->used;
    a->used += (count * size + 63) & ~(size_t)63;
    return a->base == NULL ? NULL : a->base + at;
}

static bool config_valid(const struct master_config *c)
{
    return c->run != 0 && c->epoch != 0 && c->max_connections > 0 && c->max_connections <= 65536 &&
           c->max_members > 0 && c->max_members <= MASTER_MEMBERS_MAX && c->max_groups > 0 &&
           c->max_groups <= MASTER_MEMBERS_MAX && c->max_operations > 0 &&
           c->max_operations <= MASTER_OPERATIONS_MAX && c->max_edges > 0 && c->max_edges <= BOUNDS_EDGES &&
           c->heartbeat_ns > 0 && c->dead_ns > c->heartbeat_ns &&
           c->reconnect_ns >= 0 && c->register_ns > 0 && c->admit_ns > 0 && c->collect_ns >= 0 && c->probe_ns > 0;
}

static uint32_t edges_capacity(const struct master_config *c)
{
    uint32_t all = bounds_edges(c->max_members);
    return all < c->max_edges ? all : c->max_edges;
}

static uint32_t index_size(const struct master_config *c)
{
    uint32_t size = 16;
    while (size < 2 * c->max_operations) {
        size *= 2;
    }
    return size;
}

static void lay_out_group(struct arena *a, const struct master_config *c, struct group *g)
{
    size_t n = c->max_members;
    for (int i = 0; i < 2; i++) {
        struct view_record *v = &g->views[i];
        v->ids = arena_take(a, n, sizeof *v->ids);
        v->fresh = arena_take(a, n, sizeof *v->fresh);
        v->gone = arena_take(a, n, sizeof *v->gone);
        v->ring = arena_take(a, n, sizeof *v->ring);
        v->edge = arena_take(a, edges_capacity(c), sizeof *v->edge);
        v->linked = arena_take(a, edges_capacity(c), sizeof *v->linked);
        v->decision = arena_take(a, master_decisions(c), sizeof *v->decision);
    }
    g->records = arena_take(a, c->max_operations, sizeof *g->records);
    g->index_size = index_size(c);
    g->record_index = arena_take(a, g->index_size, sizeof *g->record_index);
    g->breaks = arena_take(a, n, sizeof *g->breaks);
    g->solution = arena_take(a, n, sizeof *g->solution);
}

/* Where everything lies; `m` may be a scratch one when only the size is asked for. */
static size_t lay_out(struct arena *a, const struct master_config *c, struct master *m)
{
    size_t n = c->max_members;
    (void)arena_take(a, 1, sizeof *m);
    m->conns = arena_take(a, c->max_connections, sizeof *m->conns);
    m->members = arena_take(a, n, sizeof *m->members);
    m->groups = arena_take(a, c->max_groups, sizeof *m->groups);
    struct group none = {0};
    for (uint32_t i = 0; i < c->max_groups; i++) {
        lay_out_group(a, c, a->base == NULL ? &none : &m->groups[i]);
    }
    m->bandwidth.capacity = BANDWIDTH_CAPACITY(n);
    m->bandwidth.entries = arena_take(a, m->bandwidth.capacity, sizeof *m->bandwidth.entries);
    m->optimise.slots = arena_take(a, n, sizeof *m->optimise.slots);
    m->optimise.storage = arena_take(a, PROBE_ROUNDS_ROOM(n), sizeof *m->optimise.storage);
    m->optimise.edges = arena_take(a, n * n, sizeof *m->optimise.edges);
    m->scratch_cost = arena_take(a, n * n, sizeof *m->scratch_cost);
    m->scratch_path = arena_take(a, n * n, sizeof *m->scratch_path);
    m->scratch_rates = arena_take(a, 3 * n, sizeof *m->scratch_rates);
    m->scratch_order = arena_take(a, n, sizeof *m->scratch_order);
    m->scratch_search = arena_take(a, 16 * n, sizeof *m->scratch_search);
    m->scratch_ids = arena_take(a, 2 * n, sizeof *m->scratch_ids);
    return a->used;
}

size_t master_arena_bytes(const struct master_config *config)
{
    struct arena a = {0};
    struct master scratch;
    memset(&scratch, 0, sizeof scratch);
    return config_valid(config) ? lay_out(&a, config, &scratch) : 0;
}

struct master *master_init(const struct master_config *config, void *arena)
{
    struct arena a = {.base = arena};
    struct master *m = arena;
    memset(m, 0, sizeof *m);
    m->conns = NULL;
    /* Only what is read before it is written has to be zero: the large tables are left untouched. */
    struct arena head = {.base = arena};
    (void)arena_take(&head, 1, sizeof *m);
    (void)arena_take(&head, config->max_connections, sizeof *m->conns);
    (void)arena_take(&head, config->max_members, sizeof *m->members);
    (void)arena_take(&head, config->max_groups, sizeof *m->groups);
    memset(arena, 0, head.used);
    (void)lay_out(&a, config, m);
    m->config = *config;
    m->edge_capacity = edges_capacity(config);
    bandwidth_init(&m->bandwidth, m->bandwidth.entries, m->bandwidth.capacity);
    m->next_id = (uint64_t)config->epoch << 32 | 1;
    m->view_floor = (uint64_t)config->epoch << 32 | 1;
    m->next_persist = 1;
    m->next_solve = 1;
    m->due = NEVER;
    m->spared_at = INT64_MIN / 2;
    m->admit.deadline = NEVER;
    m->optimise.deadline = NEVER;
    for (uint32_t i = 0; i < config->max_groups; i++) {
        m->groups[i].collect_until = NEVER;
    }
    return m;
}

void master_out_bounds(const struct master_config *c, uint32_t *actions, uint32_t *bytes, uint32_t *dests)
{
    enum { INFO_BYTES = 11 + BOUNDS_ADDRESSES * 19, FRAME = FRAME_HEADER_BYTES + 512, EDGE = 24, ROUNDS = 4 };
    uint64_t n = c->max_members, groups = c->max_groups < n ? c->max_groups : n;
    uint64_t pairs = n * (n - 1) / 2 + groups, edges = groups * (uint64_t)edges_capacity(c);
    /* Lists over a group go out in a few versions, to sets that do not meet, and groups do not meet either: ids and edges of all
     * groups are bounded by those of one that holds everybody. A step settles a few times over at most. */
    uint64_t elected = 8 * n * n, views = 2 * EDGE * (edges < pairs ? edges : pairs);
    uint64_t round = groups * 8 * FRAME + n * (INFO_BYTES + 64) * 4 + n * FRAME * 4 + 64 * (uint64_t)master_decisions(c);
    uint64_t total = elected + views + ROUNDS * round;
    *actions = (uint32_t)(64 + c->max_connections + ROUNDS * 24 * (n + groups));
    *bytes = total > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)total;
    *dests = (uint32_t)(64 + c->max_connections + ROUNDS * 8 * n);
}

/* ---- frames -------------------------------------------------------------------------------------------------------- */

static void take_vote(struct master *m, struct member *mb, const struct frame_header *h, struct reader *r)
{
    struct msg_vote v;
    if (!get_vote(r, &v) || mb->phase != MEMBER_ACCEPTED) {
        member_violation(m, mb->conn, "a vote that cannot be");
        return;
    }
    vote_take(m, mb, &v, h->view);
}

static void take_suspect(struct master *m, struct member *mb, struct reader *r)
{
    struct msg_suspect s;
    if (!get_suspect(r, &s)) {
        member_violation(m, mb->conn, "a suspicion that cannot be read");
    } else if (mb->phase == MEMBER_ACCEPTED) {
        suspect_report(m, mb, &s);
    }
}

static void take_staged(struct master *m, struct member *mb, struct reader *r)
{
    struct msg_staged s;
    if (!get_staged(r, &s) || mb->phase != MEMBER_ACCEPTED || !election_known(m, mb, &s)) {
        member_violation(m, mb->conn, "a staged that cannot be");
        return;
    }
    election_staged(m, mb, &s);
}

static void take_measured(struct master *m, struct member *mb, struct reader *r)
{
    struct msg_measured ms;
    if (!get_measured(r, &ms) || mb->phase != MEMBER_ACCEPTED) {
        member_violation(m, mb->conn, "a measurement that cannot be");
        return;
    }
    optimise_measured(m, mb, &ms);
}

static void take_heartbeat(struct master *m, struct member *mb, const struct frame_header *h, struct reader *r)
{
    struct msg_heartbeat hb;
    if (!get_heartbeat(r, &hb)) {
        member_violation(m, mb->conn, "a heartbeat that cannot be read");
        return;
    }
    member_heartbeat(m, mb, &hb, h->view);
}

/* A frame of a registered peer. */
static void take_frame(struct master *m, struct member *mb, const struct frame_header *h, struct reader *r)
{
    switch (h->type) {
    case FRAME_HEARTBEAT:
        take_heartbeat(m, mb, h, r);
        break;
    case FRAME_SUSPECT:
        take_suspect(m, mb, r);
        break;
    case FRAME_FROZEN:
        view_frozen(m, mb, r);
        break;
    case FRAME_VOTE:
        take_vote(m, mb, h, r);
        break;
    case FRAME_LINKED:
        admit_linked(m, mb, h->view, r);
        break;
    case FRAME_LEAVE:
        member_exclude_told(m, mb, CAUSE_PEER_LEFT, "left", "it left the run");
        break;
    case FRAME_STAGED:
        take_staged(m, mb, r);
        break;
    case FRAME_MEASURED:
        take_measured(m, mb, r);
        break;
    default: /* the type is a number from outside, not one of ours */
        member_violation(m, mb->conn, "a message that no peer sends to the master now");
        break;
    }
}

static void on_frame(struct master *m, const struct master_event *e)
{
    struct conn *c = &m->conns[e->connection];
    if (c->state == CONN_FREE) {
        return; /* closed by us in the meantime */
    }
    const struct frame_header *h = e->header;
    struct reader r;
    reader_init(&r, e->payload, h->length);
    if (c->state == CONN_OPEN) {
        if (h->type == FRAME_REGISTER) {
            member_register(m, e->connection, h, &r);
        } else {
            member_violation(m, e->connection, "not registered");
        }
        return;
    }
    struct member *mb = &m->members[c->member];
    mb->heard_at = m->now;
    if (h->run != 0 && h->run != m->config.run) {
        member_violation(m, e->connection, "a frame of another run");
        return;
    }
    take_frame(m, mb, h, &r);
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

static void on_opened(struct master *m, const struct master_event *e)
{
    struct conn *c = &m->conns[e->connection];
    PCCL_ASSERT(c->state == CONN_FREE);
    *c = (struct conn){.state = CONN_OPEN, .member = SLOT_NONE, .opened = m->now, .seen = e->address};
}

static void on_tick(struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_connections; i++) {
        if (m->conns[i].state == CONN_OPEN && m->now - m->conns[i].opened >= m->config.register_ns) {
            member_close(m, i);
        }
    }
    member_tick(m);
    view_tick(m);
    suspect_tick(m);
    admit_tick(m);
    optimise_tick(m);
}

static void master_settle(struct master *m)
{
    uint32_t left = 64 + 8 * (m->config.max_members + m->config.max_groups);
    do {
        PCCL_ASSERT(left-- > 0);
        m->changed = false;
        for (uint32_t i = 0; i < m->config.max_groups; i++) {
            view_settle(m, &m->groups[i]);
        }
        admit_settle(m);
        vote_settle(m);
        for (uint32_t i = 0; i < m->config.max_groups; i++) {
            election_settle(m, &m->groups[i]);
        }
        optimise_settle(m);
    } while (m->changed);
    member_sweep(m);
}

static void master_event_take(struct master *m, const struct master_event *e)
{
    switch (e->kind) {
    case MASTER_OPENED:
        PCCL_ASSERT(e->connection < m->config.max_connections);
        on_opened(m, e);
        break;
    case MASTER_CLOSED:
        PCCL_ASSERT(e->connection < m->config.max_connections);
        member_closed(m, e->connection);
        break;
    case MASTER_FRAME:
        PCCL_ASSERT(e->connection < m->config.max_connections);
        on_frame(m, e);
        break;
    case MASTER_FOREIGN:
        PCCL_ASSERT(e->connection < m->config.max_connections);
        member_foreign(m, e->connection, e->number);
        break;
    case MASTER_TICK:
        break;
    case MASTER_PERSISTED:
        view_persisted(m, e->number);
        admit_persisted(m, e->number);
        election_persisted(m, e->number);
        optimise_persisted(m, e->number);
        break;
    case MASTER_SOLVED:
        optimise_solved(m, e);
        break;
    }
}

static void restart_timers(struct master *m)
{
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        m->members[i].heard_at = m->now;
        m->members[i].lost_at = m->now;
    }
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        m->groups[i].report_by = m->now + m->config.dead_ns;
    }
}

static void master_run(struct master *m, const struct master_event *e)
{
    if (m->due != NEVER && m->now - m->due > MASTER_PAUSE_NS) {
        restart_timers(m); /* M7: it was the master that stood still */
    }
    master_event_take(m, e);
    if (e->kind == MASTER_TICK) {
        on_tick(m);
    }
    master_settle(m);
    m->due = master_deadline(m);
    PCCL_ASSERT(!m->out->overflow);
    master_check(m);
}

static void master_poison(struct master *m, const struct check_pad *pad, struct outbox *out)
{
    m->poisoned = true;
    m->failed_what = pad->what;
    m->failed_where = pad->where;
    outbox_reset(out);
    for (uint32_t i = 0; i < m->config.max_connections; i++) {
        if (m->conns[i].state != CONN_FREE) {
            struct action *a = outbox_add(out, MASTER_CLOSE);
            a->slot = i;
            m->conns[i].state = CONN_FREE;
        }
    }
}

void master_step(struct master *m, int64_t now, const struct master_event *event, struct outbox *out)
{
    if (m->poisoned) {
        return;
    }
    m->now = now;
    m->out = out;
    struct check_pad pad = {.outer = check_current};
    if (setjmp(pad.env) == 0) {
        check_current = &pad;
        master_run(m, event);
        check_current = pad.outer;
    } else {
        master_poison(m, &pad, out); /* check_fail has put the outer pad back */
    }
    m->out = NULL;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t master_deadline(const struct master *m)
{
    if (m->poisoned) {
        return NEVER;
    }
    int64_t due = sooner(m->admit.deadline, m->optimise.deadline);
    for (uint32_t i = 0; i < m->config.max_connections; i++) {
        if (m->conns[i].state == CONN_OPEN) {
            due = sooner(due, m->conns[i].opened + m->config.register_ns);
        }
    }
    due = sooner(due, member_deadline(m));
    due = sooner(due, view_deadline(m));
    due = sooner(due, election_deadline(m));
    return sooner(due, suspect_deadline(m));
}

/* ---- what others read ---------------------------------------------------------------------------------------------- */

bool master_poisoned(const struct master *m)
{
    return m->poisoned;
}

const char *master_failure(const struct master *m, const char **where)
{
    *where = m->failed_where;
    return m->failed_what;
}

uint32_t master_matrix(const struct master *m, uint32_t group, double *cost, uint32_t *current_ring, uint32_t capacity)
{
    if (group >= m->config.max_groups || m->groups[group].phase == GROUP_FREE) {
        return 0;
    }
    const struct group *g = &m->groups[group];
    const struct view_record *v = &g->views[g->current];
    if (v->members > capacity) {
        return 0;
    }
    uint32_t n = ring_costs(m, v, m->scratch_cost);
    for (uint32_t i = 0; i < n * n; i++) {
        uint64_t c = m->scratch_cost[i];
        cost[i] = c >= TOUR_FORBIDDEN ? (double)INFINITY : (double)c * 1e9 / (double)TOUR_FORBIDDEN;
    }
    memcpy(current_ring, v->ring, n * sizeof *current_ring);
    return n;
}

uint32_t master_group_count(const struct master *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        count += m->groups[i].phase != GROUP_FREE;
    }
    return count;
}

void master_group_get(const struct master *m, uint32_t index, struct master_group_view *out, uint64_t *ids,
                      uint32_t capacity)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < m->config.max_groups; i++) {
        const struct group *g = &m->groups[i];
        if (g->phase == GROUP_FREE || index-- != 0) {
            continue;
        }
        const struct view_record *v = &g->views[g->current];
        out->group = g->label;
        out->view = v->view;
        out->freezing = view_ending(g);
        out->members = v->members;
        out->revision = g->revision;
        memcpy(ids, v->ids, (v->members < capacity ? v->members : capacity) * sizeof *ids);
        return;
    }
}

uint32_t master_pending_count(const struct master *m)
{
    return member_count(m, NULL, MEMBER_PENDING);
}

uint64_t master_known_view(const struct master *m, uint64_t id)
{
    const struct member *mb = member_find(m, id);
    return mb != NULL && mb->phase == MEMBER_ACCEPTED ? mb->known_view : 0;
}
