/* launch.c - calls that launch an operation: taking a number, starting lanes, ending, collecting.
 *
 * A slot is one call: DEFERRED (asked for while the view is frozen or records are full), RUNNING, ENDING (the outcome is
 * known, lanes still hold buffers), RETURNED (collectable).  Invariant: a call takes exactly one of an owed error, TooFewPeers,
 * or the next number of its tag (P1), and OP_RETURN comes once, never before the lanes have let go.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/session_state.h"

enum session_result result_of_cause(uint8_t cause)
{
    switch (cause) {
    case CAUSE_INTERNAL:
        return RESULT_POISONED;
    case CAUSE_MISMATCH:
        return RESULT_MISMATCH;
    case CAUSE_DIGEST:
        return RESULT_DIGEST;
    case CAUSE_NO_MEMORY:
        return RESULT_NO_MEMORY;
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

void slot_stop(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    if (c->started && !c->stopped) {
        c->stopped = true;
        outbox_add(out, ACT_OP_STOP)->slot = slot;
    }
}

static void slot_return(struct session *s, uint32_t slot, struct outbox *out)
{
    phase_move(MACHINE_CALL, &s->slots[slot].phase, SLOT_RETURNED);
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

/* A disagreement is found by comparing what each peer was told. */
static void tell_own_call(struct slot *c)
{
    const struct op_params *p = &c->launch.params;
    const char *const quants[] = {"", ", min-max ", ", zero-point "};
    bool quantised = p->quant > QUANT_NONE && p->quant < QUANT_COUNT;
    snprintf(c->outcome.text, sizeof c->outcome.text, "this peer has %llu %s, %s%s%s", (unsigned long long)p->count,
             dtype_name((enum dtype)p->dtype), redop_name((enum redop)p->op), quantised ? quants[p->quant] : "",
             quantised ? dtype_name((enum dtype)p->quant_dtype) : "");
}

void slot_end(struct session *s, uint32_t slot, enum session_result result, uint8_t cause, uint64_t culprit,
              struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    PCCL_ASSERT(c->phase == SLOT_DEFERRED || c->phase == SLOT_RUNNING);
    bool dropped = MUTANT(BACKUP_EARLY) && c->op != NONE && s->ops[c->op].phase == OP_HOLDING;
    c->outcome.since = result == RESULT_OK ? 0 : ends_since(s, c);
    c->op = NONE;
    c->outcome.result = result;
    c->outcome.cause = cause;
    c->outcome.culprit = culprit;
    c->outcome.world = s->view.world;
    c->outcome.restore = c->launch.in_place && !c->launch.no_memory && result != RESULT_OK && !dropped;
    if (result == RESULT_MISMATCH) {
        tell_own_call(c);
    }
    if (result != RESULT_OK) {
        slot_stop(s, slot, out);
    }
    phase_move(MACHINE_CALL, &c->phase, SLOT_ENDING);
    if (!c->started || MUTANT(RETURN_BEFORE_LETGO)) {
        slot_return(s, slot, out);
    }
}

void slot_idle(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    if (!c->started) {
        return;
    }
    c->started = false;
    if (c->phase == SLOT_ENDING) {
        slot_return(s, slot, out);
    }
}

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
        plan_frame_elements(run->plan.algorithm, s->view.world, p->count, numeric_wire_bytes(&run->numeric, 1024),
                            run->plan.align, s->view.plan.frame_bytes);
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

/* The ranks this operation exchanges data with: all for eager and direct, the neighbours for ring. */
static bool plan_neighbour(const struct session *s, const struct op *op, uint32_t rank)
{
    const struct slot *c = &s->slots[op->slot];
    if (op->eager || c->run.plan.algorithm != PLAN_RING) {
        return true;
    }
    uint32_t n = s->view.world, at = 0;
    while (s->view.ring[at] != s->view.rank) {
        at++;
    }
    return s->view.ring[(at + 1) % n] == rank || s->view.ring[(at + n - 1) % n] == rank;
}

