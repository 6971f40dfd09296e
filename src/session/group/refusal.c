/* refusal.c - REFUSE: one operation fails alike everywhere, the view and all other operations live on (P10).
 *
 * Who runs an operation and has not sent HOLD may refuse it, and then never holds it.  Every session answers the first
 * REFUSE of an operation with its own, whatever its program does, and again when it hears a graver cause, or of the same cause
 * a culprit of lower id.  A call returns once the last REFUSE of every member names the same cause and culprit: then nobody
 * can have succeeded, and nobody can return another.  A member that has answered very much
 * says its answer once more to whoever names the operation later: it may not have been taken there (op_hear_refusal).
 * An operation whose call has returned stays on record until all members are known to have come to its number, as far as that is not
 * known at once: so many of those a member may have (begin.c).
 * Invariant: what a session has sent last is the gravest refusal it knows.
 * SPDX-License-Identifier: MIT */
#include "core/mutant.h"
#include "session/calls/complaint.h"
#include "session/calls/departure.h"
#include "session/calls/finished.h"
#include "session/calls/mismatch.h"
#include "session/calls/slots.h"
#include "session/group/refusal.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"
#include "session/tables/transitions.h"

void refusal_forget(struct session *s)
{
    s->answers = 0;
}

static bool refusal_allowed(const struct session *s, const struct op *op)
{
    bool running = op->phase == OP_RUN || (MUTANT(REFUSE_HELD) && op->phase == OP_HOLDING);
    return running && op->refused == 0 && (!s->view.frozen || MUTANT(REFUSE_LATE));
}

static void put(struct session *s, const struct op *op, const struct op_clash *clash, struct outbox *out)
{
    struct msg_refuse m = {.name = op->name, .origin = s->id, .cause = op->refused, .culprit = op->culprit,
                           .settled = op->settled, .clash = *clash};
    put_refuse(outbox_frame(out, FRAME_REFUSE, s->run, s->view.view), &m);
}

void refusal_again(struct session *s, const struct op *op, uint32_t rank, struct outbox *out)
{
    struct op_clash clash = mismatch_clash(s, op);
    put(s, op, &clash, out);
    peers_send(s, rank, out);
}

void refusal_send(struct session *s, struct op *op, uint8_t cause, uint64_t culprit, struct outbox *out)
{
    op->refused = cause;
    op->culprit = culprit;
    op->agreed = 0;
    op->settled = op->settled == UINT32_MAX ? s->vote.settled : op->settled;
    struct mark *own = mark_of(s, op, s->view.rank);
    own->refuse = cause;
    own->refuse_culprit = culprit;
    if (!MUTANT(TURN_KEPT)) {
        op->class->stop(s, op);
    }
    if (op->slot != NONE) {
        slot_stop(s, op->slot, out);
    }
    struct op_clash clash = mismatch_clash(s, op);
    s->answers += !op_refusal_of(cause, culprit, &clash, s->id);
    put(s, op, &clash, out);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && peer_reachable(s, r)) {
            outbox_dest(out, a, s->view.ids[r]);
        }
    }
    refusal_check(s, op, out);
}

void refusal_mismatch(struct session *s, struct op *op, uint64_t with, struct outbox *out)
{
    op->other = with < s->id ? with : s->id;
    refusal_send(s, op, CAUSE_MISMATCH, with < s->id ? s->id : with, out);
}

/* The own call has returned.  This peer says so (FINISHED), and keeps the operation until all members have said so, if some of
 * them may not have launched it yet. */
static void record(struct session *s, struct op *op, struct outbox *out)
{
    struct tag *t = tag_of(s, &op->name);
    bool taken = op_finished(s, op, s->view.rank) || op->launched == s->view.world;
    PCCL_ASSERT(t != NULL);
    if (!MUTANT(TAKEN_UNSAID)) {
        finished_note(s, &op->name, out);
    }
    op_drop_marks(s, op);
    if (taken) {
        op_drop(s, op);
        return;
    }
    op_record(s, op);
    tag_refused(s, t);
}

void refusal_taken(struct session *s, struct op *op, uint32_t rank)
{
    if (op_finished(s, op, rank) && op_untaken(op)) {
        op_drop(s, op);
    }
}

