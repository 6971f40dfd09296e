/* refusal.c - REFUSE: one operation fails alike everywhere, the view and all other operations live on (P10).
 *
 * Who runs an operation and has not sent HOLD may refuse it, and then never holds it.  Every session answers the first
 * REFUSE of an operation with its own, whatever its program does, and again when it hears a graver cause.  A call returns
 * once the last REFUSE of every member names the same cause: then nobody can have succeeded, nobody can return another
 * cause, and the operation may be forgotten.  Invariant: what a session has sent last is the gravest cause it knows.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

bool refusal_allowed(const struct session *s, const struct op *op)
{
    bool running = op->phase == OP_RUN || (MUTANT(REFUSE_HELD) && op->phase == OP_HOLDING);
    return running && op->refused == 0 && (!s->frozen || MUTANT(REFUSE_LATE));
}

void refusal_send(struct session *s, struct op *op, uint8_t cause, uint64_t culprit, struct outbox *out)
{
    op->refused = cause;
    op->culprit = culprit;
    op->settled = op->settled == UINT32_MAX ? s->settled : op->settled;
    op_mark(s, op, s->view.rank)->refuse = cause;
    if (op->slot != NONE) {
        slot_stop(s, op->slot, out);
    }
    struct msg_refuse m = {
        .name = op->name, .origin = s->id, .cause = cause, .culprit = culprit, .settled = op->settled};
    put_refuse(outbox_frame(out, FRAME_REFUSE, s->run, s->view.view), &m);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && peer_reachable(s, r)) {
            outbox_dest(out, a, s->view.ids[r]);
        }
    }
    refusal_check(s, op, out);
}

void refusal_check(struct session *s, struct op *op, struct outbox *out)
{
    if (op->slot == NONE || op->refused == 0) {
        return; /* not launched here: the error waits for the call of this number */
    }
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (op_mark(s, op, r)->refuse != op->refused && !MUTANT(CAUSE_FIRST)) {
            return;
        }
    }
    struct tag *t = tag_find(s, op->name.tag);
    PCCL_ASSERT(t != NULL);
    t->refusals++;
    slot_end(s, op->slot, result_of_cause(op->refused), op->refused, op->culprit, out);
    op->slot = NONE;
    op_drop(s, op);
}

static void hear(struct session *s, struct op *op, uint32_t rank, const struct msg_refuse *m, struct outbox *out)
{
    struct mark *mark = op_mark(s, op, rank);
    op->settled = m->settled < op->settled ? m->settled : op->settled;
    if (m->cause > mark->refuse) {
        mark->refuse = m->cause;
    }
    bool answers = !(MUTANT(ANSWER_NOT) && op->phase == OP_HOLDING) &&
                   !(MUTANT(UNLAUNCHED_NOT) && op->phase == OP_GHOST);
    if (answers && mark->refuse > op->refused && (op->refused == 0 || !MUTANT(CAUSE_FIRST))) {
        refusal_send(s, op, mark->refuse, m->culprit, out);
    } else {
        if (op->culprit == 0 && m->cause == op->refused) {
            op->culprit = m->culprit;
        }
        refusal_check(s, op, out);
    }
}

void refusal_message(struct session *s, uint32_t from, const struct frame_header *h, struct reader *r,
                     struct outbox *out)
{
    struct msg_refuse m;
    const void *payload = r->at;
    if (!get_refuse(r, &m)) {
        links_down(s, s->peers[from].id, false, out);
        return;
    }
    if (h->view != s->view.view || (s->frozen && !MUTANT(REFUSE_LATE))) {
        return;
    }
    links_relay(s, from, m.origin, h, payload, out);
    uint32_t rank = origin_rank(s, from, m.origin);
    struct op *op = rank != NONE ? op_hear(s, &m.name, out) : NULL;
    if (op != NULL) {
        hear(s, op, rank, &m, out);
    }
}

/* The program, or its deadline, gives an operation up: refuse it, or after HOLD ask for a freeze. */
void refusal_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out)
{
    if (refusal_allowed(s, op)) {
        refusal_send(s, op, cause, s->id, out);
    } else if (op->phase == OP_HOLDING && op->refused == 0 && !s->frozen) {
        links_suspect(s, SUSPECT_OPERATION, cause, 0, &op->name, "given up by the program after it was complete here",
                      out);
    }
}

/* The answer to an update in the same view: numbers refused but never launched here are skipped (P10).  Others may have had
 * the answer first, launched and refused: those are of after it, and stay. */
void refusal_skip(struct session *s, uint32_t settled)
{
    for (uint32_t i = 0; s->op_used > 0 && i < s->op_count; i++) {
        struct op *op = &s->ops[i];
        if (op->phase == OP_GHOST && op->refused != 0 && op->settled <= settled) {
            struct tag *t = tag_get(s, op->name.tag);
            if (t != NULL && t->next_seq <= op->name.seq) {
                t->next_seq = op->name.seq + 1;
            }
            op_drop(s, op);
        }
    }
}
