/* join.c - the connection with the master: joining, resuming, heartbeats, leaving.
 *
 * A lost connection is not an exclusion: the same id resumes, running operations go on meanwhile (G7).  Calls that need
 * the master, and frozen operations, wait master_loss_ns for it, then this peer leaves.  Leaving ends every pending call with GONE;
 * nothing else ends one alone (P6, P9).  Invariant: phase is written here only.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/calls/complaint.h"
#include "session/calls/culprit.h"
#include "session/calls/deferred.h"
#include "session/calls/departure.h"
#include "session/calls/finished.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/calls/work.h"
#include "session/group/refusal.h"
#include "session/links/peer_links.h"
#include "session/membership/ballot.h"
#include "session/membership/claim.h"
#include "session/membership/growth.h"
#include "session/membership/install.h"
#include "session/membership/join.h"
#include "session/membership/listing.h"
#include "session/membership/membership_text.h"
#include "session/membership/probing.h"
#include "session/membership/view_parts.h"
#include "session/membership/waits.h"
#include "session/pair/pair.h"
#include "session/state/fetch.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"
#include "session/tables/transitions.h"
#include "session/tables/view_table.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MOST_MS = 2000 };
#define SETTLED_NS INT64_C(1000000000) /* a connection that has lasted so long is dialled again at once */

static void dial(struct session *s, bool at_once, struct outbox *out)
{
    int64_t wait = 0;
    if (!at_once) {
        s->master.backoff = s->master.backoff == 0 ? BACKOFF_FIRST_MS : s->master.backoff * 2;
        s->master.backoff = s->master.backoff > BACKOFF_MOST_MS ? BACKOFF_MOST_MS : s->master.backoff;
        wait = (s->master.backoff / 2 + (int64_t)rng_below(&s->rng, (uint64_t)s->master.backoff)) * 1000000;
    }
    outbox_add(out, ACT_DIAL_MASTER)->value = (uint64_t)(s->clock.now + wait);
}

void join_connect(struct session *s, struct session_event *e, struct outbox *out)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    if (s->phase != PHASE_IDLE || s->connect.called || s->slots.used > 0 || s->vote.kind != VOTE_NONE) {
        e->outcome.result = RESULT_USAGE;
        return;
    }
    e->outcome.result = RESULT_PENDING;
    phase_move(MACHINE_SESSION, &s->phase, PHASE_DIALING);
    s->left.cause = 0;
    s->left.over = false;
    memset(&s->left.named, 0, sizeof s->left.named);
    culprit_forget(s);
    s->left.text[0] = 0;
    s->run = 0;
    s->id = 0;
    claim_begin(s);
    work_forget(s);
    view_clear(s);
    snapshot_clear(s);
    roster_clear(s);
    ballot_connect(s);
    s->connect.called = true;
    s->connect.called_in = s->clock.steps;
    s->connect.since = s->clock.now;
    s->connect.ended = false;
    memset(&s->connect.outcome, 0, sizeof s->connect.outcome);
    s->connect.by = s->clock.now + s->cfg.connect_ns;
    s->master.backoff = 0;
    dial(s, true, out);
}

static struct msg_register registering(const struct session *s)
{
    struct msg_register m = {.run = s->run, .group = s->cfg.group, .lanes = s->cfg.lanes,
                             .addresses = s->cfg.addresses, .verify = s->cfg.verify, .cores = s->cfg.cores,
                             .costs = s->cfg.costs, .stall_ms = s->cfg.stall_ms};
    uint64_t delay_ns = m.costs.delay_ns + (m.costs.message_ns > 0 ? s->master.away_ns : 0); /* others are about as far as the master */
    m.costs.delay_ns = delay_ns < COSTS_MOST ? (uint32_t)delay_ns : COSTS_MOST;
    memcpy(m.address, s->cfg.address, sizeof m.address);
    memcpy(m.world, s->cfg.world, sizeof m.world);
    if (s->phase == PHASE_MEMBER) {
        m.id = s->id;
        m.view = s->view.view;
        m.frozen = s->view.frozen ? s->view.view : 0;
        m.answered = s->vote.answered;
        m.open_vote = s->vote.kind != VOTE_NONE && !s->vote.ended ? s->vote.kind : VOTE_NONE;
        return m;
    }
    m.run = 0; /* whoever was not accepted yet comes as a newcomer again */
    m.claim = s->cfg.claim;
    m.claim.attempt = s->creating.attempt;
    return m;
}

void join_master_up(struct session *s, uint64_t away_ns, struct outbox *out)
{
    if (s->phase == PHASE_IDLE) {
        outbox_add(out, ACT_CLOSE_MASTER);
        return;
    }
    s->master.up = true;
    s->master.welcomed = false;
    s->master.away_ns = away_ns;
    view_parts_drop(s);
    s->master.heard = s->clock.now;
    struct msg_register m = registering(s);
    put_register(outbox_frame(out, FRAME_REGISTER, m.run, 0), &m);
    outbox_send(out, ACT_MASTER, 0);
}

