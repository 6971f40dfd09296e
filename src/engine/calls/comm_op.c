/* comm_op.c - operations by slot and by tag, and how one is launched.
 *
 * Invariant: an operation that the session knows is in ops.at, one that a handle leads to in ops.tags.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/layout.h"
#include "core/mutant.h"
#include "core/pages.h"
#include "engine/comm.h"
#include "engine/threads/comm_step.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"
#include "engine/calls/op_room.h"

enum {
    OPS_FIRST = 8, /* slots at first */
    OPS_BURST_NS = 20000, /* who launches again so soon will do so once more: a message costs about 4 us, and one may say it of many */
};

/* ---- By tag and by slot ------------------------------------------------------------------------------------------ */

static uint32_t tag_hash(uint64_t tag)
{
    return (uint32_t)((tag * UINT64_C(0x9E3779B97F4A7C15)) >> 32 >> 16);
}

static uint32_t op_hash(struct list *by_tag)
{
    return tag_hash(LIST_ENTRY(by_tag, struct comm_op, place.by_tag)->given.tag);
}

void comm_ops_init(struct comm *c)
{
    list_init(&c->ops.attached);
    buckets_init(&c->ops.tags, op_hash);
}

/* One more operation has a slot, if there is memory: few communicators have more than some at a time. */
static bool op_slots_grow(struct comm *c)
{
    if (c->ops.free_count > 0 || c->ops.fresh < c->ops.room || c->ops.room == BOUNDS_OPS) {
        return true; /* all in use: the launch says so */
    }
    uint32_t room = layout_doubled(c->ops.room, OPS_FIRST, c->ops.room + 1, BOUNDS_OPS);
    struct comm_op **at = realloc(c->ops.at, room * sizeof *at);
    c->ops.at = at != NULL ? at : c->ops.at;
    uint32_t *free_slots = realloc(c->ops.free_slots, room * sizeof *free_slots);
    c->ops.free_slots = free_slots != NULL ? free_slots : c->ops.free_slots;
    if (at == NULL || free_slots == NULL) {
        return false;
    }
    memset(at + c->ops.room, 0, (room - c->ops.room) * sizeof *at);
    c->ops.room = room;
    return true;
}

static void op_backup_free(struct comm_op *op)
{
    if (op->memory.lazy) {
        pages_free(op->memory.backup, op->memory.backup_bytes);
    } else {
        free(op->memory.backup);
    }
}

void comm_op_free(struct comm_op *op)
{
    list_remove(&op->place.by_tag);
    op_end_fini(op);
    op_backup_free(op);
    pages_free(op->memory.sums, op->memory.sums_bytes);
    free(op->memory.scratch);
    free(op->memory.lists);
    free(op->memory.why);
    plan_made_drop(op->plan.made);
    free(op->plan.saved);
    free(op);
}

void comm_ops_fini(struct comm *c)
{
    LIST_FOR_EACH(a, after, &c->ops.attached) { /* after a fork only: their queues are the parent's */
        struct comm_op *op = LIST_ENTRY(a, struct comm_op, end.attached);
        if (list_empty(&op->place.by_tag)) {
            comm_op_free(op);
        }
    }
    for (uint32_t i = 0; i < c->ops.tags.count; i++) {
        LIST_FOR_EACH(l, next, &c->ops.tags.at[i]) {
            comm_op_free(LIST_ENTRY(l, struct comm_op, place.by_tag));
        }
    }
    buckets_fini(&c->ops.tags);
    spares_rest(&c->ops.spares);
    free(c->ops.at);
    free(c->ops.free_slots);
}

void comm_ops_rest(struct comm *c)
{
    spares_rest(&c->ops.spares);
}

struct comm_op *comm_find(struct comm *c, uint8_t space, uint64_t tag)
{
    LIST_FOR_EACH(l, after, buckets_chain(&c->ops.tags, tag_hash(tag))) {
        struct comm_op *op = LIST_ENTRY(l, struct comm_op, place.by_tag);
        if (op->given.tag == tag && op->given.space == space) {
            return op;
        }
    }
    return NULL;
}