void refusal_taken_before(struct session *s, const struct op_name *name)
{
    for (uint32_t i = 0; s->ops.untaken > 0 && i < s->ops.count; i++) {
        struct op *op = &s->ops.at[i];
        bool before = op->name.space == name->space && op->name.tag == name->tag && op->name.seq < name->seq;
        if (before && op_untaken(op)) {
            op_drop(s, op);
        }
    }
}

void refusal_check(struct session *s, struct op *op, struct outbox *out)
{
    if (op->slot == NONE || op->refused == 0) {
        return; /* not launched here: the error waits for the call of this number */
    }
    for (; op->agreed < s->view.world; op->agreed++) { /* whoever has said the same says another only if we do */
        const struct mark *m = op_mark(s, op, op->agreed);
        if ((m->refuse != op->refused || m->refuse_culprit != op->culprit) && !MUTANT(CAUSE_FIRST)) {
            return;
        }
    }
    if (op->refused == CAUSE_OLD_VIEW && !MUTANT(SIZES_KEPT)) { /* P12: with the loss that it is for come the sizes after it */
        slot_sizes(s, op->slot, s->view.view, &s->view.sizes);
    }
    slot_end(s, op->slot, slot_result(&s->slots.at[op->slot], op->refused), op->refused, op->culprit, out);
    op->slot = NONE;
    record(s, op, out);
}

static void hear(struct session *s, struct op *op, uint32_t rank, const struct msg_refuse *m, struct outbox *out)
{
    struct mark *mark = mark_of(s, op, rank); /* as it was heard */
    bool first = mark->refuse == 0 && op->refused != 0;
    op->settled = m->settled < op->settled ? m->settled : op->settled;
    if (cause_outweighs(m->cause, m->culprit, mark->refuse, mark->refuse_culprit)) {
        mark->refuse = m->cause;
        mark->refuse_culprit = m->culprit;
    }
    bool answers = !(MUTANT(ANSWER_NOT) && op->phase == OP_HOLDING) &&
                   !(MUTANT(UNLAUNCHED_NOT) && op->phase == OP_GHOST);
    bool graver = cause_outweighs(mark->refuse, mark->refuse_culprit, op->refused, op->culprit);
    if (answers && graver && (op->refused == 0 || !MUTANT(CAUSE_FIRST))) {
        if (mark->refuse == CAUSE_MISMATCH && mark->refuse_culprit == m->culprit) {
            mismatch_learn(s, op, &m->clash);
        }
        refusal_send(s, op, mark->refuse, mark->refuse_culprit, out);
        return;
    }
    if (first && s->answers > MOST_ANSWERED) {
        refusal_again(s, op, rank, out); /* it may not have taken ours */
    }
    refusal_check(s, op, out);
}

bool refusal_heard(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out)
{
    peers_relay(s, said->from, m->origin, said->header, said->payload, out);
    uint32_t rank = origin_rank(s, said->from, m->origin);
    struct op *op = rank != NONE ? op_hear_refusal(s, said->from, rank, m) : NULL;
    if (op != NULL) {
        hear(s, op, rank, m, out);
    }
    return true;
}

/* The program, or its deadline, gives an operation up: refuse it, or after HOLD ask for a freeze (P6). */
void refusal_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out)
{
    if (refusal_allowed(s, op)) {
        refusal_send(s, op, cause, s->id, out);
    } else if (op->phase == OP_HOLDING && op->refused == 0 && !s->view.frozen) {
        complaint_op(s, op, (enum cause)cause, 0, "aborted by the program after it was complete here", out);
    }
}

/* The answer to an update in the same view: numbers refused but never launched here are skipped (P10).  Others may have had
 * the answer first, launched and refused: those are of after it, and stay.  So do those of windows (O2), whose threads know no votes: the
 * launch is on its way. */
void refusal_skip(struct session *s, uint32_t settled)
{
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        struct op *op = &s->ops.at[i];
        bool counts = op->name.space != SPACE_WINDOW || MUTANT(WINDOW_SKIPPED);
        if (op_untaken(op)) { /* of before it: no call is under way beside a vote */
            op_drop(s, op);
            continue;
        }
        if (op->phase == OP_GHOST && op->refused != 0 && op->settled <= settled && counts) {
            struct tag *t = tag_make(s, &op->name);
            if (t == NULL) {
                wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, "no memory for what was refused", true);
                return;
            }
            if (t->next_seq <= op->name.seq) {
                t->next_seq = op->name.seq + 1;
            }
            op_drop(s, op);
        }
    }
}
