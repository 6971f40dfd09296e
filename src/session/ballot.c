/* ballot.c - the votes of this peer: asking, being answered, and what an answer changes.
 *
 * One vote at a time.  A request carries the number of votes answered so far, so a replayed request or answer is known as
 * such (M9).  The answer to update, optimise and sync clears what is owed; a query's never does (P7).  The sizes that came with the answer are
 * taken when the program collects it (P11).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/session_state.h"

static enum session_result vote_refused(const struct session *s, const struct session_event *e)
{
    if (s->phase != PHASE_MEMBER) {
        return s->left_cause != 0 ? RESULT_GONE : RESULT_USAGE;
    }
    if (s->vote != VOTE_NONE) {
        return RESULT_USAGE;
    }
    if (e->vote->kind != VOTE_QUERY && s->slots_used > 0) {
        return RESULT_PENDING_OPS;
    }
    if (e->vote->kind == VOTE_OPTIMISE && s->snapshot.global < 2) {
        return RESULT_USAGE;
    }
    return RESULT_PENDING;
}

void ballot_call(struct session *s, struct session_event *e, struct outbox *out)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = vote_refused(s, e);
    if (e->outcome.result != RESULT_PENDING) {
        e->outcome.cause = s->left_cause;
        memcpy(e->outcome.text, s->left_text, sizeof e->outcome.text);
        return;
    }
    s->ballot = *e->vote;
    s->vote = e->vote->kind;
    s->vote_ended = false;
    s->vote_since = s->now;
    s->vote_waits_for = 0;
    s->state = e->vote->kind == VOTE_SYNC ? e->state : NULL;
    memset(&s->vote_outcome, 0, sizeof s->vote_outcome);
    ballot_send(s, out);
}

void ballot_send(struct session *s, struct outbox *out)
{
    if (s->vote == VOTE_NONE || s->vote_ended || !s->welcomed) {
        return;
    }
    s->ballot.number = s->answered;
    put_vote(outbox_frame(out, FRAME_VOTE, s->run, s->view.view), &s->ballot);
    outbox_send(out, ACT_MASTER, 0);
}

void ballot_end(struct session *s, enum session_result result, uint8_t cause, struct outbox *out)
{
    fetch_reset(s, out);
    s->vote_ended = true;
    s->vote_outcome.result = result;
    s->vote_outcome.cause = cause;
    s->vote_outcome.since = result == RESULT_OK ? 0 : s->master_lost != 0 ? s->master_lost : s->vote_since;
    outbox_add(out, ACT_VOTED);
}

static void answered(struct session *s, uint8_t kind, uint64_t view, const struct sizes *sizes, uint64_t value)
{
    s->answered++;
    s->vote_view = kind == VOTE_QUERY ? 0 : view;
    s->vote_sizes = *sizes;
    s->vote_outcome.value = value;
    if (kind != VOTE_QUERY || MUTANT(QCLEAR)) {
        owed_clear(s);
    }
}

void ballot_by_view(struct session *s, const struct msg_view *m, struct outbox *out)
{
    answered(s, m->answers, m->view, &m->sizes, m->value);
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
    }
    return RESULT_RETRY;
}

void ballot_answer(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_answer m;
    if (!get_answer(r, &m)) {
        join_master_down(s, "the master sent a malformed ANSWER", out);
        return;
    }
    if (s->vote == VOTE_NONE || s->vote_ended || m.number != s->answered || m.kind != s->vote) {
        return; /* a stored answer that had arrived */
    }
    answered(s, m.kind, m.view, &m.sizes, m.value);
    if (m.kind != VOTE_QUERY && m.result == ANSWER_OK && m.view == s->view.view) {
        refusal_skip(s, s->settled);
        s->settled++;
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
