/* api_message.c - send and receive: what one of the two can check, and the launch.
 *
 * A call that names another member takes its number, whatever is wrong with the rest of it: it is refused, and both ends are told, or the
 * next calls of the two would meet the wrong ones.  Invariant: a peer that is not in the program's sizes gets no number.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "api/api.h"
#include "engine/calls/await.h"

struct message {
    bool receives;
    const void *in;
    void *out;
    size_t count;
    unsigned datatype;
    uint32_t peer;
    uint64_t tag;
    uint32_t *source;
    struct session_info member; /* filled in */
};

static const char *message_name(const struct message *m)
{
    return m->receives ? "receive" : "send";
}

static pcclResult_t message_bad(const struct message *m, const char *argument, uint64_t value, const char *remedy)
{
    return api_fail(pcclInvalidArgument, pcclCauseUsage, message_name(m), "%s is %" PRIu64 ": %s", argument, value, remedy);
}

static pcclResult_t message_check_peer(const struct message *m, const pcclAsyncOp_t *async_op_out)
{
    uint32_t world = m->member.snapshot.group;
    if (m->peer == PCCL_ANY_RANK && m->receives) {
        return pcclSuccess;
    }
    if (m->peer >= world) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, message_name(m), "peer is %u: expected a rank below %u, the members of this peer group%s",
                        m->peer, world, m->receives ? ", or PCCL_ANY_RANK" : "");
    }
    if (m->peer != m->member.called_rank) {
        return pcclSuccess;
    }
    if (!api_group_open()) {
        return message_bad(m, "peer", m->peer, "that is this peer itself, which can be sent to only inside of a group");
    }
    return async_op_out == NULL ? pcclSuccess
                                : message_bad(m, "peer", m->peer, "that is this peer itself, whose message is copied in the group: pass no async_op_out");
}

static pcclResult_t message_check(const struct message *m)
{
    if (m->datatype >= DTYPE_COUNT) {
        return message_bad(m, "datatype", m->datatype, "expected " API_DATATYPES);
    }
    if (m->count > API_MOST_BYTES / dtype_size((enum dtype)m->datatype)) {
        return message_bad(m, "count", m->count, "more than any memory holds");
    }
    if (m->count > 0 && (m->receives ? m->out == NULL : m->in == NULL)) {
        return api_null(message_name(m), m->receives ? "recvbuf" : "sendbuf", "pass a buffer, or a count of 0");
    }
    return pcclSuccess;
}

/* What it reads or writes. */
static struct api_extent message_extent(const struct message *m)
{
    return api_extent_of(m->receives ? m->out : m->in, m->count * dtype_size((enum dtype)m->datatype));
}

static pcclResult_t message_check_apart(const struct message *m, const struct api_operands *together)
{
    if (together == NULL || !api_operands_meet(together, message_extent(m), m->receives)) {
        return pcclSuccess;
    }
    return api_fail(pcclInvalidArgument, pcclCauseUsage, message_name(m), "%s overlaps a buffer of an earlier call of this group: pass buffers apart",
                    m->receives ? "recvbuf" : "sendbuf");
}

static void message_launch(const struct message *m, bool wrong, struct comm_launch *out)
{
    *out = (struct comm_launch){.call = {.space = SPACE_PAIR, .tag = m->tag, .known = m->member.known,
                                         .world = m->member.snapshot.group, .root_rank = m->peer, .receives = m->receives,
                                         .bad_argument = wrong, .deadline = api_call_deadline(), .params = {.kind = PLAN_SEND}},
                                .source = m->source};
    if (!wrong) {
        out->call.params.count = m->count;
        out->call.params.dtype = (uint8_t)m->datatype;
        out->call.count = m->count;
        out->call.in = m->in;
        out->call.out = m->out;
    }
}

static pcclResult_t message_own(const struct message *m, const pcclComm_t *communicator)
{
    struct api_own_message own = {.comm = communicator, .tag = m->tag, .receives = m->receives, .in = m->in, .out = m->out, .count = m->count,
                                  .datatype = (pcclDataType_t)m->datatype, .source = m->source, .rank = m->peer};
    return api_group_own(&own);
}

static pcclResult_t message_make(struct message *m, const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct comm *c;
    struct comm_launch launch;
    pcclErrorInfo_t why;
    pcclResult_t rc = api_enter(communicator, message_name(m), &c);
    if (rc != pcclSuccess) {
        return api_group_note(rc);
    }
    rc = api_member(c, message_name(m), &m->member);
    if (rc == pcclSuccess) {
        rc = message_check_peer(m, async_op_out);
    }
    if (rc != pcclSuccess) {
        api_leave(c);
        return api_group_note(rc);
    }
    struct api_operands *together = api_group_operands(async_op_out != NULL);
    rc = message_check(m);
    rc = rc == pcclSuccess ? message_check_apart(m, together) : rc;
    bool wrong = rc != pcclSuccess;
    if (m->peer == m->member.called_rank) {
        rc = wrong ? api_group_note(rc) : message_own(m, communicator);
    } else {
        message_launch(m, wrong, &launch);
        if (wrong) {
            (void)pcclGetLastErrorInfo(&why);
            launch.why = why.text;
        }
        rc = api_launch(communicator, &launch, async_op_out, message_name(m), m->tag);
    }
    if (rc == pcclSuccess && !wrong && together != NULL) {
        (void)api_operands_add(together, message_extent(m), m->receives); /* no memory: later calls are not compared with it */
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclSend(const void *sendbuf, size_t count, pcclDataType_t datatype, uint32_t peer, uint64_t tag,
                      const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct message m = {.in = sendbuf, .count = count, .datatype = datatype, .peer = peer, .tag = tag};
    return message_make(&m, communicator, async_op_out);
}

pcclResult_t pcclReceive(void *recvbuf, size_t count, pcclDataType_t datatype, uint32_t peer, uint64_t tag, uint32_t *source_out,
                         const pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct message m = {.receives = true, .out = recvbuf, .count = count, .datatype = datatype, .peer = peer, .tag = tag,
                        .source = source_out};
    return message_make(&m, communicator, async_op_out);
}
