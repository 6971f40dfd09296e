/* ending.c - how a world ends while there are members in it: with its first loss, if that is its rule, or revoked by one of them.
 *
 * Its one idea: an end is a view like any other, which decides what was under way and says that nothing follows it (W14).
 * Invariant: the world is over when every group that has members has had such a view; then nothing is decided any more.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "wire/address.h"
#include "world/world_state.h"
#include "world/ending.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/view_read.h"

bool ending_begun(const struct world *w)
{
    return w->form.phase == FORM_OVER || w->form.revoked != 0;
}

bool ending_with(const struct world *w, const struct view_record *next)
{
    bool lost = w->form.phase == FORM_FORMED && w->form.loss == LOSS_END && next->removed > 0 && !MUTANT(OVER_NOT);
    return lost || w->form.revoked != 0;
}

bool ending_wants(const struct world *w, struct group *g)
{
    const struct view_record *v = view_current(g);
    bool alone = MUTANT(REVOKE_GROUP) && !view_has(v, w->form.revoked);
    return w->form.revoked != 0 && v->members > 0 && !v->over && !alone;
}

void ending_blame(const struct world *w, struct group *g)
{
    if (w->form.revoked != 0) { /* M8: whatever else is lost on the way */
        g->cause = CAUSE_REVOKED;
        g->culprit = w->form.revoked;
        snprintf(g->text, sizeof g->text, "%s", w->form.text);
    }
}

void ending_published(struct world *w)
{
    bool begun = w->form.phase == FORM_FORMED || w->form.phase == FORM_ELASTIC;
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        begun = begun && (g->phase == GROUP_FREE || view_current(g)->members == 0 || view_current(g)->over);
    }
    if (begun) {
        world_move(w, PHASE_FORMATION, &w->form.phase, FORM_OVER, 0, 0,
                   w->form.revoked != 0 ? "a member has revoked it" : "it has lost a member, and ends with that");
    }
}

/* The first who does it: a member, or one whose first view is on its way to the journal. */
void ending_revoke(struct world *w, struct member *mb)
{
    bool deciding = w->admit.phase == ADMIT_PERSISTING && mb->phase == MEMBER_PENDING && mb->joining;
    if ((mb->phase == MEMBER_ACCEPTED || deciding) && !ending_begun(w) && !MUTANT(REVOKE_NOT)) {
        char who[MEMBER_TEXT];
        member_who(w, mb, who);
        w->form.revoked = mb->id;
        snprintf(w->form.text, sizeof w->form.text, "%s, group %u: it revoked the world", who, member_group(w, mb)->label);
        for (uint32_t i = 0; i < w->group_room; i++) {
            ending_blame(w, &w->groups[i]);
        }
    }
    member_exclude_told(w, mb, CAUSE_REVOKED, "revoked its world", "it revoked the world");
}

static bool anybody(const struct world *w)
{
    bool found = member_count(w, NULL, MEMBER_ACCEPTED) > 0;
    for (uint32_t i = 0; i < w->group_room && !found; i++) {
        struct group *g = &w->groups[i];
        found = g->phase != GROUP_FREE && (g->phase != GROUP_NORMAL || view_current(g)->members > 0);
    }
    return found || w->admit.phase == ADMIT_PERSISTING;
}

/* A world without a given size goes on with those who wait at its door, and as if nobody had ever been in it. */
void ending_settle(struct world *w)
{
    if (w->form.revoked == 0 || world_sized(w) || anybody(w)) {
        return;
    }
    w->form.revoked = 0;
    if (w->form.phase == FORM_OVER) {
        world_move(w, PHASE_FORMATION, &w->form.phase, FORM_ELASTIC, 0, 0, "all who were in it are gone");
    }
}
