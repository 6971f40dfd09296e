/* api_reduce.c - all-reduce, blocking and asynchronous: checks, handles, waiting for any.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "core/clock.h"

pcclResult_t api_reduce_null(const char *phase, const char *argument, const char *remedy)
{
    return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s is null: %s", argument, remedy);
}

static pcclResult_t reduce_bad_field(const struct api_reduce_where *at, const char *fmt, ...) PCCL_PRINTF(2, 3);

/* The text goes on from the descriptor: "field is value: remedy". */
static pcclResult_t reduce_bad_field(const struct api_reduce_where *at, const char *fmt, ...)
{
    char text[400], place[64] = "descriptor->";
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (at->index != API_REDUCE_SINGLE) {
        snprintf(place, sizeof place, "descriptors[%zu].descriptor.", at->index);
    }
    return api_fail(pcclInvalidArgument, pcclCauseUsage, at->phase, "%s%s", place, text);
}

static pcclResult_t reduce_bad_buffer(const struct api_reduce_where *at, bool send, size_t count)
{
    static const char remedy[] = "pass a buffer, or count 0";
    if (at->index == API_REDUCE_SINGLE) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, at->phase, "%s is null while descriptor->count is %zu: %s",
                        send ? "sendbuff" : "recvbuff", count, remedy);
    }
    return api_fail(pcclInvalidArgument, pcclCauseUsage, at->phase,
                    "descriptors[%zu].%s is null while its descriptor.count is %zu: %s", at->index,
                    send ? "sendbuf" : "recvbuf", count, remedy);
}

/* Checks what has a range of its own. */
static pcclResult_t reduce_check_ranges(const struct api_reduce_where *at, const pcclReduceDescriptor_t *d)
{
    const pcclQuantizationOptions_t *q = &d->quantization_options;
    const struct { const char *field; unsigned value, count; const char *range; } choices[] = {
        {"src_descriptor.datatype", d->src_descriptor.datatype, DTYPE_COUNT, API_DATATYPES},
        {"op", d->op, REDOP_COUNT, "0 (pcclSum) to 4 (pcclMin)"},
        {"src_descriptor.distribution_hint", d->src_descriptor.distribution_hint, pcclDistributionUniform + 1,
         "0 (pcclDistributionNone) to 2 (pcclDistributionUniform)"},
        {"quantization_options.algorithm", q->algorithm, QUANT_COUNT,
         "0 (pcclQuantNone) to 2 (pcclQuantZeroPointScale)"},
        {"quantization_options.quantized_datatype", q->algorithm == pcclQuantNone ? pcclUint8 : q->quantized_datatype,
         DTYPE_COUNT, API_DATATYPES},
    };
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        if (choices[i].value >= choices[i].count) {
            return reduce_bad_field(at, "%s is %d: expected %s", choices[i].field, (int)choices[i].value, choices[i].range);
        }
    }
    enum dtype type = (enum dtype)d->src_descriptor.datatype;
    size_t most = API_MOST_BYTES / dtype_size(type);
    if (d->count > most) {
        return reduce_bad_field(at, "count is %zu: at most %zu elements of %s fit any memory", d->count, most, dtype_name(type));
    }
    return pcclSuccess;
}

pcclResult_t api_reduce_check(const struct api_reduce_where *at, const void *send, void *recv, const pcclReduceDescriptor_t *d,
                                 struct comm_launch *out)
{
    struct numeric n;
    if (d == NULL) {
        return api_reduce_null(at->phase, "descriptor", "pass a pcclReduceDescriptor_t");
    }
    pcclResult_t rc = reduce_check_ranges(at, d);
    if (rc != pcclSuccess) {
        return rc;
    }
    enum dtype type = (enum dtype)d->src_descriptor.datatype;
    enum quant quant = (enum quant)d->quantization_options.algorithm;
    if (d->count > 0 && (send == NULL || recv == NULL)) {
        return reduce_bad_buffer(at, send == NULL, d->count);
    }
    enum dtype quant_type = quant == QUANT_NONE ? DTYPE_U8 : (enum dtype)d->quantization_options.quantized_datatype;
    if (!numeric_init(&n, type, (enum redop)d->op, quant, quant_type, kernels_get())) {
        return reduce_bad_field(at,
                                "quantization_options.algorithm is %d (%s): it takes src_descriptor.datatype f32 or f64 to "
                                "quantized_datatype %s, not %s to %s",
                                (int)quant, quant == QUANT_MINMAX ? "pcclQuantMinMax" : "pcclQuantZeroPointScale",
                                quant == QUANT_MINMAX ? "u8 or u16" : "u8, u16, i8 or i16", dtype_name(type),
                                dtype_name(quant_type));
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
    rc = api_reduce_check(&(struct api_reduce_where){"reduce", API_REDUCE_SINGLE}, sendbuff, recvbuff, descriptor, &launch);
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
    rc = reduce_handle_out == NULL
             ? api_reduce_null("launch", "reduce_handle_out", "pass where to store the handle")
             : api_reduce_check(&(struct api_reduce_where){"launch", API_REDUCE_SINGLE}, sendbuff, recvbuff, descriptor, &launch);
    if (rc == pcclSuccess) {
        rc = api_member(c, "launch", &member);
    }
    if (rc == pcclSuccess) {
        comm_launch(c, &launch, &op, &o);
        if (o.result == RESULT_PENDING) {
            reduce_handle_out->comm = ((union { const pcclComm_t *in; pcclComm_t *out; }){.in = communicator}).out;
            reduce_handle_out->tag = launch.tag;
            comm_undriven(c);
        } else {
            rc = api_outcome(&o, "launch", launch.tag);
        }
    }
    api_leave(c);
    return rc;
}

/* ---- Handles ----------------------------------------------------------------------------------------------------------------- */

/* `field`: what the program knows it as. */
static pcclResult_t reduce_spent(const char *phase, const char *field, uint64_t tag)
{
    return api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                    "%s is %" PRIu64 ": unknown or spent handle, or awaited by another thread: "
                    "use a handle until its one await", field, tag);
}

