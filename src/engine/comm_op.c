/* comm_op.c - operations: from a launch to the lanes and back.
 *
 * The executors report to the operation's counters; the last lane runs the session's step itself.
 *
 * Invariant: the memory of an operation goes when its slot has been collected; lanes have let go of it by then.
 * SPDX-License-Identifier: MIT */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "engine/comm.h"

enum {
    ASYNC_WINDOW = 8,         /* grants per sender and lane told in READY */
    ASYNC_RESERVE = 32,       /* of one operation in one lane at most */
    ASYNC_LOOKS = 4,          /* for progress, in a stall time */
};

void comm_wait_init(struct comm_wait *w)
{
    pthread_condattr_t attr;
    atomic_init(&w->over, false);
    atomic_init(&w->driving, false);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
}

bool comm_ops_init(struct comm *c)
{
    c->ops = calloc(BOUNDS_OPS, sizeof *c->ops);
    c->free_slots = malloc(BOUNDS_OPS * sizeof *c->free_slots);
    if (c->ops == NULL || c->free_slots == NULL) {
        free(c->ops);
        free(c->free_slots);
        return false;
    }
    for (uint32_t i = 0; i < BOUNDS_OPS; i++) {
        c->free_slots[i] = BOUNDS_OPS - 1 - i;
    }
    c->free_count = BOUNDS_OPS;
    for (uint32_t i = 0; i < COMM_TAG_BUCKETS; i++) {
        list_init(&c->tags[i]);
    }
    return true;
}

void comm_ops_fini(struct comm *c)
{
    for (uint32_t i = 0; i < COMM_TAG_BUCKETS; i++) {
        LIST_FOR_EACH(l, next, &c->tags[i]) {
            comm_op_free(LIST_ENTRY(l, struct comm_op, by_tag));
        }
    }
    free(c->ops);
    free(c->free_slots);
}

void comm_op_free(struct comm_op *op)
{
    list_remove(&op->by_tag);
    pthread_cond_destroy(&op->returned.changed);
    free(op->backup);
    free(op->scratch);
    free(op->ranks);
    free(op->segments);
    free(op->steps);
    free(op);
}

static struct list *async_bucket(struct comm *c, uint64_t tag)
{
    return &c->tags[(tag * UINT64_C(0x9E3779B97F4A7C15)) >> 54];
}

struct comm_op *comm_find(struct comm *c, uint64_t tag)
{
    struct list *bucket = async_bucket(c, tag);
    LIST_FOR_EACH(l, after, bucket) {
        struct comm_op *op = LIST_ENTRY(l, struct comm_op, by_tag);
        if (op->tag == tag) {
            return op;
        }
    }
    return NULL;
}

struct comm_op *comm_claim(struct comm *c, uint64_t tag)
{
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = comm_find(c, tag);
    if (op != NULL && op->awaited) {
        op = NULL;
    }
    if (op != NULL) {
        op->awaited = true;
    }
    pthread_mutex_unlock(&c->lock);
    return op;
}

/* ---- Memory: backups of in-place inputs, room in the lanes -------------------------------------------------------------- */

static void async_backup(struct comm *c, struct comm_op *op, const void *in)
{
    pthread_mutex_lock(&c->lock);
    if (c->spare_bytes >= op->bytes && c->spare_bytes / 4 <= op->bytes) {
        op->backup = c->spare;
        op->backup_bytes = c->spare_bytes;
        c->spare = NULL;
        c->spare_bytes = 0;
    }
    pthread_mutex_unlock(&c->lock);
    if (op->backup == NULL) {
        op->backup = malloc(op->bytes);
        op->backup_bytes = op->bytes;
    }
    if (op->backup != NULL) {
        memcpy(op->backup, in, op->bytes);
    }
}

/* Small operations of types that are not summed as they are need room for the wider sum. */
static bool async_scratch(struct comm_op *op, const struct op_params *p)
{
    struct numeric n;
    if (op->bytes > BOUNDS_EAGER_BYTES ||
        !numeric_init(&n, (enum dtype)p->dtype, (enum redop)p->op, (enum quant)p->quant, (enum dtype)p->quant_dtype,
                      kernels_get()) || n.plain) {
        return true;
    }
    op->scratch = malloc(numeric_acc_bytes(&n, (size_t)p->count) + 1);
    return op->scratch != NULL;
}

void comm_op_keep_backup(struct comm *c, struct comm_op *op)
{
    if (op->backup != NULL && op->backup_bytes > c->spare_bytes) {
        void *smaller = c->spare;
        c->spare = op->backup;
        c->spare_bytes = op->backup_bytes;
        op->backup = smaller;
    }
}

