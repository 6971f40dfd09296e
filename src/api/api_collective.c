/* api_collective.c - collectives in the order of issue: what one member can check, and the launch of all of them.
 *
 * Each function only says what its arguments mean (struct call); one place checks them and launches.  A call that cannot be made as
 * it was given is launched all the same, to be refused: it has its number (P12), and the error is the one of the check.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "core/mix.h"
#include "engine/calls/await.h"

/* The part that was looked at last. */
struct beyond {
    const char *list; /* of counts; null: it is of none */
    uint32_t rank;
    size_t count, place;
};

/* A call as its function was called. */
struct call {
    enum plan_kind kind;
    bool barrier, uneven; /* uneven: the form with counts */
    const void *send;
    void *recv;
    size_t count;         /* of all, or of each part; of a scatter with counts: the own one */
    struct part_lists parts, out_parts;
    unsigned datatype, op;
    const pcclQuantizationOptions_t *quantization; /* null: none */
    uint32_t root;
    /* filled in */
    struct session_info member;
    size_t size; /* of an element */
    struct beyond beyond;
    struct api_sum sum; /* of those that reduce */
};

static const char *call_name(const struct call *k)
{
    return k->barrier ? "barrier" : plan_kind_name((uint8_t)k->kind);
}

static bool call_sums(const struct call *k)
{
    return plan_kind_sums((uint8_t)k->kind);
}

static bool call_has_root(const struct call *k)
{
    return plan_kind_has_root((uint8_t)k->kind);
}

static bool call_is_root(const struct call *k)
{
    return call_has_root(k) && k->root == k->member.rank;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------------------- */

/* False: more than any memory holds. */
static bool reach(size_t *end, size_t place, size_t count, size_t size)
{
    size_t most = API_MOST_BYTES / size;
    if (count > most || place > most - count) {
        return false;
    }
    *end = count > 0 && place + count > *end ? place + count : *end;
    return true;
}

/* As the program knows it; null: the parts are equal ones. */
static const char *counts_name(const struct call *k, const struct part_lists *parts)
{
    return parts->counts == NULL ? NULL : k->kind != PLAN_ALL_TO_ALL ? "counts" : parts == &k->parts ? "send_counts" : "recv_counts";
}

/* The end of parts: of lists, or equal ones. */
static bool parts_end(struct call *k, const struct part_lists *parts, size_t *end)
{
    uint32_t world = k->member.snapshot.group;
    size_t next = 0;
    bool good = true;
    for (uint32_t r = 0; r < world && good; r++) {
        size_t count = part_count(parts, k->count, r);
        size_t place = parts->places != NULL ? parts->places[r] : next;
        good = reach(end, place, count, k->size);
        next += good ? count : 0;
        k->beyond = (struct beyond){.list = counts_name(k, parts), .rank = r, .count = count, .place = place};
    }
    return good;
}

/* Elements that this member's input and output reach to. */
static bool call_ends(struct call *k, size_t *in, size_t *out)
{
    *in = *out = 0;
    k->beyond.list = NULL;
    switch (k->kind) {
    case PLAN_ALL_REDUCE:
        return reach(in, 0, k->count, k->size) && reach(out, 0, k->count, k->size);
    case PLAN_BROADCAST:
        return (!call_is_root(k) || reach(in, 0, k->count, k->size)) && reach(out, 0, k->count, k->size);
    case PLAN_ALL_GATHER:
        return parts_end(k, &k->parts, out) && reach(in, 0, part_count(&k->parts, k->count, k->member.rank), k->size);
    case PLAN_REDUCE_SCATTER:
        return parts_end(k, &k->parts, in) &&
               reach(out, 0, part_count(&k->parts, k->count, k->member.rank), k->size);
    case PLAN_ALL_TO_ALL:
        return parts_end(k, &k->parts, in) && parts_end(k, &k->out_parts, out);
    case PLAN_SCATTER:
        return (!call_is_root(k) || parts_end(k, &k->parts, in)) && reach(out, 0, k->count, k->size);
    case PLAN_REDUCE:
        return reach(in, 0, k->count, k->size) && (!call_is_root(k) || reach(out, 0, k->count, k->size));
    case PLAN_GATHER:
        return reach(in, 0, k->count, k->size) && (!call_is_root(k) || parts_end(k, &k->parts, out));
    case PLAN_SEND: /* api_message.c */
    case PLAN_KINDS:
        break;
    }
    return false;
}

/* Bytes before the own part of parts. */
static size_t own_place(const struct call *k)
{
    return part_place(&k->parts, k->count, k->member.rank) * k->size;
}

/* The one way in which input and output may lie over each other. */
static bool in_place(const struct call *k)
{
    const unsigned char *send = k->send, *recv = k->recv;
    switch (k->kind) {
    case PLAN_ALL_REDUCE:
    case PLAN_BROADCAST:
    case PLAN_REDUCE:
        return send == recv;
    case PLAN_ALL_GATHER:
    case PLAN_GATHER:
        return send == recv + own_place(k);
    case PLAN_SCATTER:
        return recv == send + own_place(k);
    case PLAN_REDUCE_SCATTER:
    case PLAN_ALL_TO_ALL:
    case PLAN_SEND:
    case PLAN_KINDS:
        break;
    }
    return false;
}

/* ---- Checks: each says what is wrong, for this thread's last error ------------------------------------------------------------- */

static pcclResult_t bad(const struct call *k, const char *argument, uint64_t value, const char *remedy)
{
    return api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k), "%s is %" PRIu64 ": %s", argument, value, remedy);
}

