/* launch.c - calls that launch an operation: taking a number, starting lanes, collecting what slots.c has ended.
 *
 * A call that comes while the view is frozen, records are full or others wait so is deferred, and launched in the order of the
 * calls.  Invariant: a call takes exactly one of an owed error (P7), TooFewPeers, or the next number of its tag (P1).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/session_state.h"

static bool op_is_eager(const struct session *s, const struct op_params *p)
{
    uint64_t size = dtype_size((enum dtype)p->dtype);
    /* 0: a view with a missing edge, where not everybody can tell everybody. */
    return s->view.plan.eager_bytes != 0 && p->count <= s->view.plan.eager_bytes / size;
}

static bool init_numeric(const struct session *s, const struct op_params *p, struct numeric *n)
{
    return numeric_init(n, (enum dtype)p->dtype, (enum redop)p->op, (enum quant)p->quant,
                        (enum dtype)p->quant_dtype, s->cfg.kernels);
}

/* Types that are not sent as accumulated use direct whatever the view prefers. */
static void fill_run(struct session *s, struct slot *c, const struct op_name *name)
{
    const struct op_params *p = &c->launch.params;
    struct session_op *run = &c->run;
    memset(run, 0, sizeof *run);
    run->view = s->view.view;
    run->name = *name;
    run->params = *p;
    run->lanes = s->view.plan.lanes;
    run->in = c->launch.in;
    run->out = c->launch.out;
    run->verify = s->view.plan.verify != 0;
    run->ranks = s->view.ids;
    run->launch = ++s->launches;
    PCCL_ASSERT(init_numeric(s, p, &run->numeric));
    enum plan_algorithm algorithm = (enum plan_algorithm)s->view.plan.algorithm;
    run->plan.algorithm = run->numeric.plain && algorithm == PLAN_RING ? PLAN_RING : PLAN_DIRECT;
    run->plan.world = s->view.world;
    run->plan.rank = s->view.rank;
    run->plan.ring = s->view.ring;
    run->plan.weights = s->view.weighted ? s->view.weights : NULL;
    run->plan.count = p->count;
    run->plan.align = run->numeric.quant != QUANT_NONE ? NUMERIC_BLOCK : 1;
    run->plan.frame_elements =
        plan_frame_elements(plan_largest(&run->plan), numeric_wire_bytes(&run->numeric, 1024), run->plan.align, s->view.plan.frame_bytes);
}

uint32_t session_folding_senders(const struct session *s, const struct op_params *params)
{
    if (s->phase != PHASE_MEMBER || s->frozen || s->view.world < 2 || dtype_size((enum dtype)params->dtype) == 0 ||
        op_is_eager(s, params)) {
        return 0;
    }
    bool ring = s->view.plan.algorithm == PLAN_RING && params->quant == QUANT_NONE &&
                params->dtype != DTYPE_F16 && params->dtype != DTYPE_BF16;
    return ring ? 1 : s->view.world - 1;
}

bool launch_encodes(const struct session *s, const struct op_params *p)
{
    struct numeric n;
    uint64_t size = dtype_size((enum dtype)p->dtype);
    return size != 0 && p->count <= BOUNDS_EAGER_BYTES / size && init_numeric(s, p, &n) && !n.plain;
}

static void start(struct session *s, struct op *op, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (mismatch_with(s, op, r)) {
            refusal_mismatch(s, op, s->view.ids[r], out);
            return;
        }
    }
    if (op->eager) {
        eager_start(s, op, out);
        return;
    }
    fill_run(s, c, &op->name);
    slot_touch(s, slot)->at.started = true;
    struct action *a = outbox_add(out, ACT_OP_START);
    a->slot = slot;
    a->value = c->launch.window;
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank) {
            announce_to(s, op, r, out);
            announce_feed(s, op, r, out);
        }
    }
}

static bool must_defer(const struct session *s)
{
    return s->frozen || s->records >= s->cfg.max_records;
}

/* Others may not have taken what was refused here, nor launched what runs here: so many names they have to keep. */
static bool too_far_ahead(struct session *s, const struct tag *t)
{
    return tag_refusals(s, t) >= BOUNDS_REFUSALS || s->slots_used + s->refusals > BOUNDS_OPS + BOUNDS_REFUSALS;
}

