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

static const struct api_sum_fields reduce_fields = {
    .datatype = "src_descriptor.datatype", .algorithm = "quantization_options.algorithm",
    .quantized_datatype = "quantization_options.quantized_datatype", .quantized_last = "quantized_datatype"};

pcclResult_t api_reduce_check(const struct api_reduce_where *at, const void *send, void *recv, const pcclReduceDescriptor_t *d,
                              struct comm_launch *out)
{
    struct api_sum sum;
    char why[API_WHY];
    if (d == NULL) {
        return api_null(at->phase, "descriptor", "pass a pcclReduceDescriptor_t");
    }
    unsigned hint = d->src_descriptor.distribution_hint;
    if (hint > pcclDistributionUniform) {
        return reduce_bad_field(at, "src_descriptor.distribution_hint is %d: expected 0 (pcclDistributionNone) to 2 (pcclDistributionUniform)",
                                (int)hint);
    }
    if (!api_sum(at->comm, d->src_descriptor.datatype, d->op, &d->quantization_options, &reduce_fields, &sum, why)) {
        return reduce_bad_field(at, "%s", why);
    }
    size_t size = dtype_size(sum.type), most = API_MOST_BYTES / size;
    if (d->count > most) {
        return reduce_bad_field(at, "count is %zu: at most %zu elements of %s fit any memory", d->count, most, dtype_name(sum.type));
    }
    if (d->count > 0 && (send == NULL || recv == NULL)) {
        return reduce_bad_buffer(at, send == NULL, d->count);
    }
    struct api_extent in = api_extent_of(send, d->count * size), over = api_extent_of(recv, d->count * size);
    if (send != recv && in.from < over.end && over.from < in.end) {
        return reduce_bad_overlap(at);
    }
    *out = (struct comm_launch){.call = {.tag = d->tag, .deadline = api_call_deadline(), .params = {.count = d->count}, .in = send, .out = recv},
                                .bytes = d->count * size};
    api_sum_params(&sum, &out->call);
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
        launch.call.awaited = true;
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
