/* session.c - entry of the session: arena, dispatch of events, deadlines, what the API may read.
 *
 * One event in, actions out.  A failed assertion lands here: the machine is poisoned, every call in it ends with POISONED, links and
 * the master's connection are closed, so that nobody waits for it.  Invariant: nothing outside the arena is written but
 * the event's results, the outbox and result buffers of eager operations.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>

#include "session/calls/complaint.h"
#include "session/calls/deferred.h"
#include "session/calls/departure.h"
#include "session/calls/finished.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/group/behind.h"
#include "session/launch.h"
#include "session/links/peer_links.h"
#include "session/membership/ballot.h"
#include "session/membership/growth.h"
#include "session/membership/join.h"
#include "session/membership/probing.h"
#include "session/membership/waits.h"
#include "session/op_frames.h"
#include "session/pair/pair.h"
#include "session/poison.h"
#include "session/relay/path.h"
#include "session/session_check.h"
#include "session/state/fetch.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "session/tables/view_table.h"

struct session *session_init(const struct session_config *config, void *arena)
{
    struct session *s = arena;
    memset(s, 0, sizeof *s);
    s->cfg = *config;
    s->classes = op_classes;
    s->rng.state = config->seed;
    view_init(s);
    deferred_clear(s);
    complaint_forget(s);
    finished_forget(s);
    growth_init(s);
    return s;
}

/* ---- events ---- */

static void on_peer_frame(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t from = peer_find(s, e->peer);
    if (from == NONE || !s->peers.at[from].link_up) {
        return;
    }
    s->peers.at[from].heard = s->peers.at[from].spoke = s->clock.now;
    const struct frame_header *h = e->header;
    if (h->type == FRAME_PING) {
        links_ping(s, from, h->view, out);
        return;
    }
    if (!s->peers.at[from].in_view || h->view > s->view.view) {
        return; /* P8: members speak of a view only to those who said that they are in it */
    }
    op_frame(s, &(struct said){.from = from, .header = h, .payload = e->payload}, out);
}

static void on_lanes(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->slot >= s->slots.count) {
        return;
    }
    struct slot *c = &s->slots.at[e->slot];
    struct op *op = c->op == NONE || c->at.phase != SLOT_RUNNING ? NULL : &s->ops.at[c->op];
    if (e->kind == SESSION_IDLE) {
        c->outcome.tx_bytes += e->tx_bytes;
        c->outcome.rx_bytes += e->rx_bytes;
        slot_idle(s, e->slot, out);
    } else if (op == NULL) {
        return; /* it ended while the lane was on its way here */
    } else if (e->kind == SESSION_DONE) {
        op->class->complete(s, op, e->digest, out);
    } else if (op->phase == OP_RUN && op->refused == 0 && !s->view.frozen) {
        uint32_t rank = view_rank(s, e->peer);
        if (rank != NONE && rank != s->view.rank && waits_launched(s, op)) {
            complaint_op(s, op, CAUSE_NO_PROGRESS, e->peer, "no bytes moved", out);
        }
    }
}

static void on_cancel(struct session *s, struct session_event *e, struct outbox *out)
{
    struct slot *c = e->slot < s->slots.count ? &s->slots.at[e->slot] : NULL;
    bool own = e->number == CAUSE_NO_MEMORY || e->number == CAUSE_INTERNAL;
    uint8_t why = own ? (uint8_t)e->number : CAUSE_CANCEL;
    if (c != NULL && c->at.phase == SLOT_RUNNING && c->op != NONE) {
        c->failed = c->failed || own;
        s->ops.at[c->op].class->request(s, &s->ops.at[c->op], why, out);
    } else if (c != NULL && c->waits) {
        pair_give_up(s, e->slot, why, out);
    } else if (c != NULL && c->at.phase == SLOT_DEFERRED) { /* it is refused when it has its number */
        c->failed = c->failed || own;
        c->given_up = c->given_up != CAUSE_NONE ? c->given_up : why;
    }
}

/* A ratio of another view says nothing of this one. */
static void on_took(struct session *s, const struct session_event *e, struct outbox *out)
{
    if (s->master.welcomed && s->view.world > 0 && e->view == s->view.view) {
        put_took(outbox_frame(out, FRAME_TOOK, s->run, e->view), e->took);
        outbox_send(out, ACT_MASTER, 0);
    }
}

