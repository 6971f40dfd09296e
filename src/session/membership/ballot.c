/* ballot.c - the votes of this peer: asking, being answered, and what an answer changes.
 *
 * A newcomer's first update may be answered to it alone: its admission was that update, so it changes nothing but its number.
 *
 * One vote at a time.  A request carries the number of votes answered so far, so a replayed request or answer is known as
 * such (M9).  The answer to update, optimise and sync clears what is owed; a query's never does (P7).  The sizes that came with the answer are
 * taken when the program collects it (P11).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/calls/departure.h"
#include "session/calls/slots.h"
#include "session/group/refusal.h"
#include "session/membership/ballot.h"
#include "session/state/fetch.h"
#include "session/tables/tags.h"

void ballot_in_the_way(const struct session *s, char *out, size_t size)
{
    static const char *const calls[] = {[VOTE_UPDATE] = "pcclUpdateTopology", [VOTE_QUERY] = "pcclArePeersPending",
                                        [VOTE_OPTIMISE] = "pcclOptimizeTopology", [VOTE_SYNC] = "pcclSynchronizeSharedState"};
    if (s->phase != PHASE_MEMBER) {
        snprintf(out, size, "%s", s->connect.called ? "pcclConnect has not returned" : "not connected: pcclConnect comes first");
    } else if (s->vote.kind != VOTE_NONE) {
        snprintf(out, size, "%s is under way in another thread", calls[s->vote.kind]);
    } else {
        snprintf(out, size, "alone in the run: there is nothing to optimise");
    }
}

static enum session_result vote_refused(const struct session *s, const struct session_event *e)
{
    if (s->phase != PHASE_MEMBER) {
        return left_result(s);
    }
    if (s->vote.kind != VOTE_NONE) {
        return RESULT_USAGE;
    }
    if (e->vote->kind != VOTE_QUERY && s->slots.used > s->slots.windows) { /* P1 */
        return RESULT_PENDING_OPS;
    }
    if (e->vote->kind == VOTE_OPTIMISE && s->snapshot.sizes.global < 2) {
        return RESULT_USAGE;
    }
    return RESULT_PENDING;
}

static bool goes_on_without_us(const struct session *s)
{
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        if (s->ops.at[i].phase == OP_GHOST) {
            return true;
        }
    }
    return false;
}

void ballot_call(struct session *s, struct session_event *e, struct outbox *out)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = vote_refused(s, e);
    if (e->outcome.result != RESULT_PENDING) {
        left_outcome(s, &e->outcome);
        if (e->outcome.result == RESULT_USAGE) {
            e->outcome.cause = CAUSE_NONE;
            ballot_in_the_way(s, e->outcome.text, sizeof e->outcome.text);
        }
        return;
    }
    s->vote.ballot = *e->vote;
    s->vote.ballot.first = s->vote.fresh && e->vote->kind == VOTE_UPDATE;
    s->vote.ballot.passed = s->vote.ballot.first && goes_on_without_us(s);
    s->vote.ballot.idle = s->tags.used;
    s->vote.fresh = false;
    s->vote.kind = e->vote->kind;
    s->vote.ended = false;
    s->vote.called_in = s->clock.steps;
    s->vote.since = s->clock.now;
    s->vote.told.vote_on = 0; /* the master's last word was about another wait */
    s->state = e->vote->kind == VOTE_SYNC ? e->state : NULL;
    memset(&s->vote.outcome, 0, sizeof s->vote.outcome);
    ballot_send(s, out);
}

/* B15: a message that this peer has refused before its sender came to it.  The answer could come to that one before the word does: it would
 * not skip the number, and its next message would be ended in the place of that one. */
static bool words_due(const struct session *s)
{
    bool due = false;
    for (uint32_t i = 0; s->ops.records > 0 && i < s->ops.count && !due; i++) {
        due = s->ops.at[i].phase == OP_DONE && s->ops.at[i].untold && s->ops.at[i].name.space == SPACE_PAIR;
    }
    return due && !MUTANT(VOTE_UNTOLD);
}

void ballot_words(struct session *s, struct outbox *out)
{
    if (s->vote.kept) {
        ballot_send(s, out);
    }
}

void ballot_send(struct session *s, struct outbox *out)
{
    s->vote.kept = false;
    if (s->vote.kind == VOTE_NONE || s->vote.ended || !s->master.welcomed) {
        return;
    }
    s->vote.kept = s->vote.kind != VOTE_QUERY && words_due(s);
    if (s->vote.kept) {
        return;
    }
    s->vote.ballot.number = s->vote.answered;
    put_vote(outbox_frame(out, FRAME_VOTE, s->run, s->view.view), &s->vote.ballot);
    outbox_send(out, ACT_MASTER, 0);
}

void ballot_passed(struct session *s, struct outbox *out)
{
    if (s->vote.kind == VOTE_UPDATE && !s->vote.ended && s->vote.ballot.first && !s->vote.ballot.passed) {
        s->vote.ballot.passed = 1;
        ballot_send(s, out);
    }
}

