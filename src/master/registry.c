/* registry.c - the worlds of a master: by name, by run id, by number.
 *
 * A name that nobody has used begins a world under a run id of its own; a named world ends with its last member, and its
 * name is free again.  Its one idea: a world is found once, when a connection registers; from then on the connection knows.
 * Of worlds of a given size one name may stand for several: one that is forming, others that were formed or given up (W2);
 * which of them a call is for: the one that knows it (W4), else the oldest that has to tell it (W7).
 * Invariant: no two worlds that are not over have a run id in common; the default world has the first place.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/bitset.h"
#include "core/layout.h"
#include "core/mix.h"
#include "core/mutant.h"
#include "core/rows.h"
#include "master/master_state.h"

struct world *registry_at(const struct master *m, uint32_t place)
{
    return place < m->place_count && !m->places[place].over ? m->places[place].world : NULL;
}

struct world *registry_after(const struct master *m, const struct world *w)
{
    struct world *next = NULL;
    for (uint32_t i = w == NULL ? 0 : world_slot(w) + 1; next == NULL && i < m->place_count; i++) {
        next = registry_at(m, i);
    }
    return next;
}

/* ---- rows: worlds by name, by run ---------------------------------------------------------------------------------- */

static uint32_t *name_row(const struct master *m, const char *name)
{
    return &m->by_name[mix_text(m->common.config.seed, name) & (m->row_count - 1)];
}

static uint32_t *run_row(const struct master *m, uint64_t run)
{
    return &m->by_run[mix64(m->common.config.seed, run) & (m->row_count - 1)];
}

static void rows_add(struct master *m, uint32_t place)
{
    struct place *p = &m->places[place];
    uint32_t *name = name_row(m, world_name(p->world)), *run = run_row(m, world_run(p->world));
    p->name_next = *name;
    p->run_next = *run;
    *name = *run = place + 1;
}

static void rows_remove(struct master *m, uint32_t place)
{
    struct place *p = &m->places[place];
    uint32_t *name = name_row(m, world_name(p->world)), *run = run_row(m, world_run(p->world));
    while (*name != place + 1) {
        name = &m->places[*name - 1].name_next;
    }
    while (*run != place + 1) {
        run = &m->places[*run - 1].run_next;
    }
    *name = p->name_next;
    *run = p->run_next;
}

/* The next world in the row of this name from *at on, a place + 1, which moves behind it; null at the end. */
static struct world *name_next(const struct master *m, const char *name, uint32_t *at)
{
    while (*at != 0) {
        const struct place *p = &m->places[*at - 1];
        *at = p->name_next;
        if (strcmp(world_name(p->world), name) == 0) {
            return p->world;
        }
    }
    return NULL;
}

static uint32_t row_of(const struct master *m, const char *name)
{
    return m->place_room == 0 ? 0 : *name_row(m, name);
}

struct world *registry_named(const struct master *m, const char *name)
{
    uint32_t at = row_of(m, name);
    struct world *w = name_next(m, name, &at);
    while (w != NULL && world_sized(w)) {
        w = name_next(m, name, &at);
    }
    return w;
}

struct world *registry_forming(const struct master *m, const char *name)
{
    uint32_t at = row_of(m, name);
    struct world *w = name_next(m, name, &at);
    while (w != NULL && !world_forming(w) && !(MUTANT(REUSE_FORMED) && world_joinable(w))) { /* W2 */
        w = name_next(m, name, &at);
    }
    return w;
}

struct world *registry_newest(const struct master *m, const char *name)
{
    struct world *newest = NULL;
    uint32_t at = row_of(m, name);
    for (struct world *w = name_next(m, name, &at); w != NULL; w = name_next(m, name, &at)) {
        bool newer = newest == NULL || m->places[world_slot(w)].born > m->places[world_slot(newest)].born;
        newest = newer && world_joinable(w) ? w : newest;
    }
    return newest;
}

