/* hold.c - READY, HOLD and FINISHED: how peers agree that an operation is complete.
 *
 * Success needs the HOLD of every member with equal parameters and digest (P3).  Up to mesh_members everybody tells everybody;
 * above, HOLD is disseminated: round k goes to (rank + 2^k) mod n once all rounds before k came in and agree with the own
 * result, so that the last round means all.  A pair without a link is served by its relay, origin kept.  FINISHED lets records go (P5).
 * Invariant: a frozen view counts nothing (P4).
 * SPDX-License-Identifier: MIT */
#include "session/calls/complaint.h"
#include "session/calls/finished.h"
#include "session/calls/mismatch.h"
#include "session/calls/slots.h"
#include "session/group/hold.h"
#include "session/group/refusal.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "session/tables/transitions.h"

static bool disseminates(const struct session *s)
{
    return s->view.world > s->cfg.mesh_members;
}

static uint8_t rounds_of(uint32_t world)
{
    uint8_t k = 0;
    while (((uint32_t)1 << k) < world) {
        k++;
    }
    return k;
}

/* Dissemination: whom the round of a member is for. */
static uint32_t round_goes_to(const struct session *s, uint32_t rank, uint8_t round)
{
    return (rank + ((uint32_t)1 << (round & 31))) % s->view.world;
}

/* Who says it to this member. */
static uint32_t round_comes_from(const struct session *s, uint8_t round)
{
    return (s->view.rank + s->view.world - ((uint32_t)1 << (round & 31))) % s->view.world;
}

static struct writer *hold_frame(struct session *s, const struct op *op, uint64_t origin, uint8_t round,
                                 uint64_t params, uint64_t digest, struct outbox *out)
{
    struct msg_hold m = {.name = op->name, .origin = origin, .round = round, .params = params, .digest = digest};
    struct writer *w = outbox_frame(out, FRAME_HOLD, s->run, s->view.view);
    put_hold(w, &m);
    return w;
}

static bool agrees(const struct op *op, const struct mark *m)
{
    return m->hold_params == op->params && m->hold_digest == op->digest;
}

/* How many rounds, from the first on, have come in and agree with our own result.  A HOLD that differs ends the row: passed on, it
 * would vouch for results that nobody has compared. */
static uint8_t rounds_agreed(const struct session *s, const struct op *op)
{
    uint8_t rounds = rounds_of(s->view.world), k = 0;
    if (op->phase == OP_DONE) {
        return rounds;
    }
    while (k < rounds) {
        const struct mark *m = op_mark(s, op, round_comes_from(s, k));
        if (!m->held || (!agrees(op, m) && !MUTANT(ROUNDS_DIFFER))) {
            break;
        }
        k++;
    }
    return k;
}

/* Sends every round that may go: round k once rounds 0 .. k-1 came in and agree. */
static void hold_rounds(struct session *s, struct op *op, bool again, struct outbox *out)
{
    uint8_t rounds = rounds_of(s->view.world), agreed = rounds_agreed(s, op);
    if (again) {
        op->round = 0;
    }
    while (op->round < rounds && op->round <= agreed) {
        hold_frame(s, op, s->id, op->round, op->params, op->digest, out);
        peers_send(s, round_goes_to(s, s->view.rank, op->round), out);
        op->round++;
    }
}

static void hold_send(struct session *s, struct op *op, struct outbox *out)
{
    if (disseminates(s)) {
        hold_rounds(s, op, false, out);
        return;
    }
    hold_frame(s, op, s->id, 0, op->params, op->digest, out);
    peers_send_all(s, out);
}

static void finish(struct session *s, struct op *op, struct outbox *out)
{
    if (!MUTANT(REFUSALS_KEPT)) {
        refusal_taken_before(s, &op->name); /* all members have launched this number, hence all before it */
    }
    s->slots.at[op->slot].outcome.tx_bytes += op->class->given(s, op);
    slot_end(s, op->slot, RESULT_OK, CAUSE_NONE, 0, out);
    op->slot = NONE;
    op_record(s, op);
    op_drop_marks(s, op);
    finished_note(s, &op->name, out);
    if (op_finished(s, op, s->view.rank)) {
        op_drop(s, op);
    }
}

/* It holds another result than this one; the master hears of it. */
static bool differs(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    const struct mark *m = op_mark(s, op, rank);
    if (!m->held || agrees(op, m)) {
        return false;
    }
    complaint_op(s, op, m->hold_params != op->params ? CAUSE_MISMATCH : CAUSE_DIGEST, s->view.ids[rank], "peers hold different results", out);
    return true;
}

/* Everything before op->agreed is known to agree.  `rank`: whose HOLD is new, NONE: our own. */
static bool mesh_agrees(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    op->agreed = rank < op->agreed && !agrees(op, op_mark(s, op, rank)) ? rank : op->agreed;
    while (op->agreed < s->view.world && op_mark(s, op, op->agreed)->held) {
        if (differs(s, op, op->agreed, out)) {
            return false;
        }
        op->agreed++;
    }
    return op->agreed == s->view.world;
}

