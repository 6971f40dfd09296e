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
        snprintf(out, size, "%s", s->connecting ? "pcclConnect has not returned" : "not connected: pcclConnect comes first");
    } else if (s->vote != VOTE_NONE) {
        snprintf(out, size, "%s is under way in another thread", calls[s->vote]);
    } else {
        snprintf(out, size, "alone in the run: there is nothing to optimise");
    }
}

static enum session_result vote_refused(const struct session *s, const struct session_event *e)
{
    if (s->phase != PHASE_MEMBER) {
        return left_result(s);
    }
    if (s->vote != VOTE_NONE) {
        return RESULT_USAGE;
    }
    if (e->vote->kind != VOTE_QUERY && s->slots_used > s->slots_windows) { /* P1 */
        return RESULT_PENDING_OPS;
    }
    if (e->vote->kind == VOTE_OPTIMISE && s->snapshot.global < 2) {
        return RESULT_USAGE;
    }
    return RESULT_PENDING;
}

static bool goes_on_without_us(const struct session *s)
{
    for (uint32_t i = 0; s->op_used > 0 && i < s->op_count; i++) {
        if (s->ops[i].phase == OP_GHOST) {
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
    s->ballot = *e->vote;
    s->ballot.first = s->fresh && e->vote->kind == VOTE_UPDATE;
    s->ballot.passed = s->ballot.first && goes_on_without_us(s);
    s->ballot.idle = s->tag_used;
    s->fresh = false;
    s->vote = e->vote->kind;
    s->vote_ended = false;
    s->vote_called_in = s->steps;
    s->vote_since = s->now;
    s->told.vote_on = 0; /* the master's last word was about another wait */
    s->state = e->vote->kind == VOTE_SYNC ? e->state : NULL;
    memset(&s->vote_outcome, 0, sizeof s->vote_outcome);
    ballot_send(s, out);
}

/* B15: a message that this peer has refused before its sender came to it.  The answer could come to that one before the word does: it would
 * not skip the number, and its next message would be ended in the place of that one. */
static bool words_due(const struct session *s)
{
    bool due = false;
    for (uint32_t i = 0; s->records > 0 && i < s->op_count && !due; i++) {
        due = s->ops[i].phase == OP_DONE && s->ops[i].untold && s->ops[i].name.space == SPACE_PAIR;
    }
    return due && !MUTANT(VOTE_UNTOLD);
}

void ballot_words(struct session *s, struct outbox *out)
{
    if (s->vote_kept) {
        ballot_send(s, out);
    }
}

void ballot_send(struct session *s, struct outbox *out)
{
    s->vote_kept = false;
    if (s->vote == VOTE_NONE || s->vote_ended || !s->welcomed) {
        return;
    }
    s->vote_kept = s->vote != VOTE_QUERY && words_due(s);
    if (s->vote_kept) {
        return;
    }
    s->ballot.number = s->answered;
    put_vote(outbox_frame(out, FRAME_VOTE, s->run, s->view.view), &s->ballot);
    outbox_send(out, ACT_MASTER, 0);
}

void ballot_passed(struct session *s, struct outbox *out)
{
    if (s->vote == VOTE_UPDATE && !s->vote_ended && s->ballot.first && !s->ballot.passed) {
        s->ballot.passed = 1;
        ballot_send(s, out);
    }
}

void ballot_end(struct session *s, enum session_result result, uint8_t cause, struct outbox *out)
{
    fetch_reset(s, out);
    s->vote_ended = true;
    s->vote_ended_in = s->steps;
    s->vote_outcome.result = result;
    s->vote_outcome.cause = cause;
    s->vote_outcome.since = result == RESULT_OK ? 0 : s->master_lost != 0 ? s->master_lost : s->vote_since;
    outbox_add(out, ACT_VOTED);
}

/* `settles`: an answer that all in its scope got, to a vote that changes something. */
static void answered(struct session *s, bool settles, uint64_t view, const struct sizes *sizes, uint64_t value)
{
    s->answered++;
    s->vote_view = settles || MUTANT(QUERY_SIZES) ? view : 0;
    s->vote_sizes = *sizes;
    s->vote_outcome.value = value;
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
    if (s->vote == VOTE_NONE || s->vote_ended || m.number != s->answered || m.kind != s->vote) {
        return; /* a stored answer that had arrived */
    }
    bool settles = m.kind != VOTE_QUERY && (!m.alone || MUTANT(ALONE_SETTLES));
    answered(s, settles, m.view, &m.sizes, m.value);
    /* A sync that fails does so for all (B15); of votes that conflict others may not know. */
    if (settles && m.result != ANSWER_CONFLICT && m.view == s->view.view) {
        if (!MUTANT(SKIP_NOT)) {
            refusal_skip(s, MUTANT(SKIP_ALL) ? UINT32_MAX : s->settled);
        }
        s->settled++;
        s->refusals = 0;
    }
    snprintf(s->vote_outcome.text, sizeof s->vote_outcome.text, "%s", m.text);
    if (m.kind == VOTE_SYNC && m.result == ANSWER_OK) {
        fetch_apply(s, m.round, out);
    }
    ballot_end(s, result_of_answer(m.result), m.result == ANSWER_CONFLICT ? CAUSE_BLOCKED : CAUSE_NONE, out);
}

void ballot_collect(struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    if (s->vote == VOTE_NONE || !s->vote_ended) {
        e->outcome.result = RESULT_USAGE;
        return;
    }
    e->outcome = s->vote_outcome;
    session_name(s, &e->outcome);
    if (s->vote_view != 0) {
        snapshot_take(s, s->vote_view, &s->vote_sizes);
    }
    if (MUTANT(LIVEATTR)) {
        s->snapshot = s->view.sizes;
    }
    s->vote_view = 0;
    s->vote = VOTE_NONE;
    s->vote_ended = false;
    s->state = NULL;
}