static void connect_failed(struct session *s, enum session_result result, uint8_t cause, const char *text,
                           struct outbox *out)
{
    s->connect.outcome.result = result;
    s->connect.outcome.cause = cause;
    snprintf(s->connect.outcome.text, sizeof s->connect.outcome.text, "%s", text);
    s->connect.ended = true;
    s->connect.ended_in = s->clock.steps;
    outbox_add(out, ACT_CONNECTED);
}

void join_master_down(struct session *s, const char *text, struct outbox *out)
{
    if (s->phase == PHASE_IDLE) {
        return;
    }
    if (s->master.up) {
        outbox_add(out, ACT_CLOSE_MASTER);
    }
    if (s->master.lost == 0) {
        s->master.lost = s->clock.now;
        if (s->phase == PHASE_MEMBER) {
            membership_say_master_lost(out, text);
        }
    }
    bool at_once = s->phase == PHASE_MEMBER && s->master.welcomed && s->clock.now - s->master.welcomed_at >= SETTLED_NS;
    s->master.up = false;
    s->master.welcomed = false;
    if (s->phase == PHASE_JOINING) {
        phase_move(MACHINE_SESSION, &s->phase, PHASE_DIALING);
        s->connect.by = s->clock.now + s->cfg.master_loss_ns;
        links_no_proposal(s);
        for (uint32_t i = 0; i < s->peers.count; i++) {
            s->peers.at[i].in_proposal = false;
        }
        peers_drop_unwanted(s);
        outbox_add(out, ACT_LINKS);
    }
    if (text != NULL) {
        snprintf(s->left.text, sizeof s->left.text, "%s", text);
    }
    dial(s, at_once, out);
}

static void welcome(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_welcome m;
    bool good = get_welcome(r, &m) && m.run != 0;
    if (good && claim_expects(s, &m)) {
        struct msg_register reg = registering(s);
        claim_send(s, &m, &reg, out);
        return;
    }
    if (!good || m.id == 0 || (s->phase == PHASE_MEMBER && m.id != s->id)) {
        join_master_down(s, "the master sent a malformed WELCOME", out);
        return;
    }
    s->run = m.run;
    s->id = m.id;
    s->master.welcomed = true;
    s->master.welcomed_at = s->clock.now;
    if (s->phase == PHASE_MEMBER) {
        membership_say_master_back(s, out);
    } else {
        membership_say_registered(s, out);
    }
    s->master.lost = 0;
    s->master.backoff = 0;
    s->left.text[0] = 0;
    s->master.next_heartbeat = s->clock.now;
    if (s->phase == PHASE_DIALING) {
        phase_move(MACHINE_SESSION, &s->phase, PHASE_JOINING);
        return;
    }
    complaint_again(s, out);
    links_healed_again(s, out);
    fetch_again(s, out);
    ballot_send(s, out);
}

static void fenced(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_fence m;
    if (!get_fence(r, &m)) {
        join_master_down(s, "the master sent a malformed FENCE", out);
        return;
    }
    join_leave(s, m.cause == 0 ? CAUSE_KICK_STALE : m.cause, MUTANT(FENCE_RETRY) ? RESULT_LOST : RESULT_GONE, m.text,
               LEAVE_UNSAID, out);
}

/* The call that creates a world ends by the master's word alone (W5). */
static void given_up(struct session *s, uint64_t run, struct reader *r, struct outbox *out)
{
    struct msg_given_up m;
    if (!get_given_up(r, &m) || s->creating.attempt == 0 || s->phase == PHASE_MEMBER) {
        join_master_down(s, "the master sent a malformed GIVEN_UP", out);
        return;
    }
    s->run = run;
    s->left.named = culprit_find(s, m.culprit);
    join_leave(s, m.cause, RESULT_GIVEN_UP, m.text, LEAVE_UNSAID, out);
}

static void heartbeat_heard(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_heartbeat m;
    if (!get_heartbeat(r, &m)) {
        join_master_down(s, "the master sent a malformed HEARTBEAT", out);
        return;
    }
    s->master.echo = m.sent_ns;
    ballot_told(s, &m);
}

static void probe(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_probe m;
    if (!get_probe(r, &m)) {
        join_master_down(s, "the master sent a malformed PROBE", out);
        return;
    }
    probing_add(s, &m, out);
}