struct comm_op *comm_claim(struct comm *c, uint8_t space, uint64_t tag)
{
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = comm_find(c, space, tag);
    if (op != NULL && op->given.awaited) {
        op = NULL;
    }
    if (op != NULL) {
        op->given.awaited = true;
    }
    pthread_mutex_unlock(&c->lock);
    return op;
}

bool comm_cancel_tag(struct comm *c, uint8_t space, uint64_t tag)
{
    struct comm_after after;
    comm_lock(c, &after);
    struct comm_op *op = comm_find(c, space, tag);
    struct queue *keeper = op != NULL ? op->given.keeper : NULL;
    if (keeper != NULL) { /* still in hand: its end takes this lock */
        op->given.given_up = true;
        queue_wake(keeper);
    } else if (op != NULL && op == c->calls.connect) {
        op->given.given_up = true;
        comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = "connecting was cancelled"}, &after);
    } else if (op != NULL) {
        op_end_cancel(c, op, CAUSE_CANCEL, &after);
    }
    comm_unlock(c, &after);
    return op != NULL;
}

void comm_wake_keepers(struct comm *c)
{
    for (uint32_t i = 0; i < c->ops.tags.count; i++) {
        LIST_FOR_EACH(l, after, &c->ops.tags.at[i]) {
            struct queue *keeper = LIST_ENTRY(l, struct comm_op, place.by_tag)->given.keeper;
            if (keeper != NULL) {
                queue_wake(keeper);
            }
        }
    }
}

/* ---- Memory: backups of in-place inputs, lists of parts ----------------------------------------------------------- */

/* Only sums to all, or to the root, are written where the input lies. */
static bool op_in_place(const struct comm_launch *launch)
{
    return (launch->call.params.kind == PLAN_ALL_REDUCE || launch->call.params.kind == PLAN_REDUCE) && launch->call.in == launch->call.out && launch->bytes > 0 && !launch->call.bad_argument;
}

/* Copies lists to `at`; returns what lies behind them. */
static size_t *op_list(size_t *at, uint32_t world, const struct part_lists *given, struct part_lists *own)
{
    size_t next = 0;
    if (given->counts == NULL) {
        return at;
    }
    *own = (struct part_lists){at, at + world};
    for (uint32_t r = 0; r < world; r++) {
        at[r] = given->counts[r];
        at[world + r] = given->places != NULL ? given->places[r] : next;
        next += given->counts[r];
    }
    return at + 2 * (size_t)world;
}

/* What the program owns only for the call. */
static bool op_lists(struct comm_op *op, const struct comm_launch *launch)
{
    size_t lists = (launch->call.parts.counts != NULL) + (size_t)(launch->call.out_parts.counts != NULL);
    if (lists == 0) {
        return true;
    }
    size_t *at = malloc(2 * lists * launch->call.world * sizeof *at);
    op->memory.lists = at;
    if (at == NULL) {
        return false;
    }
    at = op_list(at, launch->call.world, &launch->call.parts, &op->memory.parts);
    (void)op_list(at, launch->call.world, &launch->call.out_parts, &op->memory.out_parts);
    return true;
}

/* Small operations are folded by the session, which knows no frames: saved at once.  Of others, frame by frame. */
static void op_backup(struct comm *c, struct comm_op *op, const void *in)
{
    op->memory.lazy = op->given.bytes > BOUNDS_EAGER_BYTES;
    if (op->memory.lazy) {
        op->memory.backup_bytes = op->given.bytes;
        pthread_mutex_lock(&c->lock);
        op->memory.backup = spares_take(&c->ops.spares, &op->memory.backup_bytes);
        pthread_mutex_unlock(&c->lock);
        return;
    }
    op->memory.backup = malloc(op->given.bytes);
    if (op->memory.backup != NULL) {
        memcpy(op->memory.backup, in, op->given.bytes);
    }
}

