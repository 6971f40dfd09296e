/* roll.c - the roll of a world: its members counted, found by id, and due by time.
 *
 * Its one idea: with each message something is asked of all members, and answered without a look at each of them.  Whatever
 * is counted of a member changes between roll_out and roll_in alone, which take its share out of the tallies of its group
 * and of the world, and put it in again.
 * Invariant: tallies, index, times and free slots are what a walk over all members would find (roll_check).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/bitset.h"
#include "core/mix.h"
#include "core/rows.h"
#include "world/world_state.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/roll.h"

static uint32_t slot_of(const struct world *w, const struct member *mb)
{
    return (uint32_t)(mb - w->members);
}

/* ---- tallies ------------------------------------------------------------------------------------------------------- */

/* `by` is 1, or -1 in the arithmetic of uint32_t. */
static void share(struct tally *t, const struct member *mb, uint32_t by)
{
    const struct open_vote *v = &mb->vote;
    t->phase[mb->phase] += by;
    if (mb->phase != MEMBER_ACCEPTED) {
        return;
    }
    bool first = v->kind == VOTE_UPDATE && v->msg.first;
    bool waits = mb->role == SYNC_RECEIVER && !mb->staged;
    t->voters[v->kind] += by;
    t->firsts += first ? by : 0;
    t->passed += first && v->msg.passed ? by : 0;
    t->holders += mb->role == SYNC_HOLDER ? by : 0;
    t->staged += mb->role == SYNC_RECEIVER && mb->staged ? by : 0;
    t->waiting += waits ? by : 0;
    t->told += waits && mb->told ? by : 0;
    t->untold += mb->role != 0 && !mb->told ? by : 0;
}

void roll_out(struct world *w, const struct member *mb)
{
    if (mb->phase != MEMBER_FREE) {
        share(&w->tally, mb, UINT32_MAX);
        share(&w->groups[mb->group].tally, mb, UINT32_MAX);
    }
}

/* Whether the vote of others still needs it. */
static bool is_missing(const struct member *mb, enum vote_kind kind)
{
    bool in = kind == VOTE_QUERY ? mb->vote.kind != VOTE_NONE : mb->vote.kind == kind;
    return mb->phase == MEMBER_ACCEPTED && !in;
}

void roll_in(struct world *w, const struct member *mb)
{
    uint32_t slot = slot_of(w, mb);
    struct group *g = &w->groups[mb->group];
    if (mb->phase == MEMBER_FREE) {
        return;
    }
    share(&w->tally, mb, 1);
    share(&g->tally, mb, 1);
    for (enum vote_kind kind = VOTE_UPDATE; kind < VOTE_SYNC; kind++) {
        w->missing[kind] = is_missing(mb, kind) && slot < w->missing[kind] ? slot : w->missing[kind];
    }
    g->missing = is_missing(mb, VOTE_SYNC) && slot < g->missing ? slot : g->missing;
}

/* What was looked through is not looked through again until somebody below becomes missing. */
uint64_t roll_missing(struct world *w, struct group *g, enum vote_kind kind)
{
    uint32_t *at = g != NULL ? &g->missing : &w->missing[kind];
    for (; *at < w->member_room; ++*at) {
        const struct member *mb = &w->members[*at];
        if (is_missing(mb, kind) && (g == NULL || member_group(w, mb) == g)) {
            return mb->id;
        }
    }
    return 0;
}

/* ---- by id --------------------------------------------------------------------------------------------------------- */

static uint32_t home_of(const struct world *w, uint64_t id)
{
    return (uint32_t)mix64(w->common->config.seed, id) & (w->by_id_size - 1);
}

/* Where the id is, or would go. */
static uint32_t place_of(const struct world *w, uint64_t id)
{
    uint32_t at = home_of(w, id);
    while (w->by_id[at] != 0 && w->members[w->by_id[at] - 1].id != id) {
        at = (at + 1) & (w->by_id_size - 1);
    }
    return at;
}

struct member *member_find(const struct world *w, uint64_t id)
{
    uint32_t at = place_of(w, id);
    struct member *mb = w->by_id[at] != 0 ? &w->members[w->by_id[at] - 1] : NULL;
    return mb != NULL && member_registered(mb) ? mb : NULL;
}

static uint32_t member_home(const void *of, uint32_t slot)
{
    const struct world *w = of;
    return home_of(w, w->members[slot].id);
}

static void forget_id(struct world *w, uint64_t id)
{
    rows_close(w->by_id, w->by_id_size, place_of(w, id), member_home, w);
}

/* ---- by time ------------------------------------------------------------------------------------------------------- */

