/* election.c - which shared state wins, who sends, who receives, and when all may apply it.
 *
 * Highest revision, then most votes, then the smaller digest: a function of the votes alone, not of their order.  While somebody
 * of the last sync is left, only the expected revision can win.  Who breaks a rule is excluded with its reason before
 * anybody is told to move a byte; who has other entries only after it has learnt from a holder which.
 * Invariant: the answer (APPLY) leaves only when every living receiver has staged everything and the new revision is durable (G6).
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "core/mix.h"
#include "world/recording.h"
#include "world/world_state.h"
#include "world/election.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/roll.h"
#include "world/source.h"
#include "world/view_read.h"
#include "world/vote.h"

enum strategy { STRATEGY_POPULAR = 0, STRATEGY_RECEIVE = 1, STRATEGY_SEND = 2 }; /* pcclSharedStateSyncStrategy_t */

static bool same_content(const struct msg_vote *a, const struct msg_vote *b)
{
    return a->key_digest == b->key_digest && a->content_digest == b->content_digest;
}

/* Revision first, then votes, then the smaller digest. */
static bool beats(const struct msg_vote *a, uint32_t a_votes, const struct msg_vote *b, uint32_t b_votes)
{
    if (a->revision != b->revision) {
        return a->revision > b->revision;
    }
    if (a_votes != b_votes) {
        return a_votes > b_votes;
    }
    if (a->content_digest != b->content_digest) {
        return a->content_digest < b->content_digest;
    }
    return a->key_digest < b->key_digest;
}

static bool candidate(const struct member *mb)
{
    return mb->vote.msg.strategy != STRATEGY_RECEIVE && !mb->distrusted;
}

/* Votes of one content, in a hash table: the slot of the first that has it + 1, and how many do, in the upper half. */
static uint64_t *content_place(const struct world *w, uint64_t *table, uint32_t size, const struct msg_vote *v)
{
    uint64_t hash = mix64(mix64(mix64(w->common->config.seed, v->revision), v->key_digest), v->content_digest);
    uint32_t at = (uint32_t)(hash % size);
    while (table[at] != 0) {
        const struct msg_vote *known = &w->members[(uint32_t)table[at] - 1].vote.msg;
        if (known->revision == v->revision && same_content(known, v)) {
            break;
        }
        at = at + 1 < size ? at + 1 : 0;
    }
    return &table[at];
}

/* The winner among those who may send; null if nobody may. */
static const struct member *elect_content(const struct world *w, const struct group *g)
{
    uint64_t *table = w->common->scratch_ids;
    uint32_t size = 2 * g->tally.voters[VOTE_SYNC], at = 0, best_votes = 0;
    const struct member *best = NULL;
    memset(table, 0, size * sizeof *table);
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (candidate(mb)) {
            uint64_t *place = content_place(w, table, size, &mb->vote.msg);
            *place = (*place == 0 ? (uint64_t)(mb - w->members) + 1 : *place) + ((uint64_t)1 << 32);
        }
    }
    for (uint32_t i = 0; i < size; i++) {
        const struct member *mb = table[i] != 0 ? &w->members[(uint32_t)table[i] - 1] : NULL;
        uint32_t votes = (uint32_t)(table[i] >> 32);
        if (mb != NULL && (best == NULL || beats(&mb->vote.msg, votes, &best->vote.msg, best_votes))) {
            best = mb;
            best_votes = votes;
        }
    }
    return best;
}

/* Revisions above the expected one, and strategies that do not go together; true if somebody had to go. */
static bool kick_voters(struct world *w, struct group *g)
{
    bool popular = false, kicked = false;
    uint32_t at = 0;
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        popular = popular || mb->vote.msg.strategy == STRATEGY_POPULAR;
    }
    at = 0;
    for (struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (g->revision != 0 && mb->vote.msg.revision > g->revision) {
            member_exclude(w, mb, CAUSE_KICK_REVISION, "its shared state has a revision above the expected one");
            kicked = true;
        } else if (popular && mb->vote.msg.strategy != STRATEGY_POPULAR) {
            member_exclude(w, mb, CAUSE_KICK_STRATEGY, "send only or receive only beside peers that enforce the popular state");
            kicked = true;
        }
    }
    return kicked;
}

