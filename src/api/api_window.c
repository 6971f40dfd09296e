/* api_window.c - windows: argument checks, handles, and the exchange by which all members make one.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "window/window.h"
#include "engine/calls/await.h"

struct pcclWindow_t {
    struct api_handle handle;
    const pcclComm_t *communicator;
    struct window *window; /* owned */
};

/* Of memory that is no window's: the own half of an exchange that failed elsewhere. */
static pcclResult_t create_refused(const struct window_member *members, uint32_t world)
{
    const char *phase = "create window";
    for (uint32_t r = 0; r < world; r++) {
        if (members[r].status == PCCL_ERR_AGAIN) {
            return api_fail(pcclInternalError, pcclCauseNoMemory, phase, "rank %u has no room for one more: it has 64 windows, or more than 768 "
                            "operations that were not awaited; destroy some, await some", r);
        }
        if (members[r].status != PCCL_OK) {
            return api_fail(pcclInternalError, pcclCauseNoMemory, phase, "rank %u has no memory for its window: ask for less there", r);
        }
    }
    return pcclSuccess;
}

static pcclResult_t create_check(const pcclWindowParams_t *params, pcclWindow_t *const *window_out)
{
    const char *phase = "create window";
    if (params == NULL || window_out == NULL) {
        return api_null(phase, params == NULL ? "params" : "window_out", params == NULL ? "say what the window is" : "pass where to store it");
    }
    if (params->size != sizeof *params) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->size is %zu: set it to sizeof(pcclWindowParams_t)", params->size);
    }
    if (params->rights == 0 || (params->rights & ~(unsigned)pcclWindowAll) != 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->rights is %u: expected some of pcclWindowRead (1), pcclWindowWrite (2) "
                        "and pcclWindowCount (4)", params->rights);
    }
    if (params->bytes > API_MOST_BYTES) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->bytes is %zu: more than any memory holds", params->bytes);
    }
    if ((params->rights & pcclWindowCount) != 0 && (uintptr_t)params->memory % 8 != 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->memory is %p: to count in it, let it begin at a multiple of 8",
                        params->memory);
    }
    if (api_group_open()) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "a group is open in this thread: end it first");
    }
    return pcclSuccess;
}

/* Writes the ids of the members that a call by *info means; false: another thread has changed them meanwhile. */
static bool create_ids(struct comm *c, const struct session_info *info, struct window_member *members)
{
    struct session_info now = {0};
    pthread_mutex_lock(&c->lock);
    if (c->machine.session != NULL) {
        session_info(c->machine.session, &now);
    }
    bool same = now.connected && now.known == info->known && now.snapshot.group == info->snapshot.group;
    for (uint32_t r = 0; same && r < info->snapshot.group; r++) {
        members[r].id = session_called(c->machine.session, r);
    }
    pthread_mutex_unlock(&c->lock);
    return same;
}

/* What all have told, by rank, in the order of issue; `members`: their ids; null: no memory for that. */
static pcclResult_t exchange(struct comm *c, const struct session_info *info, const struct window_member *own, struct window_member *members)
{
    uint32_t world = info->snapshot.group;
    unsigned char mine[WINDOW_MEMBER_BYTES], *all = members != NULL ? malloc((size_t)world * WINDOW_MEMBER_BYTES) : NULL;
    struct writer w;
    struct reader r;
    struct session_outcome o;
    writer_init(&w, mine, sizeof mine);
    put_window_member(&w, own);
    struct comm_launch launch = {.call = {.space = SPACE_ORDERED, .known = info->known, .world = world,
                                          .deadline = api_call_deadline(),
                                          .params = {.kind = PLAN_ALL_GATHER, .dtype = DTYPE_U8, .count = WINDOW_MEMBER_BYTES},
                                          .count = WINDOW_MEMBER_BYTES, .in = mine, .out = all, .no_memory = all == NULL, .awaited = true}}; /* without memory it takes its turn all the same, and fails at all */
    comm_reduce(c, &launch, &o);
    pcclResult_t rc = all != NULL ? api_outcome(&o, "create window", 0)
                                  : api_fail(pcclInternalError, pcclCauseNoMemory, "create window",
                                             "no memory for the description of the others' windows");
    if (rc == pcclSuccess) {
        reader_init(&r, all, (size_t)world * WINDOW_MEMBER_BYTES);
        for (uint32_t i = 0; i < world && rc == pcclSuccess; i++) {
            uint64_t id = members[i].id;
            (void)get_window_member(&r, &members[i]);
            if (members[i].id != id) { /* all have read the same */
                rc = api_fail(pcclInternalError, pcclCauseInternal, "create window", "rank %u says that it is another peer: do not trust it", i);
            }
        }
        rc = rc == pcclSuccess ? create_refused(members, world) : rc;
    }
    free(all);
    return rc;
}

