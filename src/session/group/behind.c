/* behind.c - calls in the order of issue that wait for members which have not come to what was refused here.
 *
 * A member may be BOUNDS_BEHIND refused numbers ahead of another one.  The next call waits: it could not succeed without that member, and
 * cannot fail without a number (P12).  It shows among the waits, and in heartbeats, as a wait for the launch of the oldest of
 * those numbers.  If its deadline passes, or it is cancelled, this peer asks the master for another view with the same members: there all numbers
 * begin anew, and the call is refused under the number that it gets.  So it does at once where the names of other tags and pairs are in the
 * way, to which the other members may never come.  Invariant: the master is asked once in a view, and again when it is back.
 * SPDX-License-Identifier: MIT */
#include "session/calls/begin.h"
#include "session/calls/complaint.h"
#include "session/group/behind.h"
#include "session/tables/optable.h"
#include "session/tables/tags.h"

bool behind_waits(struct session *s, const struct tag *t)
{
    return t->space == SPACE_ORDERED && t->owed == NONE && begin_too_far(s, t);
}

/* The first call that waits so; null: none does. */
static const struct slot *first(const struct session *s)
{
    return s->deferred.first != NONE && s->deferred.passed != NONE ? &s->slots.at[s->deferred.first] : NULL;
}

const struct op *behind_number(const struct session *s, const struct slot **call)
{
    const struct op *oldest = NULL;
    *call = first(s);
    for (uint32_t i = 0; *call != NULL && s->ops.untaken > 0 && i < s->ops.count; i++) {
        const struct op *op = &s->ops.at[i];
        bool older = op->name.space == SPACE_ORDERED && (oldest == NULL || op->name.seq < oldest->name.seq);
        oldest = older && op_untaken(op) ? op : oldest;
    }
    return oldest;
}

/* Why one of those calls may not wait any longer; CAUSE_NONE: all may. */
static uint8_t ends(struct session *s)
{
    const struct slot *c = first(s);
    struct tag *t = c == NULL ? NULL : tag_find(s, SPACE_ORDERED, 0);
    if (t == NULL || !behind_waits(s, t)) {
        return CAUSE_NONE;
    }
    while (c->given_up == CAUSE_NONE && c != &s->slots.at[s->deferred.passed]) {
        c = &s->slots.at[c->next];
    }
    bool others = s->slots.used + s->tags.refusals - tag_refusals(s, t) > BOUNDS_OPS + BOUNDS_REFUSALS;
    return c->given_up != CAUSE_NONE ? c->given_up : others ? CAUSE_NO_PROGRESS : CAUSE_NONE;
}

void behind_settle(struct session *s, struct outbox *out)
{
    if (!s->view.frozen && s->phase == PHASE_MEMBER && s->complaints.behind_asked.cause == CAUSE_NONE && !MUTANT(BEHIND_FOREVER)) {
        uint8_t why = ends(s);
        if (why != CAUSE_NONE) {
            complaint_behind(s, why, out);
        }
    }
}
