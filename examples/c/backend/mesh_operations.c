/* mesh_operations.c - the example back-end's operations: each sends what it has at once, and ends when all that it needs has come.
 *
 * Every rank sends to every other that needs something of it, and reduces what comes in the order of ranks: simple, the same bits
 * everywhere, and slow for large worlds.
 * SPDX-License-Identifier: MIT */
#include "mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct comm {
    struct mesh *mesh;
    uint64_t channel;
    uint32_t rank, ranks, splits;
    uint32_t *members; /* ranks of the mesh, by rank here */
};

struct work {
    struct work *next;
    struct comm *comm;
    pcclBackendResult_t result;
    bool done, listed;
    uint32_t operation, kind, datatype, op;
    struct timespec deadline; /* 0: none */
    pcclBackendPart_t *outputs;
    size_t output_count;
    struct message **came; /* by rank; what is not needed has `needed` false */
    bool *needed;
    char error[160];
};

static const unsigned char SIZES[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1};

static pcclBackendResult_t fail(const char *text)
{
    (void)snprintf(mesh_error, sizeof mesh_error, "%s", text);
    return pcclBackendFailed;
}

static const char *last_error(void)
{
    return mesh_error;
}

/* ---- Reducing -------------------------------------------------------------------------------------------------- */

#define FOLD(TYPE, WIDE, DIVISOR)                                                                                              \
    static bool fold_##TYPE(TYPE *to, const TYPE *from, size_t count, uint32_t op)                                    \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            WIDE a = (WIDE)to[i], b = (WIDE)from[i];                                                                   \
            switch (op) {                                                                                              \
            case pcclSum:                                                                                              \
            case pcclAvg: to[i] = (TYPE)(a + b); break;                                                                \
            case pcclProd: to[i] = (TYPE)(a * b); break;                                                               \
            case pcclMax: to[i] = (TYPE)(a > b ? a : b); break;                                                        \
            case pcclMin: to[i] = (TYPE)(a < b ? a : b); break;                                                        \
            default: return false;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        return true;                                                                                                   \
    }                                                                                                                  \
    static void divide_##TYPE(TYPE *to, size_t count, uint32_t by)                                                    \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            to[i] = (TYPE)(to[i] / (DIVISOR)by); /* integers truncate */                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void scale_##TYPE(TYPE *to, size_t count, double factor)                                                   \
    {                                                                                                                  \
        for (size_t i = 0; i < count; i++) {                                                                           \
            to[i] = (TYPE)((double)to[i] * factor);                                                                    \
        }                                                                                                              \
    }

FOLD(float, float, float)
FOLD(double, double, double)
FOLD(int8_t, int64_t, int64_t)
FOLD(uint8_t, uint64_t, uint64_t)
FOLD(int32_t, int64_t, int64_t)
FOLD(int64_t, int64_t, int64_t)

/* False: this example does not reduce that. */
static bool fold(void *to, const void *from, size_t count, uint32_t datatype, uint32_t op)
{
    switch (datatype) {
    case pcclFloat: return fold_float(to, from, count, op);
    case pcclDouble: return fold_double(to, from, count, op);
    case pcclInt8: return fold_int8_t(to, from, count, op);
    case pcclUint8: return fold_uint8_t(to, from, count, op);
    case pcclInt32: return fold_int32_t(to, from, count, op);
    case pcclInt64: return fold_int64_t(to, from, count, op);
    default: return false;
    }
}

static void divide(void *to, size_t count, uint32_t datatype, uint32_t by)
{
    switch (datatype) {
    case pcclFloat: divide_float(to, count, by); break;
    case pcclDouble: divide_double(to, count, by); break;
    case pcclInt8: divide_int8_t(to, count, by); break;
    case pcclUint8: divide_uint8_t(to, count, by); break;
    case pcclInt32: divide_int32_t(to, count, by); break;
    case pcclInt64: divide_int64_t(to, count, by); break;
    default: break;
    }
}

static void scale(void *to, size_t count, uint32_t datatype, double factor)
{
    switch (datatype) {
    case pcclFloat: scale_float(to, count, factor); break;
    case pcclDouble: scale_double(to, count, factor); break;
    case pcclInt8: scale_int8_t(to, count, factor); break;
    case pcclUint8: scale_uint8_t(to, count, factor); break;
    case pcclInt32: scale_int32_t(to, count, factor); break;
    case pcclInt64: scale_int64_t(to, count, factor); break;
    default: break;
    }
}

