/* launch.c - calls that launch an operation: taking a number, starting lanes, collecting what slots.c has ended.
 *
 * A call that comes while the view is frozen, records are full or others wait so is deferred, and launched in the order of the
 * calls; if its deadline passes meanwhile, or it is cancelled, it is refused once it has its number.  Invariant: a call takes exactly one of an owed error (P7), TooFewPeers, or the next number of its tag (P1); in the order
 * of issue one of the first and the last, whatever becomes of it (P12).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/session_state.h"

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

static bool must_defer(const struct session *s)
{
    return s->frozen || s->records - s->untaken >= s->cfg.max_records;
}

/* P12: why a call that has its number is refused at once; CAUSE_NONE: it is not. */
static uint8_t refused_at_once(const struct session *s, const struct slot *c)
{
    const struct session_launch *l = &c->launch;
    bool old = l->known < s->lost_view || l->world != s->view.world;
    if (l->space == SPACE_ORDERED && old && !MUTANT(OLD_VIEW_NOT)) {
        return CAUSE_OLD_VIEW;
    }
    return l->bad_argument          ? CAUSE_ARGUMENT
           : l->no_memory           ? CAUSE_NO_MEMORY
           : c->given_up            ? c->given_up
                                    : CAUSE_NONE;
}

/* A number that nobody else knows of would never be called by others: this peer goes. */
static void no_number(struct session *s)
{
    wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, "no memory for one more operation in the order of issue", true);
}

/* P1, for a call that must not wait any longer. */
static void launch_now(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    if (space_pairs(c->launch.space)) {
        pair_launch(s, slot, out);
        return;
    }
    struct tag *t = tag_get(s, c->launch.space, c->launch.tag);
    PCCL_ASSERT(t != NULL);
    bool ordered = t->space == SPACE_ORDERED;
    slot_move(s, slot, SLOT_RUNNING);
    c->launch.params.algorithm = PLAN_ALGORITHMS; /* not chosen yet */
    if (begin_owed(s, slot, t, out)) {
        return;
    }
    if (s->view.world < 2 && !ordered) {
        slot_sizes(s, slot, s->view.view, &s->view.sizes);
        slot_end(s, slot, RESULT_ALONE, CAUSE_NONE, 0, out);
        return;
    }
    struct op_name name = {.space = t->space, .tag = t->tag, .seq = t->next_seq};
    if (MUTANT(UNNUMBERED) && c->launch.bad_argument) {
        slot_end(s, slot, RESULT_ARGUMENT, CAUSE_ARGUMENT, s->id, out);
        return;
    }
    if (!ordered && begin_too_far(s, t)) {
        slot_end(s, slot, RESULT_AHEAD, CAUSE_NONE, 0, out);
        return;
    }
    struct op *op = op_make(s, &name);
    if (op == NULL && ordered) {
        no_number(s);
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
        refusal_send(s, op, why, why == CAUSE_OLD_VIEW ? s->lost_id : s->id, out);
    } else {
        start(s, op, slot, out);
    }
}

static enum session_result launch_refused(const struct session *s, const struct session_launch *l, uint32_t slot)
{
    struct numeric n;
    if (s->phase != PHASE_MEMBER) {
        return left_result(s);
    }
    if (s->vote != VOTE_NONE && s->vote != VOTE_QUERY && l->space != SPACE_WINDOW) {
        return RESULT_USAGE;
    }
    if (slot >= s->cfg.max_ops || (slot < s->slot_count && s->slots[slot].at.phase != SLOT_FREE) ||
        !work_numeric(s, &l->params, &n)) {
        return RESULT_FULL;
    }
    return slot >= s->slot_count || (s->wire == NULL && work_encodes(s, &l->params)) ? RESULT_NO_MEMORY : RESULT_PENDING;
}

static void no_memory(struct session *s, struct session_event *e)
{
    e->outcome = (struct session_outcome){.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .culprit = s->id};
    session_name(s, &e->outcome);
    snprintf(e->outcome.text, sizeof e->outcome.text, "no memory for one more operation");
    e->outcome.left = e->launch->space == SPACE_ORDERED || e->launch->space == SPACE_WINDOW;
    if (e->launch->space == SPACE_ORDERED) {
        no_number(s);
    } else if (e->launch->space == SPACE_WINDOW) {
        wish_no_message(s);
    }
}

static void defer(struct session *s, uint32_t slot)
{
    heap_set(&s->due, slot, s->slots[slot].launch.deadline);
    if (s->deferred == NONE) {
        s->deferred = slot;
    } else {
        s->slots[s->deferred_last].next = slot;
    }
    s->deferred_last = slot;
    s->deferred_count++;
    s->deferred_pairs += space_pairs(s->slots[slot].launch.space);
}

/* 0: any source, or none. */
static uint64_t partner_of(const struct session *s, const struct session_launch *l, bool *any)
{
    bool window = l->space == SPACE_WINDOW;
    *any = space_pairs(l->space) && l->receives && (window ? l->partner == 0 : l->root_rank == SESSION_ANY);
    return window ? l->partner : space_pairs(l->space) && !*any ? roster_member(s, l->root_rank) : 0;
}

