/* member_out.c - how a member is put out: told why if it can still hear, its loss noted where it counts.
 *
 * Its one idea: nothing follows from a loss here; it is noted at the group, the admission and the vote, and world_settle
 * sees to the rest (M1).  Invariant: who is out has no connection and waits in no vote.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "world/world_state.h"
#include "world/formation.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"
#include "wire/address.h"

/* Among the members of its view, by (key, id) as programs count; -1: it is none of them. */
static int64_t rank_of(struct world *w, struct group *g, const struct member *mb)
{
    const struct view_record *v = view_current(g);
    int64_t rank = 0;
    bool listed = false;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *other = member_find(w, v->ids[i]);
        if (other == NULL) {
            return -1;
        }
        rank += other->info.key < mb->info.key || (other->info.key == mb->info.key && other->id < mb->id);
        listed = listed || other == mb;
    }
    return listed ? rank : -1;
}

void member_who(struct world *w, const struct member *mb, char *out)
{
    member_text(mb->id, rank_of(w, member_group(w, mb), mb), &mb->info.address[0], out);
}

/* Notes the loss of an accepted member in its group; the graver story is kept: a loss before a mere suspicion. */
static void group_lose(struct world *w, struct group *g, const struct member *mb, enum cause cause, const char *text)
{
    bool told = g->lost || (view_ending(g) && (g->cause == CAUSE_PEER_LOST || g->cause == CAUSE_PEER_LEFT ||
                                                          g->cause == CAUSE_PEER_SILENT || g->cause > CAUSE_BLOCKED));
    g->lost = true;
    if (!told) { /* M8: cause and culprit are part of the decision */
        g->cause = (uint8_t)cause;
        g->culprit = mb->id;
        char who[MEMBER_TEXT];
        member_who(w, mb, who);
        snprintf(g->text, sizeof g->text, "%s, group %u: %s", who, g->label, text);
    }
    if (MUTANT(NOSHRINK) && mb->vote.kind == VOTE_NONE) {
        for (uint32_t i = 0; i < w->member_room; i++) {
            w->ghost = w->ghost || w->members[i].vote.kind != VOTE_NONE;
        }
    }
}

/* `why` is static: it goes to traces; `text` is copied: it goes to the log, to the others and to the excluded one. */
void member_exclude_told(struct world *w, struct member *mb, enum cause cause, const char *why, const char *text)
{
    struct group *g = member_group(w, mb);
    bool accepted = mb->phase == MEMBER_ACCEPTED;
    if ((mb->phase != MEMBER_PENDING && !accepted) || formation_loses(w, mb, cause, text)) {
        return;
    }
    if (accepted) {
        group_lose(w, g, mb, cause, text);
        w->optimise.lost = true;
    }
    if (w->admit.phase == ADMIT_LINKING && (accepted || mb->joining)) {
        w->admit.again = true; /* M10: a new attempt, without FREEZE */
    }
    formation_gone(w, mb, cause);
    snprintf(mb->gone_text, sizeof mb->gone_text, "%s", text);
    roll_out(w, mb);
    mb->vote.kind = VOTE_NONE; /* M6: a vote loses only the voters that leave */
    mb->role = 0;
    roll_in(w, mb);
    roll_move(w, mb, MEMBER_GONE, view_current(g)->view, why);
    if (mb->conn != SLOT_NONE) {
        if (!member_went(cause)) {
            common_fence(w->common, mb->conn, w->run, view_current(g)->view, cause, text);
        }
        common_close(w->common, mb->conn);
        mb->conn = SLOT_NONE;
    }
}

void member_exclude(struct world *w, struct member *mb, enum cause cause, const char *text)
{
    member_exclude_told(w, mb, cause, text, text);
}

void member_violation(struct world *w, struct member *mb, const char *what)
{
    member_exclude(w, mb, CAUSE_KICK_PROTOCOL, what);
}
