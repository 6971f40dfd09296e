/* vote.c - unanimous rounds, the master's way to agree on rare things.
 *
 * Update, optimise, sync and query all ask "has every member of this scope asked?".  A vote belongs to its member, not to a view:
 * it outlives freezes and loses only the voters that leave (M6), so a death may complete a round but never hang one.
 * Invariant: a number once answered is never counted again; the last answer is kept for replay (M9).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "world/world_state.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"
#include "world/vote.h"

const char *vote_name(enum vote_kind kind)
{
    switch (kind) {
    case VOTE_UPDATE:
        return "an update";
    case VOTE_QUERY:
        return "a query";
    case VOTE_OPTIMISE:
        return "an optimisation";
    case VOTE_SYNC:
        return "a synchronisation";
    case VOTE_NONE:
        break;
    }
    return "nothing";
}

void vote_take(struct world *w, struct member *mb, const struct msg_vote *v, uint64_t header_view)
{
    uint64_t view = view_current(member_group(w, mb))->view;
    if (v->number < mb->answered && !MUTANT(NOREQNO)) {
        return; /* M9: answered already; the answer was, or will be, replayed */
    }
    if (v->number > mb->answered || (mb->vote.kind != VOTE_NONE && mb->vote.kind != v->kind)) {
        member_violation(w, mb, "a vote out of turn");
        return;
    }
    if (mb->answer.view == view || header_view == view || MUTANT(KNOWN_BY_VOTE)) {
        mb->known_view = view; /* who asks again has had its last answer, and what was sent before it */
    }
    roll_out(w, mb);
    if (mb->vote.kind == VOTE_NONE) { /* a repeated one changes nothing */
        mb->vote = (struct open_vote){.kind = v->kind, .since = w->common->now, .msg = *v};
        mb->vote.msg.passed = 0;
        w->changed = true;
    }
    if (v->passed && header_view == view && !mb->vote.msg.passed) {
        mb->vote.msg.passed = 1; /* said later, or again after a resume */
        w->changed = true;
    }
    roll_in(w, mb);
}

bool vote_all_in(const struct world *w, const struct group *g, enum vote_kind kind)
{
    const struct tally *t = g != NULL ? &g->tally : &w->tally;
    if (MUTANT(VOTE_ALL) && w->common->registered > w->tally.phase[MEMBER_ACCEPTED] + w->tally.phase[MEMBER_PENDING]) { /* W1 */
        return false;
    }
    return t->voters[kind] > 0 && t->voters[kind] == t->phase[MEMBER_ACCEPTED] && !w->ghost;
}

uint64_t vote_waits_for(struct world *w, const struct member *mb)
{
    bool pending = mb->phase == MEMBER_PENDING; /* for the next update of all */
    if (pending && w->form.siblings != NULL) {  /* for somebody of another world */
        return siblings_missing(w->form.siblings);
    }
    uint8_t kind = pending ? VOTE_UPDATE : mb->vote.kind;
    return kind == VOTE_NONE ? 0 : roll_missing(w, kind == VOTE_SYNC ? member_group(w, mb) : NULL, kind);
}

static bool group_quiet(const struct group *g)
{
    return g->phase == GROUP_FREE || (g->phase == GROUP_NORMAL && !g->suspect && !g->lost);
}

bool vote_quiet(const struct world *w, const struct group *g)
{
    bool quiet = w->admit.phase == ADMIT_IDLE && (g == NULL || group_quiet(g));
    for (uint32_t i = 0; quiet && g == NULL && i < w->group_room; i++) {
        quiet = group_quiet(&w->groups[i]);
    }
    return quiet;
}

void vote_replay(struct world *w, struct member *mb)
{
    put_answer(outbox_frame(w->common->out, FRAME_ANSWER, w->run, mb->answer.view), &mb->answer);
    outbox_send(w->common->out, MASTER_SEND, mb->conn);
}

static void vote_close(struct world *w, struct member *mb, const struct msg_answer *answer, bool by_view)
{
    mb->answer = *answer;
    mb->answer.number = mb->answered++;
    mb->answer.kind = mb->vote.kind;
    mb->answer_by_view = by_view;
    roll_out(w, mb);
    mb->vote.kind = VOTE_NONE;
    roll_in(w, mb);
    mb->distrusted = MUTANT(DISTRUST_KEPT) && mb->distrusted;
    w->changed = true;
}

void vote_answer(struct world *w, struct member *mb, enum answer_result result, uint64_t value,
                 const struct sizes *sizes, const char *text)
{
    struct msg_answer a = {.result = (uint8_t)result, .value = value, .sizes = *sizes};
    a.view = view_current(member_group(w, mb))->view;
    a.round = mb->vote.kind == VOTE_SYNC ? member_group(w, mb)->sync.round : 0;
    snprintf(a.text, sizeof a.text, "%s", text);
    vote_close(w, mb, &a, false);
    if (mb->conn != SLOT_NONE) {
        vote_replay(w, mb);
    }
}

void vote_answered_by_view(struct world *w, struct member *mb, const struct view_record *v)
{
    struct msg_answer a = {.result = ANSWER_OK, .view = v->view, .sizes = v->sizes};
    vote_close(w, mb, &a, true);
}