void comm_op_restore(const struct comm_op *op)
{
    const struct plan *plan = op->plan.plan;
    unsigned char *out = op->given.out;
    const unsigned char *backup = op->memory.backup;
    if (backup != NULL && !op->memory.lazy) {
        memcpy(out, backup, op->given.bytes);
    }
    for (uint32_t f = 0; op->plan.saved != NULL && f < plan->frame_count; f++) {
        size_t first, count;
        const struct plan_segment *s = plan_frame(plan, f, &first, &count);
        if (op->plan.saved[f]) {
            size_t at = numeric_user_bytes(&op->run.numeric, s->in + first);
            memcpy(out + at, backup + at, numeric_user_bytes(&op->run.numeric, count));
        }
    }
}

/* Small operations of types that are not summed as they are need room for the wider sum. */
static bool op_scratch(struct comm_op *op, const struct op_params *p)
{
    struct numeric n;
    if (!plan_kind_sums(p->kind) || op->given.bytes > BOUNDS_EAGER_BYTES ||
        !numeric_init(&n, (enum dtype)p->dtype, (enum redop)p->op, (enum quant)p->quant, (enum dtype)p->quant_dtype,
                      kernels_get()) || n.plain) {
        return true;
    }
    op->memory.scratch = malloc(numeric_acc_bytes(&n, (size_t)p->count) + 1);
    return op->memory.scratch != NULL;
}

bool comm_op_sums(struct comm *c, struct comm_op *op, size_t bytes)
{
    op->memory.sums_bytes = bytes;
    op->memory.sums = bytes > 0 ? spares_take(&c->ops.spares, &op->memory.sums_bytes) : NULL;
    return bytes == 0 || op->memory.sums != NULL;
}

void comm_op_keep_backup(struct comm *c, struct comm_op *op)
{
    if (op->memory.sums != NULL) {
        spares_give(&c->ops.spares, op->memory.sums, op->memory.sums_bytes);
        op->memory.sums = NULL;
    }
    if (op->memory.lazy && op->memory.backup != NULL) {
        spares_give(&c->ops.spares, op->memory.backup, op->memory.backup_bytes);
        op->memory.backup = NULL;
    }
}

/* ---- Launch and end ---------------------------------------------------------------------------------------------- */

static void op_unreserve(struct comm *c, struct comm_op *op)
{
    if (!op->run.started && !MUTANT(ROOM_LEAK)) { /* else the lanes have it, and give it back */
        op_room_give(c, op);
    }
}

void comm_op_vacate(struct comm *c, struct comm_op *op)
{
    op_unreserve(c, op);
    op_room_end(c, op);
    c->ops.at[op->place.slot] = NULL;
    c->ops.own -= op->place.own;
    c->ops.free_slots[c->ops.free_count++] = op->place.slot;
    op->place.detached = true;
}

bool comm_op_spend(struct comm_op *op)
{
    list_remove(&op->place.by_tag);
    return op_end_release(op);
}

void comm_op_orphan(struct comm_op *op)
{
    op->comm = NULL;
    op_end_unlist(op);
    if (!list_empty(&op->place.by_tag)) {
        (void)comm_op_spend(op); /* the queue holds it */
    }
}

void comm_ops_detach(struct comm *c, struct comm_after *after)
{
    for (uint32_t i = 0; i < c->ops.fresh; i++) {
        struct comm_op *op = c->ops.at[i];
        if (op != NULL) {
            op_end_collect(c, op, after);
            comm_op_vacate(c, op);
        }
    }
}

void comm_ops_unreserve(struct comm *c)
{
    for (uint32_t i = 0; i < c->ops.tags.count; i++) {
        LIST_FOR_EACH(l, next, &c->ops.tags.at[i]) {
            op_unreserve(c, LIST_ENTRY(l, struct comm_op, place.by_tag));
        }
    }
}