static void async_unreserve(struct comm *c, const struct comm_op *op, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end && op->reserved > 0; i++) {
        room_unreserve(&c->engine->lane[i]->room, op->reserved);
    }
}

void comm_op_unreserve(struct comm *c, struct comm_op *op)
{
    if (!op->started) { /* else the lanes have it, and give it back */
        async_unreserve(c, op, 0, c->config.lanes);
        op->reserved = 0;
    }
}

/* The same window in every lane, or none at all: what is not granted now will be by the lanes. */
static void async_reserve(struct comm *c, struct comm_op *op, const struct op_params *params)
{
    uint32_t senders = session_folding_senders(c->session, params);
    op->window = senders == 0 ? 0 : ASYNC_RESERVE / senders;
    op->window = op->window > ASYNC_WINDOW ? ASYNC_WINDOW : op->window;
    op->reserved = op->window * senders;
    for (uint32_t i = 0; i < c->config.lanes && op->reserved > 0; i++) {
        uint32_t got = room_reserve(&c->engine->lane[i]->room, op->reserved);
        if (got == op->reserved) {
            continue;
        }
        room_unreserve(&c->engine->lane[i]->room, got);
        while (i > 0) {
            room_unreserve(&c->engine->lane[--i]->room, op->reserved);
        }
        op->window = op->reserved = 0;
    }
}

/* ---- Launch --------------------------------------------------------------------------------------------------------------- */

static void async_launch_locked(struct comm *c, const struct comm_launch *launch, struct comm_op *op,
                                struct session_outcome *outcome, struct comm_after *after)
{
    bool in_place = launch->in == launch->out;
    if (c->session == NULL) {
        comm_fail(outcome, RESULT_USAGE, "not connected");
        return;
    }
    if (comm_find(c, launch->tag) != NULL) {
        comm_fail(outcome, RESULT_TAG_IN_USE, "");
        return;
    }
    if (c->free_count == 0) {
        comm_fail(outcome, RESULT_FULL, "too many operations have not been awaited");
        return;
    }
    op->slot = c->free_slots[--c->free_count];
    c->ops[op->slot] = op;
    list_append(async_bucket(c, op->tag), &op->by_tag);
    async_reserve(c, op, &launch->params);
    struct session_launch l = {
        .tag = launch->tag, .params = launch->params, .out = launch->out,
        .in = in_place && op->backup != NULL ? op->backup : launch->in,
        .in_place = in_place && launch->bytes > 0, .no_memory = op->no_memory,
        .scratch = op->scratch, .window = op->window,
        .deadline = c->params.operation_ns > 0 ? clock_now_ns() + c->params.operation_ns : CLOCK_NEVER,
    };
    struct session_event e = {.kind = SESSION_LAUNCH, .slot = op->slot, .launch = &l};
    comm_step(c, &e, after);
    *outcome = e.outcome;
    if (outcome->result != RESULT_PENDING) {
        if (outcome->restore && op->backup != NULL) {
            memcpy(op->out, op->backup, op->bytes);
        }
        comm_op_unreserve(c, op);
        c->ops[op->slot] = NULL;
        c->free_slots[c->free_count++] = op->slot;
        list_remove(&op->by_tag);
    }
}

struct comm_op *comm_op_new(struct comm *c, const struct comm_launch *launch)
{
    struct comm_op *op = calloc(1, sizeof *op);
    if (op == NULL) {
        return NULL;
    }
    list_init(&op->by_tag);
    list_init(&op->in_batch);
    comm_wait_init(&op->returned);
    op->comm = c;
    op->tag = launch->tag;
    op->bytes = launch->bytes;
    op->out = launch->out;
    op->awaited = launch->awaited;
    op->batch = launch->batch;
    op->index = launch->index;
    if (launch->in == launch->out && launch->bytes > 0) {
        async_backup(c, op, launch->in);
    }
    op->no_memory = !async_scratch(op, &launch->params) || (launch->in == launch->out && op->bytes > 0 && op->backup == NULL);
    return op;
}

bool comm_op_launch(struct comm *c, const struct comm_launch *launch, struct comm_op *op, struct session_outcome *outcome)
{
    struct comm_after after;
    if (op == NULL) {
        comm_fail(outcome, RESULT_NO_MEMORY, "no memory for the operation");
        return false;
    }
    comm_lock(c, &after);
    async_launch_locked(c, launch, op, outcome, &after);
    bool pending = outcome->result == RESULT_PENDING;
    if (!pending) {
        comm_op_keep_backup(c, op);
    }
    comm_unlock(c, &after);
    if (!pending) {
        comm_op_free(op);
    }
    return pending;
}

