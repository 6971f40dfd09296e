/* view_read.c - the views of a group, asked without changing anything.
 *
 * Its one idea: a group has two views, the published one and the one that is being decided; which is which is one index.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/member_read.h"
#include "world/view_read.h"

struct view_record *view_current(struct group *g)
{
    return &g->views[g->current];
}

struct view_record *view_next(struct group *g)
{
    return &g->views[1 - g->current];
}

uint32_t view_place(const struct view_record *v, uint64_t id)
{
    uint32_t low = 0, high = v->members;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        if (v->ids[at] < id) {
            low = at + 1;
        } else {
            high = at;
        }
    }
    return low < v->members && v->ids[low] == id ? low : SLOT_NONE;
}

bool view_has(const struct view_record *v, uint64_t id)
{
    return view_place(v, id) != SLOT_NONE;
}

struct sizes view_sizes(struct world *w, const struct group *g, bool joining)
{
    struct sizes s = {0};
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].counted = 0;
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_ACCEPTED || (joining && mb->phase == MEMBER_PENDING && mb->joining)) {
            struct group *own = member_group(w, mb);
            s.global++;
            s.groups += own->counted++ == 0;
            s.largest = own->counted > s.largest ? own->counted : s.largest;
        }
    }
    s.group = g->counted;
    return s;
}

bool view_known_to_all(const struct world *w, const struct group *g)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && mb->known_view != g->views[g->current].view && !MUTANT(KNOWN_UNASKED)) {
            return false;
        }
    }
    return true;
}

bool view_ending(const struct group *g)
{
    return g->phase == GROUP_FREEZING || g->phase == GROUP_LINKING;
}

uint64_t view_next_revision(const struct group *g)
{
    return (g->revision > g->sync.revision ? g->revision : g->sync.revision) + 1;
}