static void op_launch_locked(struct comm *c, const struct comm_launch *launch, struct comm_op *op,
                             struct session_outcome *outcome, struct comm_after *after)
{
    bool in_place = op_in_place(launch);
    if (c->machine.session == NULL) {
        comm_fail(outcome, RESULT_USAGE, "not connected");
        return;
    }
    op->given.tag = op->given.space == SPACE_ORDERED ? ++c->ops.issued : launch->call.tag;
    if (comm_find(c, op->given.space, op->given.tag) != NULL) {
        comm_fail(outcome, RESULT_TAG_IN_USE, "");
        return;
    }
    bool own = launch->call.space == SPACE_WINDOW;
    uint32_t used = c->ops.fresh - c->ops.free_count; /* what is kept for windows is theirs alone */
    if (used == BOUNDS_OPS || (!own && used - c->ops.own >= BOUNDS_OPS - c->ops.kept)) {
        comm_fail(outcome, RESULT_FULL, "too many operations have not been awaited");
        return;
    }
    op->place.slot = c->ops.free_count > 0 ? c->ops.free_slots[--c->ops.free_count] : c->ops.fresh++;
    c->ops.at[op->place.slot] = op;
    c->ops.own += own;
    buckets_add(&c->ops.tags, &op->place.by_tag);
    op_room_reserve(c, op, &launch->call.params, launch->call.root_rank);
    struct session_launch l = {.call = launch->call, .in_place = in_place, .scratch = op->memory.scratch, .window = op->room.window};
    l.call.parts = op->memory.parts;
    l.call.out_parts = op->memory.out_parts;
    l.call.in = in_place && op->memory.backup != NULL && !op->memory.lazy ? op->memory.backup : launch->call.in;
    l.call.no_memory = op->memory.lacking;
    l.call.deadline = launch->call.deadline != 0   ? launch->call.deadline
                      : c->params.operation_ns > 0 ? clock_now_ns() + c->params.operation_ns
                                                   : CLOCK_NEVER;
    c->ops.launched++;
    struct session_event e = {.kind = SESSION_LAUNCH, .slot = op->place.slot, .launch = &l};
    c->ops.open += !own; /* it may return in this very step */
    after->lends = launch->call.awaited ? op->place.slot : UINT32_MAX;
    comm_step(c, &e, after);
    after->lends = UINT32_MAX;
    *outcome = e.outcome;
    if (outcome->result != RESULT_PENDING) {
        if (outcome->restore) {
            comm_op_restore(op);
        }
        comm_op_vacate(c, op);
        list_remove(&op->place.by_tag);
        c->ops.open -= !own;
        op_end_explain(op, outcome);
    }
}

struct comm_op *comm_op_new(struct comm *c, const struct comm_launch *launch)
{
    struct comm_op *op = calloc(1, sizeof *op);
    if (op == NULL) {
        return NULL;
    }
    list_init(&op->place.by_tag);
    op_end_init(op);
    op->comm = c;
    op->given.space = launch->call.space == SPACE_TAG ? SPACE_TAG : SPACE_ORDERED;
    op->place.own = launch->call.space == SPACE_WINDOW;
    op->given.kind = launch->call.params.kind;
    op->given.receives = launch->call.receives;
    op->given.source = launch->source;
    op->given.bytes = launch->bytes;
    op->given.out = launch->call.out;
    op->given.awaited = launch->call.awaited;
    op->given.batch = launch->batch;
    op->given.index = launch->index;
    op->memory.why = launch->why != NULL ? strdup(launch->why) : NULL;
    bool in_place = op_in_place(launch);
    if (in_place) {
        op_backup(c, op, launch->call.in);
    }
    op->memory.lacking = !op_scratch(op, &launch->call.params) || !op_lists(op, launch) || (in_place && op->memory.backup == NULL) || launch->call.no_memory;
    return op;
}

