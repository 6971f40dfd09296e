/* api_pending.c - handles of asynchronous operations, by tag and in the order of issue: await, wait, test, wait for any, cancel.
 *
 * Both kinds of handle are a communicator and a number; a table says what the program calls them.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "api/api.h"
#include "core/clock.h"
#include "core/condition.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"

/* What the program knows as. */
struct async_words {
    const char *handle, *number, *remedy;
};

static const struct async_words async_words[] = {
    [SPACE_TAG] = {"reduce_handle", "tag", "pass a handle that pcclAllReduceAsync has stored"},
    [SPACE_ORDERED] = {"async_op", "id", "pass a handle that a call has stored in its async_op_out"},
};

/* A handle of either kind. */
struct async {
    uint8_t space;
    const pcclComm_t *comm;
    uint64_t number;
};

/* One of a list; both kinds are borrowed from the program as they are. */
static struct async async_at(uint8_t space, const void *list, size_t index)
{
    if (space == SPACE_TAG) {
        const pcclAsyncReduceOp_t *h = (const pcclAsyncReduceOp_t *)list + index;
        return (struct async){.space = space, .comm = h->comm, .number = h->tag};
    }
    const pcclAsyncOp_t *h = (const pcclAsyncOp_t *)list + index;
    return (struct async){.space = space, .comm = h->comm, .number = h->id};
}

/* `field`: what the program knows it as. */
static pcclResult_t async_spent(const char *phase, const char *field, uint64_t number)
{
    return api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                    "%s is %" PRIu64 ": unknown or spent handle, or awaited by another thread: "
                    "use a handle until its one await", field, number);
}

static pcclResult_t async_spent_one(const char *phase, const struct async *a)
{
    char field[32];
    snprintf(field, sizeof field, "%s->%s", async_words[a->space].handle, async_words[a->space].number);
    return async_spent(phase, field, a->number);
}

pcclResult_t api_spent(const char *phase, uint8_t space, uint64_t number)
{
    return async_spent_one(phase, &(struct async){.space = space, .number = number});
}

/* Checks what the program passed before anything is looked up. */
static pcclResult_t async_check(const char *phase, uint8_t space, const void *handle, struct async *out)
{
    const struct async_words *w = &async_words[space];
    if (handle == NULL) {
        return api_null(phase, w->handle, w->remedy);
    }
    *out = async_at(space, handle, 0);
    char field[32];
    snprintf(field, sizeof field, "%s->comm", w->handle);
    return out->comm == NULL ? api_null(phase, field, w->remedy) : pcclSuccess;
}

/* Checks it, and enters its communicator. */
static pcclResult_t async_enter(const char *phase, uint8_t space, const void *handle, struct async *out, struct comm **comm)
{
    pcclResult_t rc = async_check(phase, space, handle, out);
    return rc == pcclSuccess ? api_enter(out->comm, phase, comm) : rc;
}

pcclResult_t api_enter_async(const char *phase, uint8_t space, const void *handle, uint64_t *number_out, struct comm **comm_out)
{
    struct async a = {0};
    pcclResult_t rc = async_enter(phase, space, handle, &a, comm_out);
    *number_out = a.number;
    return rc;
}

void api_reduce_info(const struct session_outcome *o, pcclReduceInfo_t *info)
{
    if (info != NULL) {
        info->local_world_size = o->world;
        info->tx_bytes = o->tx_bytes;
        info->rx_bytes = o->rx_bytes;
    }
}

/* As errors name it. */
static const char *async_phase(const char *phase, uint8_t space, uint8_t kind, bool receives)
{
    return phase != NULL ? phase : space == SPACE_TAG ? "reduce" : receives ? "receive" : plan_kind_name(kind);
}

static uint64_t async_tag(uint8_t space, uint64_t number)
{
    return space == SPACE_TAG ? number : 0;
}