/* ---- Ending ---------------------------------------------------------------------------------------------------- */

static bool reduces(uint32_t operation)
{
    return operation == pcclBackendAllReduce || operation == pcclBackendReduce || operation == pcclBackendReduceScatter;
}

static void end(struct work *work, pcclBackendResult_t result, const char *error)
{
    work->done = true;
    work->result = result;
    (void)snprintf(work->error, sizeof work->error, "%s", error);
}

/* All that was needed has come. */
static void finish(struct work *work)
{
    uint32_t ranks = work->comm->ranks;
    size_t size = SIZES[work->datatype];
    struct message *total = NULL;
    for (uint32_t r = 0; r < ranks; r++) {
        struct message *came = work->came[r];
        if (came == NULL) {
            continue;
        }
        if (!reduces(work->operation)) {
            size_t to = work->output_count == 1 ? 0 : r;
            if (to < work->output_count && work->outputs[to].count * size != came->bytes) {
                end(work, pcclBackendFailed, "a rank sent another size than was expected of it");
                return;
            }
            if (to < work->output_count && came->bytes > 0) {
                memcpy(work->outputs[to].data, came->data, came->bytes);
            }
        } else if (total == NULL) {
            total = came;
        } else if (came->bytes != total->bytes || !fold(total->data, came->data, came->bytes / size, work->datatype, work->op)) {
            end(work, pcclBackendFailed, "sizes differ, or this example does not reduce that type so");
            return;
        }
    }
    if (total != NULL && work->output_count == 1 && total->bytes > 0) {
        if (work->op == pcclAvg) {
            divide(total->data, total->bytes / size, work->datatype, ranks);
        }
        memcpy(work->outputs[0].data, total->data, total->bytes);
    }
    end(work, pcclBackendSuccess, "");
}

static bool late(const struct work *work)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return work->deadline.tv_sec != 0 && (now.tv_sec > work->deadline.tv_sec ||
                                          (now.tv_sec == work->deadline.tv_sec && now.tv_nsec >= work->deadline.tv_nsec));
}

static void advance(struct work *work)
{
    struct comm *comm = work->comm;
    bool all = true;
    for (uint32_t r = 0; r < comm->ranks; r++) {
        if (!work->needed[r] || work->came[r] != NULL) {
            continue;
        }
        work->came[r] = mesh_take(comm->mesh, comm->members[r], comm->channel, work->kind);
        if (work->came[r] == NULL) {
            all = false;
            if (comm->mesh->peers[comm->members[r]].gone) {
                (void)snprintf(mesh_error, sizeof mesh_error, "rank %u has gone", r);
                end(work, pcclBackendFailed, mesh_error);
                return;
            }
        }
    }
    if (all) {
        finish(work);
    } else if (comm->mesh->aborted) {
        end(work, pcclBackendFailed, "the communicator was aborted");
    }
}

void works_advance(struct mesh *mesh)
{
    for (struct work **at = &mesh->works; *at != NULL;) {
        struct work *work = *at;
        if (!work->done) {
            advance(work);
        }
        if (work->done) {
            *at = work->next;
            work->listed = false;
        } else {
            at = &work->next;
        }
    }
    mesh->works_end = &mesh->works;
    while (*mesh->works_end != NULL) {
        mesh->works_end = &(*mesh->works_end)->next;
    }
}

/* ---- Issuing --------------------------------------------------------------------------------------------------- */

static bool give(struct comm *comm, uint32_t to, uint32_t kind, const pcclBackendPart_t *part, const pcclBackendCall_t *call)
{
    size_t bytes = part == NULL ? 0 : part->count * SIZES[call->datatype];
    struct message *message = message_new(comm->channel, kind, bytes);
    if (message == NULL) {
        return false;
    }
    if (bytes > 0) {
        memcpy(message->data, part->data, bytes);
        if (reduces(call->operation) && call->factor != 1.0) {
            scale(message->data, part->count, call->datatype, call->factor);
        }
    }
    mesh_send(comm->mesh, comm->members[to], message);
    return true;
}