/* Whether the peer takes the entries that are not compared from somebody else. */
static bool takes_whole(const struct group *g, const struct member *mb, const struct msg_vote *won)
{
    bool outdated = mb->vote.msg.revision < won->revision;
    return mb->vote.msg.has_inequality != 0 && (outdated || (g->revision != 0 && !mb->synced)) &&
           !(mb->vote.msg.strategy == STRATEGY_SEND && !outdated);
}

/* Whoever has all entries of the elected state is distrusted or gone: those that have what is compared keep the rest of their own. */
static void promote_holders(struct world *w, struct group *g, const struct msg_vote *won, uint32_t *receivers)
{
    uint32_t at = 0;
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (mb->role == SYNC_HOLDER) {
            return;
        }
    }
    at = 0;
    for (struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (mb->whole && !mb->distrusted && same_content(&mb->vote.msg, won) &&
            mb->vote.msg.strategy != STRATEGY_RECEIVE) {
            roll_out(w, mb);
            mb->role = SYNC_HOLDER;
            mb->whole = false;
            mb->staged = true;
            roll_in(w, mb);
            *receivers -= 1;
        }
    }
}

/* `what`: as it has learnt from a holder; "": it could not. */
static void exclude_for_keys(struct world *w, struct member *mb, const char *what)
{
    static const char why[] = "its shared state has other entries than the elected one";
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "%s%s%.140s", why, what[0] != 0 ? ": " : "", what);
    member_exclude_told(w, mb, CAUSE_KICK_KEYS, why, text);
}

/* Roles of all voters; true if somebody had to go. */
static bool assign_roles(struct world *w, struct group *g, const struct msg_vote *won, uint32_t *receivers)
{
    bool kicked = false;
    uint32_t at = 0;
    *receivers = 0;
    for (struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        const struct msg_vote *v = &mb->vote.msg;
        bool other_keys = v->key_digest != won->key_digest; /* it can receive nothing but the reason why it has to go */
        mb->whole = !other_keys && takes_whole(g, mb, won);
        bool receives = !same_content(v, won) || mb->whole || mb->distrusted;
        if (receives && !other_keys && v->strategy == STRATEGY_SEND) {
            member_exclude(w, mb, CAUSE_KICK_STRATEGY, "send only, but other content was elected");
            kicked = true;
        }
        roll_out(w, mb);
        mb->role = receives || v->strategy == STRATEGY_RECEIVE ? SYNC_RECEIVER : SYNC_HOLDER;
        mb->staged = !receives;
        mb->told = false;
        roll_in(w, mb);
        *receivers += receives;
    }
    promote_holders(w, g, won, receivers);
    return kicked;
}

/* ---- the vote ------------------------------------------------------------------------------------------------------ */

/* M4: the new revision is on record before it is answered. */
static void persist_revision(struct world *w, struct group *g, const char *why)
{
    struct outbox *o = w->common->out;
    uint64_t number = common_number(&w->common->next_persist, w->slot);
    world_move(w, PHASE_SYNC, &g->sync.phase, SYNC_PERSISTING, g->label, view_current(g)->view, why);
    writer_init(&o->writer, o->bytes + o->used, o->bytes_capacity - o->used);
    recording_revision(w, g, &o->writer, number);
    common_persist(o, number);
    g->sync.persist = number;
}

static void answer_all(struct world *w, struct group *g, enum answer_result result, uint64_t value, const char *text)
{
    struct sizes sizes = view_sizes(w, g, false);
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && mb->vote.kind == VOTE_SYNC) {
            mb->synced = result == ANSWER_OK || mb->synced;
            roll_out(w, mb);
            mb->role = 0;
            roll_in(w, mb);
            mb->failures = 0;
            vote_answer(w, mb, result, value, &sizes, text);
        }
    }
}

