/* poison.c - after a failed invariant: every call ends, everything is closed, whatever state the tables are in.
 *
 * What the failing step had told the shell is lost, so each call is taken back to where the shell knows it (slot.before)
 * and ended from there: lanes that the shell has started are stopped, a return that was not carried out is told again.  Outcomes that
 * earlier steps had decided stand.  Invariant: no table but slots is believed, and of those only the phase and the call itself.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/calls/slots.h"
#include "session/poison.h"

/* A call that the program was told of before this step. */
static void end_call(struct session *s, uint32_t slot, bool idle, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    if (c->at.phase != SLOT_ENDING) {
        c->outcome = (struct session_outcome){.result = RESULT_POISONED, .tx_bytes = c->outcome.tx_bytes,
                                              .rx_bytes = c->outcome.rx_bytes,
                                              .restore = c->launch.in_place && !c->launch.call.no_memory};
        memcpy(c->outcome.text, s->left.text, sizeof c->outcome.text);
    }
    c->at.phase = SLOT_ENDING;
    c->at.started = c->at.started && !idle;
    slot_stop(s, slot, out);
    if (!c->at.started) {
        slot_return(s, slot, out);
    }
}

static void end_calls(struct session *s, struct session_event *e, struct outbox *out)
{
    s->slots.used = s->slots.windows = 0;
    for (uint32_t i = 0; i < s->slots.count; i++) {
        struct slot *c = &s->slots.at[i];
        if (c->moved_in == s->clock.steps) {
            c->at = c->before;
        }
        if (c->at.phase == SLOT_RETURNED && e->kind == SESSION_COLLECT && e->slot == i) {
            e->outcome = c->outcome;
            c->at.phase = SLOT_FREE;
        }
        s->slots.used += c->at.phase != SLOT_FREE;
        if (c->at.phase != SLOT_FREE && c->at.phase != SLOT_RETURNED) {
            end_call(s, i, e->kind == SESSION_IDLE && e->slot == i, out);
        }
    }
}

static void fail_event(const struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = RESULT_POISONED;
    memcpy(e->outcome.text, s->left.text, sizeof e->outcome.text);
    if (e->kind == SESSION_LAUNCH) { /* a small one may have been reduced in this very step */
        e->outcome.restore = e->launch->in_place && !e->launch->call.no_memory;
    }
    if (e->kind == SESSION_HELLO) {
        e->verdict = HELLO_STALE;
        e->view = 0;
    }
}

/* What a vote or a connect has ended with: what an earlier step decided stands, since shared state may have been applied by it. */
static void end_other(const struct session *s, struct session_outcome *outcome, bool stands)
{
    if (!stands) {
        *outcome = (struct session_outcome){.result = RESULT_POISONED};
        memcpy(outcome->text, s->left.text, sizeof outcome->text);
    }
}

static void end_vote(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->kind == SESSION_COLLECT_VOTE) {
        e->outcome = s->vote.outcome.result != RESULT_PENDING ? s->vote.outcome : e->outcome;
        s->vote.kind = VOTE_NONE;
    }
    bool called = s->vote.kind != VOTE_NONE && s->vote.called_in != s->clock.steps;
    bool told = s->vote.ended && s->vote.ended_in != s->clock.steps;
    end_other(s, &s->vote.outcome, called && told);
    if (called && !told) {
        outbox_add(out, ACT_VOTED);
    }
    s->vote.ended = called;
    s->vote.kind = called ? s->vote.kind : VOTE_NONE;
}

static void end_connect(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->kind == SESSION_COLLECT_CONNECT) {
        e->outcome = s->connect.outcome.result != RESULT_PENDING ? s->connect.outcome : e->outcome;
        s->connect.called = false;
    }
    bool called = s->connect.called && s->connect.called_in != s->clock.steps;
    bool told = s->connect.ended && s->connect.ended_in != s->clock.steps;
    end_other(s, &s->connect.outcome, called && told);
    if (called && !told) {
        outbox_add(out, ACT_CONNECTED);
    }
    s->connect.called = s->connect.ended = called;
}

void poison_machine(struct session *s, const struct check_pad *pad, struct session_event *e, struct outbox *out)
{
    s->poisoned = true;
    outbox_reset(out);
    snprintf(s->left.text, sizeof s->left.text, "failed invariant %s at %s", pad->what, pad->where);
    fail_event(s, e);
    end_calls(s, e, out);
    end_vote(s, e, out);
    end_connect(s, e, out);
    s->phase = PHASE_IDLE;
    s->view.world = 0;
    s->view.view = 0;
    s->admission.view = 0;
    s->deferred.first = NONE;
    s->deferred.count = s->deferred.tags = s->slots.waiting = 0;
    memset(s->peers.at, 0, sizeof *s->peers.at * s->peers.count);
    outbox_add(out, ACT_CLOSE_MASTER);
    outbox_add(out, ACT_LINKS);
    outbox_add(out, ACT_LEFT);
}

void poison_step(struct session *s, struct session_event *e, struct outbox *out)
{
    fail_event(s, e);
    if (e->kind == SESSION_COLLECT_VOTE && s->vote.ended) {
        e->outcome = s->vote.outcome;
        s->vote.kind = VOTE_NONE;
        s->vote.ended = false;
    } else if (e->kind == SESSION_COLLECT_CONNECT && s->connect.ended) {
        e->outcome = s->connect.outcome;
        s->connect.called = s->connect.ended = false;
    }
    struct slot *c = e->slot < s->slots.count ? &s->slots.at[e->slot] : NULL;
    if (c != NULL && e->kind == SESSION_IDLE) {
        slot_idle(s, e->slot, out);
    } else if (c != NULL && e->kind == SESSION_COLLECT && c->at.phase == SLOT_RETURNED) {
        e->outcome = c->outcome;
        c->at.phase = SLOT_FREE;
        s->slots.used--;
    }
}