/* Its members are those of one moment, whatever another thread's votes change meanwhile. */
static pcclResult_t create(const pcclWindowParams_t *params, const pcclComm_t *communicator, struct comm *c, pcclWindow_t **window_out)
{
    const char *phase = "create window";
    struct session_info info;
    struct window_member own, *members = NULL;
    pcclResult_t rc;
    do {
        free(members);
        members = NULL;
        rc = api_member(c, phase, &info);
        if (rc != pcclSuccess) {
            return rc;
        }
        members = calloc(info.snapshot.group, sizeof *members);
    } while (members != NULL && !create_ids(c, &info, members));
    uint32_t world = info.snapshot.group;
    pcclWindow_t *handle = (pcclWindow_t *)handle_take(HANDLE_WINDOW, sizeof *handle);
    struct window *w = handle != NULL && members != NULL ? window_new(c, params->memory, params->bytes, params->rights, world, &own) : NULL;
    if (w == NULL) {
        own = (struct window_member){.status = PCCL_ERR_NOMEM};
    }
    own.id = info.id;
    rc = exchange(c, &info, &own, members);
    if (rc == pcclSuccess) {
        window_join(w, members, info.called_rank);
        handle->window = w;
        handle->communicator = communicator;
        handle_open(&handle->handle);
        *window_out = handle;
    } else {
        if (w != NULL) {
            window_free(w);
        }
        if (handle != NULL) {
            handle_give(HANDLE_WINDOW, &handle->handle);
        }
    }
    free(members);
    return rc;
}

pcclResult_t pcclCreateWindow(const pcclWindowParams_t *params, const pcclComm_t *communicator, pcclWindow_t **window_out)
{
    struct comm *c;
    pcclResult_t rc = create_check(params, window_out);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_enter(communicator, "create window", &c);
    if (rc == pcclSuccess) {
        rc = create(params, communicator, c, window_out);
        api_leave(c);
    }
    return rc;
}

