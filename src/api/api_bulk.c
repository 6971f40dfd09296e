/* api_bulk.c - many all-reduces with retry: the list, its buffers and its one call.
 *
 * Which one to launch next is decided in bulk.c.  Invariant: nothing is in flight when the call returns.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "api/api.h"
#include "session/bulk.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"

struct many {
    struct comm *comm;
    const pcclReduceOpDescriptor_t *list;
    struct bulk order;
    struct comm_op **op;      /* owned; by index, of those in flight */
    struct comm_batch batch;
    uint64_t tx_bytes, rx_bytes;
    uint32_t world;
};

/* Gives up what is in flight behind an error. */
static void many_give_up(struct many *m)
{
    for (size_t i = m->order.bad; i < bulk_end(&m->order); i++) {
        if (bulk_doomed(&m->order, i)) {
            comm_cancel(m->comm, m->op[i], CAUSE_CANCEL);
        }
    }
}

static void many_ended(struct many *m, size_t index, const struct session_outcome *o)
{
    size_t bad = m->order.bad;
    bulk_ended(&m->order, index, o);
    if (o->result == RESULT_OK) {
        m->tx_bytes += o->tx_bytes;
        m->rx_bytes += o->rx_bytes;
        m->world = o->world;
    }
    if (m->order.bad != bad) {
        many_give_up(m);
    }
}

/* Ends one that is in flight. */
static void many_await(struct many *m)
{
    struct session_outcome o;
    size_t index = comm_batch_await(m->comm, &m->batch, &o);
    many_ended(m, index, &o);
}

/* Small ones, which are launched together: what they say goes out in one piece. */
enum { FUSED_MOST = 16, FUSED_SMALL = 16 << 10, FUSED_BYTES = 64 << 10 };

struct fused {
    struct comm_launch launch[FUSED_MOST];
    struct comm_op *op[FUSED_MOST];
    uint32_t count;
};

static bool many_prepare(struct many *m, size_t index, struct comm_launch *launch)
{
    const pcclReduceOpDescriptor_t *d = &m->list[index];
    pcclResult_t rc = api_reduce_check(&(struct api_reduce_where){m->comm, "reduce many", index}, d->sendbuf, d->recvbuf, &d->descriptor, launch);
    launch->call.awaited = true;
    launch->batch = &m->batch;
    launch->index = index;
    return rc == pcclSuccess;
}

/* That one, and what may go with it. */
static void many_gather(struct many *m, size_t index, struct fused *f)
{
    size_t bytes = 0;
    for (f->count = 0; index != BULK_NONE && f->count < FUSED_MOST; index = bulk_behind(&m->order, index)) {
        struct comm_launch *next = &f->launch[f->count];
        if (!many_prepare(m, index, next) || (f->count > 0 && next->bytes > FUSED_SMALL)) {
            return;
        }
        f->op[f->count++] = comm_op_new(m->comm, next);
        bytes += next->bytes;
        if (next->bytes > FUSED_SMALL || bytes > FUSED_BYTES) {
            return;
        }
    }
}

static void many_launched(struct many *m, size_t index, struct comm_op *op)
{
    m->op[index] = op;
    bulk_launched(&m->order, index);
    if (bulk_doomed(&m->order, index)) {
        comm_cancel(m->comm, op, CAUSE_CANCEL);
    }
}

static void many_launch(struct many *m, size_t index)
{
    struct fused f;
    struct session_outcome o = {.result = RESULT_MISMATCH}; /* all were checked before, but its operator may have been destroyed since */
    many_gather(m, index, &f);
    uint32_t launched = f.count > 0 ? comm_op_launch(m->comm, f.launch, f.op, f.count, &o) : 0;
    for (uint32_t i = 0; i < launched; i++) {
        many_launched(m, f.launch[i].index, f.op[i]);
    }
    if (launched > 0 && launched == f.count) {
        return;
    }
    size_t failed = f.count > 0 ? f.launch[launched].index : index;
    if ((o.result == RESULT_FULL || o.result == RESULT_AHEAD || o.result == RESULT_TAG_IN_USE) && m->order.flying > 0) {
        many_await(m); /* room, or the tag, comes with the end of others */
    } else {
        many_ended(m, failed, &o);
    }
}