/* For what the master says.  Who creates a world asks for its end, and waits for the master's word (W5). */
static void no_memory(struct session *s, uint8_t type, struct outbox *out)
{
    static const char why[] = "no memory for so many members";
    bool own = MUTANT(DECLINE_OWN) && s->creating.attempt != 0 && s->phase == PHASE_JOINING;
    if (own) {
        join_leave(s, CAUSE_NO_MEMORY, RESULT_GIVEN_UP, why, LEAVE_SAID, out);
    } else if (type != FRAME_ADMIT || !claim_decline(s, out)) {
        wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, why, true);
    }
}

static void view(struct session *s, struct reader *r, struct outbox *out)
{
    int64_t stall_ns = s->view.stall_ns;
    install_view(s, r, out);
    view_parts_drop(s);
    if (s->view.stall_ns < stall_ns) {
        s->master.next_heartbeat = s->clock.now; /* in this step, or the next */
    }
}

void join_master_frame(struct session *s, struct session_event *e, struct outbox *out)
{
    if (s->phase == PHASE_IDLE || !s->master.up) {
        return;
    }
    struct reader r = view_parts_payload(s, e);
    s->master.heard = s->clock.now;
    uint8_t type = e->header->type;
    if (!s->master.welcomed && type != FRAME_WELCOME && type != FRAME_FENCE && type != FRAME_GIVEN_UP) {
        return;
    }
    if (!growth_met(s, e)) {
        no_memory(s, type, out);
        return;
    }
    switch (type) {
    case FRAME_WELCOME:
        welcome(s, &r, out);
        break;
    case FRAME_HEARTBEAT:
        heartbeat_heard(s, &r, out);
        break;
    case FRAME_FREEZE:
        install_freeze(s, &r, out);
        break;
    case FRAME_VIEW:
        view(s, &r, out);
        break;
    case FRAME_VIEW_PART:
        if (!view_parts_take(s, &r)) {
            join_master_down(s, "the master sent parts that are no VIEW", out);
        }
        break;
    case FRAME_ANSWER:
        ballot_answer(s, &r, out);
        break;
    case FRAME_ADMIT:
        links_admit(s, &r, out);
        view_parts_drop(s);
        break;
    case FRAME_FENCE:
        fenced(s, &r, out);
        break;
    case FRAME_GIVEN_UP:
        given_up(s, e->header->run, &r, out);
        break;
    case FRAME_ELECTED:
        fetch_elected(s, &r, out);
        break;
    case FRAME_PROBE:
        probe(s, &r, out);
        break;
    default:
        join_master_down(s, "the master sent a message that only peers send", out);
        break;
    }
}

/* ---- leaving ---- */

/* Who is put out while it connects was never a member, and has reached the master. */
static enum session_result connect_result(const struct session *s, uint8_t cause)
{
    bool dialling = s->phase == PHASE_DIALING && cause != CAUSE_PEER_LEFT;
    return cause >= CAUSE_KICK_PROTOCOL ? RESULT_REFUSED : dialling ? RESULT_UNREACHABLE : RESULT_GONE;
}

static void end_calls(struct session *s, uint8_t cause, enum session_result result, struct outbox *out)
{
    for (uint32_t i = 0; i < s->slots.count; i++) {
        struct slot *c = &s->slots.at[i];
        if (c->at.phase == SLOT_RUNNING || c->at.phase == SLOT_DEFERRED) {
            slot_end(s, i, result, cause, s->left.named.id, out);
            c->outcome.left = true;
            memcpy(c->outcome.text, s->left.text, sizeof c->outcome.text);
        } else if (c->at.phase == SLOT_ENDING) { /* a member that lies may never let its lanes send the rest */
            slot_stop(s, i, out);
        }
    }
    pair_close_lines(s);
    deferred_clear(s);
    ballot_left(s, result, cause, out);
    if (s->connect.called && !s->connect.ended) {
        s->connect.outcome.culprit = s->left.named.id;
        s->connect.outcome.named = s->left.named;
        connect_failed(s, result == RESULT_GIVEN_UP ? result : connect_result(s, cause), cause, s->left.text, out);
    }
}

void join_leave(struct session *s, uint8_t cause, enum session_result result, const char *text, enum leave_word word,
                struct outbox *out)
{
    if (s->phase == PHASE_IDLE) {
        return;
    }
    char copy[BOUNDS_TEXT];
    snprintf(copy, sizeof copy, "%s", text);
    memcpy(s->left.text, copy, sizeof copy);
    s->left.cause = result == RESULT_GIVEN_UP ? CAUSE_NONE : cause; /* of that it was never a member */
    s->left.over = result == RESULT_OVER;
    s->left.since = s->clock.now;
    if (word != LEAVE_UNSAID && s->master.welcomed) {
        listing_leave(s, word == LEAVE_REVOKES, out);
    }
    if (s->phase == PHASE_MEMBER) { /* else the end of connect says it */
        bool alone = cause == CAUSE_LINK_LOST || cause == CAUSE_KICK_VERSION; /* with a master that is gone, or another one */
        membership_say_left(s, word == LEAVE_UNSAID && !alone, out);
    }
    end_calls(s, cause, result, out);
    phase_move(MACHINE_SESSION, &s->phase, PHASE_IDLE);
    s->master.up = false;
    s->master.welcomed = false;
    s->master.lost = 0;
    links_no_proposal(s);
    probing_clear(s);
    op_clear(s);
    owed_clear(s);
    finished_forget(s);
    ballot_new_view(s);
    refusal_forget(s);
    complaint_forget(s);
    tags_renew(s);
    view_clear(s);
    peers_clear(s);
    outbox_add(out, ACT_CLOSE_MASTER);
    outbox_add(out, ACT_LINKS);
    outbox_add(out, ACT_LEFT);
}

