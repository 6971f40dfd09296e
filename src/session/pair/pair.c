/* pair.c - messages from one member to another.
 *
 * The receiver owns the operation: its word, HOLD or REFUSE, is the outcome for both (B2).  The sender only announces, with READY or with
 * the bytes themselves (EAGER), and asks: its own deadline, cancel or lack of memory is a REFUSE to the receiver alone, which
 * answers without its program (B3, B4).  Names, numbers, records and owed errors are those of the pair (B1); the others of the view know nothing
 * of it.  Invariant: the receiver says one word of a number, and returns in that step.
 * SPDX-License-Identifier: MIT */
#include "session/calls/begin.h"
#include "session/calls/departure.h"
#include "session/calls/finished.h"
#include "session/calls/mismatch.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/calls/work.h"
#include "session/pair/pair.h"
#include "session/relay/path.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/pair_name.h"
#include "session/tables/park.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"
#include "session/tables/transitions.h"

static const struct mark *partner_mark(const struct session *s, const struct op *op)
{
    return op_mark(s, op, pair_partner(s, &op->name));
}

/* ---- words ---- */

static void say_hold(struct session *s, const struct op *op, struct outbox *out)
{
    struct msg_hold m = {.name = op->name, .origin = s->id, .params = op->params, .digest = op->digest};
    put_hold(outbox_frame(out, FRAME_HOLD, s->run, s->view.view), &m);
    peers_send(s, pair_partner(s, &op->name), out);
}

/* The owner's word, or the wish of the other. */
static void say_refuse(struct session *s, const struct op *op, uint8_t cause, uint64_t culprit, struct outbox *out)
{
    struct msg_refuse m = {.name = op->name, .origin = s->id, .cause = cause, .culprit = culprit,
                           .settled = op->settled != UINT32_MAX ? op->settled : s->vote.settled};
    if (cause == CAUSE_MISMATCH) {
        m.clash = mismatch_clash(s, op);
    }
    put_refuse(outbox_frame(out, FRAME_REFUSE, s->run, s->view.view), &m);
    peers_send(s, pair_partner(s, &op->name), out);
}

/* ---- the owner's end ---- */

/* B8: on record until the sender has heard the word. */
static void record(struct session *s, struct op *op)
{
    op_drop_marks(s, op);
    op_record(s, op);
    bool forgets = MUTANT(REFUSE_FORGET) && op->refused != 0;
    if (forgets || op->taken) {
        op_drop(s, op);
    }
}

static void finish(struct session *s, struct op *op, struct outbox *out)
{
    tag_caught_up(s, tag_of(s, &op->name));
    say_hold(s, op, out);
    slot_end(s, op->slot, RESULT_OK, CAUSE_NONE, 0, out);
    op->slot = NONE;
    record(s, op);
}

/* Launched here: the call ends with the word that was said. */
static void end_refused(struct session *s, struct op *op, struct outbox *out)
{
    if (!partner_mark(s, op)->ready) { /* it may not have come to this number yet */
        tag_refused(s, tag_of(s, &op->name));
        op->untold = op->culprit == s->id; /* nor heard of it: it has asked for no such word */
    }
    slot_end(s, op->slot, slot_result(&s->slots.at[op->slot], op->refused), op->refused, op->culprit, out);
    op->slot = NONE;
    record(s, op);
}

static void note_refusal(struct session *s, struct op *op, uint8_t cause, uint64_t culprit, uint32_t settled)
{
    op->refused = cause;
    op->culprit = culprit;
    op->settled = settled < op->settled ? settled : op->settled;
    op->settled = op->settled != UINT32_MAX ? op->settled : s->vote.settled; /* whatever a peer says */
    struct mark *own = mark_of(s, op, s->view.rank);
    own->refuse = cause;
    own->refuse_culprit = culprit;
}

static void refuse(struct session *s, struct op *op, uint8_t cause, uint64_t culprit, uint32_t settled, struct outbox *out)
{
    note_refusal(s, op, cause, culprit, settled);
    say_refuse(s, op, cause, culprit, out);
    if (op->slot != NONE) {
        end_refused(s, op, out);
    }
}

static void refuse_mismatch(struct session *s, struct op *op, struct outbox *out)
{
    uint64_t with = op->name.from;
    op->other = with < s->id ? with : s->id;
    op->culprit = with < s->id ? s->id : with;
    refuse(s, op, CAUSE_MISMATCH, op->culprit, s->vote.settled, out);
}