void launch_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if (op->phase == OP_GHOST || op->phase == OP_DONE || op->refused != 0 || !plan_neighbour(s, op, rank)) {
        return;
    }
    if (op->eager) {
        eager_send(s, op, rank, out);
        return;
    }
    struct peer *p = &s->peers[s->view.peer[rank]];
    if (!peer_reachable(s, rank) || p->bundle == 0) {
        return; /* said when its PING, or the bundle, has come */
    }
    const struct slot *c = &s->slots[op->slot];
    p->bundle_view = s->view.view;
    struct msg_ready m = {
        .name = op->name, .params = c->launch.params, .window = c->launch.window, .bundle = p->bundle};
    put_ready(outbox_frame(out, FRAME_READY, s->run, s->view.view), &m);
    outbox_send(out, ACT_PEERS, p->id);
}

void launch_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if ((op->phase != OP_RUN && op->phase != OP_HOLDING) || op->eager || op->slot == NONE ||
        !s->slots[op->slot].started || s->slots[op->slot].stopped) {
        return;
    }
    struct mark *m = op_mark(s, op, rank);
    const struct peer *p = &s->peers[s->view.peer[rank]];
    if (m->ready && !m->fed && m->bundle != 0 && m->bundle == p->bundle) {
        m->fed = true;
        struct action *a = outbox_add(out, ACT_OP_READY);
        a->slot = op->slot;
        a->id = p->id;
        a->value = m->window;
    }
}

static void start(struct session *s, struct op *op, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    for (uint32_t r = 0; r < s->view.world; r++) {
        struct mark *m = op_mark(s, op, r);
        if (r != s->view.rank && m->ready && m->ready_params != op->params) {
            refusal_send(s, op, CAUSE_MISMATCH, s->view.ids[r], out);
            return;
        }
    }
    if (op->eager) {
        eager_start(s, op, out);
        return;
    }
    fill_run(s, c, &op->name);
    c->started = true;
    struct action *a = outbox_add(out, ACT_OP_START);
    a->slot = slot;
    a->value = c->launch.window;
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank) {
            launch_announce(s, op, r, out);
            launch_feed(s, op, r, out);
        }
    }
}

static bool must_defer(const struct session *s)
{
    return s->frozen || s->records >= s->cfg.max_records;
}

/* P1, for a call that must not wait any longer. */
static void launch_now(struct session *s, uint32_t slot, struct outbox *out)
{
    struct slot *c = &s->slots[slot];
    struct tag *t = tag_get(s, c->launch.tag);
    PCCL_ASSERT(t != NULL);
    struct owed owed;
    phase_move(MACHINE_CALL, &c->phase, SLOT_RUNNING);
    if (owed_take(s, t, &owed)) {
        if (owed.outcome == OUTCOME_ABORT) {
            slot_sizes(s, slot, MUTANT(DEBTLIVE) ? s->view.view : owed.view,
                       MUTANT(DEBTLIVE) ? &s->view.sizes : &owed.sizes);
        }
        slot_end(s, slot, result_of_cause(owed.cause), owed.cause, owed.culprit, out);
        return;
    }
    if (s->view.world < 2) {
        slot_sizes(s, slot, s->view.view, &s->view.sizes);
        slot_end(s, slot, RESULT_ALONE, CAUSE_NONE, 0, out);
        return;
    }
    struct op_name name = {.tag = c->launch.tag, .seq = t->next_seq};
    struct op *op = t->refusals >= BOUNDS_REFUSALS ? NULL : op_make(s, &name);
    if (op == NULL) {
        slot_end(s, slot, RESULT_FULL, CAUSE_NONE, 0, out);
        return;
    }
    t->next_seq++;
    phase_move(MACHINE_OPERATION, &op->phase, OP_RUN);
    op->slot = slot;
    op->since = s->now;
    op->eager = op_is_eager(s, &c->launch.params);
    op->params = p2p_params_hash(&c->launch.params, &s->view.plan);
    c->op = (uint32_t)(op - s->ops);
    op_mark(s, op, s->view.rank)->ready = true;
    if (MUTANT(UNLAUNCHED_NOT) && op->refused == 0) {
        for (uint32_t r = 0; r < s->view.world; r++) {
            uint8_t heard = op_mark(s, op, r)->refuse;
            if (heard > op->refused) {
                refusal_send(s, op, heard, op->culprit, out);
            }
        }
    }
    if (op->refused != 0) {
        refusal_check(s, op, out); /* refused by all before we came: the error at once */
    } else if (c->launch.no_memory) {
        refusal_send(s, op, CAUSE_NO_MEMORY, s->id, out);
    } else {
        start(s, op, slot, out);
    }
}

