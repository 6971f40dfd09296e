/* api_reduce.c - all-reduce by tag, blocking and asynchronous: checks and launches.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/api.h"
#include "engine/calls/await.h"

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

/* Results over a part of the input would be summed up again. */
static pcclResult_t reduce_bad_overlap(const struct api_reduce_where *at)
{
    char place[64] = "";
    if (at->index != API_REDUCE_SINGLE) {
        snprintf(place, sizeof place, "descriptors[%zu].", at->index);
    }
    bool one = at->index == API_REDUCE_SINGLE;
    return api_fail(pcclInvalidArgument, pcclCauseUsage, at->phase, "%s%s overlaps %s: pass the same buffer, or buffers apart", place,
                    one ? "recvbuff" : "recvbuf", one ? "sendbuff" : "sendbuf");
}

/* Checks what has a range of its own. */
static pcclResult_t reduce_check_ranges(const struct api_reduce_where *at, const pcclReduceDescriptor_t *d)
{
    const pcclQuantizationOptions_t *q = &d->quantization_options;
    const struct { const char *field; unsigned value, count; const char *range; } choices[] = {
        {"src_descriptor.datatype", d->src_descriptor.datatype, DTYPE_COUNT, API_DATATYPES},
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
    struct api_redop op;
    char why[API_WHY];
    if (d == NULL) {
        return api_null(at->phase, "descriptor", "pass a pcclReduceDescriptor_t");
    }
    pcclResult_t rc = reduce_check_ranges(at, d);
    if (rc != pcclSuccess) {
        return rc;
    }
    enum dtype type = (enum dtype)d->src_descriptor.datatype;
    enum quant quant = (enum quant)d->quantization_options.algorithm;
    if (!api_redop(at->comm, d->op, type, &op, why)) {
        return reduce_bad_field(at, "%s", why);
    }
    if (d->count > 0 && (send == NULL || recv == NULL)) {
        return reduce_bad_buffer(at, send == NULL, d->count);
    }
    struct api_extent in = api_extent_of(send, d->count * dtype_size(type)), out_extent = api_extent_of(recv, d->count * dtype_size(type));
    if (send != recv && in.from < out_extent.end && out_extent.from < in.end) {
        return reduce_bad_overlap(at);
    }
    enum dtype quant_type = quant == QUANT_NONE ? DTYPE_U8 : (enum dtype)d->quantization_options.quantized_datatype;
    if (!numeric_init(&n, type, op.op, quant, quant_type, kernels_get())) {
        return reduce_bad_field(at,
                                "quantization_options.algorithm is %d (%s): it takes src_descriptor.datatype f32 or f64 to "
                                "quantized_datatype %s, not %s to %s",
                                (int)quant, quant == QUANT_MINMAX ? "pcclQuantMinMax" : "pcclQuantZeroPointScale",
                                quant == QUANT_MINMAX ? "u8, u16, u32 or u64" : "u8 to u64 or i8 to i64", dtype_name(type),
                                dtype_name(quant_type));
    }
    *out = (struct comm_launch){.call = {.tag = d->tag, .deadline = api_call_deadline(),
                                         .params = {.count = d->count, .dtype = (uint8_t)type, .op = (uint8_t)op.op, .quant = (uint8_t)quant, .quant_dtype = (uint8_t)quant_type},
                                         .factor = op.factor, .in = send, .out = recv}, .bytes = d->count * dtype_size(type)};
    return pcclSuccess;
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
    rc = api_reduce_check(&(struct api_reduce_where){c, "reduce", API_REDUCE_SINGLE}, sendbuff, recvbuff, descriptor, &launch);
    if (rc == pcclSuccess) {
        rc = api_member(c, "reduce", &member);
    }
    if (rc == pcclSuccess) {
        launch.awaited = true;
        comm_reduce(c, &launch, &o);
        rc = api_outcome(&o, "reduce", launch.call.tag);
        if (rc == pcclSuccess) {
            api_reduce_info(&o, reduce_info_out);
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
    uint64_t tag = 0;
    struct session_outcome o;
    struct session_info member;
    pcclResult_t rc = api_enter(communicator, "launch", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = reduce_handle_out == NULL
             ? api_null("launch", "reduce_handle_out", "pass where to store the handle")
             : api_reduce_check(&(struct api_reduce_where){c, "launch", API_REDUCE_SINGLE}, sendbuff, recvbuff, descriptor, &launch);
    if (rc == pcclSuccess) {
        rc = api_member(c, "launch", &member);
    }
    if (rc == pcclSuccess) {
        comm_launch(c, &launch, api_call_patience(), &tag, &o);
        if (o.result == RESULT_PENDING) {
            *reduce_handle_out = (pcclAsyncReduceOp_t){.comm = api_own(communicator), .tag = tag};
        } else {
            rc = api_outcome(&o, "launch", launch.call.tag);
        }
    }
    api_leave(c);
    return rc;
}
