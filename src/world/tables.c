/* tables.c - the memory of a world: one table for its members and groups, and one for each group's views and reports.
 *
 * Its one idea: a step never allocates, so the shell asks before each event, which says by itself what may come with it: a
 * newcomer a place, a report its operations.  What a table holds moves along; what it lacks when there was no memory, the
 * step meets as no room.  Invariant: a table never shrinks, and never exceeds the limits of the configuration.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/bitset.h"
#include "core/layout.h"
#include "core/rows.h"
#include "world/world_state.h"
#include "world/breaks.h"
#include "world/member_read.h"
#include "world/report.h"
#include "world/roll.h"

enum { FIRST_MEMBERS = 4, FIRST_RECORDS = 16 };

/* ---- where everything lies ----------------------------------------------------------------------------------------- */

/* Rows of an index, at most half of them in use. */
static uint32_t index_size(uint32_t entries)
{
    return rows_for(16, 2 * entries);
}

static size_t lay_out_world(struct layout *l, const struct world_size *s, struct world *w)
{
    size_t n = s->probed;
    (void)layout_take(l, 1, sizeof *w);
    w->members = layout_take(l, s->members, sizeof *w->members);
    w->by_id_size = index_size(s->members);
    w->by_id = layout_take(l, w->by_id_size, sizeof *w->by_id);
    w->due_storage = layout_take(l, 1, heap_bytes(s->members));
    w->free_set = layout_take(l, bitset_words(s->members), sizeof *w->free_set);
    w->due_set = layout_take(l, bitset_words(s->members), sizeof *w->due_set);
    w->form.seats = layout_take(l, s->seats, sizeof *w->form.seats);
    w->form.claimed = layout_take(l, formation_claimed_bytes(s->seats), sizeof *w->form.claimed);
    w->groups = layout_take(l, s->groups, sizeof *w->groups);
    w->absent.room = absent_room(s->probed);
    w->bandwidth.capacity = n > 0 ? BANDWIDTH_CAPACITY(n + w->absent.room) : 0;
    w->bandwidth.entries = layout_take(l, w->bandwidth.capacity, sizeof *w->bandwidth.entries);
    w->absent.entries = layout_take(l, w->absent.room, sizeof *w->absent.entries);
    w->optimise.slots = layout_take(l, n, sizeof *w->optimise.slots);
    w->optimise.probe_places = layout_take(l, n, sizeof *w->optimise.probe_places);
    w->optimise.probe_present = layout_take(l, bitset_words((uint32_t)n), sizeof *w->optimise.probe_present);
    w->optimise.probe_words = layout_take(l, probe_order_words((uint32_t)n), sizeof *w->optimise.probe_words);
    return l->used;
}

static size_t lay_out_group(struct layout *l, const struct common *c, const struct group_size *s, struct group *g)
{
    size_t n = s->members, edges = common_edges(&c->config, s->members);
    size_t decisions = s->records < common_decisions(&c->config) ? s->records : common_decisions(&c->config);
    for (int i = 0; i < 2; i++) {
        struct view_record *v = &g->views[i];
        v->ids = layout_take(l, n, sizeof *v->ids);
        v->gone = layout_take(l, n, sizeof *v->gone);
        v->edge = layout_take(l, edges, sizeof *v->edge);
        v->decision = layout_take(l, decisions, sizeof *v->decision);
        v->ring = layout_take(l, n, sizeof *v->ring);
        v->trees.parent = layout_take(l, BOUNDS_TREES * (n < BOUNDS_TREE_MEMBERS ? n : BOUNDS_TREE_MEMBERS), sizeof *v->trees.parent);
        v->fresh = layout_take(l, n, sizeof *v->fresh);
        v->linked = layout_take(l, edges, sizeof *v->linked);
    }
    g->records = layout_take(l, s->records, sizeof *g->records);
    g->breaks = layout_take(l, s->breaks, sizeof *g->breaks);
    g->break_index_size = index_size(s->breaks);
    g->break_index = layout_take(l, g->break_index_size, sizeof *g->break_index);
    g->break_storage = layout_take(l, 1, heap_bytes(s->breaks));
    g->index_size = index_size(s->records);
    g->record_index = layout_take(l, g->index_size, sizeof *g->record_index);
    g->solution = layout_take(l, n, sizeof *g->solution);
    return l->used;
}

/* ---- what there is too little of ----------------------------------------------------------------------------------- */

static struct world_size size_of(const struct world *w)
{
    return (struct world_size){
        .members = w->member_room, .groups = w->group_room, .probed = w->probe_room, .seats = w->seat_room};
}