static void check_deadlines(struct session *s, struct outbox *out)
{
    while (heap_least(&s->slots.due) <= s->clock.now) {
        uint32_t slot = heap_first(&s->slots.due);
        struct slot *c = &s->slots.at[slot];
        c->launch.call.deadline = INT64_MAX;
        slot_due(s, slot, INT64_MAX);
        if (c->waits) {
            pair_give_up(s, slot, CAUSE_DEADLINE, out);
        } else if (c->at.phase == SLOT_DEFERRED) { /* it is refused when it has its number */
            c->given_up = c->given_up != CAUSE_NONE ? c->given_up : CAUSE_DEADLINE;
        } else {
            s->ops.at[c->op].class->request(s, &s->ops.at[c->op], CAUSE_DEADLINE, out);
        }
    }
}

static void on_tick(struct session *s, struct outbox *out)
{
    check_deadlines(s, out);
    if (s->clock.now >= s->finished.by) {
        finished_flush(s, out);
    }
    links_tick(s, out);
    join_tick(s, out);
}

/* Calls of the program. */
static bool dispatch_call(struct session *s, struct session_event *e, struct outbox *out)
{
    switch ((uint32_t)e->kind) {
    case SESSION_CONNECT:
        join_connect(s, e, out);
        return true;
    case SESSION_LEAVE:
        join_leave(s, CAUSE_PEER_LEFT, RESULT_GONE, e->text != NULL ? e->text : "this peer left the run", LEAVE_SAID, out);
        return true;
    case SESSION_REVOKE: /* without the master its links close, which the others tell it */
        join_leave(s, CAUSE_PEER_LEFT, RESULT_GONE, "the program revoked the world", LEAVE_REVOKES, out);
        return true;
    case SESSION_LAUNCH:
        launch_call(s, e, out);
        return true;
    case SESSION_CANCEL:
        on_cancel(s, e, out);
        return true;
    case SESSION_COLLECT:
        launch_collect(s, e);
        return true;
    case SESSION_VOTE:
        ballot_call(s, e, out);
        return true;
    case SESSION_COLLECT_VOTE:
        ballot_collect(s, e);
        return true;
    case SESSION_COLLECT_CONNECT:
        join_collect(s, e);
        return true;
    default:
        return false;
    }
}

/* What links to peers say. */
static bool dispatch_link(struct session *s, struct session_event *e, struct outbox *out)
{
    switch ((uint32_t)e->kind) {
    case SESSION_HELLO:
        links_hello(s, e);
        return true;
    case SESSION_LINK_UP:
        links_up(s, e, out);
        return true;
    case SESSION_LINK_DOWN:
        links_down(s, e->peer, e->number != 0, out);
        return true;
    case SESSION_LINK_REFUSED:
        links_refused(s, e->peer, out);
        return true;
    case SESSION_LINK_FAILED:
        links_failed(s, e->peer, out);
        return true;
    case SESSION_LINK_STALE:
        links_stale(s, e->view);
        return true;
    case SESSION_PEER_FRAME:
        on_peer_frame(s, e, out);
        return true;
    case SESSION_DATA_UP:
        links_data_up(s, e, out);
        return true;
    case SESSION_DATA_DOWN:
        links_data_down(s, e, out);
        return true;
    case SESSION_DATA_FAILED:
        links_data_failed(s, e->peer, out);
        return true;
    case SESSION_SYNC_FRAME:
        sync_frame(s, e, out);
        return true;
    case SESSION_SYNC_DOWN:
        fetch_down(s, e->peer, out);
        return true;
    default:
        return false;
    }
}

static void dispatch(struct session *s, struct session_event *e, struct outbox *out)
{
    if (dispatch_call(s, e, out) || dispatch_link(s, e, out)) {
        return;
    }
    switch ((uint32_t)e->kind) {
    case SESSION_MASTER_UP:
        join_master_up(s, e->number, out);
        break;
    case SESSION_MASTER_DOWN:
        join_master_down(s, e->text, out);
        break;
    case SESSION_MASTER_FRAME:
        join_master_frame(s, e, out);
        break;
    case SESSION_MASTER_FOREIGN:
        join_leave(s, CAUSE_KICK_VERSION, RESULT_GONE, e->text, LEAVE_UNSAID, out);
        break;
    case SESSION_DONE:
    case SESSION_IDLE:
    case SESSION_STALLED:
        on_lanes(s, e, out);
        break;
    case SESSION_MEMORY:
        fetch_memory(s, e->memory, out);
        break;
    case SESSION_MEASURED:
        probing_measured(s, e, out);
        break;
    case SESSION_TOOK:
        on_took(s, e, out);
        break;
    case SESSION_TICK:
        on_tick(s, out);
        break;
    default:
        PCCL_ASSERT(false); /* every kind is somebody's */
        break;
    }
}