/* P1, for a call that must not wait any longer. */
static void launch_now(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    struct tag *t = tag_get(s, c->launch.tag);
    PCCL_ASSERT(t != NULL);
    struct owed owed;
    slot_move(s, slot, SLOT_RUNNING);
    if (owed_take(s, t, &owed)) {
        if (owed.outcome == OUTCOME_ABORT) {
            slot_sizes(s, slot, MUTANT(DEBTLIVE) ? s->view.view : owed.view,
                       MUTANT(DEBTLIVE) ? &s->view.sizes : &owed.sizes);
        }
        slot_end(s, slot, slot_result(c, owed.cause), owed.cause, owed.culprit, out);
        if (owed.cause == CAUSE_MISMATCH) {
            struct op_clash clash = mismatch_owed(s, c->launch.tag, &owed);
            mismatch_tell(s, c, &clash);
        }
        return;
    }
    if (s->view.world < 2) {
        slot_sizes(s, slot, s->view.view, &s->view.sizes);
        slot_end(s, slot, RESULT_ALONE, CAUSE_NONE, 0, out);
        return;
    }
    struct op_name name = {.tag = c->launch.tag, .seq = t->next_seq};
    if (too_far_ahead(s, t)) {
        slot_end(s, slot, RESULT_AHEAD, CAUSE_NONE, 0, out);
        return;
    }
    struct op *op = op_make(s, &name);
    if (op == NULL) { /* the table could not grow; nobody has been told of the call, and its number is free */
        slot_end(s, slot, RESULT_NO_MEMORY, CAUSE_NO_MEMORY, s->id, out);
        return;
    }
    t->next_seq++;
    op_taken(s, op);
    phase_move(MACHINE_OPERATION, &op->phase, OP_RUN);
    op->slot = slot;
    op->since = s->now;
    op->eager = op_is_eager(s, &c->launch.params);
    op->params = p2p_params_hash(&c->launch.params, &s->view.plan);
    c->op = (uint32_t)(op - s->ops);
    mismatch_hear(s, op, s->view.rank, &c->launch.params);
    if (MUTANT(UNLAUNCHED_NOT) && op->refused == 0) {
        for (uint32_t r = 0; r < s->view.world; r++) {
            const struct mark *m = op_mark(s, op, r);
            if (m->refuse > op->refused) {
                refusal_send(s, op, m->refuse, m->refuse_culprit, out);
            }
        }
    }
    if (op->refused != 0) {
        refusal_check(s, op, out); /* refused by all before we came: the error at once */
    } else if (c->launch.no_memory || c->given_up != CAUSE_NONE) {
        refusal_send(s, op, c->launch.no_memory ? CAUSE_NO_MEMORY : c->given_up, s->id, out);
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
    if (s->vote != VOTE_NONE && s->vote != VOTE_QUERY) {
        return RESULT_USAGE;
    }
    if (slot >= s->cfg.max_ops || (slot < s->slot_count && s->slots[slot].at.phase != SLOT_FREE) ||
        !init_numeric(s, &l->params, &n)) {
        return RESULT_FULL;
    }
    return slot >= s->slot_count || (s->wire == NULL && launch_encodes(s, &l->params)) ? RESULT_NO_MEMORY : RESULT_PENDING;
}

static void no_memory(const struct session *s, struct session_event *e)
{
    e->outcome = (struct session_outcome){.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .culprit = s->id};
    snprintf(e->outcome.text, sizeof e->outcome.text, "no memory for one more operation");
}

static void defer(struct session *s, uint32_t slot)
{
    if (s->deferred == NONE) {
        s->deferred = slot;
    } else {
        s->slots[s->deferred_last].next = slot;
    }
    s->deferred_last = slot;
    s->deferred_count++;
}

void launch_call(struct session *s, struct session_event *e, struct outbox *out)
{
    const struct session_launch *l = e->launch;
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = launch_refused(s, l, e->slot);
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
    struct tag *t = tag_find(s, l->tag);
    if (t != NULL && t->slot != NONE) {
        e->outcome.result = RESULT_TAG_IN_USE;
        return;
    }
    if (s->view.world < 2 && s->snapshot.group < 2 && (t == NULL || t->owed == NONE) && !s->frozen) {
        e->outcome.result = RESULT_ALONE;
        return;
    }
    t = tag_get(s, l->tag);
    if (t == NULL && s->tag_count < s->cfg.max_tags) {
        no_memory(s, e);
        return;
    }
    if (t == NULL) {
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
    t->slot = e->slot;
    s->slots_used++;
    if (must_defer(s) || s->deferred != NONE) {
        defer(s, e->slot);
    } else {
        launch_now(s, e->slot, out);
    }
}

bool launch_due(const struct session *s)
{
    return s->deferred != NONE && s->phase == PHASE_MEMBER && !must_defer(s);
}

/* In the order of the calls.  Their payloads together may not fit one outbox: the rest goes out in the next step, which is due at once. */
void launch_deferred(struct session *s, struct outbox *out)
{
    while (launch_due(s) && outbox_half_free(out)) {
        uint32_t slot = s->deferred;
        struct slot *c = &s->slots[slot];
        PCCL_ASSERT(c->at.phase == SLOT_DEFERRED);
        s->deferred = c->next;
        s->deferred_count--;
        c->next = NONE;
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
    if (c->has_sizes) { /* P11 */
        snapshot_take(s, c->sizes_view, &c->sizes);
    }
    if (MUTANT(LIVEATTR)) {
        s->snapshot = s->view.sizes;
    }
    struct tag *t = tag_find(s, c->launch.tag);
    PCCL_ASSERT(t != NULL && t->slot == e->slot);
    t->slot = NONE;
    slot_move(s, e->slot, SLOT_FREE);
    s->slots_used--;
}
