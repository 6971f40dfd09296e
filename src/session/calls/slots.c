/* slots.c - calls that have launched an operation: how they end, and when they may be collected.
 *
 * A slot is one call: DEFERRED (asked for while the view is frozen, records are full or others wait so), RUNNING, ENDING (the
 * outcome is known, lanes still hold buffers), RETURNED (collectable).  Invariant: OP_RETURN comes once, never before the
 * lanes have let go; those that run are in one list, in the order of their launches, and in the heap of their deadlines.
 * SPDX-License-Identifier: MIT */
#include "session/calls/complaint.h"
#include "session/calls/mismatch.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/tables/transitions.h"
#include "session/tables/storage.h"

size_t slot_table_bytes(uint32_t count)
{
    return count * sizeof(struct slot) + 2 * heap_bytes(count);
}

void slot_table_use(struct session *s, void *storage, uint32_t count)
{
    unsigned char *at = storage;
    struct slot *slots = storage_moved(&at, sizeof *slots, count, s->slots.at, s->slots.count);
    if (s->slots.count == 0) {
        s->slots.running = s->slots.running_last = NONE;
    }
    memset(slots + s->slots.count, 0, (count - s->slots.count) * sizeof *slots);
    heap_use(&s->slots.due, at, count);
    complaint_table_use(s, at + heap_bytes(count), count);
    s->slots.at = slots;
    s->slots.count = count;
}

void slot_table_forget(struct session *s)
{
    s->slots.count = s->slots.due.count = 0;
    complaint_table_forget(s);
}

void slot_open(struct session *s, uint32_t slot, const struct session_launch *l)
{
    struct slot *c = &s->slots.at[slot];
    memset(c, 0, sizeof *c);
    slot_move(s, slot, SLOT_DEFERRED);
    c->op = NONE;
    c->launch = *l;
    c->failed = l->call.no_memory;
    c->since = s->clock.now;
    c->next = NONE;
    c->outcome.source = l->call.root_rank;
    s->slots.used++;
    s->slots.windows += l->call.space == SPACE_WINDOW;
}

void slot_close(struct session *s, uint32_t slot)
{
    slot_move(s, slot, SLOT_FREE);
    s->slots.used--;
    s->slots.windows -= s->slots.at[slot].launch.call.space == SPACE_WINDOW;
}

void slot_due(struct session *s, uint32_t slot, int64_t at)
{
    heap_set(&s->slots.due, slot, at);
}