/* Only those speak to this member whose rounds come to it. */
static bool rounds_agree(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    uint8_t rounds = rounds_of(s->view.world);
    for (uint8_t k = 0; k < rounds; k++) {
        uint32_t from = round_comes_from(s, k);
        if ((rank == NONE || rank == from) && differs(s, op, from, out)) {
            return false;
        }
    }
    return rounds_agreed(s, op) == rounds;
}

static void check(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if (op->phase != OP_HOLDING || (op->refused != 0 && !MUTANT(REFUSE_HELD)) || (s->view.frozen && !MUTANT(LATE_HOLD))) {
        return;
    }
    if (MUTANT(NAIVE)) {
        finish(s, op, out);
        return;
    }
    if (disseminates(s) ? rounds_agree(s, op, rank, out) : mesh_agrees(s, op, rank, out)) {
        finish(s, op, out);
    }
}

static void held(struct session *s, struct op *op, uint32_t rank, const struct msg_hold *m, struct outbox *out)
{
    struct mark *mark = mark_heard(s, op, rank);
    if (mark == NULL) {
        return;
    }
    mark->held = true;
    mark->hold_params = m->params;
    mark->hold_digest = m->digest;
    if (disseminates(s) && op->phase == OP_HOLDING) {
        hold_rounds(s, op, false, out);
    }
    check(s, op, rank, out);
}

/* What lanes have brought was not all that there is: now more is here, or heard. */
void hold_arrived(struct session *s, struct op *op, struct outbox *out)
{
    if (op->whole) {
        hold_complete(s, op, op->digest, out);
    }
}

bool hold_heard(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out)
{
    uint32_t from = said->from;
    const struct frame_header *h = said->header;
    if (m->round >= (disseminates(s) ? rounds_of(s->view.world) : 1) && h->view == s->view.view) {
        return false; /* there is no such round */
    }
    peers_relay(s, from, m->origin, h, said->payload, out);
    uint32_t rank = origin_rank(s, from, m->origin);
    uint32_t to = rank == NONE ? NONE : round_goes_to(s, rank, m->round);
    bool ours = rank != NONE && (!disseminates(s) || to == s->view.rank);
    if (!ours && (rank == NONE || view_relay(s, m->origin, s->view.ids[to]) != s->id)) {
        return h->view != s->view.view || (rank != NONE && rank != s->peers.at[from].rank); /* else it speaks for others, or to others */
    }
    struct op *op = op_hear(s, from, rank, &m->name);
    if (op != NULL && ours) {
        held(s, op, rank, m, out);
    } else if (op != NULL) {
        struct mark *mark = mark_of(s, op, rank); /* as it was heard */
        mark->relayed |= (uint32_t)1 << (m->round & 31);
        mark->hold_params = m->params;
        mark->hold_digest = m->digest;
    }
    return true;
}

void hold_ready(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out)
{
    if (mismatch_with(s, op, rank)) { /* its lanes would not know what comes; who holds already has the other one refuse */
        if (op->phase == OP_RUN && op->refused == 0) {
            refusal_mismatch(s, op, s->view.ids[rank], out);
        }
        return;
    }
    if (!again) {
        carrier_feed(s, op, rank, out);
    }
    hold_arrived(s, op, out);
}

/* Whether the HOLD of a member comes to us, from itself or its relay. */
static bool hold_is_due(const struct session *s, uint32_t rank)
{
    bool due = !disseminates(s);
    for (uint8_t k = 0; disseminates(s) && k < rounds_of(s->view.world); k++) {
        due = due || round_goes_to(s, rank, k) == s->view.rank;
    }
    return due;
}

/* What one member has finished all members hold: that stands for its HOLD, should that not have come.  Of a refused operation it says
 * that the call there has returned.  False: it cannot be, without the word of this peer. */
bool hold_finished(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if (op->refused != 0) {
        refusal_taken(s, op, rank);
        return true;
    }
    if ((op->phase == OP_GHOST || op->phase == OP_RUN) && !s->view.frozen) {
        return false;
    }
    bool all = op_finished(s, op, rank);
    if (op->phase == OP_DONE && all) {
        op_drop(s, op);
    } else if (op->phase == OP_HOLDING && !s->view.frozen && hold_is_due(s, rank) && !op_mark(s, op, rank)->held) {
        held(s, op, rank, &(struct msg_hold){.params = op->params, .digest = op->digest}, out);
    }
    return true;
}

static void finished_again(struct session *s, const struct op *op, uint64_t to, struct outbox *out)
{
    struct msg_finished m = {.origin = s->id, .names = 1};
    struct writer *w = outbox_frame(out, FRAME_FINISHED, s->run, s->view.view);
    put_finished(w, &m);
    put_op_name(w, &op->name);
    outbox_send(out, ACT_PEERS, to);
}

