/* registry.c - the worlds of a master: by name, by run id, by number.
 *
 * A name that nobody has used begins a world under a run id of its own; a named world ends with its last member, and its
 * name is free again.  Its one idea: a world is found once, when a connection registers; from then on the connection knows.
 * Of worlds of a given size one name may stand for several: one that is forming, others that were formed or given up (W2);
 * which of them a call is for: the one that knows it (W4), else the oldest that has to tell it (W7).
 * Invariant: no two worlds that are not over have a run id in common; the default world has the first place.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/mix.h"
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

struct world *registry_named(const struct master *m, const char *name)
{
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        if (!world_sized(w) && strcmp(world_name(w), name) == 0) {
            return w;
        }
    }
    return NULL;
}

struct world *registry_forming(const struct master *m, const char *name)
{
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        if (world_forming(w) && strcmp(world_name(w), name) == 0) {
            return w;
        }
    }
    return NULL;
}

struct world *registry_claimed(const struct master *m, const struct msg_register *reg)
{
    struct world *owing = NULL;
    int64_t oldest = NEVER;
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        if (strcmp(world_name(w), reg->world) != 0) {
            continue;
        }
        if (world_knows(w, &reg->claim)) {
            return w;
        }
        int64_t until = world_owes(w, &reg->claim);
        if (until < oldest) {
            oldest = until;
            owing = w;
        }
    }
    return owing;
}

struct world *registry_run(const struct master *m, uint64_t run)
{
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        if (world_run(w) == run) {
            return w;
        }
    }
    return NULL;
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
    uint32_t most = m->common.config.max_worlds, place = named ? MASTER_DEFAULT + 1 : MASTER_DEFAULT;
    while (place < m->place_count && m->places[place].world != NULL) {
        place++;
    }
    if (m->spare == NULL || place >= most || (claim != NULL && !world_seats(m->spare, claim->size))) {
        return NULL;
    }
    struct world *w = m->spare;
    uint64_t run = named ? run_draw(m) : m->common.config.run;
    m->spare = NULL;
    m->place_count = place < m->place_count ? m->place_count : place + 1;
    m->places[place] = (struct place){.world = w, .due = NEVER};
    world_begin(w, place, run, name, claim);
    return w;
}

static void end(struct master *m, struct world *w)
{
    struct place *p = &m->places[world_slot(w)];
    world_end(w);
    p->over = true;
    m->ended++;
    p->due = NEVER;
}

/* What is only remembered takes a quarter of the places at most: else one name that fails again and again takes all. */
static void forget_oldest(struct master *m)
{
    uint32_t count = 0;
    struct world *oldest = NULL;
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        count += world_tombstone(w) != NEVER;
        bool older = oldest == NULL || world_tombstone(w) < world_tombstone(oldest);
        oldest = world_tombstone(w) != NEVER && older ? w : oldest;
    }
    if (count > m->common.config.max_worlds / 4) {
        end(m, oldest);
    }
}

void registry_rest(struct master *m, struct world *w)
{
    struct place *p = &m->places[world_slot(w)];
    world_settle(w);
    if (world_slot(w) != MASTER_DEFAULT && world_empty(w)) {
        end(m, w);
        return;
    }
    if (world_tombstone(w) != NEVER) {
        forget_oldest(m);
    }
    if (p->over) {
        return;
    }
    p->due = world_deadline(w);
    world_check(w);
}

struct world *registry_due(const struct master *m, int64_t now)
{
    struct world *first = NULL;
    int64_t least = NEVER;
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        int64_t due = m->places[world_slot(w)].due;
        if (due <= now && due < least) {
            first = w;
            least = due;
        }
    }
    return first;
}
