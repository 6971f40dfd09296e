/* parent.c - a world whose members create others together: who of them is expected, and can come no more (W11).
 *
 * Its one idea: whoever has claimed is the new world's; of the others this world knows when they are lost.
 * Invariant: a formation that stands here and that has not failed expects members only, beside those who have come.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/bitset.h"
#include "core/id.h"
#include "world/world_state.h"
#include "world/parent.h"
#include "world/roll.h"

struct siblings *world_derives(const struct world *w, const uint64_t formation[2])
{
    struct siblings *s = w->derived;
    while (s != NULL && (s->formation[0] != formation[0] || s->formation[1] != formation[1])) {
        s = s->next;
    }
    return s;
}

bool world_member(const struct world *w, uint64_t id)
{
    const struct member *mb = member_find(w, id);
    return mb != NULL && mb->phase == MEMBER_ACCEPTED;
}

/* W11: whoever is expected and has left before it has claimed. */
static void look(struct world *w, struct siblings *s)
{
    char text[BOUNDS_TEXT];
    for (uint32_t i = 0; i < s->callers && s->cause == CAUSE_NONE && s->came < s->callers; i++) {
        if (!bitset_has(s->came_set, i) && !world_member(w, s->ids[i])) {
            snprintf(text, sizeof text, "peer " ID_FORMAT " has left the world whose members create it, and has not come",
                     ID_PARTS(s->ids[i]));
            siblings_fail(w->common, s, CAUSE_PEER_LOST, s->ids[i], text);
        }
    }
}

void world_adds(struct world *w, struct siblings *s)
{
    s->next = w->derived;
    w->derived = s;
    if (!MUTANT(PARENT_LATE)) {
        look(w, s);
    }
}

void world_forgets(struct world *w, struct siblings *s)
{
    struct siblings **at = &w->derived;
    while (*at != NULL && *at != s) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = s->next;
    }
}

struct siblings *world_drop_remembered(struct world *w)
{
    for (struct siblings **at = &w->derived; *at != NULL; at = &(*at)->next) {
        struct siblings *s = *at;
        if (s->worlds == 0) {
            *at = s->next;
            return s;
        }
    }
    return NULL;
}

void parent_look(struct world *w)
{
    if (w->losses == w->losses_seen) {
        return;
    }
    w->losses_seen = w->losses;
    for (struct siblings *s = w->derived; s != NULL && !MUTANT(PARENT_NOT); s = s->next) {
        look(w, s);
        if (s->worlds == 0) {
            siblings_touch(w->common, s); /* kept for callers who can come no more, perhaps */
        }
    }
}

void parent_ends(struct world *w)
{
    for (struct siblings *s = w->derived; s != NULL && !MUTANT(PARENT_NOT); s = s->next) {
        if (s->came < s->callers) {
            siblings_fail(w->common, s, CAUSE_PEER_LOST, 0, "the world whose members create it has ended, and not all have come");
        }
        if (s->worlds == 0) {
            siblings_touch(w->common, s);
        }
    }
    w->derived = NULL;
}