void pair_complete(struct session *s, struct op *op, uint64_t digest, struct outbox *out)
{
    (void)digest; /* the word of one needs no comparison */
    if (!pair_owner(s, &op->name) || op->phase != OP_RUN || op->refused != 0 || (s->view.frozen && !MUTANT(LATE_HOLD))) {
        return;
    }
    op->whole = !partner_mark(s, op)->ready; /* B2: nothing to move, and it has not launched */
    if (!op->whole) {
        finish(s, op, out);
    }
}

/* ---- calls ---- */

static void end_lost(struct session *s, uint32_t slot, uint64_t culprit, struct outbox *out)
{
    s->slots.at[slot].outcome.view_ended = true;
    slot_sizes(s, slot, s->view.view, &s->view.sizes);
    slot_end(s, slot, RESULT_LOST, CAUSE_PEER_LOST, culprit, out);
}

/* B10, B14: a call that nobody can answer in this view has ended, without a number. */
bool pair_ended_by_view(struct session *s, uint32_t slot, struct outbox *out)
{
    const struct slot *c = &s->slots.at[slot];
    bool any = c->partner == 0;
    if (c->launch.call.within != 0 && c->launch.call.within != s->view.view && !MUTANT(WITHIN_NOT)) { /* O1 */
        end_lost(s, slot, s->view.lost_id, out);
    } else if (any && c->launch.call.known < s->view.lost_in && !MUTANT(ANY_LATELOSS)) {
        end_lost(s, slot, s->view.lost_id, out);
    } else if (any && s->view.world < 2) {
        slot_sizes(s, slot, s->view.view, &s->view.sizes);
        slot_end(s, slot, RESULT_ALONE, CAUSE_NONE, 0, out);
    } else if (!any && view_rank(s, c->partner) == NONE) {
        end_lost(s, slot, c->partner, out);
    } else {
        return false;
    }
    return true;
}

/* Takes what is owed to the pair, or its next number; null: the call has ended. */
static struct op *number(struct session *s, uint32_t slot, struct tag *t, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    struct op_name name = tag_name(t);
    c->launch.call.params.algorithm = PLAN_ALGORITHMS; /* not chosen yet */
    bool last = MUTANT(FAILED_LAST) && c->launch.call.receives && op_find(s, &name) != NULL;
    if (!last && begin_owed(s, slot, t, out)) {
        return NULL;
    }
    bool window = t->space == SPACE_WINDOW; /* whose shells see to how many there are, and to both ends of each */
    if (!window && begin_too_far(s, t)) {
        slot_end(s, slot, RESULT_AHEAD, CAUSE_NONE, 0, out);
        return NULL;
    }
    struct op *op = op_make(s, &name);
    if (op == NULL && window) {
        wish_no_message(s);
        return NULL;
    }
    if (op == NULL) { /* nobody has been told of the call, and its number is free */
        slot_end(s, slot, RESULT_NO_MEMORY, CAUSE_NO_MEMORY, s->id, out);
        return NULL;
    }
    heard_unlist(s, op);
    begin_number(s, slot, t, op);
    op->eager = op->eager || path_used(s, &name);
    slot_move(s, slot, SLOT_RUNNING);
    if (window) {
        c->outcome.view = s->view.view;
        c->outcome.partner = pair_owner(s, &name) ? name.from : name.to;
    }
    return op;
}

/* Why a call that has its number cannot be made. */
static uint8_t unable(const struct slot *c)
{
    return c->launch.call.bad_argument ? CAUSE_ARGUMENT : c->launch.call.no_memory ? CAUSE_NO_MEMORY : c->given_up;
}

static void deliver(struct session *s, struct op *op, const void *payload, uint32_t bytes, struct outbox *out)
{
    struct slot *c = &s->slots.at[op->slot];
    c->outcome.rx_bytes = bytes;
    if (bytes > 0) {
        memcpy(c->launch.call.out, payload, bytes);
    }
    pair_complete(s, op, 0, out);
}

static void take_eager(struct session *s, struct op *op, struct outbox *out)
{
    const struct mark *m = partner_mark(s, op);
    uint32_t rank = pair_partner(s, &op->name);
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    uint64_t due = work_takes(s, l, rank).count * dtype_size((enum dtype)l->call.params.dtype);
    if (m->park != 0 && m->park_bytes != due) { /* announced with other parameters than it came with */
        refuse_mismatch(s, op, out);
    } else if (m->park != 0) { /* given back with the marks */
        deliver(s, op, park_at(s, m->park), m->park_bytes, out);
    } else if (m->ready) {
        park_ask(s, op, rank, out);
    }
}