/* ---- a newcomer's first update ------------------------------------------------------------------------------------- */

/* The others go on without an update: they launch, or wait in a vote that needs this member.  A query says nothing of that. */
static bool others_go_on(const struct world *w, const struct member *mb)
{
    return mb->vote.msg.passed || w->voters[VOTE_OPTIMISE] > 0 || member_group(w, mb)->tally.voters[VOTE_SYNC] > 0;
}

/* Whether that can be said of anybody: most steps of an update look at no member. */
static bool any_first(const struct world *w)
{
    bool any = false;
    for (uint32_t i = 0; w->tally.firsts > 0 && !any && i < w->group_room; i++) {
        const struct tally *t = &w->groups[i].tally;
        any = t->firsts > 0 && (t->passed > 0 || w->voters[VOTE_OPTIMISE] > 0 || t->voters[VOTE_SYNC] > 0);
    }
    return any;
}

/* Everybody writes the loop with the update at its beginning: who was just admitted by the others' update waits in one of its own,
 * and they do not come.  Its admission was that update. */
static void settle_first(struct world *w)
{
    if (vote_all_in(w, NULL, VOTE_UPDATE) || !any_first(w) || MUTANT(ALONE_NEVER)) {
        return;
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        struct group *g = member_group(w, mb);
        bool first = mb->phase == MEMBER_ACCEPTED && mb->vote.kind == VOTE_UPDATE && mb->vote.msg.first;
        if (first && others_go_on(w, mb) && vote_quiet(w, g)) {
            struct msg_answer a = {.result = ANSWER_OK, .alone = 1, .view = view_current(g)->view, .sizes = view_current(g)->sizes};
            vote_close(w, mb, &a, false);
            w->voters[VOTE_UPDATE]--;
            w->voters[VOTE_NONE]++;
            if (mb->conn != SLOT_NONE) {
                vote_replay(w, mb);
            }
        }
    }
}

/* ---- conflicts ----------------------------------------------------------------------------------------------------- */

/* The lowest id that waits in `kind` within the scope; null if nobody does. */
static const struct member *voter_of(const struct world *w, const struct group *g, enum vote_kind kind)
{
    const struct member *found = NULL;
    bool any = (g != NULL ? &g->tally : &w->tally)->voters[kind] > 0;
    for (uint32_t i = 0; any && i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && mb->vote.kind == kind && (found == NULL || mb->id < found->id)) {
            found = mb;
        }
    }
    return found;
}

/* M9: two votes conflict when each needs a member that waits in the other; both fail at once, others go on. */
static void settle_conflict(struct world *w, struct group *g, enum vote_kind one, enum vote_kind two)
{
    if (!vote_quiet(w, g)) {
        return;
    }
    const struct member *a = voter_of(w, g, one), *b = voter_of(w, g, two);
    if (a == NULL || b == NULL) {
        return;
    }
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "peer " ID_FORMAT " called %s while peer " ID_FORMAT " called %s",
             ID_PARTS(a->id), vote_name(one), ID_PARTS(b->id), vote_name(two));
    struct sizes sizes = view_sizes(w, &w->groups[0], false);
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && (mb->vote.kind == one || mb->vote.kind == two)) {
            sizes.group = member_group(w, mb)->counted;
            vote_answer(w, mb, ANSWER_CONFLICT, 0, &sizes, text);
        }
    }
}

/* ---- queries ------------------------------------------------------------------------------------------------------- */

/* M9: answered once every member that has not asked waits in another vote; never a conflict. */
static void settle_query(struct world *w)
{
    if (w->ghost || !vote_quiet(w, NULL)) {
        return;
    }
    uint64_t pending = member_count(w, NULL, MEMBER_PENDING) > 0;
    struct sizes sizes = view_sizes(w, &w->groups[0], false);
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_ACCEPTED && mb->vote.kind == VOTE_QUERY) {
            sizes.group = member_group(w, mb)->counted;
            vote_answer(w, mb, ANSWER_OK, pending, &sizes, "");
        }
    }
}

void vote_settle(struct world *w)
{
    memcpy(w->voters, w->tally.voters, sizeof w->voters); /* most steps see no vote at all: they stay cheap however many groups there are */
    if (w->voters[VOTE_UPDATE] > 0) {
        settle_first(w);
    }
    if (w->voters[VOTE_UPDATE] > 0 && w->voters[VOTE_OPTIMISE] > 0) {
        settle_conflict(w, NULL, VOTE_UPDATE, VOTE_OPTIMISE);
    }
    bool mixed = w->voters[VOTE_SYNC] > 0 && w->voters[VOTE_UPDATE] + w->voters[VOTE_OPTIMISE] > 0;
    for (uint32_t i = 0; mixed && i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->phase == GROUP_NORMAL) {
            settle_conflict(w, g, VOTE_SYNC, VOTE_UPDATE);
            settle_conflict(w, g, VOTE_SYNC, VOTE_OPTIMISE);
        }
    }
    if (w->voters[VOTE_QUERY] > 0 && w->voters[VOTE_NONE] == 0) {
        settle_query(w);
    }
}