void comm_launch(struct comm *c, const struct comm_launch *launch, struct comm_op **op_out,
                 struct session_outcome *outcome)
{
    struct comm_op *op = comm_op_new(c, launch);
    if (comm_op_launch(c, launch, op, outcome)) {
        *op_out = op;
    }
}

/* ---- What the session wants done ------------------------------------------------------------------------------------------ */

static bool async_plan(struct comm_op *op, const struct session_op *run)
{
    struct plan_params p = run->plan;
    op->ranks = malloc(p.world * sizeof *op->ranks);
    op->segments = calloc(plan_max_segments(p.algorithm, p.world), sizeof *op->segments);
    op->steps = calloc(plan_max_steps(p.algorithm, p.world), sizeof *op->steps);
    if (op->ranks == NULL || op->segments == NULL || op->steps == NULL) {
        return false;
    }
    memcpy(op->ranks, run->ranks, p.world * sizeof *op->ranks);
    plan_make(&op->plan, &p, op->segments, op->steps);
    return true;
}

static void async_post(struct comm *c, struct comm_op *op, struct lane_order order, struct comm_after *after)
{
    order.op = op;
    order.comm = c;
    order.view = op->view;
    order.name = op->name;
    for (uint32_t i = 0; i < op->lanes; i++) {
        lane_post_surely(c->engine->lane[i], &order);
        after->lanes |= UINT64_C(1) << i;
    }
}

void comm_op_started(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops[a->slot];
    const struct session_op *run = session_op(c->session, a->slot);
    op->started = true;
    c->running++;
    op->view = run->view;
    op->name = run->name;
    op->numeric = run->numeric;
    op->world = run->plan.world;
    op->rank = run->plan.rank;
    op->lanes = run->lanes < c->config.lanes ? run->lanes : c->config.lanes;
    op->verify = run->verify;
    op->in = run->in;
    op->launch = run->launch;
    if (a->value != op->window) {
        async_unreserve(c, op, 0, c->config.lanes); /* of another view: the lanes grant anew */
        op->window = op->reserved = 0;
    } else {
        async_unreserve(c, op, op->lanes, c->config.lanes);
    }
    atomic_store(&op->done_left, op->lanes);
    atomic_store(&op->idle_left, op->lanes);
    if (!async_plan(op, run)) {
        /* Nothing was handed to lanes: it is idle, and is asked to be given up once this step is over. */
        async_unreserve(c, op, 0, op->lanes);
        op->reserved = 0;
        op->failed = true;
        c->failed_ops = true;
        return;
    }
    async_post(c, op, (struct lane_order){.kind = LANE_START}, after);
    engine_arm(c->engine, clock_now_ns() + c->config.stall_ns / ASYNC_LOOKS);
}

void comm_op_ready(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops[a->slot];
    if (!op->failed) {
        struct lane_order order = {.kind = LANE_READY, .peer = a->id, .credit = (uint32_t)a->value, .launch = a->order};
        async_post(c, op, order, after);
    }
}

void comm_op_stopped(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops[a->slot];
    if (!op->failed) {
        async_post(c, op, (struct lane_order){.kind = LANE_STOP}, after);
    }
}

static void async_wake(struct comm *c, struct comm_wait *w, struct comm_after *after)
{
    atomic_store(&w->over, true);
    pthread_cond_broadcast(&w->changed);
    if (atomic_load(&w->driving) && !lane_is_mine(c->engine->lane[0])) {
        after->lanes |= 1;
    }
}

void comm_op_returned(struct comm *c, const struct action *a, struct comm_after *after)
{
    struct comm_op *op = c->ops[a->slot];
    async_wake(c, &op->returned, after);
    if (op->batch != NULL) {
        list_append(&op->batch->ended, &op->in_batch);
        async_wake(c, &op->batch->any, after);
    }
    if (c->connecting) {
        pthread_cond_broadcast(&c->changed);
    }
    after->any_ended |= atomic_load(&c->engine->any_waiters) > 0;
}

