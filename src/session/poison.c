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
    struct slot *c = &s->slots[slot];
    if (c->at.phase != SLOT_ENDING) {
        c->outcome = (struct session_outcome){.result = RESULT_POISONED, .tx_bytes = c->outcome.tx_bytes,
                                              .rx_bytes = c->outcome.rx_bytes,
                                              .restore = c->launch.in_place && !c->launch.no_memory};
        memcpy(c->outcome.text, s->left_text, sizeof c->outcome.text);
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
    s->slots_used = s->slots_windows = 0;
    for (uint32_t i = 0; i < s->slot_count; i++) {
        struct slot *c = &s->slots[i];
        if (c->moved_in == s->steps) {
            c->at = c->before;
        }
        if (c->at.phase == SLOT_RETURNED && e->kind == SESSION_COLLECT && e->slot == i) {
            e->outcome = c->outcome;
            c->at.phase = SLOT_FREE;
        }
        s->slots_used += c->at.phase != SLOT_FREE;
        if (c->at.phase != SLOT_FREE && c->at.phase != SLOT_RETURNED) {
            end_call(s, i, e->kind == SESSION_IDLE && e->slot == i, out);
        }
    }
}

static void fail_event(const struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = RESULT_POISONED;
    memcpy(e->outcome.text, s->left_text, sizeof e->outcome.text);
    if (e->kind == SESSION_LAUNCH) { /* a small one may have been reduced in this very step */
        e->outcome.restore = e->launch->in_place && !e->launch->no_memory;
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
        memcpy(outcome->text, s->left_text, sizeof outcome->text);
    }
}

static void end_vote(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->kind == SESSION_COLLECT_VOTE) {
        e->outcome = s->vote_outcome.result != RESULT_PENDING ? s->vote_outcome : e->outcome;
        s->vote = VOTE_NONE;
    }
    bool called = s->vote != VOTE_NONE && s->vote_called_in != s->steps;
    bool told = s->vote_ended && s->vote_ended_in != s->steps;
    end_other(s, &s->vote_outcome, called && told);
    if (called && !told) {
        outbox_add(out, ACT_VOTED);
    }
    s->vote_ended = called;
    s->vote = called ? s->vote : VOTE_NONE;
}

static void end_connect(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->kind == SESSION_COLLECT_CONNECT) {
        e->outcome = s->connect_outcome.result != RESULT_PENDING ? s->connect_outcome : e->outcome;
        s->connecting = false;
    }
    bool called = s->connecting && s->connect_called_in != s->steps;
    bool told = s->connect_ended && s->connect_ended_in != s->steps;
    end_other(s, &s->connect_outcome, called && told);
    if (called && !told) {
        outbox_add(out, ACT_CONNECTED);
    }
    s->connecting = s->connect_ended = called;
}

void poison_machine(struct session *s, const struct check_pad *pad, struct session_event *e, struct outbox *out)
{
    s->poisoned = true;
    outbox_reset(out);
    snprintf(s->left_text, sizeof s->left_text, "failed invariant %s at %s", pad->what, pad->where);
    fail_event(s, e);
    end_calls(s, e, out);
    end_vote(s, e, out);
    end_connect(s, e, out);
    s->phase = PHASE_IDLE;
    s->view.world = 0;
    s->view.view = 0;
    s->proposal = 0;
    s->deferred = NONE;
    s->deferred_count = s->deferred_tags = s->waiting_count = 0;
    memset(s->peers, 0, sizeof *s->peers * s->peer_count);
    outbox_add(out, ACT_CLOSE_MASTER);
    outbox_add(out, ACT_LINKS);
    outbox_add(out, ACT_LEFT);
}

void poison_step(struct session *s, struct session_event *e, struct outbox *out)
{
    fail_event(s, e);
    if (e->kind == SESSION_COLLECT_VOTE && s->vote_ended) {
        e->outcome = s->vote_outcome;
        s->vote = VOTE_NONE;
        s->vote_ended = false;
    } else if (e->kind == SESSION_COLLECT_CONNECT && s->connect_ended) {
        e->outcome = s->connect_outcome;
        s->connecting = s->connect_ended = false;
    }
    struct slot *c = e->slot < s->slot_count ? &s->slots[e->slot] : NULL;
    if (c != NULL && e->kind == SESSION_IDLE) {
        slot_idle(s, e->slot, out);
    } else if (c != NULL && e->kind == SESSION_COLLECT && c->at.phase == SLOT_RETURNED) {
        e->outcome = c->outcome;
        c->at.phase = SLOT_FREE;
        s->slots_used--;
    }
}
