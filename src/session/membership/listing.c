/* listing.c - what this peer lists of its operations: all of them when the view ends, its last words when it leaves.
 * SPDX-License-Identifier: MIT */
#include "session/calls/mismatch.h"
#include "session/membership/listing.h"
#include "session/tables/optable.h"
#include "session/tables/pair_name.h"

enum { REPORT_BYTES = 160 }; /* no entry has more */

/* How this peer lists an operation; false: not at all, which is a veto. */
static bool report_state(const struct op *op, struct op_report *r)
{
    bool as_held = MUTANT(REFUSE_ASHELD) && op->phase == OP_HOLDING;
    if (op->phase == OP_FREE || (op->phase == OP_DONE && MUTANT(FORGET))) {
        return false;
    }
    if (op->refused != 0 && !MUTANT(REFUSE_UNLISTED) && !as_held) {
        r->state = OP_REFUSED;
        r->cause = op->refused;
        r->culprit = op->culprit;
    } else if (op->phase == OP_DONE) {
        r->state = OP_FINISHED; /* P5 */
    } else if (op->phase == OP_HOLDING) {
        r->state = OP_HELD;
    } else if (op->phase == OP_RUN) {
        r->state = OP_RUNNING;
    } else {
        return false; /* heard of, not launched here */
    }
    return true;
}

enum listed { LISTED_LAUNCHED, LISTED_HEARD, LISTED_LAST_WORDS };

static bool lists(const struct session *s, const struct op *op, enum listed which)
{
    if (which == LISTED_LAST_WORDS) { /* B2: of messages to this peer its word is the outcome */
        return pair_owner(s, &op->name) && (op->phase == OP_DONE || op->refused != 0);
    }
    /* What all have refused with one cause, and whose call has returned, no view has to decide. */
    return (op->phase != OP_GHOST) == (which == LISTED_LAUNCHED) && !op_untaken(op);
}

static uint32_t list(struct session *s, enum listed which, uint32_t most, struct writer *w)
{
    uint32_t listed = 0;
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        const struct op *op = &s->ops.at[i];
        struct op_report r = {.name = op->name, .params = op->params, .digest = op->digest};
        if (!lists(s, op, which) || !report_state(op, &r)) {
            continue;
        }
        if (listed == most || w->used + REPORT_BYTES > BOUNDS_CONTROL_FRAME) {
            break;
        }
        if (op->phase == OP_DONE && op->refused != 0) {
            r.params = 0; /* its call has returned: nobody waits for it here */
        }
        if (op->slot != NONE) {
            r.call = s->slots.at[op->slot].launch.call.params;
        }
        put_op_report(w, &r);
        if (r.state == OP_REFUSED && r.cause == CAUSE_MISMATCH) {
            struct op_clash clash = mismatch_clash(s, op);
            put_op_clash(w, &clash);
        }
        listed++;
    }
    return listed;
}

/* M3 decides of these lists.  What was launched here has to be listed, and fits; of what others refused as much as then fits (owe_undecided). */
void listing_frozen(struct session *s, struct outbox *out)
{
    struct msg_frozen m = {.view = s->view.view, .attempt = s->view.attempt};
    struct writer *w = outbox_frame(out, FRAME_FROZEN, s->run, s->view.view);
    size_t at = w->used;
    put_frozen(w, &m);
    m.reports = list(s, LISTED_LAUNCHED, BOUNDS_LISTED, w);
    m.reports += list(s, LISTED_HEARD, BOUNDS_LISTED - m.reports, w);
    struct writer head;
    writer_init(&head, w->start + at, w->capacity - at);
    put_frozen(&head, &m);
    outbox_send(out, ACT_MASTER, 0);
}

void listing_leave(struct session *s, bool revoke, struct outbox *out)
{
    struct msg_leave m = {.revoke = revoke, .view = s->view.view};
    struct writer *w = outbox_frame(out, FRAME_LEAVE, s->run, s->view.view);
    size_t at = w->used;
    put_leave(w, &m);
    m.reports = s->phase != PHASE_MEMBER || MUTANT(LEAVE_EMPTY) ? 0 : list(s, LISTED_LAST_WORDS, BOUNDS_LAST_WORDS, w);
    struct writer head;
    writer_init(&head, w->start + at, w->capacity - at);
    put_leave(&head, &m);
    outbox_send(out, ACT_MASTER, 0);
}