static void want_world(const struct world_size *s, struct master_want *out)
{
    struct layout l = {0};
    struct world scratch;
    out->table = 0;
    out->size.own = *s;
    out->bytes = lay_out_world(&l, s, &scratch);
}

static void want_group(const struct common *c, uint32_t slot, const struct group_size *s, struct master_want *out)
{
    struct layout l = {0};
    struct group scratch;
    out->table = slot + 1;
    out->size.group = *s;
    out->bytes = lay_out_group(&l, c, s, &scratch);
}

/* The group of a newcomer: the one of that label, else the first that is free; group_room: there is none yet. */
static uint32_t group_slot(const struct world *w, uint32_t label)
{
    uint32_t free = w->group_room;
    for (uint32_t i = w->group_room; i > 0; i--) {
        const struct group *g = &w->groups[i - 1];
        if (g->phase != GROUP_FREE && g->label == label) {
            return i - 1;
        }
        free = g->phase == GROUP_FREE ? i - 1 : free;
    }
    return free;
}

static struct world_size world_wants(const struct world *w, const struct world_need *need)
{
    const struct master_config *cfg = &w->common->config;
    struct world_size s = size_of(w);
    if (need->newcomer) {
        s.members = layout_doubled(s.members, FIRST_MEMBERS, member_used(w) + 1, cfg->max_members);
        s.groups = layout_doubled(s.groups, 1, group_slot(w, need->label) + 1, cfg->max_groups);
    }
    s.seats = need->seats > s.seats ? need->seats : s.seats;
    if (need->measures) {
        uint32_t most = cfg->max_members < BOUNDS_RING ? cfg->max_members : BOUNDS_RING;
        s.probed = layout_doubled(s.probed, FIRST_MEMBERS, member_count(w, NULL, MEMBER_ACCEPTED), most);
    }
    return s;
}

static struct group_size group_wants(const struct world *w, const struct group *g, const struct world_need *need)
{
    const struct master_config *cfg = &w->common->config;
    struct group_size s = g->size;
    bool here = need->newcomer && group_slot(w, need->label) == (uint32_t)(g - w->groups);
    if (here) {
        uint32_t members = g->phase == GROUP_FREE ? 0 : member_count(w, g, MEMBER_PENDING) + member_count(w, g, MEMBER_ACCEPTED);
        s.members = layout_doubled(s.members, FIRST_MEMBERS, members + 1, cfg->max_members);
        s.breaks = layout_doubled(s.breaks, FIRST_MEMBERS, 1, cfg->max_members); /* there is always one that can make room */
    }
    if (need->complaints && g->phase != GROUP_FREE) {
        uint32_t most = g->break_count + g->views[g->current].members;
        s.breaks = layout_doubled(s.breaks, FIRST_MEMBERS, most < cfg->max_members ? most : cfg->max_members, cfg->max_members);
    }
    const struct member *reporter = need->reports > 0 ? &w->members[need->reporter] : NULL;
    if (reporter != NULL && (need->leaves ? report_last_counts(w, g, reporter, need->view)
                                          : report_counts(w, g, reporter, need->view, need->attempt))) {
        uint32_t most = g->record_count + need->reports;
        most = most < cfg->max_operations ? most : cfg->max_operations;
        s.records = layout_doubled(s.records, FIRST_RECORDS, most, cfg->max_operations);
    }
    return s;
}

bool world_growth(const struct world *w, const struct world_need *need, struct master_want *out)
{
    struct world_size own = world_wants(w, need), have = size_of(w);
    out->world = w->slot;
    if (own.members != have.members || own.groups != have.groups || own.probed != have.probed ||
        own.seats != have.seats) {
        want_world(&own, out);
        return true;
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group_size *g = &w->groups[i].size;
        struct group_size s = group_wants(w, &w->groups[i], need);
        if (s.members != g->members || s.breaks != g->breaks || s.records != g->records) {
            want_group(w->common, i, &s, out);
            return true;
        }
    }
    return false;
}

/* ---- moving into larger tables ------------------------------------------------------------------------------------- */

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
}

static void move_view(struct view_record *to, const struct view_record *from)
{
    copy(to->ids, from->ids, from->members * sizeof *to->ids);
    copy(to->fresh, from->fresh, from->members * sizeof *to->fresh);
    copy(to->ring, from->ring, from->members * sizeof *to->ring);
    copy(to->trees.parent, from->trees.parent, (size_t)from->trees.count * from->trees.members * sizeof *to->trees.parent);
    copy(to->gone, from->gone, from->removed * sizeof *to->gone);
    copy(to->edge, from->edge, from->edges * sizeof *to->edge);
    copy(to->linked, from->linked, from->edges * sizeof *to->linked);
    copy(to->decision, from->decision, from->decisions * sizeof *to->decision);
}