pcclResult_t pcclDestroyWindow(pcclWindow_t *window)
{
    const char *phase = "destroy window";
    struct comm *c;
    if (window == NULL) {
        return api_null(phase, "window", "pass one that pcclCreateWindow has stored");
    }
    bool inherited = handle_inherited(&window->handle);
    if (!handle_close(&window->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the window was destroyed before");
    }
    if (!inherited) {
        bool entered = api_enter(window->communicator, phase, &c) == pcclSuccess;
        if (entered && window_served(window->window)) {
            window_close(window->window); /* all calls on it end with that, or with the communicator */
        }
        while (handle_pinned(&window->handle)) {
            sched_yield(); /* for a few instructions */
        }
        window_free(window->window);
        if (entered) {
            api_leave(c);
        }
    }
    handle_give(HANDLE_WINDOW, &window->handle);
    return pcclSuccess;
}

/* ---- Operations -------------------------------------------------------------------------------------------------------------------- */

/* Checks a window, and enters its communicator, so that both stay. */
static pcclResult_t window_enter(pcclWindow_t *handle, const char *phase, struct comm **c)
{
    if (handle == NULL) {
        return api_null(phase, "window", "pass one that pcclCreateWindow has stored");
    }
    if (!handle_pin(&handle->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the window was destroyed: make a new one");
    }
    pcclResult_t rc = handle_inherited(&handle->handle)
                          ? api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the window belongs to the parent of this forked process")
                          : api_enter(handle->communicator, phase, c);
    if (rc != pcclSuccess) {
        handle_unpin(&handle->handle);
        return rc;
    }
    if (!window_served(handle->window)) {
        api_leave(*c);
        handle_unpin(&handle->handle);
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the communicator of this window was destroyed: destroy the window, too");
    }
    return pcclSuccess;
}

static void window_leave(pcclWindow_t *handle, struct comm *c)
{
    api_leave(c);
    handle_unpin(&handle->handle);
}

static pcclResult_t call_check(struct window *w, const struct window_call *k)
{
    struct window_info info;
    bool moves = k->kind == WINDOW_PUT || window_answers(k->kind);
    if (k->rank >= window_world(w)) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, k->phase, "rank is %u: expected a rank below %u, the members that made the window",
                        k->rank, window_world(w));
    }
    if (!moves) {
        return pcclSuccess;
    }
    window_tell(w, k->rank, &info);
    unsigned needed = k->kind == WINDOW_PUT ? WINDOW_MAY_WRITE : k->kind == WINDOW_GET ? WINDOW_MAY_READ : WINDOW_MAY_COUNT;
    if ((info.rights & needed) == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, k->phase, "the window of rank %u has rights %u: there, make it with %u, too",
                        k->rank, info.rights, needed);
    }
    if (k->bytes > info.bytes || k->offset > info.bytes - k->bytes) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, k->phase, "offset %zu and %zu bytes are beyond the window of rank %u, which has %zu",
                        k->offset, k->bytes, k->rank, info.bytes);
    }
    if (window_numbers(k->kind) && k->offset % k->bytes != 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, k->phase, "offset is %zu: expected a multiple of the number's %zu bytes", k->offset,
                        k->bytes);
    }
    const void *buffer = k->kind == WINDOW_PUT ? k->source : k->target;
    return buffer != NULL || k->bytes == 0 || window_numbers(k->kind)
               ? pcclSuccess
               : api_null(k->phase, k->kind == WINDOW_PUT ? "source" : "target", "pass a buffer, or 0 bytes");
}