struct world *registry_claimed(const struct master *m, const struct msg_register *reg)
{
    struct world *owing = NULL;
    int64_t oldest = NEVER;
    uint32_t at = row_of(m, reg->world);
    for (struct world *w; (w = name_next(m, reg->world, &at)) != NULL;) {
        if (world_knows(w, &reg->claim)) {
            return w;
        }
        int64_t until = world_owes(w, &reg->claim);
        if (until < oldest || (until == oldest && owing != NULL && world_slot(w) < world_slot(owing))) {
            oldest = until;
            owing = w;
        }
    }
    return owing;
}

struct world *registry_run(const struct master *m, uint64_t run)
{
    for (uint32_t at = m->place_room == 0 ? 0 : *run_row(m, run); at != 0; at = m->places[at - 1].run_next) {
        if (world_run(m->places[at - 1].world) == run) {
            return m->places[at - 1].world;
        }
    }
    return NULL;
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

static size_t lay_out(struct layout *l, uint32_t places, struct master *m)
{
    m->row_count = rows_for(16, places);
    m->places = layout_take(l, places, sizeof *m->places);
    m->by_name = layout_take(l, m->row_count, sizeof *m->by_name);
    m->by_run = layout_take(l, m->row_count, sizeof *m->by_run);
    m->place_free = layout_take(l, bitset_words(places), sizeof *m->place_free);
    m->due_storage = layout_take(l, 1, heap_bytes(places));
    m->tomb_storage = layout_take(l, 1, heap_bytes(places));
    return l->used;
}

size_t registry_bytes(const struct master *m, uint32_t places)
{
    struct layout l = {0};
    struct master scratch = {.row_count = m->row_count};
    return lay_out(&l, places, &scratch);
}

void registry_use(struct master *m, void *memory, uint32_t places)
{
    struct layout l = {.base = memory};
    const struct place *old = m->places;
    uint32_t had = m->place_room;
    (void)lay_out(&l, places, m);
    memset(m->places, 0, places * sizeof *m->places);
    memset(m->by_name, 0, m->row_count * sizeof *m->by_name);
    memset(m->by_run, 0, m->row_count * sizeof *m->by_run);
    bitset_clear(m->place_free, places);
    if (had > 0) {
        memcpy(m->places, old, had * sizeof *old);
    }
    for (uint32_t i = 0; i < places; i++) {
        if (m->places[i].world == NULL) {
            bitset_add(m->place_free, i);
        } else if (!m->places[i].over) {
            rows_add(m, i);
        }
    }
    heap_use(&m->due, m->due_storage, places);
    heap_use(&m->tombs, m->tomb_storage, places);
    m->place_room = places;
    m->place_memory = memory;
}

/* Where a world of this name would begin; place_room or more: nowhere. */
static uint32_t place_for(const struct master *m, const char *name)
{
    return bitset_next(m->place_free, m->place_room, name[0] != 0 ? MASTER_DEFAULT + 1 : MASTER_DEFAULT);
}

bool registry_has_place(const struct master *m, const char *name)
{
    return place_for(m, name) < m->place_room;
}

void registry_forget(struct master *m, uint32_t place)
{
    m->places[place] = (struct place){0};
    bitset_add(m->place_free, place);
    while (m->place_count > 0 && m->places[m->place_count - 1].world == NULL) {
        m->place_count--;
    }
}

void registry_due_again(struct master *m, const struct world *w)
{
    heap_set(&m->due, world_slot(w), world_deadline(w));
}

/* No world of this master has had it; of one before, hardly. */
static uint64_t run_draw(struct master *m)
{
    const struct master_config *cfg = &m->common.config;
    uint64_t run;
    do {
        run = mix64(mix64(cfg->seed, cfg->run), ++m->worlds_begun) | 1; /* 0 means "not known" on the wire */
    } while (run == cfg->run || registry_run(m, run) != NULL);
    return run;
}

struct world *registry_begin(struct master *m, const char *name, const struct claim *claim)
{
    bool named = name[0] != 0;
    uint32_t place = place_for(m, name);
    if (m->spare == NULL || place >= m->place_room || (claim != NULL && !world_seats(m->spare, claim->size))) {
        return NULL;
    }
    struct world *w = m->spare;
    uint64_t run = named ? run_draw(m) : m->common.config.run;
    m->spare = NULL;
    m->place_count = place < m->place_count ? m->place_count : place + 1;
    m->places[place] = (struct place){.world = w, .born = m->worlds_begun};
    bitset_remove(m->place_free, place);
    world_begin(w, place, run, name, claim);
    rows_add(m, place);
    return w;
}

bool registry_used(const struct master *m, const char *name)
{
    return m->used.count > 0 && used_has(&m->used, mix_text(m->common.config.seed, name));
}

static void note_once(struct master *m, struct place *p, bool once)
{
    m->onces += (uint32_t)once - (uint32_t)p->once;
    p->once = once;
}

static void end(struct master *m, struct world *w)
{
    uint32_t place = world_slot(w);
    struct place *p = &m->places[place];
    world_end(w);
    rows_remove(m, place);
    heap_set(&m->due, place, NEVER);
    heap_set(&m->tombs, place, NEVER);
    note_once(m, p, false);
    p->over = true;
    p->over_next = m->ended;
    m->ended = place + 1;
}

void registry_rest(struct master *m, struct world *w)
{
    world_settle(w);
    if (world_uses_name(w)) {
        used_note(&m->used, mix_text(m->common.config.seed, world_name(w)));
    }
    note_once(m, &m->places[world_slot(w)], world_once(w));
    if (world_slot(w) != MASTER_DEFAULT && world_empty(w)) {
        end(m, w);
        return;
    }
    /* What is only remembered takes a quarter of the places at most: else one name that fails again and again takes all. */
    heap_set(&m->tombs, world_slot(w), world_tombstone(w));
    uint32_t most = m->common.config.max_worlds / 4;
    if (m->tombs.used > (most < BOUNDS_TOMBSTONES ? most : BOUNDS_TOMBSTONES)) {
        struct world *oldest = m->places[heap_first(&m->tombs)].world;
        end(m, oldest);
        if (oldest == w) {
            return;
        }
    }
    registry_due_again(m, w);
    world_check(w);
}

struct world *registry_due(const struct master *m, int64_t now)
{
    return heap_least(&m->due) <= now && m->due.used > 0 ? m->places[heap_first(&m->due)].world : NULL;
}

void registry_check(const struct master *m)
{
    uint32_t over = 0, rows = 0, worlds = 0, onces = 0;
    for (uint32_t at = m->ended; at != 0; at = m->places[at - 1].over_next) {
        PCCL_ASSERT(m->places[at - 1].over && at - 1 != MASTER_DEFAULT); /* the default world never ends */
        over++;
    }
    for (uint32_t i = 0; i < m->row_count && m->place_room > 0; i++) {
        for (uint32_t at = m->by_run[i]; at != 0; at = m->places[at - 1].run_next) {
            rows++;
        }
    }
    for (uint32_t i = 0; i < m->place_room; i++) {
        const struct place *p = &m->places[i];
        over -= p->over;
        worlds += p->world != NULL && !p->over;
        onces += p->world != NULL && !p->over && world_once(p->world);
        PCCL_ASSERT(m->due.key[i] == NEVER || registry_at(m, i) != NULL);
        PCCL_ASSERT(p->world == NULL || i < m->place_count);
        PCCL_ASSERT(bitset_has(m->place_free, i) == (p->world == NULL));
        PCCL_ASSERT(p->world == NULL || world_slot(p->world) == i);
        PCCL_ASSERT(p->world == NULL || (world_run(p->world) == m->common.config.run) == (i == MASTER_DEFAULT));
        PCCL_ASSERT(p->world == NULL || p->over || registry_run(m, world_run(p->world)) == p->world);
    }
    PCCL_ASSERT(over == 0 && rows == worlds && onces == m->onces && heap_sound(&m->due) && heap_sound(&m->tombs));
}