static pcclResult_t check_lists(const struct call *k)
{
    bool rooted = call_has_root(k); /* the root has the list, the others their own part of it */
    bool needed = k->uneven && (!rooted || call_is_root(k));
    if (needed && k->parts.counts == NULL) {
        return api_null(call_name(k), k->kind == PLAN_ALL_TO_ALL ? "send_counts" : "counts", "pass the elements of each rank");
    }
    if (needed && k->kind == PLAN_ALL_TO_ALL && k->out_parts.counts == NULL) {
        return api_null(call_name(k), "recv_counts", "pass the elements of each rank");
    }
    uint32_t own = k->member.rank;
    if (needed && k->kind == PLAN_ALL_TO_ALL && k->parts.counts[own] != k->out_parts.counts[own]) { /* else it would read beyond its part */
        return bad(k, "recv_counts of this rank itself", k->out_parts.counts[own], "pass the same number as in send_counts");
    }
    if (needed && rooted && k->parts.counts[own] != k->count) {
        return bad(k, "count", k->count, "at the root it is counts[root]");
    }
    return pcclSuccess;
}

/* As in_place allows it. */
static const char *call_overlap_remedy(const struct call *k)
{
    bool of_parts = plan_kind_pairs((uint8_t)k->kind) || k->kind == PLAN_ALL_GATHER;
    bool never = k->kind == PLAN_REDUCE_SCATTER || k->kind == PLAN_ALL_TO_ALL;
    return never      ? "pass buffers apart"
           : of_parts ? "pass buffers apart, or its own part of the larger one"
                      : "pass the same buffer, or buffers apart";
}

static pcclResult_t check_buffers(struct call *k)
{
    size_t in, out;
    bool good = call_ends(k, &in, &out);
    if (!good && k->beyond.list != NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k),
                        "%s[%u] is %zu, from element %zu on: more than any memory holds", k->beyond.list, k->beyond.rank, k->beyond.count,
                        k->beyond.place);
    }
    if (!good) {
        return bad(k, "count", k->count, "with all parts and places more than any memory holds");
    }
    bool no_send = in > 0 && k->send == NULL, no_recv = out > 0 && k->recv == NULL;
    if (no_send || no_recv) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k), "%s is null while %zu elements are to be %s: pass a buffer",
                        no_send ? "sendbuf" : "recvbuf", no_send ? in : out, no_send ? "sent" : "received");
    }
    struct api_extent a = api_extent_of(k->send, in * k->size), b = api_extent_of(k->recv, out * k->size);
    if (in > 0 && out > 0 && a.from < b.end && b.from < a.end && !in_place(k)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k), "recvbuf overlaps sendbuf: %s",
                        call_overlap_remedy(k));
    }
    return pcclSuccess;
}