void comm_ops_failed(struct comm *c, struct comm_after *after)
{
    while (c->failed_ops) {
        c->failed_ops = false;
        for (uint32_t i = 0; i < BOUNDS_OPS; i++) {
            struct comm_op *op = c->ops[i];
            if (op != NULL && op->failed && op->started && !op->told_failed) {
                op->told_failed = true;
                c->running--;
                comm_op_cancel(c, op, CAUSE_NO_MEMORY, after);
                comm_step(c, &(struct session_event){.kind = SESSION_IDLE, .slot = i}, after);
            }
        }
    }
}

void comm_ops_unreserve(struct comm *c)
{
    for (uint32_t i = 0; i < COMM_TAG_BUCKETS; i++) {
        LIST_FOR_EACH(l, next, &c->tags[i]) {
            comm_op_unreserve(c, LIST_ENTRY(l, struct comm_op, by_tag));
        }
    }
}

void comm_ops_detach(struct comm *c, struct comm_after *after)
{
    for (uint32_t i = 0; i < BOUNDS_OPS; i++) {
        struct comm_op *op = c->ops[i];
        if (op != NULL) {
            struct session_event e = {.kind = SESSION_COLLECT, .slot = i};
            comm_step(c, &e, after);
            op->outcome = e.outcome;
            op->detached = true;
            comm_op_unreserve(c, op);
            c->ops[i] = NULL;
            c->free_slots[c->free_count++] = i;
        }
    }
}

/* ---- What lanes report ---------------------------------------------------------------------------------------------------- */

void comm_op_lane_done(struct comm_op *op, const struct exec *x)
{
    struct comm *c = op->comm;
    struct comm_after after;
    atomic_fetch_add(&op->digest, x->digest);
    if (atomic_fetch_sub(&op->done_left, 1) != 1) {
        return;
    }
    comm_lock(c, &after);
    struct session_event e = {
        .kind = SESSION_DONE, .slot = op->slot, .digest = atomic_load(&op->digest),
    };
    comm_step(c, &e, &after);
    comm_unlock(c, &after);
}

/* Bytes are counted here and not when the result is complete: the last sends may leave after that. */
void comm_op_lane_idle(struct comm_op *op, uint64_t tx_bytes, uint64_t rx_bytes)
{
    struct comm *c = op->comm;
    struct comm_after after;
    atomic_fetch_add(&op->tx_bytes, tx_bytes);
    atomic_fetch_add(&op->rx_bytes, rx_bytes);
    if (atomic_fetch_sub(&op->idle_left, 1) != 1) {
        return;
    }
    comm_lock(c, &after);
    c->running--;
    struct session_event e = {
        .kind = SESSION_IDLE, .slot = op->slot,
        .tx_bytes = atomic_load(&op->tx_bytes), .rx_bytes = atomic_load(&op->rx_bytes),
    };
    comm_step(c, &e, &after);
    comm_unlock(c, &after);
}

void comm_op_stalled(struct comm_op *op, uint64_t peer)
{
    struct comm *c = op->comm;
    struct comm_after after;
    comm_lock(c, &after);
    comm_step(c, &(struct session_event){.kind = SESSION_STALLED, .slot = op->slot, .peer = peer}, &after);
    comm_unlock(c, &after);
}

int64_t comm_ops_watch(struct comm *c, int64_t now, struct comm_after *after)
{
    if (c->running == 0) {
        return CLOCK_NEVER;
    }
    if (now >= c->look_at) {
        c->look_at = now + c->config.stall_ns / ASYNC_LOOKS;
        for (uint32_t i = 0; i < c->config.lanes; i++) {
            lane_post_surely(c->engine->lane[i], &(struct lane_order){.kind = LANE_WATCH, .comm = c});
            after->lanes |= UINT64_C(1) << i;
        }
    }
    return c->look_at;
}

void comm_op_cancel(struct comm *c, struct comm_op *op, enum cause why, struct comm_after *after)
{
    if (!op->detached && !atomic_load(&op->returned.over)) {
        comm_step(c, &(struct session_event){.kind = SESSION_CANCEL, .slot = op->slot, .number = why}, after);
    }
}

void comm_cancel(struct comm *c, struct comm_op *op, enum cause why)
{
    struct comm_after after;
    comm_lock(c, &after);
    comm_op_cancel(c, op, why, &after);
    comm_unlock(c, &after);
}

bool comm_cancel_tag(struct comm *c, uint64_t tag)
{
    struct comm_after after;
    comm_lock(c, &after);
    struct comm_op *op = comm_find(c, tag);
    if (op != NULL) {
        comm_op_cancel(c, op, CAUSE_CANCEL, &after);
    }
    comm_unlock(c, &after);
    return op != NULL;
}