void launch_call(struct session *s, struct session_event *e, struct outbox *out)
{
    const struct session_launch *l = e->launch;
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = launch_refused(s, l, e->slot);
    bool ordered = l->space == SPACE_ORDERED;
    if (e->outcome.result == RESULT_NO_MEMORY) {
        no_memory(s, e);
        return;
    }
    if (e->outcome.result != RESULT_PENDING) {
        left_outcome(s, &e->outcome);
        if (e->outcome.result == RESULT_USAGE) {
            ballot_in_the_way(s, e->outcome.text, sizeof e->outcome.text);
        }
        return;
    }
    bool pair = space_pairs(l->space), any;
    uint64_t partner = partner_of(s, l, &any);
    if (pair && !any && (partner == 0 || partner == s->id)) {
        e->outcome.result = RESULT_ARGUMENT;
        return;
    }
    struct tag *t = pair ? NULL : tag_find(s, l->space, l->tag);
    if (t != NULL && t->slot != NONE) {
        e->outcome.result = RESULT_TAG_IN_USE;
        return;
    }
    if (!ordered && !pair && s->view.world < 2 && s->snapshot.group < 2 && (t == NULL || t->owed == NONE) && !s->frozen) {
        e->outcome.result = RESULT_ALONE;
        return;
    }
    t = pair ? NULL : tag_get(s, l->space, l->tag);
    if (t == NULL && !pair && (ordered || s->tag_count < s->cfg.max_tags)) {
        no_memory(s, e);
        return;
    }
    if (t == NULL && !pair) {
        e->outcome.result = RESULT_TAGS;
        return;
    }
    struct slot *c = &s->slots[e->slot];
    memset(c, 0, sizeof *c);
    slot_move(s, e->slot, SLOT_DEFERRED);
    c->op = NONE;
    c->launch = *l;
    s->fresh = false;
    c->failed = l->no_memory;
    c->since = s->now;
    c->next = NONE;
    if (l->params.layout != LAYOUT_PAIRS) {
        c->launch.count = (size_t)l->params.count;
    }
    if (l->root_rank < s->view.world && plan_kind_has_root(l->params.kind)) {
        c->launch.params.root = s->view.ids[s->view.ranked[l->root_rank]];
    }
    c->partner = partner;
    c->outcome.source = l->root_rank;
    if (ordered) {
        t->open++;
    } else if (!pair) {
        t->slot = e->slot;
    }
    s->slots_used++;
    s->slots_windows += l->space == SPACE_WINDOW;
    if (must_defer(s) || s->deferred != NONE || (!pair && behind_waits(s, t))) {
        defer(s, e->slot);
    } else {
        launch_now(s, e->slot, out);
    }
}

/* The first deferred call that need not wait any longer, and the one before it (NONE: it is the first).  Where one in the order of
 * issue has to wait for those who are behind, so have the later ones; calls of tags pass it. */
static uint32_t next_due(struct session *s, uint32_t *before)
{
    *before = NONE;
    s->behind = false;
    if (s->deferred == NONE || s->phase != PHASE_MEMBER || must_defer(s)) {
        return NONE;
    }
    struct tag *issue = tag_find(s, SPACE_ORDERED, 0);
    bool waits = issue != NULL && behind_waits(s, issue);
    *before = waits ? s->deferred_passed : NONE;
    uint32_t i = *before == NONE ? s->deferred : s->slots[*before].next;
    for (; i != NONE && waits && s->slots[i].launch.space == SPACE_ORDERED; i = s->slots[i].next) {
        *before = i;
    }
    s->deferred_passed = *before;
    s->behind = i == NONE;
    return i;
}

bool launch_due(const struct session *s)
{
    return s->deferred != NONE && s->phase == PHASE_MEMBER && !must_defer(s) && !s->behind;
}

/* In the order of the calls.  Their payloads together may not fit one outbox: the rest goes out in the next step, which is due at once. */
void launch_deferred(struct session *s, struct outbox *out)
{
    uint32_t before, slot;
    while (outbox_half_free(out) && (slot = next_due(s, &before)) != NONE) {
        struct slot *c = &s->slots[slot];
        PCCL_ASSERT(c->at.phase == SLOT_DEFERRED);
        *(before == NONE ? &s->deferred : &s->slots[before].next) = c->next;
        s->deferred_last = s->deferred_last == slot ? before : s->deferred_last;
        s->deferred_count--;
        s->deferred_pairs -= space_pairs(c->launch.space);
        c->next = NONE;
        heap_set(&s->due, slot, INT64_MAX);
        c->launch.window = MUTANT(WINDOW_STALE) ? c->launch.window : 0; /* reserved for another view's plan: lanes grant anew */
        launch_now(s, slot, out);
    }
}

void launch_collect(struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    if (e->slot >= s->slot_count || s->slots[e->slot].at.phase != SLOT_RETURNED) {
        e->outcome.result = RESULT_USAGE;
        return;
    }
    struct slot *c = &s->slots[e->slot];
    e->outcome = c->outcome;
    if (c->has_sizes && (c->launch.space != SPACE_WINDOW || MUTANT(WINDOW_SIZES))) { /* P11: nobody's program has heard of a message of a window */
        snapshot_take(s, c->sizes_view, &c->sizes);
    }
    if (MUTANT(LIVEATTR)) {
        s->snapshot = s->view.sizes;
    }
    if (!space_pairs(c->launch.space)) {
        struct tag *t = tag_find(s, c->launch.space, c->launch.tag);
        PCCL_ASSERT(t != NULL && (t->space == SPACE_ORDERED ? t->open > 0 : t->slot == e->slot));
        t->slot = NONE;
        t->open -= t->space == SPACE_ORDERED;
    }
    slot_move(s, e->slot, SLOT_FREE);
    s->slots_used--;
    s->slots_windows -= c->launch.space == SPACE_WINDOW;
}