static pcclResult_t async_await(uint8_t space, const void *handle, pcclReduceInfo_t *info_out)
{
    struct async a = {0};
    struct comm *c;
    struct session_outcome o;
    pcclResult_t rc = async_enter("await", space, handle, &a, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    struct comm_op *op = comm_claim(c, space, a.number);
    if (op == NULL) {
        rc = async_spent_one("await", &a);
    } else {
        const char *phase = async_phase(op->given.phase, space, op->given.kind, op->given.receives);
        uint32_t *source = op->given.source;
        comm_await(c, op, &o);
        rc = api_outcome(&o, phase, async_tag(space, a.number));
        if (rc == pcclSuccess) {
            api_reduce_info(&o, info_out);
            if (source != NULL) {
                *source = o.source;
            }
        }
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *reduce_info_out)
{
    return async_await(SPACE_TAG, reduce_handle, reduce_info_out);
}

pcclResult_t pcclAwaitAsync(const pcclAsyncOp_t *async_op, pcclReduceInfo_t *info_out)
{
    return async_await(SPACE_ORDERED, async_op, info_out);
}

/* ---- Waiting, by any number of threads ------------------------------------------------------------------------------------------- */

void api_completion(const struct op_ended *report, uint64_t cookie, pcclCompletion_t *out)
{
    const struct session_outcome *o = &report->outcome;
    out->cookie = cookie;
    out->info = (pcclReduceInfo_t){0};
    out->result = api_outcome_told(o, async_phase(report->phase, report->space, report->kind, report->receives), async_tag(report->space, report->tag), &out->error);
    if (out->result == pcclSuccess) {
        api_reduce_info(o, &out->info);
    }
}

static pcclResult_t async_wait(uint8_t space, const void *handle, int64_t timeout_ms, pcclCompletion_t *completion_out, bool *done_out)
{
    struct async a = {0};
    struct comm *c;
    struct op_ended report;
    int64_t deadline = 0;
    bool known;
    pcclResult_t rc = api_deadline("wait", timeout_ms, &deadline);
    if (rc == pcclSuccess && (completion_out == NULL || done_out == NULL)) {
        rc = api_null("wait", completion_out == NULL ? "completion_out" : "done_out", "pass where to store how it has ended, and whether");
    }
    rc = rc == pcclSuccess ? async_enter("wait", space, handle, &a, &c) : rc;
    if (rc != pcclSuccess) {
        return rc;
    }
    bool done = comm_wait_for(c, space, a.number, deadline, &known, &report);
    if (!known) {
        rc = async_spent_one("wait", &a);
    } else {
        *done_out = done;
    }
    if (done) {
        api_completion(&report, 0, completion_out);
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclWaitAsync(const pcclAsyncOp_t *async_op, int64_t timeout_ms, pcclCompletion_t *completion_out, bool *done_out)
{
    return async_wait(SPACE_ORDERED, async_op, timeout_ms, completion_out, done_out);
}

pcclResult_t pcclWaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, int64_t timeout_ms, pcclCompletion_t *completion_out,
                                 bool *done_out)
{
    return async_wait(SPACE_TAG, reduce_handle, timeout_ms, completion_out, done_out);
}

pcclResult_t pcclDrain(const pcclComm_t *communicator, int64_t timeout_ms, size_t *left_out)
{
    struct comm *c;
    int64_t deadline = 0;
    pcclResult_t rc = api_enter(communicator, "drain", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = left_out == NULL ? api_null("drain", "left_out", "pass where to store how many are left")
                          : api_deadline("drain", timeout_ms, &deadline);
    if (rc == pcclSuccess) {
        *left_out = comm_drain(c, deadline);
    }
    api_leave(c);
    return rc;
}

/* ---- Looking ------------------------------------------------------------------------------------------------------------------- */

/* Whether a live handle's operation has ended; if not, and `watch`, its end will be told.  False: unknown or spent. */
static bool async_peek(struct comm *c, const struct async *a, bool watch, bool *done)
{
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = comm_find(c, a->space, a->number);
    bool known = op != NULL && !op->given.awaited;
    *done = known && (op->place.detached || atomic_load(&op->end.returned.over));
    if (known && !*done && watch) {
        comm_watch(op);
    }
    pthread_mutex_unlock(&c->lock);
    return known;
}

static pcclResult_t async_test(uint8_t space, const void *handle, bool *done_out)
{
    struct async a = {0};
    struct comm *c;
    pcclResult_t rc = handle != NULL && done_out == NULL ? api_null("test", "done_out", "pass where to store the answer")
                                                         : async_enter("test", space, handle, &a, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    bool done = false;
    if (!async_peek(c, &a, false, &done)) {
        rc = async_spent_one("test", &a);
    } else {
        *done_out = done;
        if (!done) {
            comm_undriven(c);
        }
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclTestAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, bool *done_out)
{
    return async_test(SPACE_TAG, reduce_handle, done_out);
}

pcclResult_t pcclTestAsync(const pcclAsyncOp_t *async_op, bool *done_out)
{
    return async_test(SPACE_ORDERED, async_op, done_out);
}

/* Looks at all; *index is the first that has ended, or count: then it is of use to look again when one of them ends, and not before. */
static pcclResult_t async_look(uint8_t space, const void *handles, size_t count, size_t *index)
{
    *index = count;
    for (size_t i = 0; i < count; i++) {
        struct async a = async_at(space, handles, i);
        struct comm *c = a.comm->comm;
        bool done = false;
        bool known = async_peek(c, &a, true, &done);
        comm_undriven(c);
        if (!known) {
            char field[48];
            snprintf(field, sizeof field, "%ss[%zu].%s", async_words[space].handle, i, async_words[space].number);
            return async_spent("wait any", field, a.number);
        }
        if (done) {
            *index = i;
            return pcclSuccess;
        }
    }
    return pcclSuccess;
}

static pcclResult_t async_check_any(uint8_t space, const void *handles, size_t count, int64_t timeout_ms, const size_t *index_out,
                                    int64_t *deadline_out)
{
    const char *phase = "wait any", *remedy = async_words[space].remedy;
    char field[40];
    if (handles == NULL) {
        snprintf(field, sizeof field, "%ss", async_words[space].handle);
        return api_null(phase, field, space == SPACE_TAG ? "pass handles that pcclAllReduceAsync has stored" : remedy);
    }
    if (index_out == NULL) {
        return api_null(phase, "index_out", "pass where to store the index");
    }
    if (count == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "count is 0: pass at least 1 handle, or nothing would ever end");
    }
    if (count > API_MOST_BYTES / sizeof(pcclAsyncOp_t)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count is %zu: at most %zu handles fit any memory", count,
                        API_MOST_BYTES / sizeof(pcclAsyncOp_t));
    }
    pcclResult_t rc = api_deadline(phase, timeout_ms, deadline_out);
    if (rc != pcclSuccess) {
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        if (async_at(space, handles, i).comm == NULL) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%ss[%zu].comm is null: %s", async_words[space].handle, i,
                            remedy);
        }
    }
    return pcclSuccess;
}

static pcclResult_t async_wait_any(uint8_t space, const void *handles, size_t count, int64_t timeout_ms, size_t *index_out)
{
    struct engine *e = &engine_global;
    int64_t until = 0;
    pcclResult_t rc = async_check_any(space, handles, count, timeout_ms, index_out, &until);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!engine_marked(e)) {
        return api_fail(pcclNotInitialized, pcclCauseUsage, "wait any", "call pcclInit first");
    }
    size_t index = count, entered = 0; /* a communicator that is being destroyed waits for those inside */
    for (struct comm *c; entered < count && rc == pcclSuccess; entered += rc == pcclSuccess) {
        rc = api_enter(async_at(space, handles, entered).comm, "wait any", &c);
    }
    atomic_fetch_add(&e->any_waiters, 1);
    while (rc == pcclSuccess) {
        pthread_mutex_lock(&e->any_lock);
        uint64_t seen = e->any_count;
        pthread_mutex_unlock(&e->any_lock);
        rc = async_look(space, handles, count, &index);
        if (rc != pcclSuccess || index < count || clock_now_ns() >= until) {
            break;
        }
        pthread_mutex_lock(&e->any_lock);
        while (e->any_count == seen && cond_wait(&e->any_cond, &e->any_lock, until)) {
        }
        pthread_mutex_unlock(&e->any_lock);
    }
    atomic_fetch_sub(&e->any_waiters, 1);
    while (entered > 0) {
        api_leave(async_at(space, handles, --entered).comm->comm);
    }
    if (rc == pcclSuccess) {
        *index_out = index;
    }
    return rc;
}

pcclResult_t pcclWaitAnyAsyncReduce(const pcclAsyncReduceOp_t *reduce_handles, size_t count, int64_t timeout_ms,
                                    size_t *index_out)
{
    return async_wait_any(SPACE_TAG, reduce_handles, count, timeout_ms, index_out);
}

pcclResult_t pcclWaitAnyAsync(const pcclAsyncOp_t *async_ops, size_t count, int64_t timeout_ms, size_t *index_out)
{
    return async_wait_any(SPACE_ORDERED, async_ops, count, timeout_ms, index_out);
}

static pcclResult_t async_cancel(uint8_t space, const void *handle)
{
    struct async a = {0};
    struct comm *c;
    pcclResult_t rc = async_enter("cancel", space, handle, &a, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!comm_cancel_tag(c, space, a.number)) {
        rc = async_spent_one("cancel", &a);
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclCancelAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle)
{
    return async_cancel(SPACE_TAG, reduce_handle);
}

pcclResult_t pcclCancelAsync(const pcclAsyncOp_t *async_op)
{
    return async_cancel(SPACE_ORDERED, async_op);
}