/* What this rank gives to rank `to`; false: nothing. */
static bool gives(const struct comm *comm, const pcclBackendCall_t *call, uint32_t to, const pcclBackendPart_t **part)
{
    *part = call->input_count == 0 ? NULL : call->input_count == 1 ? call->inputs : call->inputs + to;
    switch (call->operation) {
    case pcclBackendSend:
    case pcclBackendReduce:
    case pcclBackendGather: return to == call->peer;
    case pcclBackendReceive: return false;
    case pcclBackendBroadcast:
    case pcclBackendScatter: return comm->rank == call->peer;
    default: return true;
    }
}

static bool takes(const struct comm *comm, const pcclBackendCall_t *call, uint32_t from)
{
    switch (call->operation) {
    case pcclBackendSend: return false;
    case pcclBackendReceive:
    case pcclBackendBroadcast:
    case pcclBackendScatter: return from == call->peer;
    case pcclBackendReduce:
    case pcclBackendGather: return comm->rank == call->peer;
    default: return true;
    }
}

static void work_free(struct work *work)
{
    for (uint32_t r = 0; work->came != NULL && r < work->comm->ranks; r++) {
        free(work->came[r]);
    }
    free(work->came);
    free(work->needed);
    free(work->outputs);
    free(work);
}

static struct work *work_new(struct comm *comm, const pcclBackendCall_t *call)
{
    struct work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return NULL;
    }
    *work = (struct work){.comm = comm, .operation = call->operation, .datatype = call->datatype, .op = call->op};
    work->kind = call->operation <= pcclBackendReceive ? OF_PAIRS : OF_COLLECTIVES;
    work->came = calloc(comm->ranks, sizeof(void *));
    work->needed = calloc(comm->ranks, sizeof(bool));
    work->outputs = calloc(call->output_count + 1, sizeof *work->outputs);
    if (work->came == NULL || work->needed == NULL || work->outputs == NULL) {
        work_free(work);
        return NULL;
    }
    work->output_count = call->output_count;
    if (call->output_count > 0) {
        memcpy(work->outputs, call->outputs, call->output_count * sizeof *work->outputs);
    }
    if (call->timeout_ms > 0) {
        (void)clock_gettime(CLOCK_REALTIME, &work->deadline);
        work->deadline.tv_sec += (time_t)(call->timeout_ms / 1000);
        work->deadline.tv_nsec += (long)(call->timeout_ms % 1000) * 1000000;
        work->deadline.tv_sec += work->deadline.tv_nsec / 1000000000;
        work->deadline.tv_nsec %= 1000000000;
    }
    return work;
}

static pcclBackendResult_t issue(void *at, const pcclBackendCall_t *call, void **work_out)
{
    struct comm *comm = at;
    struct work *work = work_new(comm, call);
    bool well = work != NULL;
    if (!well) {
        return fail("no memory");
    }
    pthread_mutex_lock(&comm->mesh->lock);
    for (uint32_t r = 0; well && r < comm->ranks; r++) {
        const pcclBackendPart_t *part;
        work->needed[r] = takes(comm, call, r);
        well = !gives(comm, call, r, &part) || give(comm, r, work->kind, part, call);
    }
    if (well) {
        work->listed = true;
        *comm->mesh->works_end = work;
        comm->mesh->works_end = &work->next;
        works_advance(comm->mesh);
    }
    pthread_mutex_unlock(&comm->mesh->lock);
    mesh_wake(comm->mesh);
    if (!well) {
        work_free(work);
        return fail("no memory");
    }
    *work_out = work;
    return pcclBackendSuccess;
}

/* ---- Works ----------------------------------------------------------------------------------------------------- */

/* With the lock held. */
static void look(struct work *work)
{
    if (!work->done && late(work)) {
        end(work, pcclBackendTimedOut, "its time is up");
        mesh_abort(work->comm->mesh); /* what is still to come for it would be taken for another's */
        works_advance(work->comm->mesh);
    }
}

static pcclBackendResult_t test(void *at, bool *done_out)
{
    struct work *work = at;
    pthread_mutex_lock(&work->comm->mesh->lock);
    look(work);
    *done_out = work->done;
    pthread_mutex_unlock(&work->comm->mesh->lock);
    return pcclBackendSuccess;
}