/* ---- Memory of calls that run together --------------------------------------------------------------------------------------- */

/* The parts with places that make up the input or the output of the call; null: it is one piece. */
static const struct part_lists *side_parts(const struct call *k, bool written)
{
    const struct part_lists *parts = k->kind == PLAN_ALL_TO_ALL && written ? &k->out_parts : &k->parts;
    bool gathers = k->kind == PLAN_ALL_GATHER || k->kind == PLAN_GATHER, scatters = k->kind == PLAN_REDUCE_SCATTER || k->kind == PLAN_SCATTER;
    bool of_parts = k->kind == PLAN_ALL_TO_ALL || (written ? gathers : scatters);
    bool here = !call_has_root(k) || call_is_root(k);
    return of_parts && here && parts->places != NULL ? parts : NULL;
}

static uint32_t side_pieces(const struct call *k, bool written)
{
    return side_parts(k, written) == NULL ? 1 : k->member.snapshot.group;
}

static struct api_extent side_piece(struct call *k, bool written, uint32_t index)
{
    size_t in, out;
    const struct part_lists *parts = side_parts(k, written);
    const unsigned char *buffer = written ? k->recv : k->send;
    if (parts != NULL) {
        return api_extent_of(buffer + parts->places[index] * k->size, parts->counts[index] * k->size);
    }
    (void)call_ends(k, &in, &out); /* the checks have seen that it fits */
    return api_extent_of(buffer, (written ? out : in) * k->size);
}

static bool side_meets(struct call *k, const struct api_operands *together, bool written)
{
    bool meets = false;
    for (uint32_t i = 0; i < side_pieces(k, written) && !meets; i++) {
        meets = api_operands_meet(together, side_piece(k, written, i), written);
    }
    return meets;
}

static void side_add(struct call *k, struct api_operands *together, bool written)
{
    for (uint32_t i = 0; i < side_pieces(k, written); i++) {
        (void)api_operands_add(together, side_piece(k, written, i), written); /* no memory: later calls are not compared with it */
    }
}

static pcclResult_t check_apart(struct call *k, const struct api_operands *together)
{
    bool written = together != NULL && side_meets(k, together, true);
    if (!written && (together == NULL || !side_meets(k, together, false))) {
        return pcclSuccess;
    }
    return api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k),
                    "%s overlaps a buffer of an earlier call of this group: pass buffers apart", written ? "recvbuf" : "sendbuf");
}

/* Two parts in the same place would leave bytes of either. */
static pcclResult_t check_output_parts(struct call *k)
{
    struct api_operands before = {0};
    pcclResult_t rc = pcclSuccess;
    uint32_t pieces = side_parts(k, true) == NULL ? 0 : side_pieces(k, true);
    for (uint32_t r = 0; r < pieces && rc == pcclSuccess; r++) {
        struct api_extent one = side_piece(k, true, r);
        if (api_operands_meet(&before, one, true)) {
            rc = api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k),
                          "%splaces[%u] is %zu: the part overlaps that of a lower rank, pass places apart",
                          k->kind == PLAN_ALL_TO_ALL ? "recv_" : "", r, side_parts(k, true)->places[r]);
        } else if (!api_operands_add(&before, one, true)) {
            rc = api_fail(pcclInternalError, pcclCauseNoMemory, call_name(k), "no memory to compare the places of %u parts: free some", pieces);
        }
    }
    api_operands_fini(&before);
    return rc;
}

static const struct api_sum_fields call_fields = {
    .datatype = "datatype", .algorithm = "quantization->algorithm", .quantized_datatype = "quantization->quantized_datatype",
    .quantized_last = "quantized_datatype"};