void ballot_end(struct session *s, enum session_result result, uint8_t cause, struct outbox *out)
{
    fetch_reset(s, out);
    s->vote.ended = true;
    s->vote.ended_in = s->clock.steps;
    s->vote.outcome.result = result;
    s->vote.outcome.cause = cause;
    s->vote.outcome.since = result == RESULT_OK ? 0 : s->master.lost != 0 ? s->master.lost : s->vote.since;
    outbox_add(out, ACT_VOTED);
}

/* `settles`: an answer that all in its scope got, to a vote that changes something. */
static void answered(struct session *s, bool settles, uint64_t view, const struct sizes *sizes, uint64_t value)
{
    s->vote.answered++;
    s->vote.view = settles || MUTANT(QUERY_SIZES) ? view : 0;
    s->vote.sizes = *sizes;
    s->vote.outcome.value = value;
    if ((settles && !MUTANT(OWED_KEPT)) || MUTANT(QCLEAR)) {
        owed_clear(s);
    }
}

void ballot_by_view(struct session *s, const struct msg_view *m, struct outbox *out)
{
    answered(s, true, m->view, &m->sizes, m->value);
    ballot_end(s, RESULT_OK, CAUSE_NONE, out);
}

static enum session_result result_of_answer(uint8_t result)
{
    switch ((enum answer_result)result) {
    case ANSWER_OK:
        return RESULT_OK;
    case ANSWER_CONFLICT:
        return RESULT_USAGE;
    case ANSWER_RETRY:
        return RESULT_RETRY;
    case ANSWER_NO_CANDIDATE:
        return RESULT_NO_CANDIDATE;
    case ANSWER_REVISION:
        return RESULT_REVISION;
    }
    return RESULT_RETRY;
}

void ballot_answer(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_answer m;
    if (!get_answer(r, &m)) {
        wish_redial(s, "the master sent a malformed ANSWER");
        return;
    }
    if (s->vote.kind == VOTE_NONE || s->vote.ended || m.number != s->vote.answered || m.kind != s->vote.kind) {
        return; /* a stored answer that had arrived */
    }
    bool settles = m.kind != VOTE_QUERY && (!m.alone || MUTANT(ALONE_SETTLES));
    answered(s, settles, m.view, &m.sizes, m.value);
    /* A sync that fails does so for all (B15); of votes that conflict others may not know. */
    if (settles && m.result != ANSWER_CONFLICT && m.view == s->view.view) {
        if (!MUTANT(SKIP_NOT)) {
            refusal_skip(s, MUTANT(SKIP_ALL) ? UINT32_MAX : s->vote.settled);
        }
        s->vote.settled++;
        tags_no_refusals(s);
    }
    snprintf(s->vote.outcome.text, sizeof s->vote.outcome.text, "%s", m.text);
    if (m.kind == VOTE_SYNC && m.result == ANSWER_OK) {
        fetch_apply(s, m.round, out);
    }
    ballot_end(s, result_of_answer(m.result), m.result == ANSWER_CONFLICT ? CAUSE_BLOCKED : CAUSE_NONE, out);
}

void ballot_collect(struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    if (s->vote.kind == VOTE_NONE || !s->vote.ended) {
        e->outcome.result = RESULT_USAGE;
        return;
    }
    e->outcome = s->vote.outcome;
    session_name(s, &e->outcome);
    if (s->vote.view != 0) {
        snapshot_take(s, s->vote.view, &s->vote.sizes);
    }
    if (MUTANT(LIVEATTR)) {
        snapshot_take(s, s->snapshot.view, &s->view.sizes);
    }
    s->vote.view = 0;
    s->vote.kind = VOTE_NONE;
    s->vote.ended = false;
    s->state = NULL;
}

/* ---- what else it follows from ---- */

void ballot_connect(struct session *s)
{
    s->vote.answered = 0;
    s->vote.told.vote_on = 0;
    s->vote.told.seats.count = 0;
}

void ballot_member(struct session *s)
{
    s->vote.fresh = true;
}

void ballot_launched(struct session *s)
{
    s->vote.fresh = false;
}

void ballot_told(struct session *s, const struct msg_heartbeat *m)
{
    s->vote.told = *m;
}

void ballot_new_view(struct session *s)
{
    s->vote.settled = MUTANT(SETTLED_KEPT) && s->phase != PHASE_IDLE ? s->vote.settled : 0;
    s->vote.ballot.passed = 0; /* the master forgets it with the view, too */
}

void ballot_admitted(struct session *s, uint32_t answered)
{
    s->vote.answered = answered;
}

void ballot_left(struct session *s, enum session_result result, uint8_t cause, struct outbox *out)
{
    if (s->vote.kind == VOTE_NONE || s->vote.ended) {
        return;
    }
    ballot_end(s, result, cause, out);
    s->vote.outcome.culprit = s->left.named.id;
    s->vote.outcome.named = s->left.named;
    s->vote.outcome.left = true;
    memcpy(s->vote.outcome.text, s->left.text, sizeof s->vote.outcome.text);
}