/* Checks what the program passed before anything is looked up. */
static pcclResult_t reduce_check_handle(const char *phase, const pcclAsyncReduceOp_t *handle)
{
    static const char remedy[] = "pass a handle that pcclAllReduceAsync has stored";
    if (handle == NULL) {
        return api_reduce_null(phase, "reduce_handle", remedy);
    }
    return handle->comm == NULL ? api_reduce_null(phase, "reduce_handle->comm", remedy) : pcclSuccess;
}

pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, pcclReduceInfo_t *reduce_info_out)
{
    struct comm *c;
    struct session_outcome o;
    pcclResult_t rc = reduce_check_handle("await", reduce_handle);
    if (rc == pcclSuccess) {
        rc = api_enter(reduce_handle->comm, "await", &c);
    }
    if (rc != pcclSuccess) {
        return rc;
    }
    struct comm_op *op = comm_claim(c, reduce_handle->tag);
    if (op == NULL) {
        rc = reduce_spent("await", "reduce_handle->tag", reduce_handle->tag);
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

/* Whether a live handle's operation has ended; if not, and `watch`, its end will be told.  False: unknown or spent. */
static bool reduce_peek(struct comm *c, uint64_t tag, bool watch, bool *done)
{
    pthread_mutex_lock(&c->lock);
    struct comm_op *op = comm_find(c, tag);
    bool known = op != NULL && !op->given.awaited;
    *done = known && (op->place.detached || atomic_load(&op->end.returned.over));
    if (known && !*done && watch) {
        comm_watch(op);
    }
    pthread_mutex_unlock(&c->lock);
    return known;
}

pcclResult_t pcclTestAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, bool *done_out)
{
    struct comm *c;
    pcclResult_t rc = reduce_handle != NULL && done_out == NULL
                          ? api_reduce_null("test", "done_out", "pass where to store the answer")
                          : reduce_check_handle("test", reduce_handle);
    if (rc == pcclSuccess) {
        rc = api_enter(reduce_handle->comm, "test", &c);
    }
    if (rc != pcclSuccess) {
        return rc;
    }
    bool done = false;
    if (!reduce_peek(c, reduce_handle->tag, false, &done)) {
        rc = reduce_spent("test", "reduce_handle->tag", reduce_handle->tag);
    } else {
        *done_out = done;
        if (!done) {
            comm_undriven(c);
        }
    }
    api_leave(c);
    return rc;
}

/* Looks at all; *index is the first that has ended, or count: then it is of use to look again when one of them ends, and not before. */
static pcclResult_t reduce_look(const pcclAsyncReduceOp_t *handles, size_t count, size_t *index)
{
    *index = count;
    for (size_t i = 0; i < count; i++) {
        struct comm *c = handles[i].comm->comm;
        bool done = false;
        bool known = reduce_peek(c, handles[i].tag, true, &done);
        comm_undriven(c);
        if (!known) {
            char field[48];
            snprintf(field, sizeof field, "reduce_handles[%zu].tag", i);
            return reduce_spent("wait any", field, handles[i].tag);
        }
        if (done) {
            *index = i;
            return pcclSuccess;
        }
    }
    return pcclSuccess;
}

static pcclResult_t reduce_check_any(const pcclAsyncReduceOp_t *handles, size_t count, int64_t timeout_ms, const size_t *index_out)
{
    const char *phase = "wait any";
    if (handles == NULL) {
        return api_reduce_null(phase, "reduce_handles", "pass handles that pcclAllReduceAsync has stored");
    }
    if (index_out == NULL) {
        return api_reduce_null(phase, "index_out", "pass where to store the index");
    }
    if (count == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "count is 0: pass at least 1 handle, or nothing would ever end");
    }
    if (timeout_ms < -1) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "timeout_ms is %" PRId64 ": expected -1 (no limit), 0 or more", timeout_ms);
    }
    for (size_t i = 0; i < count; i++) {
        if (handles[i].comm == NULL) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                            "reduce_handles[%zu].comm is null: pass a handle that pcclAllReduceAsync has stored", i);
        }
    }
    return pcclSuccess;
}

pcclResult_t pcclWaitAnyAsyncReduce(const pcclAsyncReduceOp_t *reduce_handles, size_t count, int64_t timeout_ms,
                                    size_t *index_out)
{
    struct engine *e = &engine_global;
    pcclResult_t rc = reduce_check_any(reduce_handles, count, timeout_ms, index_out);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!engine_marked(e)) {
        return api_fail(pcclNotInitialized, pcclCauseUsage, "wait any", "call pcclInit first");
    }
    int64_t limit = INT64_MAX / 4;
    int64_t wait_ns = timeout_ms < 0 || timeout_ms > limit / CLOCK_MS ? limit : timeout_ms * CLOCK_MS;
    int64_t until = clock_now_ns() + wait_ns;
    struct timespec at = {.tv_sec = until / CLOCK_S, .tv_nsec = until % CLOCK_S};
    size_t index = count, entered = 0; /* a communicator that is being destroyed waits for those inside */
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
    pcclResult_t rc = reduce_check_handle("cancel", reduce_handle);
    if (rc == pcclSuccess) {
        rc = api_enter(reduce_handle->comm, "cancel", &c);
    }
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!comm_cancel_tag(c, reduce_handle->tag)) {
        rc = reduce_spent("cancel", "reduce_handle->tag", reduce_handle->tag);
    }
    api_leave(c);
    return rc;
}