/* Nobody who may send has raised the revision since the last sync: what they offer may be older than what some have. */
static void answer_outdated(struct world *w, struct group *g, const struct member *most)
{
    char text[BOUNDS_TEXT];
    snprintf(text, sizeof text, "expected %" PRIu64 ", highest offered %" PRIu64 " by peer " ID_FORMAT, g->revision,
             most->vote.msg.revision, ID_PARTS(most->id));
    answer_all(w, g, ANSWER_REVISION, 0, text);
}

static void elect(struct world *w, struct group *g)
{
    bool taken_part = false;
    uint32_t at = 0, receivers = 0;
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        taken_part = taken_part || mb->synced;
    }
    g->revision = taken_part ? g->revision : 0; /* none is left of the last sync: the group starts afresh */
    g->sync.again = false;
    if (kick_voters(w, g)) {
        return; /* a freeze; the vote goes on in the next view */
    }
    const struct member *won = elect_content(w, g);
    if (won == NULL) {
        answer_all(w, g, ANSWER_NO_CANDIDATE, 0, "no peer that may send has a shared state");
        return;
    }
    if (won->vote.msg.revision < g->revision && !MUTANT(REVISION_ANY)) {
        answer_outdated(w, g, won);
        return;
    }
    struct msg_vote elected = won->vote.msg;
    if (assign_roles(w, g, &elected, &receivers)) {
        return;
    }
    g->sync.revision = elected.revision;
    g->sync.key_digest = elected.key_digest;
    g->sync.content_digest = elected.content_digest;
    g->sync.round++;
    if (receivers == 0) {
        persist_revision(w, g, "nobody has to receive");
        return;
    }
    world_move(w, PHASE_SYNC, &g->sync.phase, SYNC_STAGING, g->label, view_current(g)->view, "elected");
    source_tell(w, g);
}

/* Whoever could have passed the state on to them is none that is believed. */
static void exclude_unserved(struct world *w, struct group *g)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (!member_accepted_in(w, mb, g) || mb->role != SYNC_RECEIVER || mb->staged) {
            continue;
        }
        if (mb->vote.msg.key_digest != g->sync.key_digest) {
            exclude_for_keys(w, mb, "");
        } else {
            member_exclude(w, mb, CAUSE_KICK_UNREACHABLE, "it reaches no source of the shared state");
        }
    }
}

static void settle_staging(struct world *w, struct group *g)
{
    source_tell(w, g);
    const struct tally *t = &g->tally;
    if (t->waiting == 0 || (MUTANT(SYNC_EARLY_APPLY) && t->staged > 0)) {
        persist_revision(w, g, "all have staged");
    } else if (g->sync.again || t->holders == 0) {
        world_move(w, PHASE_SYNC, &g->sync.phase, SYNC_IDLE, g->label, view_current(g)->view, "no source: once more");
    } else if (t->told == 0) {
        exclude_unserved(w, g);
    }
}

int64_t election_deadline(const struct world *w)
{
    int64_t due = NEVER;
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        if (g->phase != GROUP_FREE && g->sync.elect_at != 0 && g->sync.elect_at < due) {
            due = g->sync.elect_at;
        }
    }
    return due;
}

void election_settle(struct world *w, struct group *g)
{
    if (w->common->now >= g->sync.elect_at) {
        g->sync.elect_at = 0;
    }
    if (g->phase != GROUP_NORMAL || w->voters[VOTE_SYNC] == 0 || !vote_quiet(w, g)) {
        return; /* elections and answers wait until no view is being ended */
    }
    switch ((enum sync_phase)g->sync.phase) {
    case SYNC_IDLE:
        if (vote_all_in(w, g, VOTE_SYNC) && g->sync.elect_at == 0) {
            elect(w, g);
        }
        break;
    case SYNC_STAGING:
        settle_staging(w, g);
        break;
    case SYNC_DURABLE:
        g->revision = view_next_revision(g);
        world_move(w, PHASE_SYNC, &g->sync.phase, SYNC_IDLE, g->label, view_current(g)->view, "answered");
        answer_all(w, g, ANSWER_OK, g->sync.revision, ""); /* this is APPLY */
        break;
    case SYNC_PERSISTING:
    case SYNC_PHASES:
        break;
    }
}