static pcclResult_t many_run(struct many *m, pcclReduceInfo_t *info)
{
    for (;;) {
        if (comm_batch_ended(&m->batch)) {
            many_await(m);
            continue; /* all that have ended, so that the lowest of those lost goes first */
        }
        size_t next = bulk_next(&m->order);
        if (next != BULK_NONE) {
            many_launch(m, next);
        } else if (m->order.flying > 0) {
            many_await(m);
        } else {
            break;
        }
    }
    if (m->order.bad != BULK_NONE) {
        return api_outcome(&m->order.error, "reduce", m->list[m->order.bad].descriptor.tag);
    }
    if (info != NULL) {
        *info = (pcclReduceInfo_t){.local_world_size = m->world, .tx_bytes = m->tx_bytes, .rx_bytes = m->rx_bytes};
    }
    return pcclSuccess;
}

/* All of them run at the same time. */
static pcclResult_t many_check_apart(const pcclReduceOpDescriptor_t *list, size_t count)
{
    size_t uses = 0, one = 0, other = 0;
    struct api_use *use = calloc(count, 2 * sizeof *use);
    if (use == NULL) {
        return api_fail(pcclInternalError, pcclCauseNoMemory, "reduce many", "no memory to compare the buffers of count %zu operations: pass fewer at a time",
                        count);
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = list[i].descriptor.count * dtype_size((enum dtype)list[i].descriptor.src_descriptor.datatype);
        use[uses++] = (struct api_use){api_extent_of(list[i].recvbuf, bytes), i, true};
        if (list[i].sendbuf != list[i].recvbuf) {
            use[uses++] = (struct api_use){api_extent_of(list[i].sendbuf, bytes), i, false};
        }
    }
    bool meet = api_uses_meet(use, uses, &one, &other);
    free(use);
    if (!meet) {
        return pcclSuccess;
    }
    return api_fail(pcclInvalidArgument, pcclCauseUsage, "reduce many",
                    "a result of descriptors[%zu] or descriptors[%zu] overlaps a buffer of the other: pass buffers apart", one, other);
}

static pcclResult_t many_check(struct comm *c, const pcclReduceOpDescriptor_t *list, size_t count, int max_in_flight)
{
    const char *phase = "reduce many";
    struct comm_launch launch;
    if (list == NULL) {
        return api_null(phase, "descriptors", "pass an array of pcclReduceOpDescriptor_t");
    }
    if (count == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count is 0: pass at least 1 descriptor");
    }
    if (count > API_MOST_BYTES / sizeof *list) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "count is %zu: at most %zu descriptors fit any memory", count,
                        API_MOST_BYTES / sizeof *list);
    }
    if (max_in_flight <= 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "max_in_flight is %d: expected 1 or more", max_in_flight);
    }
    for (size_t i = 0; i < count; i++) {
        pcclResult_t rc = api_reduce_check(&(struct api_reduce_where){c, phase, i}, list[i].sendbuf, list[i].recvbuf,
                                           &list[i].descriptor, &launch);
        if (rc != pcclSuccess) {
            return rc;
        }
    }
    return many_check_apart(list, count);
}

static pcclResult_t many_reduce(struct comm *c, const pcclReduceOpDescriptor_t *list, size_t count, int max_in_flight,
                                pcclReduceInfo_t *info)
{
    struct many m = {.comm = c, .list = list};
    unsigned char *state = calloc(count, sizeof *state);
    m.op = calloc(count, sizeof(struct comm_op *));
    pcclResult_t rc;
    if (state == NULL || m.op == NULL) {
        rc = api_fail(pcclInternalError, pcclCauseNoMemory, "reduce many",
                      "no memory to keep track of count %zu operations: pass fewer at a time", count);
    } else {
        bulk_init(&m.order, state, count, (size_t)max_in_flight);
        comm_batch_init(&m.batch);
        rc = many_run(&m, info);
        comm_batch_fini(&m.batch);
    }
    free(state);
    free(m.op);
    return rc;
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
    rc = many_check(c, descriptors, count, max_in_flight);
    if (rc == pcclSuccess) {
        rc = api_member(c, "reduce many", &member);
    }
    if (rc == pcclSuccess) {
        rc = many_reduce(c, descriptors, count, max_in_flight, reduce_info_out);
    }
    api_leave(c);
    return rc;
}