static pcclResult_t call_make(pcclWindow_t *handle, struct window_call *k, pcclAsyncOp_t *async_op_out)
{
    struct comm *c;
    struct session_outcome o;
    pcclResult_t rc = window_enter(handle, k->phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = call_check(handle->window, k);
    if (rc == pcclSuccess) {
        uint64_t number = 0;
        k->limit = api_call_deadline();
        struct comm_op *op = window_begin(handle->window, k, &number);
        if (op == NULL) {
            rc = api_fail(pcclInternalError, pcclCauseNoMemory, k->phase, "no memory for one more operation");
        } else if (async_op_out != NULL) {
            *async_op_out = (pcclAsyncOp_t){.comm = api_own(handle->communicator), .id = number};
            comm_undriven(c);
        } else {
            comm_await(c, op, &o);
            rc = api_outcome(&o, k->phase, 0);
        }
    }
    window_leave(handle, c);
    return rc;
}

pcclResult_t pcclPut(const void *source, size_t bytes, uint32_t rank, size_t offset, pcclWindow_t *window, pcclAsyncOp_t *async_op_out)
{
    return call_make(window, &(struct window_call){.kind = WINDOW_PUT, .rank = rank, .offset = offset, .bytes = bytes, .source = source,
                                                   .phase = "put"}, async_op_out);
}

pcclResult_t pcclGet(void *target, size_t bytes, uint32_t rank, size_t offset, pcclWindow_t *window, pcclAsyncOp_t *async_op_out)
{
    return call_make(window, &(struct window_call){.kind = WINDOW_GET, .rank = rank, .offset = offset, .bytes = bytes, .target = target,
                                                   .phase = "get"}, async_op_out);
}

/* A number's bytes; 0: no such type. */
static size_t number_bytes(pcclDataType_t datatype)
{
    switch ((unsigned)datatype) {
    case pcclInt32: case pcclUint32:
        return 4;
    case pcclInt64: case pcclUint64:
        return 8;
    default:
        return 0;
    }
}

static uint64_t number_at(const void *at, size_t bytes)
{
    uint64_t wide;
    uint32_t narrow;
    if (bytes == 4) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static pcclResult_t number_call(struct window_call *k, const void *operand, const void *expected, pcclDataType_t datatype, pcclWindow_t *window,
                                pcclAsyncOp_t *async_op_out)
{
    bool swaps = k->kind == WINDOW_SWAP;
    k->bytes = number_bytes(datatype);
    if (k->bytes == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, k->phase, "datatype is %u (%s): numbers to count in are pcclInt32, pcclUint32, "
                        "pcclInt64 and pcclUint64", (unsigned)datatype, dtype_name((enum dtype)datatype));
    }
    if (operand == NULL || (swaps && expected == NULL)) {
        return api_null(k->phase, !swaps ? "addend" : operand == NULL ? "desired" : "expected", "point to a number of that type");
    }
    k->operand = number_at(operand, k->bytes);
    k->expected = swaps ? number_at(expected, k->bytes) : 0;
    return call_make(window, k, async_op_out);
}

pcclResult_t pcclFetchAdd(void *previous_out, const void *addend, pcclDataType_t datatype, uint32_t rank, size_t offset, pcclWindow_t *window,
                          pcclAsyncOp_t *async_op_out)
{
    struct window_call k = {.kind = WINDOW_ADD, .rank = rank, .offset = offset, .target = previous_out, .phase = "fetch and add"};
    return number_call(&k, addend, NULL, datatype, window, async_op_out);
}

pcclResult_t pcclCompareSwap(void *previous_out, const void *expected, const void *desired, pcclDataType_t datatype, uint32_t rank, size_t offset,
                             pcclWindow_t *window, pcclAsyncOp_t *async_op_out)
{
    struct window_call k = {.kind = WINDOW_SWAP, .rank = rank, .offset = offset, .target = previous_out, .phase = "compare and swap"};
    return number_call(&k, desired, expected, datatype, window, async_op_out);
}

pcclResult_t pcclSignal(uint32_t rank, pcclWindow_t *window, pcclAsyncOp_t *async_op_out)
{
    return call_make(window, &(struct window_call){.kind = WINDOW_SIGNAL, .rank = rank, .phase = "signal"}, async_op_out);
}

pcclResult_t pcclWaitSignal(uint32_t rank, pcclWindow_t *window, int64_t timeout_ms, pcclAsyncOp_t *async_op_out)
{
    struct window_call k = {.kind = WINDOW_VOID, .rank = rank, .phase = "wait for a signal"};
    pcclResult_t rc = api_deadline(k.phase, timeout_ms, &k.deadline);
    return rc == pcclSuccess ? call_make(window, &k, async_op_out) : rc;
}

pcclResult_t pcclGetWindowInfo(pcclWindow_t *window, uint32_t rank, pcclWindowInfo_t *info_out)
{
    const char *phase = "window info";
    struct comm *c;
    struct window_info info;
    if (info_out == NULL) {
        return api_null(phase, "info_out", "pass where to store it");
    }
    pcclResult_t rc = window_enter(window, phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = call_check(window->window, &(struct window_call){.kind = WINDOW_SIGNAL, .rank = rank, .phase = phase});
    if (rc == pcclSuccess) {
        window_tell(window->window, rank, &info);
        *info_out = (pcclWindowInfo_t){.peer = info.id, .rank = window_rank(window->window), .world = window_world(window->window),
                                       .bytes = info.bytes, .rights = info.rights, .lost = info.lost, .address = info.address};
    }
    window_leave(window, c);
    return rc;
}