/* The HOLD of a member that is behind a missing edge for `rank`: its only one, or its rounds for that rank.  Of an operation that is
 * over here nothing is remembered, but then all hold it alike. */
static void replay_hold(struct session *s, const struct op *op, uint32_t origin, uint32_t rank, struct outbox *out)
{
    const struct mark *m = op->marks == NONE ? NULL : op_mark(s, op, origin);
    uint64_t params = m == NULL ? op->params : m->hold_params, digest = m == NULL ? op->digest : m->hold_digest;
    if (!disseminates(s)) {
        if (m == NULL || m->held) {
            hold_frame(s, op, s->view.ids[origin], 0, params, digest, out);
            outbox_send(out, ACT_PEERS, s->view.ids[rank]);
        }
        return;
    }
    for (uint8_t round = 0; round < rounds_of(s->view.world); round++) {
        bool said = m == NULL || (m->relayed >> round & 1) != 0;
        if (said && round_goes_to(s, origin, round) == rank) {
            hold_frame(s, op, s->view.ids[origin], round, params, digest, out);
            outbox_send(out, ACT_PEERS, s->view.ids[rank]);
        }
    }
}

/* What the members behind missing edges said, to the member that we relay for. */
static void replay_relayed(struct session *s, const struct op *op, uint32_t rank, struct outbox *out)
{
    for (uint32_t i = 0; i < s->view.edges; i++) {
        const struct missing_edge *e = &s->view.edge[i];
        uint64_t to = s->view.ids[rank];
        uint64_t origin = e->relay != s->id ? 0 : e->a == to ? e->b : e->b == to ? e->a : 0;
        uint32_t from = origin == 0 ? NONE : view_rank(s, origin);
        if (from == NONE) {
            continue;
        }
        replay_hold(s, op, from, rank, out);
        const struct mark *m = op->marks == NONE ? NULL : op_mark(s, op, from);
        if (m != NULL && m->refuse != 0) {
            struct msg_refuse refuse = {.name = op->name, .origin = origin, .cause = m->refuse, .culprit = m->refuse_culprit,
                                        .settled = op->settled};
            if (m->refuse == CAUSE_MISMATCH && m->refuse_culprit == op->culprit) {
                refuse.clash = mismatch_clash(s, op);
            }
            put_refuse(outbox_frame(out, FRAME_REFUSE, s->run, s->view.view), &refuse);
            outbox_send(out, ACT_PEERS, to);
        }
    }
}

void hold_replay(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    uint64_t to = s->view.ids[rank];
    if (!peer_reachable(s, rank)) { /* its relay has said that there is a path: of what goes by that */
        if (carrier_relays(s, op, rank)) {
            carrier_announce(s, op, rank, out);
            carrier_feed(s, op, rank, out);
        }
        return;
    }
    if (op_untaken(op)) {
        refusal_again(s, op, rank, out);
        finished_again(s, op, to, out);
        return;
    }
    replay_relayed(s, op, rank, out);
    if (op->refused != 0) {
        refusal_again(s, op, rank, out);
        return;
    }
    carrier_announce(s, op, rank, out);
    if (op->phase != OP_HOLDING && op->phase != OP_DONE) {
        return;
    }
    if (disseminates(s)) {
        if (op->phase == OP_HOLDING || op->round > 0) {
            hold_rounds(s, op, true, out);
        }
    } else {
        hold_frame(s, op, s->id, 0, op->params, op->digest, out);
        outbox_send(out, ACT_PEERS, to);
    }
    if (op->phase == OP_DONE) {
        finished_again(s, op, to, out);
    }
}

/* P12: of counts that only two know, this member has heard what each of the others expects of it; who holds cannot refuse any more. */
static bool expected_by_all(const struct session *s, const struct op *op)
{
    bool pairs = s->slots.at[op->slot].launch.call.params.layout == LAYOUT_PAIRS;
    return !pairs || op->launched == s->view.world || MUTANT(EXPECTS_BLIND);
}

/* All that lanes bring is in the caller's buffer; if that is the whole result, it is held (P2). */
void hold_complete(struct session *s, struct op *op, uint64_t digest, struct outbox *out)
{
    if (op->phase != OP_RUN || op->refused != 0 || (s->view.frozen && !MUTANT(LATE_HOLD))) {
        return; /* P4: nothing becomes held in a frozen view; P10: who refused never holds */
    }
    op->digest = digest;
    op->whole = !expected_by_all(s, op) || !op->class->in_place(s, op);
    if (op->whole) {
        return;
    }
    phase_move(MACHINE_OPERATION, &op->phase, OP_HOLDING);
    struct mark *own = mark_of(s, op, s->view.rank);
    own->held = true;
    own->hold_params = op->params;
    own->hold_digest = digest;
    hold_send(s, op, out);
    check(s, op, NONE, out);
}
