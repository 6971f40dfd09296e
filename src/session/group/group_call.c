/* group_call.c - calls of collectives: whether one may be made, and its launch when its turn has come.
 *
 * Invariant: a call takes exactly one of an owed error (P7), TooFewPeers, or the next number of its tag (P1); in the order
 * of issue one of the first and the last, whatever becomes of it (P12).
 * SPDX-License-Identifier: MIT */
#include "session/calls/begin.h"
#include "session/calls/departure.h"
#include "session/calls/mismatch.h"
#include "session/calls/slots.h"
#include "session/group/announce.h"
#include "session/group/eager.h"
#include "session/group/group_call.h"
#include "session/group/refusal.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/tags.h"

enum session_result group_check(struct session *s, const struct session_launch *l, struct call_of *call)
{
    struct tag *t = tag_find(s, l->call.space, l->call.tag);
    bool ordered = l->call.space == SPACE_ORDERED;
    if (t != NULL && t->slot != NONE) {
        return RESULT_TAG_IN_USE;
    }
    if (!ordered && s->view.world < 2 && s->snapshot.sizes.group < 2 && (t == NULL || t->owed == NONE) && !s->view.frozen) {
        return RESULT_ALONE;
    }
    t = tag_get(s, l->call.space, l->call.tag);
    if (t == NULL) {
        return ordered || s->tags.count < s->cfg.max_tags ? RESULT_NO_MEMORY : RESULT_TAGS;
    }
    *call = (struct call_of){.tag = t};
    return RESULT_PENDING;
}

static void start(struct session *s, struct op *op, uint32_t slot, struct outbox *out)
{
    uint32_t with = mismatch_first(s, op);
    if (with != NONE) {
        refusal_mismatch(s, op, s->view.ids[with], out);
    } else if (op->eager) {
        eager_start(s, op, out);
    } else {
        begin_lanes(s, op, slot, out);
        announce_launch(s, op, out);
    }
}

/* P12: why a call that has its number is refused at once; CAUSE_NONE: it is not. */
static uint8_t refused_at_once(const struct session *s, const struct slot *c)
{
    const struct session_launch *l = &c->launch;
    bool old = l->call.known < s->view.lost_in || l->call.world != s->view.world;
    if (l->call.space == SPACE_ORDERED && old && !MUTANT(OLD_VIEW_NOT)) {
        return CAUSE_OLD_VIEW;
    }
    return l->call.bad_argument ? CAUSE_ARGUMENT
           : l->call.no_memory  ? CAUSE_NO_MEMORY
           : c->given_up        ? c->given_up
                                : CAUSE_NONE;
}

/* A number that nobody else knows of would never be called by others: this peer goes. */
void group_no_number(struct session *s)
{
    wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, "no memory for one more operation in the order of issue", true);
}

void group_launch(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    struct tag *t = tag_get(s, c->launch.call.space, c->launch.call.tag);
    PCCL_ASSERT(t != NULL);
    bool ordered = t->space == SPACE_ORDERED;
    slot_move(s, slot, SLOT_RUNNING);
    c->launch.call.params.algorithm = PLAN_ALGORITHMS; /* not chosen yet */
    if (begin_owed(s, slot, t, out)) {
        return;
    }
    if (s->view.world < 2 && !ordered) {
        slot_sizes(s, slot, s->view.view, &s->view.sizes);
        slot_end(s, slot, RESULT_ALONE, CAUSE_NONE, 0, out);
        return;
    }
    struct op_name name = {.space = t->space, .tag = t->tag, .seq = t->next_seq};
    if (MUTANT(UNNUMBERED) && c->launch.call.bad_argument) {
        slot_end(s, slot, RESULT_ARGUMENT, CAUSE_ARGUMENT, s->id, out);
        return;
    }
    if (!ordered && begin_too_far(s, t)) {
        slot_end(s, slot, RESULT_AHEAD, CAUSE_NONE, 0, out);
        return;
    }
    struct op *op = op_make(s, &name);
    if (op == NULL && ordered) {
        group_no_number(s);
        return;
    }
    if (op == NULL) { /* the table could not grow; nobody has been told of the call, and its number is free */
        slot_end(s, slot, RESULT_NO_MEMORY, CAUSE_NO_MEMORY, s->id, out);
        return;
    }
    begin_number(s, slot, t, op);
    if (MUTANT(UNLAUNCHED_NOT) && op->refused == 0) {
        for (uint32_t r = 0; r < s->view.world; r++) {
            const struct mark *m = op_mark(s, op, r);
            if (m->refuse > op->refused) {
                refusal_send(s, op, m->refuse, m->refuse_culprit, out);
            }
        }
    }
    uint8_t why = refused_at_once(s, c);
    if (op->refused != 0) {
        refusal_check(s, op, out); /* refused by all before we came: the error at once */
    } else if (why != CAUSE_NONE) {
        refusal_send(s, op, why, why == CAUSE_OLD_VIEW ? s->view.lost_id : s->id, out);
    } else {
        start(s, op, slot, out);
    }
}

/* ---- its members ---- */

bool group_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank)
{
    (void)name;
    (void)to;
    *rank = s->peers.at[from].rank;
    return true;
}

bool group_concerns(const struct session *s, const struct op *op, uint32_t rank)
{
    (void)s;
    (void)op;
    (void)rank;
    return true;
}

bool group_tells(const struct session *s, const struct op *op)
{
    (void)s;
    (void)op;
    return true;
}

/* It has said how much it expects. */
bool group_wanted(const struct session *s, const struct op *op, uint32_t rank)
{
    return op_mark(s, op, rank)->ready;
}

bool group_apart(const struct session *s, const struct op *op, uint32_t rank)
{
    (void)rank;
    return s->slots.at[op->slot].launch.call.params.layout == LAYOUT_PAIRS;
}