/* Only a peer whose own memory or executor failed is to stop; the others may go on without it. */
enum session_result slot_result(const struct slot *c, uint8_t cause)
{
    switch (cause) {
    case CAUSE_INTERNAL:
        return c->failed ? RESULT_POISONED : RESULT_LOST;
    case CAUSE_MISMATCH:
        return RESULT_MISMATCH;
    case CAUSE_ARGUMENT:
        return RESULT_ARGUMENT;
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
    if (view >= s->snapshot.view) {
        s->snapshot.view = view;
        s->snapshot.sizes = *sizes;
        roster_moved(s);
    }
}

void snapshot_clear(struct session *s)
{
    s->snapshot = (struct snapshot){0};
}

void slot_sizes(struct session *s, uint32_t slot, uint64_t view, const struct sizes *sizes)
{
    struct slot *c = &s->slots.at[slot];
    c->has_sizes = true;
    c->sizes_view = view;
    c->sizes = *sizes;
}

/* Before the first change in a step: what it tells the shell is lost if it fails (poison.c). */
struct slot *slot_touch(struct session *s, uint32_t slot)
{
    struct slot *c = &s->slots.at[slot];
    if (c->moved_in != s->clock.steps) {
        c->moved_in = s->clock.steps;
        c->before = c->at;
    }
    return c;
}

static void run(struct session *s, uint32_t slot)
{
    struct slot *c = &s->slots.at[slot];
    c->prev = s->slots.running_last;
    c->next = NONE;
    *(c->prev == NONE ? &s->slots.running : &s->slots.at[c->prev].next) = slot;
    s->slots.running_last = slot;
    heap_set(&s->slots.due, slot, c->launch.call.deadline);
}

static void run_no_more(struct session *s, uint32_t slot)
{
    struct slot *c = &s->slots.at[slot];
    *(c->prev == NONE ? &s->slots.running : &s->slots.at[c->prev].next) = c->next;
    *(c->next == NONE ? &s->slots.running_last : &s->slots.at[c->next].prev) = c->prev;
    heap_set(&s->slots.due, slot, INT64_MAX);
    complaint_ends(s, slot);
}

void slot_wait(struct session *s, uint32_t slot, bool waits)
{
    struct slot *c = &s->slots.at[slot];
    PCCL_ASSERT(c->waits != waits && c->at.phase == SLOT_DEFERRED);
    c->waits = waits;
    s->slots.waiting += waits ? 1 : UINT32_MAX;
    heap_set(&s->slots.due, slot, waits ? c->launch.call.deadline : INT64_MAX);
}

void slot_move(struct session *s, uint32_t slot, uint8_t phase)
{
    struct slot *c = slot_touch(s, slot);
    if (c->at.phase == SLOT_RUNNING) {
        run_no_more(s, slot);
    } else if (c->at.phase == SLOT_DEFERRED) {
        heap_set(&s->slots.due, slot, INT64_MAX);
    }
    phase_move(MACHINE_CALL, &c->at.phase, phase);
    if (phase == SLOT_RUNNING) {
        run(s, slot);
    }
}

void slot_stop(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = slot_touch(s, slot);
    if (c->at.started && !c->at.stopped) {
        c->at.stopped = true;
        outbox_add(out, ACT_OP_STOP)->slot = slot;
    }
}

bool session_lent(const struct session *s, uint32_t slot)
{
    return slot < s->slots.count && s->slots.at[slot].at.started;
}

void slot_return(struct session *s, uint32_t slot, struct outbox *out)
{
    slot_move(s, slot, SLOT_RETURNED);
    outbox_add(out, ACT_OP_RETURN)->slot = slot;
}

/* Since when things were as they are: the freeze, the loss of the master, else the launch. */
static int64_t ends_since(const struct session *s, const struct slot *c)
{
    if (s->view.frozen) {
        return s->view.frozen_at;
    }
    if (s->master.lost != 0) {
        return s->master.lost;
    }
    return c->op != NONE ? s->ops.at[c->op].since : s->clock.now;
}

void slot_end(struct session *s, uint32_t slot, enum session_result result, uint8_t cause, uint64_t culprit,
              struct outbox *out)
{
    struct slot *c = &s->slots.at[slot];
    PCCL_ASSERT(c->at.phase == SLOT_DEFERRED || c->at.phase == SLOT_RUNNING);
    if (c->waits) { /* with all others: this peer leaves */
        slot_wait(s, slot, false);
    }
    bool dropped = MUTANT(BACKUP_EARLY) && c->op != NONE && s->ops.at[c->op].phase == OP_HOLDING;
    c->outcome.since = result == RESULT_OK ? 0 : ends_since(s, c);
    if (result == RESULT_MISMATCH) {
        struct op_clash clash = c->op == NONE ? (struct op_clash){0} : mismatch_clash(s, &s->ops.at[c->op]);
        mismatch_tell(s, c, &clash);
    }
    c->op = NONE;
    c->outcome.result = result;
    c->outcome.cause = cause;
    c->outcome.culprit = culprit;
    session_name(s, &c->outcome);
    c->outcome.world = s->view.world;
    c->outcome.over = result == RESULT_LOST && s->view.last;
    c->outcome.restore = c->launch.in_place && !c->launch.call.no_memory && result != RESULT_OK && !dropped;
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
    struct slot *c = &s->slots.at[slot];
    if (!c->at.started) {
        return;
    }
    slot_touch(s, slot)->at.started = false;
    if (c->at.phase == SLOT_ENDING) {
        slot_return(s, slot, out);
    }
}