static void connected(struct session *s, struct outbox *out)
{
    phase_move(MACHINE_SESSION, &s->phase, PHASE_MEMBER);
    s->connect.outcome.result = RESULT_OK;
    s->connect.ended = true;
    s->connect.ended_in = s->clock.steps;
    ballot_member(s);
    snapshot_take(s, s->view.view, &s->view.sizes);
    outbox_add(out, ACT_CONNECTED);
}

void join_settle(struct session *s, struct outbox *out)
{
    char text[BOUNDS_TEXT];
    memcpy(text, s->wish.text, sizeof text);
    if (s->wish.leave) {
        s->left.named = s->wish.named.id != 0 ? s->wish.named : s->left.named;
        join_leave(s, s->wish.cause, (enum session_result)s->wish.result, text, s->wish.tell_master ? LEAVE_SAID : LEAVE_UNSAID,
                   out);
    } else if (s->wish.redial) {
        join_master_down(s, text, out);
    } else if (s->phase == PHASE_JOINING && s->view.view != 0) {
        connected(s, out);
    }
    wish_done(s);
}

/* ---- time ---- */

static void send_heartbeat(struct session *s, struct outbox *out)
{
    struct msg_heartbeat m = {.sent_ns = (uint64_t)s->clock.now, .echo_ns = s->master.echo};
    if (s->phase == PHASE_MEMBER && !s->view.frozen) {
        waits_oldest(s, &m.wait);
        s->master.wait_turn = m.wait.phase == WAIT_LAUNCH && m.wait.on != 0 ? view_rank(s, m.wait.on) + 1 : s->master.wait_turn;
    }
    put_heartbeat(outbox_frame(out, FRAME_HEARTBEAT, s->run, s->view.view), &m);
    outbox_send(out, ACT_MASTER, 0);
}

static void tick_lost(struct session *s, struct outbox *out)
{
    if (MUTANT(DEADLINE_OWN) && s->phase == PHASE_JOINING && s->clock.now >= s->connect.since + s->cfg.claim.deadline_ms * 1000000LL) {
        join_leave(s, CAUSE_DEADLINE, RESULT_GIVEN_UP, "its own deadline", LEAVE_SAID, out);
        return;
    }
    int64_t needed = complaint_since(s);
    if (s->phase == PHASE_DIALING && s->clock.now >= s->connect.by) {
        char text[BOUNDS_TEXT];
        snprintf(text, sizeof text, "%s", s->left.text[0] != 0 ? s->left.text : "the master does not answer");
        join_leave(s, CAUSE_NONE, RESULT_UNREACHABLE, text, LEAVE_UNSAID, out);
    } else if (needed != INT64_MAX && s->clock.now - needed >= s->cfg.master_loss_ns) {
        join_leave(s, CAUSE_LINK_LOST, RESULT_GONE, "the master was gone for too long", LEAVE_UNSAID, out);
    }
}

void join_tick(struct session *s, struct outbox *out)
{
    if (s->phase == PHASE_IDLE) {
        return;
    }
    if (session_paused(s)) {
        s->master.heard = s->clock.now; /* M7: we slept, not the master */
    }
    if (s->master.up && s->clock.now - s->master.heard > s->view.stall_ns) {
        join_master_down(s, "the master does not answer", out);
    }
    if (s->clock.now >= s->master.next_heartbeat) {
        s->master.next_heartbeat = s->clock.now + s->view.heartbeat_ns;
        if (s->master.welcomed) {
            send_heartbeat(s, out);
        }
        if (s->phase == PHASE_MEMBER) {
            links_announce(s, out); /* the heartbeat between peers */
        }
    }
    tick_lost(s, out);
}

void join_collect(struct session *s, struct session_event *e)
{
    e->outcome = s->connect.outcome;
    e->outcome.result = s->connect.ended ? s->connect.outcome.result : RESULT_USAGE;
    session_name(s, &e->outcome);
    s->connect.called = s->connect.called && !s->connect.ended;
}