static enum session_result launch_refused(const struct session *s, const struct session_launch *l, uint32_t slot)
{
    struct numeric n;
    if (s->phase != PHASE_MEMBER) {
        return s->left_cause != 0 ? RESULT_GONE : RESULT_USAGE;
    }
    if (s->vote != VOTE_NONE && s->vote != VOTE_QUERY) {
        return RESULT_USAGE;
    }
    if (slot >= s->cfg.max_ops || s->slots[slot].phase != SLOT_FREE || !init_numeric(s, &l->params, &n)) {
        return RESULT_FULL;
    }
    return RESULT_PENDING;
}

void launch_call(struct session *s, struct session_event *e, struct outbox *out)
{
    const struct session_launch *l = e->launch;
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = launch_refused(s, l, e->slot);
    if (e->outcome.result != RESULT_PENDING) {
        e->outcome.cause = s->left_cause;
        memcpy(e->outcome.text, s->left_text, sizeof e->outcome.text);
        return;
    }
    struct tag *t = tag_get(s, l->tag);
    if (t == NULL) {
        e->outcome.result = RESULT_FULL;
        return;
    }
    if (t->slot != NONE) {
        e->outcome.result = RESULT_TAG_IN_USE;
        return;
    }
    if (s->view.world < 2 && s->snapshot.group < 2 && t->owed == NONE && !s->frozen) {
        e->outcome.result = RESULT_ALONE;
        return;
    }
    struct slot *c = &s->slots[e->slot];
    memset(c, 0, sizeof *c);
    phase_move(MACHINE_CALL, &c->phase, SLOT_DEFERRED);
    c->op = NONE;
    c->launch = *l;
    c->order = ++s->order;
    t->slot = e->slot;
    s->slots_used++;
    if (!must_defer(s)) {
        launch_now(s, e->slot, out);
    }
}

/* In the order of the calls. */
void launch_deferred(struct session *s, struct outbox *out)
{
    while (s->phase == PHASE_MEMBER && !must_defer(s)) {
        uint32_t oldest = NONE;
        for (uint32_t i = 0; i < s->cfg.max_ops; i++) {
            if (s->slots[i].phase == SLOT_DEFERRED &&
                (oldest == NONE || s->slots[i].order < s->slots[oldest].order)) {
                oldest = i;
            }
        }
        if (oldest == NONE) {
            return;
        }
        /* The window was reserved for another view's plan: lanes grant anew. */
        s->slots[oldest].launch.window = 0;
        launch_now(s, oldest, out);
    }
}

/* The whole result is in the caller's buffer (P2). */
void launch_done(struct session *s, struct op *op, uint64_t digest, struct outbox *out)
{
    if (op->phase != OP_RUN || op->refused != 0 || (s->frozen && !MUTANT(LATE_HOLD))) {
        return; /* P4: nothing becomes held in a frozen view; P10: who refused never holds */
    }
    phase_move(MACHINE_OPERATION, &op->phase, OP_HOLDING);
    op->digest = digest;
    struct mark *own = op_mark(s, op, s->view.rank);
    own->held = true;
    own->hold_params = op->params;
    own->hold_digest = digest;
    hold_send(s, op, out);
    hold_check(s, op, out);
}

void launch_collect(struct session *s, struct session_event *e)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    if (e->slot >= s->cfg.max_ops || s->slots[e->slot].phase != SLOT_RETURNED) {
        e->outcome.result = RESULT_USAGE;
        return;
    }
    struct slot *c = &s->slots[e->slot];
    e->outcome = c->outcome;
    if (c->has_sizes) {
        snapshot_take(s, c->sizes_view, &c->sizes);
    }
    if (MUTANT(LIVEATTR)) {
        s->snapshot = s->view.sizes;
    }
    struct tag *t = tag_find(s, c->launch.tag);
    PCCL_ASSERT(t != NULL && t->slot == e->slot);
    t->slot = NONE;
    phase_move(MACHINE_CALL, &c->phase, SLOT_FREE);
    s->slots_used--;
}
