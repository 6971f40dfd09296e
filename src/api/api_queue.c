/* api_queue.c - completion queues: argument checks, handles, and what ended as the program is told it.
 * SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "engine/op_queue.h"

#include <sched.h>

struct pcclCompletionQueue_t {
    struct api_handle handle;
    struct queue *queue; /* one user */
};

/* Checks a queue, and becomes a user of it. */
static pcclResult_t queue_enter(pcclCompletionQueue_t *handle, const char *phase, struct queue **queue_out)
{
    if (handle == NULL) {
        return api_null(phase, "queue", "pass one that pcclCreateCompletionQueue has stored");
    }
    if (!handle_pin(&handle->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the queue was destroyed: make a new one");
    }
    bool inherited = handle_inherited(&handle->handle);
    if (!inherited) {
        *queue_out = handle->queue;
        queue_use(*queue_out);
    }
    handle_unpin(&handle->handle);
    return !inherited ? pcclSuccess
                      : api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                                 "the queue belongs to the parent of this forked process: make a new one");
}

pcclResult_t pcclCreateCompletionQueue(pcclCompletionQueue_t **queue_out)
{
    const char *phase = "create queue";
    if (!engine_marked(&engine_global)) {
        return api_fail(pcclNotInitialized, pcclCauseUsage, phase, "call pcclInit first");
    }
    if (queue_out == NULL) {
        return api_null(phase, "queue_out", "pass where to store the queue");
    }
    pcclCompletionQueue_t *handle = (pcclCompletionQueue_t *)handle_take(HANDLE_QUEUE, sizeof *handle);
    struct queue *q = handle != NULL ? queue_new() : NULL;
    if (q == NULL) {
        if (handle != NULL) {
            handle_give(HANDLE_QUEUE, &handle->handle);
        }
        return api_fail(pcclInternalError, pcclCauseNoMemory, phase, "no memory");
    }
    handle->queue = q;
    handle_open(&handle->handle);
    *queue_out = handle;
    return pcclSuccess;
}

/* ---- Attaching ------------------------------------------------------------------------------------------------------------------ */

static pcclResult_t queue_attach(pcclCompletionQueue_t *handle, uint8_t space, const void *async, uint64_t cookie)
{
    const char *phase = "attach";
    struct queue *q = NULL;
    struct comm *c;
    uint64_t number;
    pcclResult_t rc = queue_enter(handle, phase, &q);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_enter_async(phase, space, async, &number, &c);
    if (rc == pcclSuccess) {
        switch (op_queue_attach(c, space, number, q, cookie)) {
        case OP_ATTACHED:
            break;
        case OP_ATTACHED_BEFORE:
            rc = api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                          "the operation is attached to a queue, and not delivered: attach each once");
            break;
        case OP_UNKNOWN:
            rc = api_spent(phase, space, number);
            break;
        }
        api_leave(c);
    }
    queue_drop(q);
    return rc;
}

pcclResult_t pcclQueueAttach(pcclCompletionQueue_t *queue, const pcclAsyncOp_t *async_op, uint64_t cookie)
{
    return queue_attach(queue, SPACE_ORDERED, async_op, cookie);
}

pcclResult_t pcclQueueAttachReduce(pcclCompletionQueue_t *queue, const pcclAsyncReduceOp_t *reduce_handle, uint64_t cookie)
{
    return queue_attach(queue, SPACE_TAG, reduce_handle, cookie);
}

/* ---- Waiting -------------------------------------------------------------------------------------------------------------------- */

static size_t queue_fetch(struct queue *q, pcclCompletion_t *out, size_t capacity)
{
    struct op_ended report;
    uint64_t cookie;
    size_t count = 0;
    while (count < capacity && op_queue_take(q, &report, &cookie)) {
        api_completion(&report, cookie, &out[count++]);
    }
    return count;
}

static pcclResult_t queue_check(const char *phase, const pcclCompletion_t *out, size_t capacity, const size_t *count_out)
{
    if (out == NULL || count_out == NULL) {
        return api_null(phase, out == NULL ? "completions_out" : "count_out", "pass where to store what has ended, and its number");
    }
    if (capacity == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "capacity is 0: pass room for at least 1 completion");
    }
    return pcclSuccess;
}

pcclResult_t pcclQueueWait(pcclCompletionQueue_t *queue, pcclCompletion_t *completions_out, size_t capacity, int64_t timeout_ms,
                           size_t *count_out)
{
    const char *phase = "queue wait";
    struct queue *q = NULL;
    int64_t deadline;
    size_t count = 0;
    pcclResult_t rc = queue_check(phase, completions_out, capacity, count_out);
    rc = rc == pcclSuccess ? api_deadline(phase, timeout_ms, &deadline) : rc;
    rc = rc == pcclSuccess ? queue_enter(queue, phase, &q) : rc;
    if (rc != pcclSuccess) {
        return rc;
    }
    enum queue_word word;
    do {
        word = queue_wait(q, deadline);
        count = word == QUEUE_CLOSED ? 0 : queue_fetch(q, completions_out, capacity);
    } while (word == QUEUE_ENDED && count == 0); /* others were faster */
    queue_drop(q);
    if (word == QUEUE_CLOSED) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the queue was destroyed meanwhile: end its waits first");
    }
    *count_out = count;
    return pcclSuccess;
}

pcclResult_t pcclQueueWake(pcclCompletionQueue_t *queue)
{
    struct queue *q = NULL;
    pcclResult_t rc = queue_enter(queue, "queue wake", &q);
    if (rc == pcclSuccess) {
        queue_wake(q);
        queue_drop(q);
    }
    return rc;
}

pcclResult_t pcclQueueDescriptor(pcclCompletionQueue_t *queue, int *descriptor_out)
{
    const char *phase = "queue descriptor";
    struct queue *q = NULL;
    int fd;
    if (descriptor_out == NULL) {
        return api_null(phase, "descriptor_out", "pass where to store it");
    }
    pcclResult_t rc = queue_enter(queue, phase, &q);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (queue_descriptor(q, &fd) == PCCL_OK) {
        *descriptor_out = fd;
    } else {
        rc = api_fail(pcclInternalError, pcclCauseInternal, phase, "no descriptor could be opened: raise the limit (ulimit -n)");
    }
    queue_drop(q);
    return rc;
}

pcclResult_t pcclDestroyCompletionQueue(pcclCompletionQueue_t *queue)
{
    const char *phase = "destroy queue";
    struct op_ended report;
    uint64_t cookie;
    if (queue == NULL) {
        return api_null(phase, "queue", "pass one that pcclCreateCompletionQueue has stored");
    }
    bool inherited = handle_inherited(&queue->handle);
    if (!handle_close(&queue->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the queue was destroyed before");
    }
    if (inherited) {
        queue_abandon(queue->queue);
    } else {
        while (handle_pinned(&queue->handle)) {
            sched_yield(); /* for a few instructions */
        }
        queue_close(queue->queue);
        while (op_queue_take(queue->queue, &report, &cookie)) {
        }
        queue_drop(queue->queue);
    }
    handle_give(HANDLE_QUEUE, &queue->handle);
    return pcclSuccess;
}