static void *move_group(struct world *w, struct group *g, const struct group_size *s, void *memory)
{
    struct group old = *g;
    struct layout l = {.base = memory};
    (void)lay_out_group(&l, w->common, s, g);
    for (int i = 0; i < 2; i++) {
        move_view(&g->views[i], &old.views[i]);
    }
    copy(g->breaks, old.breaks, old.break_count * sizeof *g->breaks);
    copy(g->solution, old.solution, old.size.members * sizeof *g->solution);
    copy(g->records, old.records, old.record_count * sizeof *g->records);
    report_index(w, g);
    g->size = *s;
    g->memory = memory;
    breaks_rebuild(w, g);
    return old.memory;
}

static void move_rates(struct bandwidth *to, const struct bandwidth *from)
{
    bandwidth_init(to, to->entries, to->capacity);
    for (size_t i = 0; i < from->capacity; i++) {
        const struct bandwidth_entry *e = &from->entries[i];
        if (e->from != e->to) {
            (void)bandwidth_keep(to, e); /* a larger table has room for what this one had */
        }
    }
}

/* The order of probes goes on in the new storage. */
static void move_probes(struct optimise *to, const struct optimise *from)
{
    uint32_t n = from->order.n;
    copy(to->slots, from->slots, n * sizeof *to->slots);
    probe_order_move(&to->order, &from->order, to->probe_words, to->probe_places);
}

static struct world *move_world(struct world *old, const struct world_size *s, void *memory)
{
    struct layout l = {.base = memory};
    struct world *w = memory;
    *w = *old;
    (void)lay_out_world(&l, s, w);
    memset(w->members, 0, s->members * sizeof *w->members);
    memset(w->groups, 0, s->groups * sizeof *w->groups);
    copy(w->members, old->members, old->member_room * sizeof *w->members);
    copy(w->groups, old->groups, old->group_room * sizeof *w->groups);
    copy(w->form.seats, old->form.seats, old->seat_room * sizeof *w->form.seats);
    copy(w->form.claimed, old->form.claimed, formation_claimed_bytes(old->seat_room));
    for (uint32_t i = old->group_room; i < s->groups; i++) {
        w->groups[i].collect_until = NEVER;
    }
    move_rates(&w->bandwidth, &old->bandwidth);
    copy(w->absent.entries, old->absent.entries, old->absent.count * sizeof *w->absent.entries);
    move_probes(&w->optimise, &old->optimise);
    w->member_room = s->members;
    w->group_room = s->groups;
    w->probe_room = s->probed;
    w->seat_room = s->seats;
    roll_rebuild(w);
    return w;
}

void *world_grow(struct world *w, const struct master_want *want, void *memory, struct world **moved)
{
    *moved = w;
    if (want->table > 0) {
        return move_group(w, &w->groups[want->table - 1], &want->size.group, memory);
    }
    *moved = move_world(w, &want->size.own, memory);
    return w;
}

void *world_strip(struct world *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        void *memory = w->groups[i].memory;
        if (memory != NULL) {
            w->groups[i].memory = NULL;
            return memory;
        }
    }
    return w;
}

size_t world_bytes(const struct world *w)
{
    struct master_want want;
    struct world_size own = size_of(w);
    want_world(&own, &want);
    size_t bytes = want.bytes;
    for (uint32_t i = 0; i < w->group_room; i++) {
        want_group(w->common, i, &w->groups[i].size, &want);
        bytes += w->groups[i].memory != NULL ? want.bytes : 0;
    }
    return bytes;
}

/* ---- the first table ----------------------------------------------------------------------------------------------- */

void world_first(const struct common *c, struct master_want *out)
{
    uint32_t members = c->config.max_members < FIRST_MEMBERS ? c->config.max_members : FIRST_MEMBERS;
    out->world = SLOT_NONE;
    want_world(&(struct world_size){.members = members, .groups = 1}, out);
}

struct world *world_init(struct common *c, const struct master_want *first, void *memory)
{
    struct world none = {.common = c, .slot = SLOT_NONE};
    none.admit.deadline = none.optimise.deadline = NEVER;
    return move_world(&none, &first->size.own, memory);
}
