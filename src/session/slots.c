/* slots.c - calls that have launched an operation: how they end, and when they may be collected.
 *
 * A slot is one call: DEFERRED (asked for while the view is frozen, records are full or others wait so), RUNNING, ENDING (the
 * outcome is known, lanes still hold buffers), RETURNED (collectable).  Invariant: OP_RETURN comes once, never before the
 * lanes have let go.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

/* Only a peer whose own memory or executor failed is to stop; the others may go on without it. */
enum session_result slot_result(const struct slot *c, uint8_t cause)
{
    switch (cause) {
    case CAUSE_INTERNAL:
        return c->failed ? RESULT_POISONED : RESULT_LOST;
    case CAUSE_MISMATCH:
        return RESULT_MISMATCH;
    case CAUSE_DIGEST:
        return RESULT_DIGEST;
    case CAUSE_NO_MEMORY:
        return c->failed ? RESULT_NO_MEMORY : RESULT_LOST;
    default:
        return RESULT_LOST;
    }
}

/* P11: sizes come with answers and aborts, and never go back to those of an older view. */
void snapshot_take(struct session *s, uint64_t view, const struct sizes *sizes)
{
    if (view >= s->snapshot_view) {
        s->snapshot_view = view;
        s->snapshot = *sizes;
    }
}

void slot_sizes(struct session *s, uint32_t slot, uint64_t view, const struct sizes *sizes)
{
    struct slot *c = &s->slots[slot];
    c->has_sizes = true;
    c->sizes_view = view;
    c->sizes = *sizes;
}

/* Before the first change in a step: what it tells the shell is lost if it fails (poison.c). */
struct slot *slot_touch(struct session *s, uint32_t slot)
{
    struct slot *c = &s->slots[slot];
    if (c->moved_in != s->steps) {
        c->moved_in = s->steps;
        c->before = c->at;
    }
    return c;
}

void slot_move(struct session *s, uint32_t slot, uint8_t phase)
{
    phase_move(MACHINE_CALL, &slot_touch(s, slot)->at.phase, phase);
}

void slot_stop(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = slot_touch(s, slot);
    if (c->at.started && !c->at.stopped) {
        c->at.stopped = true;
        outbox_add(out, ACT_OP_STOP)->slot = slot;
    }
}

void slot_return(struct session *s, uint32_t slot, struct outbox *out)
{
    slot_move(s, slot, SLOT_RETURNED);
    outbox_add(out, ACT_OP_RETURN)->slot = slot;
}

/* Since when things were as they are: the freeze, the loss of the master, else the launch. */
static int64_t ends_since(const struct session *s, const struct slot *c)
{
    if (s->frozen) {
        return s->frozen_at;
    }
    if (s->master_lost != 0) {
        return s->master_lost;
    }
    return c->op != NONE ? s->ops[c->op].since : s->now;
}

void slot_end(struct session *s, uint32_t slot, enum session_result result, uint8_t cause, uint64_t culprit,
              struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    PCCL_ASSERT(c->at.phase == SLOT_DEFERRED || c->at.phase == SLOT_RUNNING);
    bool dropped = MUTANT(BACKUP_EARLY) && c->op != NONE && s->ops[c->op].phase == OP_HOLDING;
    c->outcome.since = result == RESULT_OK ? 0 : ends_since(s, c);
    if (result == RESULT_MISMATCH) {
        struct op_clash clash = c->op == NONE ? (struct op_clash){0} : mismatch_clash(s, &s->ops[c->op]);
        mismatch_tell(s, c, &clash);
    }
    c->op = NONE;
    c->outcome.result = result;
    c->outcome.cause = cause;
    c->outcome.culprit = culprit;
    c->outcome.world = s->view.world;
    c->outcome.restore = c->launch.in_place && !c->launch.no_memory && result != RESULT_OK && !dropped;
    if (result != RESULT_OK) {
        slot_stop(s, slot, out);
    }
    slot_move(s, slot, SLOT_ENDING);
    if (!c->at.started || MUTANT(RETURN_BEFORE_LETGO)) {
        slot_return(s, slot, out);
    }
}

void slot_idle(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    if (!c->at.started) {
        return;
    }
    slot_touch(s, slot)->at.started = false;
    if (c->at.phase == SLOT_ENDING) {
        slot_return(s, slot, out);
    }
}