static void receive_start(struct session *s, struct op *op, struct outbox *out)
{
    struct slot *c = &s->slots.at[op->slot];
    uint32_t rank = pair_partner(s, &op->name), slot = op->slot;
    if (op->refused != 0) { /* before we came (B5) */
        end_refused(s, op, out);
    } else if (unable(c) != CAUSE_NONE) {
        refuse(s, op, unable(c), s->id, s->vote.settled, out);
    } else if (mismatch_with(s, op, rank)) {
        refuse_mismatch(s, op, out);
    } else if (path_used(s, &op->name)) {
        path_take(s, op, rank, out);
        if (path_in_place(s, op)) { /* there is nothing to move */
            pair_complete(s, op, 0, out);
        }
    } else if (op->eager) {
        take_eager(s, op, out);
    } else {
        begin_lanes(s, op, slot, out);
        carrier_announce(s, op, rank, out);
        carrier_feed(s, op, rank, out);
    }
}

/* The first of the line, for as long as there is something for it. */
void pair_match(struct session *s, struct tag *box, struct outbox *out)
{
    uint64_t source;
    while (box->waiting != NONE && !s->view.frozen) {
        uint32_t slot = box->waiting;
        struct tag *t = pair_next(s, box, &source);
        if (t == NULL) {
            return;
        }
        pair_leave_line(s, box, slot);
        for (uint32_t i = box->heard, next; MUTANT(ANY_DROP) && i != NONE; i = next) {
            next = s->ops.at[i].heard_next;
            if (s->ops.at[i].name.from != source) {
                heard_unlist(s, &s->ops.at[i]);
            }
        }
        s->slots.at[slot].partner = source;
        s->slots.at[slot].outcome.source = roster_rank(s, source); /* nobody is lost since the call (B14): it counts as the call does */
        struct op *op = number(s, slot, t, out);
        if (op != NULL) {
            receive_start(s, op, out);
        }
    }
}

/* From here on nothing reads the program's buffer: what has not gone is not sent, and nothing is said of it again but the wish. */
static void ask(struct session *s, struct op *op, uint8_t cause, struct outbox *out)
{
    op->asked = cause;
    if (!MUTANT(LENT_ON)) {
        op->whole = true;
        path_stop(s, op);
        slot_stop(s, op->slot, out);
    }
    say_refuse(s, op, cause, s->id, out);
    if (MUTANT(ASK_BELIEVE)) {
        slot_end(s, op->slot, slot_result(&s->slots.at[op->slot], cause), cause, s->id, out);
        op->slot = NONE;
        op_drop(s, op);
    }
}

static void send_start(struct session *s, struct op *op, struct outbox *out)
{
    struct slot *c = &s->slots.at[op->slot];
    uint32_t rank = pair_partner(s, &op->name), slot = op->slot;
    if (op->refused != 0 && !MUTANT(LATE_WAITS)) { /* the receiver's word was here before we came (B5) */
        slot_end(s, slot, slot_result(c, op->refused), op->refused, op->culprit, out);
        op->slot = NONE;
        op_drop(s, op);
    } else if (unable(c) != CAUSE_NONE) {
        ask(s, op, unable(c), out); /* there is nothing to say but that */
    } else if (op->eager) {
        carrier_announce(s, op, rank, out);
    } else {
        begin_lanes(s, op, slot, out);
        carrier_announce(s, op, rank, out);
        pair_ready(s, op, rank, false, out);
    }
}