static pcclResult_t call_check(struct comm *c, struct call *k)
{
    if (k->datatype >= DTYPE_COUNT) {
        return bad(k, "datatype", k->datatype, "expected " API_DATATYPES);
    }
    k->size = dtype_size((enum dtype)k->datatype);
    char why[API_WHY];
    if (call_sums(k) && !api_sum(c, k->datatype, k->op, k->quantization, &call_fields, &k->sum, why)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, call_name(k), "%s", why);
    }
    if (call_has_root(k) && k->root >= k->member.snapshot.group) {
        char remedy[64];
        snprintf(remedy, sizeof remedy, "expected a rank below %u, the members of this peer group", k->member.snapshot.group);
        return bad(k, "root", k->root, remedy);
    }
    pcclResult_t rc = check_lists(k);
    rc = rc == pcclSuccess ? check_buffers(k) : rc;
    return rc == pcclSuccess ? check_output_parts(k) : rc;
}

/* ---- Launch ------------------------------------------------------------------------------------------------------------------ */

/* Counts that all members pass; 0 is that of equal parts. */
static uint64_t layout_of(const struct call *k, size_t *largest)
{
    uint64_t h = 0;
    if (plan_kind_pairs((uint8_t)k->kind)) {
        *largest = 0;
        return LAYOUT_PAIRS;
    }
    for (uint32_t r = 0; r < k->member.snapshot.group; r++) {
        *largest = k->parts.counts[r] > *largest ? k->parts.counts[r] : *largest;
        h = mix64(h, k->parts.counts[r]);
    }
    return h | 2;
}

static void call_launch(const struct call *k, bool wrong, struct comm_launch *out)
{
    *out = (struct comm_launch){.call = {.space = SPACE_ORDERED, .known = k->member.known, .world = k->member.snapshot.group,
                                         .bad_argument = wrong, .deadline = api_call_deadline(),
                                         .params = {.kind = (uint8_t)k->kind}}};
    if (wrong) {
        return;
    }
    size_t largest = k->uneven ? 0 : k->count;
    out->call.params.layout = k->uneven ? layout_of(k, &largest) : 0;
    out->call.params.count = largest;
    out->call.params.dtype = (uint8_t)k->datatype;
    if (call_sums(k)) {
        api_sum_params(&k->sum, &out->call);
    }
    out->call.root_rank = k->root;
    out->call.count = k->count;
    out->call.in = k->send;
    out->call.out = k->kind == PLAN_REDUCE && !call_is_root(k) ? NULL : k->recv;
    out->bytes = call_sums(k) ? largest * k->size : 0;
    out->call.parts = call_has_root(k) && !call_is_root(k) ? (struct part_lists){0} : k->parts;
    out->call.out_parts = k->out_parts;
}