void election_persisted(struct world *w, uint64_t number)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->sync.phase == SYNC_PERSISTING && g->sync.persist == number) {
            world_move(w, PHASE_SYNC, &g->sync.phase, SYNC_DURABLE, g->label, view_current(g)->view, "durable");
        }
    }
}

/* A source that sent wrong bytes is none any more, until the vote ends. */
static bool note_liar(struct world *w, struct group *g, uint64_t id)
{
    struct member *liar = id == 0 ? NULL : member_find(w, id);
    if (liar == NULL || !member_accepted_in(w, liar, g) || !source_has(liar)) {
        return false;
    }
    liar->distrusted = true;
    return true;
}

bool election_known(const struct world *w, const struct member *mb, const struct msg_staged *s)
{
    const struct group *g = member_group(w, mb);
    return s->number < mb->answered || (s->number == mb->answered && s->round <= g->sync.round);
}

/* All that have the state have been heard of since then: whose process is ending is not reached by anybody, and the master may be the
 * last to see its connection close. */
static bool sources_live(const struct world *w, const struct group *g, int64_t since)
{
    uint32_t at = 0;
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (source_has(mb) && mb->heard_at <= since) {
            return false;
        }
    }
    return true;
}

/* What it failed to reach others may reach: only its own failures count, one a round. */
static void note_failure(struct world *w, struct group *g, struct member *mb)
{
    if (mb->failures == 0 || (mb->failed_round != g->sync.round && sources_live(w, g, mb->failed_at))) {
        mb->failures++;
        mb->failed_round = g->sync.round;
        mb->failed_at = w->common->now;
    }
    if (mb->failures >= WORLD_SYNC_ROUNDS) {
        member_exclude(w, mb, CAUSE_KICK_UNREACHABLE, "it reaches no source of the shared state");
    }
}

static void forget_failures(struct world *w, const struct group *g)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (member_accepted_in(w, &w->members[i], g)) {
            w->members[i].failures = 0;
        }
    }
}

void election_staged(struct world *w, struct member *mb, const struct msg_staged *s)
{
    struct group *g = member_group(w, mb);
    if (g->sync.phase != SYNC_STAGING || mb->vote.kind != VOTE_SYNC || mb->role != SYNC_RECEIVER ||
        s->number != mb->answered || s->round != g->sync.round) {
        return; /* of an earlier round */
    }
    bool caught = note_liar(w, g, s->liar);
    switch ((enum staged_status)s->status) {
    case STAGED_OK:
        roll_out(w, mb);
        mb->staged = true;
        roll_in(w, mb);
        break;
    case STAGED_NO_SOURCE:
        g->sync.again = true;
        g->sync.elect_at = caught ? 0 : w->common->now + w->common->config.collect_ns;
        if (caught) {
            forget_failures(w, g);
        } else {
            note_failure(w, g, mb);
        }
        break;
    case STAGED_NO_MEMORY:
        member_exclude(w, mb, CAUSE_NO_MEMORY, "no memory for the shared state");
        break;
    case STAGED_KEYS:
        exclude_for_keys(w, mb, s->text);
        break;
    }
    w->changed = true;
}

void election_reset(struct world *w, struct group *g, const char *why)
{
    if (g->sync.phase != SYNC_IDLE) {
        world_move(w, PHASE_SYNC, &g->sync.phase, SYNC_IDLE, g->label, 0, why);
    }
    g->sync.again = false;
    g->sync.elect_at = 0;
    forget_failures(w, g);
}
