/* keys.c - who joins a world of a given size later, and under which rank (W13).
 *
 * Its one idea: a key is looked at when links are to be made for the view that answers an update, one joiner after the other: it
 * is free if nobody of that view has it.  A world without members refuses its joiners: nobody would ever admit them.
 * Invariant: no two members of a view have the same key.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/bitset.h"
#include "world/world_state.h"
#include "world/ending.h"
#include "world/keys.h"
#include "world/member_out.h"
#include "world/member_read.h"

bool world_joinable(const struct world *w)
{
    return w->form.phase == FORM_FORMED && !ending_begun(w) && member_count(w, NULL, MEMBER_ACCEPTED) > 0;
}

enum cause world_bars(const struct world *w, const struct claim *c, char out[BOUNDS_TEXT])
{
    if (w->form.loss == LOSS_END) {
        snprintf(out, BOUNDS_TEXT, "that world ends with its first loss, so none of its ranks is ever free");
        return CAUSE_KICK_TAKEN;
    }
    if (c->size != w->form.size) {
        snprintf(out, BOUNDS_TEXT, "that world was created with %u ranks, not with %u", w->form.size, c->size);
        return CAUSE_KICK_TAKEN;
    }
    return CAUSE_NONE;
}

/* Keys of the next view: its members' and those of the joiners before. */
struct keys {
    uint64_t *taken; /* set, in the scratch memory of all worlds */
    uint32_t lowest; /* those below are taken */
};

static void take_members(const struct world *w, struct keys *k)
{
    bitset_clear(k->taken, w->form.size);
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_ACCEPTED) {
            bitset_add(k->taken, mb->info.key);
        }
    }
}

static uint32_t lowest_free(const struct world *w, struct keys *k)
{
    while (k->lowest < w->form.size && bitset_has(k->taken, k->lowest)) {
        k->lowest++;
    }
    return k->lowest;
}

static void give_key(struct world *w, struct keys *k, struct member *mb)
{
    char text[BOUNDS_TEXT];
    uint32_t key = mb->wish == CLAIM_ANY_RANK ? lowest_free(w, k) : mb->wish;
    if (key == w->form.size) {
        member_exclude(w, mb, CAUSE_KICK_FULL, "none of the world's ranks is free");
    } else if (bitset_has(k->taken, key)) {
        snprintf(text, sizeof text, "rank %u of the world has not become free", key);
        member_exclude_told(w, mb, CAUSE_KICK_TAKEN, "its rank is not free", text);
    } else {
        mb->info.key = key;
        if (!MUTANT(KEY_OLD)) {
            bitset_add(k->taken, key);
        }
    }
}

/* The pending one that came first behind this id; null: none. */
static struct member *joiner_after(const struct world *w, uint64_t id)
{
    struct member *next = NULL;
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_PENDING && mb->id > id && (next == NULL || mb->id < next->id)) {
            next = mb;
        }
    }
    return next;
}

void keys_give(struct world *w)
{
    if (w->form.phase != FORM_FORMED) {
        return; /* of those who create it each has its own */
    }
    keys_settle(w);
    struct keys keys = {.taken = w->common->scratch_ids};
    take_members(w, &keys);
    for (struct member *mb = joiner_after(w, 0); mb != NULL; mb = joiner_after(w, mb->id)) {
        give_key(w, &keys, mb);
    }
}

void keys_settle(struct world *w)
{
    bool begun = w->form.phase == FORM_FORMED || w->form.phase == FORM_OVER;
    bool empty = member_count(w, NULL, MEMBER_ACCEPTED) == 0 || ending_begun(w);
    if (!world_sized(w) || !begun || !empty || w->admit.phase == ADMIT_PERSISTING || MUTANT(JOIN_WAITS)) {
        return;
    }
    for (struct member *mb = joiner_after(w, 0); mb != NULL; mb = joiner_after(w, mb->id)) {
        member_exclude(w, mb, CAUSE_KICK_NO_WORLD, "nobody is left in that world");
    }
}

void keys_take(struct world *w)
{
    for (uint32_t i = 0; world_sized(w) && i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_PENDING && mb->joining) {
            w->form.seats[mb->info.key].holder = mb->id; /* of the one before nobody is told any more: all have linked, so all have its view */
        }
    }
}
