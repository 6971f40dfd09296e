/* launch.c - calls that launch an operation: entered, deferred if need be, and collected when slots.c has ended them.
 *
 * A call that comes while the view is frozen, records are full or others wait so is deferred.  Deferred calls are launched in the order of
 * the calls.  If the deadline of one passes meanwhile, or it is cancelled, it is refused once it has its number.
 * Invariant: the class of an operation is chosen here for a call, and in op_frames.c for a frame.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/calls/deferred.h"
#include "session/calls/departure.h"
#include "session/calls/slots.h"
#include "session/calls/work.h"
#include "session/group/behind.h"
#include "session/launch.h"
#include "session/membership/ballot.h"
#include "session/tables/tags.h"

static bool must_defer(const struct session *s)
{
    return s->view.frozen || s->ops.records - s->ops.untaken >= s->cfg.max_records;
}

static enum session_result launch_refused(const struct session *s, const struct session_launch *l, uint32_t slot)
{
    struct numeric n;
    if (s->phase != PHASE_MEMBER) {
        return left_result(s);
    }
    if (s->vote.kind != VOTE_NONE && s->vote.kind != VOTE_QUERY && !s->classes[l->call.space].beside_votes) {
        return RESULT_USAGE;
    }
    if (slot >= s->cfg.max_ops || (slot < s->slots.count && s->slots.at[slot].at.phase != SLOT_FREE) ||
        !work_numeric(s, &l->call.params, &n)) {
        return RESULT_FULL;
    }
    return slot >= s->slots.count || (s->wire == NULL && work_encodes(s, &l->call.params)) ? RESULT_NO_MEMORY : RESULT_PENDING;
}

static void no_memory(struct session *s, struct session_event *e)
{
    e->outcome = (struct session_outcome){.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .culprit = s->id};
    session_name(s, &e->outcome);
    snprintf(e->outcome.text, sizeof e->outcome.text, "no memory for one more operation");
    const struct op_class *class = &s->classes[e->launch->call.space];
    e->outcome.left = class->no_memory != NULL;
    if (e->outcome.left) {
        class->no_memory(s);
    }
}

void launch_call(struct session *s, struct session_event *e, struct outbox *out)
{
    const struct session_launch *l = e->launch;
    const struct op_class *class = &s->classes[l->call.space];
    struct call_of call;
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = launch_refused(s, l, e->slot);
    if (e->outcome.result == RESULT_PENDING) {
        e->outcome.result = class->check(s, l, &call);
    } else if (e->outcome.result != RESULT_NO_MEMORY) {
        left_outcome(s, &e->outcome);
        if (e->outcome.result == RESULT_USAGE) {
            ballot_in_the_way(s, e->outcome.text, sizeof e->outcome.text);
        }
    }
    if (e->outcome.result == RESULT_NO_MEMORY) {
        no_memory(s, e);
    }
    if (e->outcome.result != RESULT_PENDING) {
        return;
    }
    slot_open(s, e->slot, l);
    ballot_launched(s);
    struct slot *c = &s->slots.at[e->slot];
    if (l->call.params.layout != LAYOUT_PAIRS) {
        c->launch.call.count = (size_t)l->call.params.count;
    }
    if (l->call.root_rank < s->view.world && plan_kind_has_root(l->call.params.kind)) {
        c->launch.call.params.root = s->view.ids[s->view.ranked[l->call.root_rank]];
    }
    c->partner = call.partner;
    if (call.tag != NULL) {
        tag_call(call.tag, e->slot);
    }
    if (must_defer(s) || s->deferred.first != NONE || (call.tag != NULL && behind_waits(s, call.tag))) {
        deferred_add(s, e->slot);
    } else {
        class->launch(s, e->slot, out);
    }
}

/* The first deferred call that need not wait any longer, and the one before it (NONE: it is the first).  Where one in the order of
 * issue has to wait for those who are behind, so have the later ones; calls of tags pass it. */
static uint32_t next_due(struct session *s, uint32_t *before)
{
    *before = NONE;
    deferred_wait(s, s->deferred.passed, false);
    if (s->deferred.first == NONE || s->phase != PHASE_MEMBER || must_defer(s)) {
        return NONE;
    }
    struct tag *issue = tag_find(s, SPACE_ORDERED, 0);
    bool waits = issue != NULL && behind_waits(s, issue);
    *before = waits ? s->deferred.passed : NONE;
    uint32_t i = *before == NONE ? s->deferred.first : s->slots.at[*before].next;
    for (; i != NONE && waits && s->slots.at[i].launch.call.space == SPACE_ORDERED; i = s->slots.at[i].next) {
        *before = i;
    }
    deferred_wait(s, *before, i == NONE);
    return i;
}

bool launch_due(const struct session *s)
{
    return s->deferred.first != NONE && s->phase == PHASE_MEMBER && !must_defer(s) && !s->deferred.behind;
}

/* In the order of the calls.  Their payloads together may not fit one outbox: the rest goes out in the next step, which is due at once. */
void launch_deferred(struct session *s, struct outbox *out)
{
    uint32_t before, slot;
    while (outbox_half_free(out) && (slot = next_due(s, &before)) != NONE) {
        struct slot *c = &s->slots.at[slot];
        PCCL_ASSERT(c->at.phase == SLOT_DEFERRED);
        deferred_remove(s, before, slot);
        c->launch.window = MUTANT(WINDOW_STALE) ? c->launch.window : 0; /* reserved for another view's plan: lanes grant anew */
        s->classes[c->launch.call.space].launch(s, slot, out);
    }
}

void launch_collect(struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    if (e->slot >= s->slots.count || s->slots.at[e->slot].at.phase != SLOT_RETURNED) {
        e->outcome.result = RESULT_USAGE;
        return;
    }
    struct slot *c = &s->slots.at[e->slot];
    e->outcome = c->outcome;
    if (c->has_sizes && (c->launch.call.space != SPACE_WINDOW || MUTANT(WINDOW_SIZES))) { /* P11: nobody's program has heard of a message of a window */
        snapshot_take(s, c->sizes_view, &c->sizes);
    }
    if (MUTANT(LIVEATTR)) {
        snapshot_take(s, s->snapshot.view, &s->view.sizes);
    }
    if (!s->classes[c->launch.call.space].two) {
        struct tag *t = tag_find(s, c->launch.call.space, c->launch.call.tag);
        PCCL_ASSERT(t != NULL && (t->space == SPACE_ORDERED ? t->open > 0 : t->slot == e->slot));
        t->slot = NONE;
        t->open -= t->space == SPACE_ORDERED;
    }
    slot_close(s, e->slot);
}