int64_t roll_resume_by(const struct world *w, const struct member *mb)
{
    const struct master_config *cfg = &w->common->config;
    int64_t by = mb->lost_at + cfg->reconnect_ns;
    if (mb->link_lost_at == 0 || mb->lost_at - mb->link_lost_at > cfg->reconnect_ns) {
        return by;
    }
    int64_t redial = (mb->link_lost_at > mb->lost_at ? mb->link_lost_at : mb->lost_at) + cfg->redial_ns;
    return redial < by ? redial : by;
}

/* When it is to be excluded, or told that the master lives. */
static int64_t due_of(const struct world *w, const struct member *mb)
{
    int64_t dead = mb->heard_at + member_dead_ns(w, mb);
    int64_t next = mb->conn == SLOT_NONE ? roll_resume_by(w, mb) : mb->beat_at;
    return !member_registered(mb) ? NEVER : next < dead ? next : dead;
}

void roll_due(struct world *w, const struct member *mb)
{
    heap_set(&w->due, slot_of(w, mb), due_of(w, mb));
}

void roll_mark_due(struct world *w)
{
    while (heap_least(&w->due) <= w->common->now) {
        uint32_t slot = heap_first(&w->due);
        bitset_add(w->due_set, slot);
        heap_set(&w->due, slot, NEVER);
    }
}

bool world_silent(struct world *w)
{
    bool silent = false;
    roll_mark_due(w);
    for (uint32_t i = bitset_next(w->due_set, w->member_room, 0); i < w->member_room;
         i = bitset_next(w->due_set, w->member_room, i + 1)) {
        silent = silent || member_silent(w, &w->members[i]);
    }
    return silent;
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

struct member *roll_free(struct world *w)
{
    uint32_t slot = bitset_next(w->free_set, w->member_room, 0);
    return slot < w->member_room ? &w->members[slot] : NULL;
}

void roll_move(struct world *w, struct member *mb, enum member_phase to, uint64_t view, const char *why)
{
    roll_out(w, mb);
    if (mb->phase == MEMBER_FREE) {
        w->by_id[place_of(w, mb->id)] = slot_of(w, mb) + 1;
        bitset_remove(w->free_set, slot_of(w, mb));
    } else if (to == MEMBER_FREE) {
        forget_id(w, mb->id);
        bitset_add(w->free_set, slot_of(w, mb));
    }
    w->losses += to == MEMBER_GONE;
    world_move(w, PHASE_MEMBER, &mb->phase, to, mb->id, view, why);
    roll_in(w, mb);
    roll_due(w, mb);
}

void roll_rebuild(struct world *w)
{
    memset(w->by_id, 0, w->by_id_size * sizeof *w->by_id);
    bitset_clear(w->free_set, w->member_room);
    bitset_clear(w->due_set, w->member_room);
    heap_use(&w->due, w->due_storage, w->member_room);
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (w->members[i].phase == MEMBER_FREE) {
            bitset_add(w->free_set, i);
        } else {
            w->by_id[place_of(w, w->members[i].id)] = i + 1;
        }
    }
}

/* ---- checked ------------------------------------------------------------------------------------------------------- */

static void check_tally(const struct world *w, const struct tally *have, const struct group *g)
{
    struct tally t = {0};
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb->phase != MEMBER_FREE && (g == NULL || member_group(w, mb) == g)) {
            share(&t, mb, 1);
        }
    }
    PCCL_ASSERT(memcmp(&t, have, sizeof t) == 0);
}

void roll_check(const struct world *w)
{
    check_tally(w, &w->tally, NULL);
    for (uint32_t i = 0; i < w->group_room; i++) {
        if (w->groups[i].phase != GROUP_FREE) {
            check_tally(w, &w->groups[i].tally, &w->groups[i]);
        }
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        PCCL_ASSERT(bitset_has(w->free_set, i) == (mb->phase == MEMBER_FREE) && !bitset_has(w->due_set, i));
        PCCL_ASSERT(w->due.key[i] == due_of(w, mb));
        PCCL_ASSERT(mb->phase == MEMBER_FREE || w->by_id[place_of(w, mb->id)] == i + 1);
        for (enum vote_kind kind = VOTE_UPDATE; kind < VOTE_SYNC; kind++) {
            PCCL_ASSERT(!is_missing(mb, kind) || i >= w->missing[kind]);
        }
        PCCL_ASSERT(!is_missing(mb, VOTE_SYNC) || i >= w->groups[mb->group].missing);
    }
    PCCL_ASSERT(heap_sound(&w->due));
}