/* With the lock; false: it was not launched, see *outcome. */
static bool op_launch(struct comm *c, const struct comm_launch *launch, struct comm_op *op, struct session_outcome *outcome,
                      struct comm_after *after)
{
    if (op != NULL && op_slots_grow(c)) {
        op_launch_locked(c, launch, op, outcome, after);
        return outcome->result == RESULT_PENDING;
    }
    comm_fail(outcome, RESULT_NO_MEMORY, "no memory for the operation");
    outcome->left = launch->call.space == SPACE_ORDERED && c->machine.session != NULL;
    if (outcome->left) { /* the others would wait for its number for ever */
        comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = "no memory for an operation in the order of issue"}, after);
    }
    return false;
}

uint32_t comm_op_launch(struct comm *c, const struct comm_launch *list, struct comm_op **ops, uint32_t count, struct session_outcome *outcome)
{
    struct comm_after after;
    uint32_t launched = 0;
    bool waits = list[0].call.awaited; /* its call, so it launches nothing else meanwhile */
    int64_t now = waits ? 0 : clock_now_ns();
    comm_lock(c, &after);
    after.leaves = !waits && c->ops.open > 0 && now - c->ops.launched_at < OPS_BURST_NS;
    c->ops.launched_at = waits ? c->ops.launched_at : now;
    while (launched < count && op_launch(c, &list[launched], ops[launched], outcome, &after)) {
        launched++;
    }
    for (uint32_t i = launched; i < count; i++) {
        if (ops[i] != NULL) {
            comm_op_keep_backup(c, ops[i]);
        }
    }
    comm_unlock(c, &after);
    for (uint32_t i = launched; i < count; i++) {
        if (ops[i] != NULL) {
            comm_op_free(ops[i]);
        }
    }
    return launched;
}

void comm_op_launch_own(struct comm *c, const struct comm_launch *launch, struct comm_op *op, struct comm_after *after)
{
    struct session_outcome outcome;
    if (op_slots_grow(c)) {
        op_launch_locked(c, launch, op, &outcome, after);
    } else {
        comm_fail(&outcome, RESULT_NO_MEMORY, "no memory for the operation");
    }
    list_remove(&op->place.by_tag);
    if (outcome.result != RESULT_PENDING) { /* taken back: it ends now */
        op->place.detached = true;
        op_end_late(c, op, &outcome, after);
    }
}

struct comm_op *comm_op_begin(struct comm *c, const char *phase, struct queue *keeper)
{
    struct comm_op *op = calloc(1, sizeof *op);
    if (op == NULL) {
        return NULL;
    }
    list_init(&op->place.by_tag);
    op_end_init(op);
    op->comm = c;
    op->given.space = SPACE_ORDERED;
    op->given.phase = phase;
    op->given.keeper = keeper;
    op->place.detached = true;
    pthread_mutex_lock(&c->lock);
    op->given.tag = ++c->ops.issued;
    buckets_add(&c->ops.tags, &op->place.by_tag);
    op_end_hold(op);
    c->ops.open++;
    pthread_mutex_unlock(&c->lock);
    return op;
}

bool comm_op_given_up(struct comm *c, const struct comm_op *op)
{
    pthread_mutex_lock(&c->lock);
    bool given_up = op->given.given_up;
    pthread_mutex_unlock(&c->lock);
    return given_up;
}

void comm_op_settle_locked(struct comm *c, struct comm_op *op, const struct session_outcome *outcome, struct comm_after *after)
{
    op->given.keeper = NULL;
    op_end_late(c, op, outcome, after);
    if (op_end_release(op)) {
        comm_op_free(op);
    }
}

void comm_op_settle(struct comm *c, struct comm_op *op, const struct session_outcome *outcome)
{
    struct comm_after after;
    comm_lock(c, &after);
    comm_op_settle_locked(c, op, outcome, &after);
    comm_unlock(c, &after);
}

bool comm_ops_keep(struct comm *c, uint32_t slots)
{
    bool room = c->ops.fresh - c->ops.free_count - c->ops.own < BOUNDS_OPS - slots; /* and one more, to tell the others */
    c->ops.kept = room ? slots : c->ops.kept;
    return room;
}