/* What the step has decided, by level: leaving before all else, since nothing is said or launched by one who leaves. */
static void settle(struct session *s, struct outbox *out)
{
    join_settle(s, out);
    uint64_t bad = peers_take_bad(s);
    if (bad != 0) {
        links_bad(s, bad, out);
    }
    if (op_take_passed(s)) {
        ballot_passed(s, out);
    }
    if (s->peers.replaying) {
        replay_settle(s, out);
    }
    if (s->turns) {
        path_settle(s, out);
    }
    ballot_words(s, out);
    launch_deferred(s, out);
    behind_settle(s, out);
}

/* setjmp lives in a frame of its own: nothing but the pad changes between it and the jump. */
static bool dispatch_guarded(struct session *s, struct session_event *e, struct outbox *out, struct check_pad *pad)
{
    if (setjmp(pad->env) != 0) {
        return false;
    }
    check_current = pad;
    complaint_pass(s);
    dispatch(s, e, out);
    settle(s, out);
    complaint_pass(s);
    PCCL_ASSERT(!out->overflow);
    session_check(s);
    return true;
}

void session_step(struct session *s, int64_t now, struct session_event *event, struct outbox *out)
{
    s->clock.now = now;
    s->clock.steps++;
    if (s->poisoned) {
        poison_step(s, event, out);
        return;
    }
    struct check_pad pad = {.outer = check_current};
    bool good = dispatch_guarded(s, event, out, &pad);
    check_current = pad.outer;
    if (good) {
        s->clock.last_step = event->kind == SESSION_TICK ? now : s->clock.last_step;
    } else {
        poison_machine(s, &pad, event, out);
    }
}

/* ---- reading ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t session_deadline(const struct session *s)
{
    if (s->poisoned || s->phase == PHASE_IDLE) {
        return INT64_MAX;
    }
    int64_t at = earlier(s->master.next_heartbeat, s->finished.by);
    if (s->phase == PHASE_DIALING) {
        at = earlier(at, s->connect.by);
    }
    if (s->admission.view != 0 && !s->admission.linked_sent) {
        at = earlier(at, s->admission.link_by);
    }
    if (s->peers.replaying || launch_due(s)) {
        at = s->clock.now;
    }
    int64_t lost = complaint_since(s);
    if (lost != INT64_MAX) {
        at = earlier(at, lost + s->cfg.master_loss_ns);
    }
    at = earlier(at, heap_least(&s->slots.due));
    return MUTANT(TIMERS_LATE) ? at + 1000000000 : at;
}

bool session_poisoned(const struct session *s)
{
    return s->poisoned;
}

/* A step answers one message or ends everything: each slot and peer once, each live operation said again in part. */
struct outbox_bounds session_out_bounds(const struct session_config *config, uint32_t members)
{
    uint32_t ops = config->max_ops + config->max_records;
    uint32_t actions = 4 * ops + 8 * config->max_ops + 8 * members + 256;
    uint32_t bytes = 2 * (2 * BOUNDS_EAGER_BYTES + 512) + ops * 384 + members * 256 + BOUNDS_CONTROL_FRAME +
                     8 * BOUNDS_LOG_LINE; /* a freeze or a view, what follows from it for the shared state, leaving */
    return (struct outbox_bounds){.actions = actions, .bytes = bytes, .dests = actions + ops * members};
}

int64_t session_stall_ns(const struct session *s)
{
    return s->view.stall_ns;
}

uint32_t session_members(const struct session *s)
{
    return s->view.room;
}

const struct session_op *session_op(const struct session *s, uint32_t slot)
{
    return &s->slots.at[slot].run;
}

void session_info(const struct session *s, struct session_info *out)
{
    *out = (struct session_info){
        .connected = s->phase == PHASE_MEMBER && !s->poisoned,
        .run = s->run,
        .id = s->id,
        .view = s->view.view,
        .newest = s->admission.view > s->view.view ? s->admission.view : s->view.view,
        .rank = s->view.world > 0 ? s->view.shown[s->view.rank] : 0,
        .world = s->view.world,
        .called_rank = s->view.world > 0 ? roster_rank(s, s->id) : 0,
        .called = s->view.world > 0 ? s->view.world + s->roster.count : 0,
        .snapshot = s->snapshot.sizes,
        .known = s->snapshot.view,
        .open_slots = s->slots.used - s->slots.windows,
        .voting = s->vote.kind != VOTE_NONE,
        .frozen = s->view.frozen,
    };
}

void session_gone(const struct session *s, struct session_outcome *out)
{
    *out = (struct session_outcome){.result = s->left.over ? RESULT_OVER : RESULT_GONE, .since = s->left.since};
    left_outcome(s, out);
}