static void launch(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    bool any = c->partner == 0;
    if ((any || !MUTANT(NOPARTNER)) && pair_ended_by_view(s, slot, out)) {
        return;
    }
    if (any && unable(c) != CAUSE_NONE) { /* B12: it is nameless, so that it fails alone */
        slot_end(s, slot, slot_result(c, unable(c)), unable(c), s->id, out);
        return;
    }
    struct op_name name = {.space = c->launch.call.space, .tag = c->launch.call.tag, .from = s->id, .to = c->partner};
    struct tag *t = c->launch.call.receives ? NULL : tag_make(s, &name);
    if (c->launch.call.receives ? !pair_wait(s, slot) : t == NULL) {
        if (name.space == SPACE_WINDOW) {
            wish_no_message(s);
            return;
        }
        slot_end(s, slot, RESULT_NO_MEMORY, CAUSE_NO_MEMORY, s->id, out);
        return;
    }
    if (MUTANT(LINE_PASSED) && c->launch.call.receives && !any) {
        struct tag *box = heard_box(s, c->launch.call.space, c->launch.call.tag, false);
        name = (struct op_name){.space = name.space, .tag = name.tag, .from = c->partner, .to = s->id};
        pair_leave_line(s, box, slot);
        struct op *op = number(s, slot, tag_of(s, &name), out);
        if (op != NULL) {
            receive_start(s, op, out);
        }
        return;
    }
    if (c->launch.call.receives) {
        pair_match(s, heard_box(s, c->launch.call.space, c->launch.call.tag, false), out);
        if (c->waits && c->given_up != CAUSE_NONE) { /* while it was deferred: it has no number yet */
            pair_give_up(s, slot, c->given_up, out);
        }
        return;
    }
    struct op *op = number(s, slot, t, out);
    if (op != NULL) {
        send_start(s, op, out);
    }
}

void pair_launch(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    if (c->launch.call.within == SESSION_LAST_VIEW) {
        c->launch.call.within = s->window_view;
    }
    launch(s, slot, out);
    if (c->launch.call.space == SPACE_WINDOW) {
        s->window_view = c->outcome.view != 0 ? c->outcome.view : SESSION_NO_VIEW;
    }
}

/* ---- what the other says ---- */

/* Announced: what waits for any source may go on. */
static void heard(struct session *s, struct op *op, struct outbox *out)
{
    struct tag *box;
    heard_listen(s, op);
    if (op->listed && (box = heard_box(s, op->name.space, op->name.tag, false)) != NULL) {
        pair_match(s, box, out);
    }
}

void pair_ready(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out)
{
    bool owner = pair_owner(s, &op->name);
    if (op->phase == OP_GHOST) {
        if (owner && op->refused == 0) {
            heard(s, op, out);
        }
        return;
    }
    if (mismatch_with(s, op, rank)) { /* the owner says so */
        if (owner && op->phase == OP_RUN && op->refused == 0) {
            refuse_mismatch(s, op, out);
        }
        return;
    }
    if (!again) {
        carrier_feed(s, op, rank, out);
    }
    if (owner && op->whole) {
        pair_complete(s, op, 0, out);
    }
}

void pair_eager(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out)
{
    bool runs = op->phase == OP_RUN;
    if (op->refused != 0 || op_mark(s, op, rank)->park != 0) {
        return; /* said again */
    }
    if (runs && mismatch_with(s, op, rank)) {
        refuse_mismatch(s, op, out);
        return;
    }
    if (runs) {
        deliver(s, op, payload, m->bytes, out);
    } else {
        park_payload(s, op, rank, m, payload);
        heard(s, op, out);
    }
}

/* The sender has the word, and keeps nothing (B8). */
static void told(struct session *s, struct op *op, struct outbox *out)
{
    struct op_name name = op->name;
    op->slot = NONE;
    op_drop(s, op);
    finished_note(s, &name, out);
}

bool pair_hold(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out)
{
    struct op *op = op_find(s, &m->name);
    uint32_t rank;
    bool lies = m->origin != m->name.to || !pair_speaker(s, said->from, &m->name, TO_SENDER, &rank) ||
                (op == NULL ? !op_past(s, &m->name) : op->phase != OP_RUN);
    if (lies) {
        return path_passed_on(s, said->from, &m->name);
    }
    if (op == NULL) {
        finished_note(s, &m->name, out); /* said again: what was answered may be lost with the link */
        return true;
    }
    uint32_t slot = op->slot;
    struct slot *c = &s->slots.at[slot];
    if (op->eager) {
        c->outcome.tx_bytes = work_sends(s, &c->launch, 0).count * dtype_size((enum dtype)c->launch.call.params.dtype);
    }
    tag_caught_up(s, tag_of(s, &op->name));
    slot_end(s, slot, RESULT_OK, CAUSE_NONE, 0, out);
    slot_stop(s, slot, out);
    told(s, op, out);
    return true;
}

bool pair_finished(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    bool said = op->phase == OP_DONE || op->refused != 0 || s->view.frozen;
    (void)out;
    if (!pair_owner(s, &op->name) || s->view.ids[rank] != op->name.from || !said) {
        return false;
    }
    op->taken = true;
    if (op->phase == OP_DONE) {
        op_drop(s, op);
    }
    return true;
}