static pcclBackendResult_t wait_for(void *at)
{
    struct work *work = at;
    struct mesh *mesh = work->comm->mesh;
    pthread_mutex_lock(&mesh->lock);
    for (look(work); !work->done; look(work)) {
        if (work->deadline.tv_sec != 0) {
            (void)pthread_cond_timedwait(&mesh->changed, &mesh->lock, &work->deadline);
        } else {
            (void)pthread_cond_wait(&mesh->changed, &mesh->lock);
        }
    }
    if (work->result != pcclBackendSuccess) {
        (void)fail(work->error);
    }
    pthread_mutex_unlock(&mesh->lock);
    return work->result;
}

static void release(void *at)
{
    struct work *work = at;
    struct mesh *mesh = work->comm->mesh;
    pthread_mutex_lock(&mesh->lock);
    if (work->listed) {
        end(work, pcclBackendFailed, "given up");
        works_advance(mesh);
    }
    pthread_mutex_unlock(&mesh->lock);
    work_free(work);
}

/* ---- Communicators --------------------------------------------------------------------------------------------- */

static struct comm *comm_new(struct mesh *mesh, uint64_t channel, uint32_t rank, uint32_t ranks, const uint32_t *members)
{
    struct comm *comm = calloc(1, sizeof *comm);
    uint32_t *own = calloc(ranks, sizeof *own);
    if (comm == NULL || own == NULL) {
        free(comm);
        free(own);
        return NULL;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        own[r] = members == NULL ? r : members[r];
    }
    *comm = (struct comm){.mesh = mesh, .channel = channel, .rank = rank, .ranks = ranks, .members = own};
    return comm;
}

static pcclBackendResult_t create(const pcclBackendParams_t *params, void **comm_out)
{
    (void)fail("no memory");
    struct mesh *mesh = mesh_open(params);
    struct comm *comm = mesh == NULL ? NULL : comm_new(mesh, 1, params->rank, params->ranks, NULL);
    if (comm == NULL) {
        if (mesh != NULL) {
            mesh_close(mesh);
        }
        return pcclBackendFailed;
    }
    *comm_out = comm;
    return pcclBackendSuccess;
}

static void destroy(void *at)
{
    struct comm *comm = at;
    struct mesh *mesh = comm->mesh;
    pthread_mutex_lock(&mesh->lock);
    bool last = --mesh->users == 0;
    pthread_mutex_unlock(&mesh->lock);
    if (last) {
        mesh_close(mesh);
    }
    free(comm->members);
    free(comm);
}

/* Needs no message: all have called it as often, and the lists are the same. */
static pcclBackendResult_t split(void *at, const pcclBackendParams_t *params, const uint32_t *ranks, void **comm_out)
{
    struct comm *comm = at;
    uint32_t number = ++comm->splits, lowest = UINT32_MAX;
    uint32_t *members = calloc(params->ranks + 1, sizeof *members);
    if (members == NULL) {
        return fail("no memory");
    }
    for (uint32_t r = 0; r < params->ranks; r++) {
        lowest = ranks[r] < lowest ? ranks[r] : lowest;
        members[r] = comm->members[ranks[r]];
    }
    uint64_t channel = (comm->channel * 0x9E3779B97F4A7C15u + number) * 0x9E3779B97F4A7C15u + lowest;
    struct comm *child = params->ranks == 0 ? NULL : comm_new(comm->mesh, channel | 1, params->rank, params->ranks, members);
    free(members);
    if (params->ranks > 0 && child == NULL) {
        return fail("no memory");
    }
    if (child != NULL) {
        pthread_mutex_lock(&comm->mesh->lock);
        comm->mesh->users++;
        pthread_mutex_unlock(&comm->mesh->lock);
    }
    *comm_out = child;
    return pcclBackendSuccess;
}

static void abort_all(void *at)
{
    struct mesh *mesh = ((struct comm *)at)->mesh;
    pthread_mutex_lock(&mesh->lock);
    mesh_abort(mesh);
    works_advance(mesh);
    pthread_cond_broadcast(&mesh->changed);
    pthread_mutex_unlock(&mesh->lock);
}

PCCL_EXPORT const pcclBackend_t *create_dynamic_loader_mesh(void);

const pcclBackend_t *create_dynamic_loader_mesh(void)
{
    static const pcclBackend_t table = {
        .size = sizeof table, .magic = PCCL_BACKEND_MAGIC, .version = PCCL_BACKEND_VERSION, .library_version = "mesh 1.0",
        .create = create, .destroy = destroy, .issue = issue, .test = test, .wait = wait_for, .release = release,
        .last_error = last_error, .split = split, .abort = abort_all,
    };
    return &table;
}
