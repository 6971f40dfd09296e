/* api_reduce.c - all-reduce in its forms: checks, handles, and the loop that retries.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api.h"
#include "core/clock.h"

static pcclResult_t reduce_bad(const char *phase, const char *what)
{
    return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s", what);
}

/* Checks what a single peer can check and fills in the launch. */
static pcclResult_t reduce_check(const void *send, void *recv, const pcclReduceDescriptor_t *d, struct comm_launch *out)
{
    const char *phase = "launch";
    struct numeric n;
    if (d == NULL) {
        return reduce_bad(phase, "the descriptor is null");
    }
    const struct { const char *what; unsigned value, count; } choices[] = {
        {"data type", d->src_descriptor.datatype, DTYPE_COUNT},
        {"operator", d->op, REDOP_COUNT},
        {"distribution hint", d->src_descriptor.distribution_hint, pcclDistributionUniform + 1},
        {"quantisation algorithm", d->quantization_options.algorithm, QUANT_COUNT},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (choices[i].value >= choices[i].count) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "unknown %s %d", choices[i].what,
                            (int)choices[i].value);
        }
    }
    enum dtype type = (enum dtype)d->src_descriptor.datatype;
    enum quant quant = (enum quant)d->quantization_options.algorithm;
    if (d->count > API_MOST_BYTES / dtype_size(type)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count %zu is larger than any memory", d->count);
    }
    if (d->count > 0 && (send == NULL || recv == NULL)) {
        return reduce_bad(phase, send == NULL ? "sendbuff is null" : "recvbuff is null");
    }
    enum dtype quant_type = quant == QUANT_NONE ? DTYPE_U8 : (enum dtype)d->quantization_options.quantized_datatype;
    if (!numeric_init(&n, type, (enum redop)d->op, quant, quant_type, kernels_get())) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "quantisation algorithm %d does not take data type %d to quantised type %d", (int)quant, (int)type,
                        (int)quant_type);
    }
    *out = (struct comm_launch){
        .tag = d->tag,
        .params = {.count = d->count, .dtype = (uint8_t)type, .op = (uint8_t)d->op, .quant = (uint8_t)quant,
                   .quant_dtype = (uint8_t)quant_type},
        .in = send,
        .out = recv,
        .bytes = d->count * dtype_size(type),
    };
    return pcclSuccess;
}

static void reduce_info(const struct session_outcome *o, pcclReduceInfo_t *info)
{
    if (info != NULL) {
        info->local_world_size = o->world;
        info->tx_bytes = o->tx_bytes;
        info->rx_bytes = o->rx_bytes;
    }
}

pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff, const pcclReduceDescriptor_t *descriptor,
                           const pcclComm_t *communicator, pcclReduceInfo_t *reduce_info_out)
{
    struct comm *c;
    struct comm_launch launch;
    struct session_outcome o;
    struct session_info member;
    pcclResult_t rc = api_enter(communicator, "reduce", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = reduce_check(sendbuff, recvbuff, descriptor, &launch);
    if (rc == pcclSuccess) {
        rc = api_member(c, "reduce", &member);
    }
    if (rc == pcclSuccess) {
        launch.awaited = true;
        comm_reduce(c, &launch, &o);
        rc = api_outcome(&o, "reduce", launch.tag);
        if (rc == pcclSuccess) {
            reduce_info(&o, reduce_info_out);
        }
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff, const pcclReduceDescriptor_t *descriptor,
                                const pcclComm_t *communicator, pcclAsyncReduceOp_t *reduce_handle_out)
{
    struct comm *c;
    struct comm_launch launch;
    struct comm_op *op;
    struct session_outcome o;
    struct session_info member;
    pcclResult_t rc = api_enter(communicator, "launch", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = reduce_handle_out == NULL ? reduce_bad("launch", "reduce_handle_out is null")
                                   : reduce_check(sendbuff, recvbuff, descriptor, &launch);
    if (rc == pcclSuccess) {
        rc = api_member(c, "launch", &member);
    }
    if (rc == pcclSuccess) {
        comm_launch(c, &launch, &op, &o);
        if (o.result == RESULT_PENDING) {
            reduce_handle_out->comm = ((union { const pcclComm_t *in; pcclComm_t *out; }){.in = communicator}).out;
            reduce_handle_out->tag = launch.tag;
            if (c->engine->lane[0] != NULL) {
                lane_unmask(c->engine->lane[0]); /* nobody drives it on this operation's behalf */
            }
        } else {
            rc = api_outcome(&o, "launch", launch.tag);
        }
    }
    api_leave(c);
    return rc;
}

/* ---- Handles ----------------------------------------------------------------------------------------------------------------- */

static pcclResult_t reduce_spent(const char *phase, uint64_t tag)
{
    return api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                    "tag %" PRIu64 ": unknown or spent handle, or awaited by another thread", tag);
}

pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *reduce_info_out)
{
    struct comm *c;
    struct session_outcome o;
    if (reduce_handle == NULL) {
        return reduce_bad("await", "the handle is null");
    }
    pcclResult_t rc = api_enter(reduce_handle->comm, "await", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    struct comm_op *op = comm_claim(c, reduce_handle->tag);
    if (op == NULL) {
        rc = reduce_spent("await", reduce_handle->tag);
    } else {
        comm_await(c, op, &o);
        rc = api_outcome(&o, "reduce", reduce_handle->tag);
        if (rc == pcclSuccess) {
            reduce_info(&o, reduce_info_out);
        }
    }
    api_leave(c);
    return rc;
}

/* Whether a live handle's operation has ended; false: unknown or spent. */
static bool reduce_peek(struct comm *c, uint64_t tag, bool *done)
{
    pthread_mutex_lock(&c->lock);
    const struct comm_op *op = comm_find(c, tag);
    bool known = op != NULL && !op->awaited;
    *done = known && (op->detached || atomic_load(&op->returned));
    pthread_mutex_unlock(&c->lock);
    return known;
}

static void reduce_unmask(struct comm *c)
{
    if (atomic_load(&c->joined)) {
        lane_unmask(c->engine->lane[0]);
    }
}

pcclResult_t pcclTestAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, bool *done_out)
{
    struct comm *c;
    if (reduce_handle == NULL || done_out == NULL) {
        return reduce_bad("test", reduce_handle == NULL ? "the handle is null" : "done_out is null");
    }
    pcclResult_t rc = api_enter(reduce_handle->comm, "test", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    bool done = false;
    if (!reduce_peek(c, reduce_handle->tag, &done)) {
        rc = reduce_spent("test", reduce_handle->tag);
    } else {
        *done_out = done;
        if (!done) {
            reduce_unmask(c);
        }
    }
    api_leave(c);
    return rc;
}

/* Looks at all; *index is the first that has ended, or count. */
static pcclResult_t reduce_look(const pcclAsyncReduceOp_t *handles, size_t count, size_t *index)
{
    *index = count;
    for (size_t i = 0; i < count; i++) {
        struct comm *c = handles[i].comm->comm;
        bool done = false;
        bool known = reduce_peek(c, handles[i].tag, &done);
        reduce_unmask(c);
        if (!known) {
            return reduce_spent("wait any", handles[i].tag);
        }
        if (done) {
            *index = i;
            return pcclSuccess;
        }
    }
    return pcclSuccess;
}

pcclResult_t pcclWaitAnyAsyncReduce(const pcclAsyncReduceOp_t *reduce_handles, size_t count, int64_t timeout_ms,
                                    size_t *index_out)
{
    struct engine *e = &engine_global;
    if (reduce_handles == NULL || index_out == NULL) {
        return reduce_bad("wait any", reduce_handles == NULL ? "reduce_handles is null" : "index_out is null");
    }
    if (count == 0 || timeout_ms < -1) {
        return reduce_bad("wait any", count == 0 ? "count is 0: nothing would ever end" : "timeout_ms is below -1");
    }
    if (!engine_marked(e)) {
        return api_fail(pcclNotInitialized, pcclCauseUsage, "wait any", "call pcclInit first");
    }
    int64_t limit = INT64_MAX / 4;
    int64_t wait_ns = timeout_ms < 0 || timeout_ms > limit / CLOCK_MS ? limit : timeout_ms * CLOCK_MS;
    int64_t until = clock_now_ns() + wait_ns;
    struct timespec at = {.tv_sec = until / CLOCK_S, .tv_nsec = until % CLOCK_S};
    size_t index = count, entered = 0; /* a communicator that is being destroyed waits for those inside */
    pcclResult_t rc = pcclSuccess;
    for (struct comm *c; entered < count && rc == pcclSuccess; entered += rc == pcclSuccess) {
        rc = api_enter(reduce_handles[entered].comm, "wait any", &c);
    }
    atomic_fetch_add(&e->any_waiters, 1);
    while (rc == pcclSuccess) {
        pthread_mutex_lock(&e->any_lock);
        uint64_t seen = e->any_count;
        pthread_mutex_unlock(&e->any_lock);
        rc = reduce_look(reduce_handles, count, &index);
        if (rc != pcclSuccess || index < count || clock_now_ns() >= until) {
            break;
        }
        pthread_mutex_lock(&e->any_lock);
        while (e->any_count == seen && pthread_cond_timedwait(&e->any_cond, &e->any_lock, &at) == 0) {
        }
        pthread_mutex_unlock(&e->any_lock);
    }
    atomic_fetch_sub(&e->any_waiters, 1);
    while (entered > 0) {
        api_leave(reduce_handles[--entered].comm->comm);
    }
    if (rc == pcclSuccess) {
        *index_out = index;
    }
    return rc;
}

pcclResult_t pcclCancelAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle)
{
    struct comm *c;
    if (reduce_handle == NULL) {
        return reduce_bad("cancel", "the handle is null");
    }
    pcclResult_t rc = api_enter(reduce_handle->comm, "cancel", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!comm_cancel_tag(c, reduce_handle->tag)) {
        rc = reduce_spent("cancel", reduce_handle->tag);
    }
    api_leave(c);
    return rc;
}

/* ---- Many, with retry -------------------------------------------------------------------------------------------------------- */

struct bulk {
    struct comm *comm;
    const pcclReduceOpDescriptor_t *list;
    size_t count, left;
    bool *done, *flying;          /* per descriptor */
    struct { size_t index; struct comm_op *op; } *window; /* a ring of those in flight, oldest first */
    size_t first, used, capacity;
    struct session_outcome bad;   /* the error that ends it all; RESULT_OK: none */
    uint64_t bad_tag, tx_bytes, rx_bytes;
    uint32_t world;
    bool lost;                    /* some failed since the last round */
};

/* Ends the oldest in flight. */
static void bulk_await(struct bulk *b)
{
    struct session_outcome o;
    size_t i = b->window[b->first].index;
    struct comm_op *op = b->window[b->first].op;
    b->first = (b->first + 1) % b->capacity;
    b->used--;
    b->flying[i] = false;
    comm_await(b->comm, op, &o);
    if (o.result == RESULT_OK) {
        b->done[i] = true;
        b->left--;
        b->tx_bytes += o.tx_bytes;
        b->rx_bytes += o.rx_bytes;
        b->world = o.world;
    } else if (o.result == RESULT_LOST && o.cause != CAUSE_DEADLINE && o.cause != CAUSE_CANCEL) {
        b->lost = true;
    } else if (b->bad.result == RESULT_OK) {
        b->bad = o;
        b->bad_tag = b->list[i].descriptor.tag;
    }
}

/* Launches descriptor i.  False: it was refused. */
static bool bulk_launch(struct bulk *b, size_t i)
{
    struct comm_launch launch;
    struct comm_op *op;
    struct session_outcome o;
    if (reduce_check(b->list[i].sendbuf, b->list[i].recvbuf, &b->list[i].descriptor, &launch) != pcclSuccess) {
        o = (struct session_outcome){.result = RESULT_MISMATCH}; /* all were checked before: not reached */
    } else {
        launch.awaited = true;
        comm_launch(b->comm, &launch, &op, &o);
    }
    if (o.result == RESULT_PENDING) {
        size_t at = (b->first + b->used) % b->capacity;
        b->window[at].index = i;
        b->window[at].op = op;
        b->used++;
        b->flying[i] = true;
        return true;
    }
    if (o.result != RESULT_FULL || b->used == 0) {
        b->bad = o;
        b->bad_tag = b->list[i].descriptor.tag;
    }
    return false;
}

/* One round over all that are not done; after a failure nothing more is launched until the rest has ended. */
static void bulk_round(struct bulk *b)
{
    b->lost = false;
    for (size_t i = 0; i < b->count && b->bad.result == RESULT_OK && !b->lost; i++) {
        if (b->done[i] || b->flying[i]) {
            continue;
        }
        while (b->used == b->capacity) {
            bulk_await(b);
        }
        while (b->bad.result == RESULT_OK && !b->lost && !bulk_launch(b, i) && b->used > 0) {
            bulk_await(b); /* full: room comes with the end of others */
        }
    }
    while (b->used > 0) {
        bulk_await(b);
    }
}

static pcclResult_t bulk_run(struct bulk *b, pcclReduceInfo_t *info)
{
    while (b->left > 0 && b->bad.result == RESULT_OK) {
        bulk_round(b);
    }
    if (b->bad.result != RESULT_OK) {
        return api_outcome(&b->bad, "reduce", b->bad_tag);
    }
    if (info != NULL) {
        info->local_world_size = b->world;
        info->tx_bytes = b->tx_bytes;
        info->rx_bytes = b->rx_bytes;
    }
    return pcclSuccess;
}

static pcclResult_t bulk_check(const pcclReduceOpDescriptor_t *list, size_t count, int max_in_flight)
{
    struct comm_launch launch;
    if (list == NULL || count == 0 || max_in_flight <= 0) {
        return reduce_bad("reduce many", "null or empty list, or max_in_flight below 1");
    }
    for (size_t i = 0; i < count; i++) {
        pcclResult_t rc = reduce_check(list[i].sendbuf, list[i].recvbuf, &list[i].descriptor, &launch);
        if (rc != pcclSuccess) {
            return rc;
        }
    }
    return pcclSuccess;
}

pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors, size_t count,
                                            const pcclComm_t *communicator, pcclReduceInfo_t *reduce_info_out,
                                            int max_in_flight)
{
    struct comm *c;
    struct session_info member;
    pcclResult_t rc = api_enter(communicator, "reduce many", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = bulk_check(descriptors, count, max_in_flight);
    if (rc == pcclSuccess) {
        rc = api_member(c, "reduce many", &member);
    }
    if (rc == pcclSuccess) {
        struct bulk b = {.comm = c, .list = descriptors, .count = count, .left = count, .bad = {.result = RESULT_OK}};
        b.capacity = (size_t)max_in_flight < count ? (size_t)max_in_flight : count;
        b.done = calloc(count, sizeof *b.done);
        b.flying = calloc(count, sizeof *b.flying);
        b.window = calloc(b.capacity, sizeof *b.window);
        rc = b.done == NULL || b.flying == NULL || b.window == NULL
                 ? api_fail(pcclInternalError, pcclCauseNoMemory, "reduce many", "no memory")
                 : bulk_run(&b, reduce_info_out);
        free(b.done);
        free(b.flying);
        free(b.window);
    }
    api_leave(c);
    return rc;
}