/* The owner is asked.  That a sender has had the answer to a vote first, and gives up what it launched since, is of after that answer:
 * the receiver's next call takes it (B15). */
static void asked(struct session *s, struct op *op, const struct msg_refuse *m, struct outbox *out)
{
    if (op->refused != 0 || (MUTANT(OWNER_ASLEEP) && op->phase == OP_GHOST)) {
        return; /* B4: the first cause stands */
    }
    bool least = MUTANT(SETTLED_LEAST) && s->vote.settled < m->settled;
    refuse(s, op, m->cause, m->culprit, least ? s->vote.settled : m->settled, out);
    if (op->phase == OP_GHOST) {
        heard(s, op, out);
    }
}

/* At once, since a vote may wait for it (B15); and again when the word is said again: the link may have been lost with what was answered. */
static void heard_word(struct session *s, const struct op_name *name, bool first, struct outbox *out)
{
    if (first || !MUTANT(WORD_ONCE)) {
        finished_note(s, name, out);
        finished_flush(s, out);
    }
}

/* The owner has refused. */
static void refused(struct session *s, struct op *op, const struct msg_refuse *m, struct outbox *out)
{
    bool first = op->refused == 0, own = m->culprit == s->id && m->cause != CAUSE_MISMATCH;
    if (m->cause == CAUSE_MISMATCH) {
        mismatch_learn(s, op, &m->clash);
    }
    note_refusal(s, op, m->cause, m->culprit, m->settled);
    if (op->phase == OP_GHOST) { /* not called yet: noted (B5) */
        heard_word(s, &op->name, first, out);
        return;
    }
    if (own) { /* the receiver may not have come to this number */
        tag_refused(s, tag_of(s, &op->name));
    }
    slot_end(s, op->slot, slot_result(&s->slots.at[op->slot], m->cause), m->cause, m->culprit, out);
    told(s, op, out);
}

bool pair_refusal(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out)
{
    uint32_t rank;
    bool mine = pair_speaker(s, said->from, &m->name, TO_EITHER, &rank);
    if (!mine || m->origin != (pair_owner(s, &m->name) ? m->name.from : m->name.to)) {
        return false;
    }
    struct op *op = op_hear_refusal(s, said->from, rank, m);
    if (op == NULL) { /* it is over here: the word has been said (B4), or heard */
        if (!pair_owner(s, &m->name) && op_past(s, &m->name)) {
            heard_word(s, &m->name, false, out);
        }
        return true;
    }
    if (pair_owner(s, &m->name)) {
        asked(s, op, m, out);
    } else {
        refused(s, op, m, out);
    }
    return true;
}

/* ---- wishes of the program ---- */

void pair_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out)
{
    if (op->phase != OP_RUN || op->refused != 0 || op->asked != 0 || s->view.frozen) {
        return;
    }
    if (MUTANT(ANY_GIVEUP) && s->slots.at[op->slot].launch.call.root_rank == SESSION_ANY) {
        slot_end(s, op->slot, slot_result(&s->slots.at[op->slot], cause), cause, s->id, out);
        op->slot = NONE;
        op_drop(s, op);
    } else if (pair_owner(s, &op->name)) {
        refuse(s, op, cause, s->id, s->vote.settled, out);
    } else {
        ask(s, op, cause, out);
    }
}

void pair_give_up(struct session *s, uint32_t slot, uint8_t cause, struct outbox *out)
{
    struct tag *box = heard_box(s, s->slots.at[slot].launch.call.space, s->slots.at[slot].launch.call.tag, false);
    PCCL_ASSERT(box != NULL);
    pair_leave_line(s, box, slot);
    slot_end(s, slot, slot_result(&s->slots.at[slot], cause), cause, s->id, out);
    pair_match(s, box, out);
}

/* ---- links ---- */

void pair_replay(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    bool owner = pair_owner(s, &op->name);
    if (rank != pair_partner(s, &op->name)) {
        return;
    }
    if (owner && op->refused != 0) {
        say_refuse(s, op, op->refused, op->culprit, out);
    } else if (owner && op->phase == OP_DONE) {
        say_hold(s, op, out);
    } else if (op->phase == OP_RUN && owner && path_used(s, &op->name)) {
        path_take(s, op, rank, out);
    } else if (op->phase == OP_RUN) {
        carrier_announce(s, op, rank, out);
        if (op->asked != 0) {
            say_refuse(s, op, op->asked, s->id, out);
        }
    }
}
