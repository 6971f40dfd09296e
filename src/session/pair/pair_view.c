/* pair_view.c - what a new view means for messages: receives that nobody can answer any more end, others go on, errors of the lost are dropped.
 *
 * Its one idea: a call without a number is known to this member alone, so it alone ends it, by what it has heard of losses (B10, B12, B14).
 * Invariant: no receive waits for who is in no view, and no error is owed by one.
 * SPDX-License-Identifier: MIT */
#include "session/calls/slots.h"
#include "session/pair/pair.h"
#include "session/tables/pair_name.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"

/* The view before has ended because all whom this receive may be from waited in votes for this peer: it is given up alone (B12). */
static void end_blocked(struct session *s, uint32_t slot, const struct msg_view *m, struct outbox *out)
{
    slot_sizes(s, slot, m->view, &m->sizes);
    slot_end(s, slot, RESULT_LOST, CAUSE_BLOCKED, s->slots.at[slot].partner, out);
    memcpy(s->slots.at[slot].outcome.text, m->text, sizeof m->text);
}

/* What waits goes on, or has nobody to wait for any more (B10, B14). */
static void line_on(struct session *s, struct tag *box, const struct msg_view *m, struct outbox *out)
{
    uint64_t cycle = m->cause == CAUSE_BLOCKED ? m->culprit : 0; /* who votes; of a receive from any source who receives */
    uint32_t next;
    for (uint32_t slot = box->waiting; slot != NONE; slot = next) {
        struct slot *c = &s->slots.at[slot];
        next = c->next;
        if (c->partner == 0 && MUTANT(ANY_NOLOSS)) {
            continue;
        }
        bool stays = c->partner != 0 ? view_rank(s, c->partner) != NONE : c->launch.call.known >= s->view.lost_in;
        if (!stays) {
            pair_leave_line(s, box, slot);
            (void)pair_ended_by_view(s, slot, out);
        } else if (c->partner == 0 ? cycle == s->id : cycle == c->partner && !MUTANT(LINE_STAYS)) {
            pair_leave_line(s, box, slot);
            end_blocked(s, slot, m, out);
        }
    }
    pair_match(s, box, out);
}

void pair_new_view(struct session *s, const struct msg_view *m, struct outbox *out)
{
    struct owed ignored;
    for (uint32_t i = 0; i < s->tags.used; i++) {
        struct tag *t = &s->tags.at[i];
        if (t->to == 0) {
            continue;
        }
        struct op_name name = tag_name(t);
        while (t->from != 0 && t->owed != NONE && pair_partner(s, &name) == NONE && owed_take(s, t, &ignored)) {
            /* B13: dropped with who is lost */
        }
        if (t->waiting != NONE) {
            line_on(s, t, m, out);
        }
    }
}
