/* begin.c - what every call goes through when its turn has come: an error that is owed to it, how far it may be ahead, its
 * number, the lanes.
 * SPDX-License-Identifier: MIT */
#include "session/calls/begin.h"
#include "session/calls/mismatch.h"
#include "session/calls/slots.h"
#include "session/calls/work.h"
#include "session/tables/optable.h"
#include "session/tables/tags.h"
#include "session/tables/transitions.h"

bool begin_owed(struct session *s, uint32_t slot, struct tag *t, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    struct owed owed;
    if (!owed_take(s, t, &owed)) {
        return false;
    }
    if (owed.outcome == OUTCOME_ABORT || owed.cause == CAUSE_OLD_VIEW) {
        slot_sizes(s, slot, MUTANT(DEBTLIVE) ? s->view.view : owed.sizes_view, MUTANT(DEBTLIVE) ? &s->view.sizes : &owed.sizes);
    }
    slot_end(s, slot, slot_result(c, owed.cause), owed.cause, owed.culprit, out);
    if (owed.cause == CAUSE_MISMATCH) {
        struct op_clash clash = mismatch_owed(s, &owed);
        mismatch_tell(s, c, &clash);
    }
    return true;
}

/* Other members may not have launched what was refused here, nor what runs here: they keep so many names. */
bool begin_too_far(struct session *s, const struct tag *t)
{
    uint32_t most = t->space == SPACE_ORDERED ? BOUNDS_BEHIND : BOUNDS_REFUSALS;
    return tag_refusals(s, t) >= most || s->slots.used + s->tags.refusals > BOUNDS_OPS + BOUNDS_REFUSALS;
}

void begin_number(struct session *s, uint32_t slot, struct tag *t, struct op *op)
{
    struct slot *c = &s->slots.at[slot];
    t->next_seq++;
    op_taken(s, op);
    phase_move(MACHINE_OPERATION, &op->phase, OP_RUN);
    op->slot = slot;
    op->since = s->clock.now;
    c->launch.call.params.algorithm = (uint8_t)session_plan(s, &c->launch.call.params).algorithm;
    op->eager = work_is_eager(s, &c->launch.call.params);
    op->params = p2p_params_hash(&c->launch.call.params, &s->view.plan);
    c->op = (uint32_t)(op - s->ops.at);
    mismatch_hear(s, op, s->view.rank, &c->launch.call.params);
}

void begin_lanes(struct session *s, struct op *op, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    work_plan(s, c, &op->name);
    slot_touch(s, slot)->at.started = true;
    struct action *a = outbox_add(out, ACT_OP_START);
    a->slot = slot;
    a->value = c->launch.window;
}