static pcclResult_t call_make(struct call *k, const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct comm *c;
    struct comm_launch launch;
    pcclErrorInfo_t why;
    pcclResult_t rc = api_enter(communicator, call_name(k), &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_member(c, call_name(k), &k->member);
    if (rc != pcclSuccess) {
        api_leave(c);
        return rc;
    }
    struct api_operands *together = api_group_operands(async_op_out != NULL);
    bool wrong = call_check(c, k) != pcclSuccess || check_apart(k, together) != pcclSuccess;
    call_launch(k, wrong, &launch);
    if (wrong) { /* all members refuse it without their programs */
        (void)pcclGetLastErrorInfo(&why);
        launch.why = why.text;
    }
    rc = api_launch(communicator, &launch, async_op_out, call_name(k), 0);
    if (rc == pcclSuccess && !wrong && together != NULL) {
        side_add(k, together, true);
        side_add(k, together, false);
    }
    api_leave(c);
    return rc;
}

/* ---- The calls --------------------------------------------------------------------------------------------------------------- */

pcclResult_t pcclAllReduceOrdered(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, pcclRedOp_t op,
                                  const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    return pcclAllReduceQuantized(sendbuf, recvbuf, count, datatype, op, NULL, communicator, async_op_out);
}

pcclResult_t pcclAllReduceQuantized(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, pcclRedOp_t op,
                                    const pcclQuantizationOptions_t *quantization, const pcclComm_t *communicator,
                                    pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_ALL_REDUCE, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype, .op = op,
                     .quantization = quantization};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclBroadcast(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, uint32_t root,
                           const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_BROADCAST, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype, .root = root};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclAllGather(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                           const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_ALL_GATHER, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclAllGatherV(const void *sendbuf, void *recvbuf, const size_t *counts, const size_t *places,
                            pcclDataType_t datatype, const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_ALL_GATHER, .uneven = true, .send = sendbuf, .recv = recvbuf, .parts = {counts, places},
                     .datatype = datatype};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclReduceScatter(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, pcclRedOp_t op,
                               const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    return pcclReduceScatterQuantized(sendbuf, recvbuf, count, datatype, op, NULL, communicator, async_op_out);
}

pcclResult_t pcclReduceScatterV(const void *sendbuf, void *recvbuf, const size_t *counts, const size_t *places,
                                pcclDataType_t datatype, pcclRedOp_t op, const pcclComm_t *communicator,
                                pcclAsyncOp_t *async_op_out)
{
    return pcclReduceScatterVQuantized(sendbuf, recvbuf, counts, places, datatype, op, NULL, communicator, async_op_out);
}

pcclResult_t pcclReduceScatterQuantized(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, pcclRedOp_t op,
                                        const pcclQuantizationOptions_t *quantization, const pcclComm_t *communicator,
                                        pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_REDUCE_SCATTER, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype, .op = op,
                     .quantization = quantization};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclReduceScatterVQuantized(const void *sendbuf, void *recvbuf, const size_t *counts, const size_t *places,
                                         pcclDataType_t datatype, pcclRedOp_t op, const pcclQuantizationOptions_t *quantization,
                                         const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_REDUCE_SCATTER, .uneven = true, .send = sendbuf, .recv = recvbuf, .parts = {counts, places},
                     .datatype = datatype, .op = op, .quantization = quantization};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclAllToAll(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                          const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_ALL_TO_ALL, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclAllToAllV(const void *sendbuf, const size_t *send_counts, const size_t *send_places, void *recvbuf,
                           const size_t *recv_counts, const size_t *recv_places, pcclDataType_t datatype,
                           const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_ALL_TO_ALL, .uneven = true, .send = sendbuf, .recv = recvbuf, .parts = {send_counts, send_places},
                     .out_parts = {recv_counts, recv_places}, .datatype = datatype};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclScatter(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, uint32_t root,
                         const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_SCATTER, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype, .root = root};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclScatterV(const void *sendbuf, const size_t *counts, const size_t *places, void *recvbuf, size_t count,
                          pcclDataType_t datatype, uint32_t root, const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_SCATTER, .uneven = true, .send = sendbuf, .recv = recvbuf, .count = count,
                     .parts = {counts, places}, .datatype = datatype, .root = root};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclReduce(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, pcclRedOp_t op, uint32_t root,
                        const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    return pcclReduceQuantized(sendbuf, recvbuf, count, datatype, op, NULL, root, communicator, async_op_out);
}

pcclResult_t pcclReduceQuantized(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, pcclRedOp_t op,
                                 const pcclQuantizationOptions_t *quantization, uint32_t root, const pcclComm_t *communicator,
                                 pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_REDUCE, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype, .op = op,
                     .quantization = quantization, .root = root};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclGather(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype, uint32_t root,
                        const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_GATHER, .send = sendbuf, .recv = recvbuf, .count = count, .datatype = datatype, .root = root};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclGatherV(const void *sendbuf, size_t count, void *recvbuf, const size_t *counts, const size_t *places,
                         pcclDataType_t datatype, uint32_t root, const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_GATHER, .uneven = true, .send = sendbuf, .recv = recvbuf, .count = count,
                     .parts = {counts, places}, .datatype = datatype, .root = root};
    return call_make(&k, communicator, async_op_out);
}

pcclResult_t pcclBarrier(const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct call k = {.kind = PLAN_ALL_REDUCE, .barrier = true};
    return call_make(&k, communicator, async_op_out);
}
