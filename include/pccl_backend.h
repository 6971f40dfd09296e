/* pccl_backend.h - what a library exports to be a back-end of pccl.comms, the Python package's communicators.
 *
 * pccl.comms opens the library that TORCHCOMMS_BACKEND_LIB_PATH_<NAME> names, or that a program gives to
 * pccl.comms.load_backend, once in a process, and keeps it.  The library exports one function,
 *     const pcclBackend_t *create_dynamic_loader_<name>(void);
 * whose table stays valid as long as the process lives.  pccl.comms has checked all arguments before it calls, calls
 * functions of one communicator from any thread, but `issue` of one communicator one at a time, in the same order at all ranks.
 *
 * Tables and structures begin with their size, and only grow at the end: what is behind the size that the other side gives
 * does not exist there.  The version changes when that is not enough; then libraries and package have to be of one version.
 * examples/c/backend is a complete back-end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BACKEND_H
#define PCCL_BACKEND_H

#include "pccl.h"

#define PCCL_BACKEND_MAGIC 0x50434342u
#define PCCL_BACKEND_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return; after the last two `last_error` of the same thread says why. */
typedef enum pcclBackendResult_t {
    pcclBackendSuccess = 0,
    pcclBackendTimedOut = 1,
    pcclBackendFailed = 2
} pcclBackendResult_t;

/* Parts are by rank.  Counts of parts may differ from rank to rank; inputs are never written, but an output may be an input of the
 * same call: all-reduce and broadcast are always so, reduce at the root. */
typedef enum pcclBackendOperation_t {
    pcclBackendSend = 0,          /* input 0 to rank `peer`; in order for each pair of ranks */
    pcclBackendReceive = 1,       /* output 0 from rank `peer` */
    pcclBackendBroadcast = 2,     /* input 0 of rank `peer`, its output too, to output 0 of all */
    pcclBackendAllReduce = 3,     /* all inputs 0, reduced, to output 0 of all, with the same bits */
    pcclBackendReduce = 4,        /* the same, to output 0 of rank `peer`; the others have no output */
    pcclBackendAllGather = 5,     /* input 0 of rank r to output r of all */
    pcclBackendReduceScatter = 6, /* all inputs r, reduced, to output 0 of rank r */
    pcclBackendAllToAll = 7,      /* input r to rank r, whose output s it is, where s is this rank */
    pcclBackendBarrier = 8,       /* ends when all have issued it */
    pcclBackendScatter = 9,       /* input r of rank `peer` to output 0 of rank r; the others have no inputs */
    pcclBackendGather = 10        /* input 0 of rank r to output r of rank `peer`; the others have no outputs */
} pcclBackendOperation_t;

typedef struct pcclBackendPart_t {
    void *data;   /* null if count is 0 */
    size_t count; /* elements */
} pcclBackendPart_t;

typedef struct pcclBackendCall_t {
    size_t size;
    uint32_t operation;  /* of pcclBackendOperation_t */
    uint32_t peer;       /* rank: the other one's, or the root */
    uint32_t datatype;   /* of pcclDataType_t, of all parts */
    uint32_t op;         /* of pcclRedOp_t, where something is reduced */
    double factor;       /* this rank's inputs are multiplied by it before they are reduced; else 1 */
    int64_t timeout_ms;  /* above 0: after that the operation fails with pcclBackendTimedOut */
    size_t input_count, output_count;
    const pcclBackendPart_t *inputs, *outputs; /* the lists are valid during the call, their memory until the work is released */
} pcclBackendCall_t;

/* Values by key, of all ranks, while `create` runs; keys are this communicator's own. */
typedef struct pcclBackendStore_t {
    size_t size;
    void *user;
    pcclBackendResult_t (*set)(void *user, const char *key, const char *value);
    /* Waits for the value, and copies it with a zero behind it; pcclBackendFailed if `capacity` bytes are too few. */
    pcclBackendResult_t (*get)(void *user, const char *key, char *value, size_t capacity, int64_t timeout_ms);
} pcclBackendStore_t;

typedef struct pcclBackendParams_t {
    size_t size;
    const char *name;      /* the communicator's, valid during the call */
    uint32_t rank, ranks;
    int64_t timeout_ms;
    const pcclBackendStore_t *store; /* of `create` */
} pcclBackendParams_t;

typedef struct pcclBackend_t {
    size_t size;      /* sizeof(pcclBackend_t), as the library was compiled */
    uint32_t magic;   /* PCCL_BACKEND_MAGIC */
    uint32_t version; /* PCCL_BACKEND_VERSION */
    const char *library_version;

    /* Collective of all ranks: makes a communicator. */
    pcclBackendResult_t (*create)(const pcclBackendParams_t *params, void **comm_out);
    /* All works have been released; no other call of this communicator follows. */
    void (*destroy)(void *comm);
    /* Begins an operation.  A null work: it has ended, well.  Never waits for the other ranks if it can do without. */
    pcclBackendResult_t (*issue)(void *comm, const pcclBackendCall_t *call, void **work_out);
    /* Stores whether the work has ended, well or not. */
    pcclBackendResult_t (*test)(void *work, bool *done_out);
    /* Waits until it has ended, and returns how; any number of times. */
    pcclBackendResult_t (*wait)(void *work);
    /* Once for each work, which has ended or is given up: afterwards its memory is not touched. */
    void (*release)(void *work);
    /* Of the calling thread's last call that did not succeed; valid until its next call. */
    const char *(*last_error)(void);

    /* These may be null. */
    /* Collective of all ranks of `comm`: makes one of the listed ranks, whose place in `ranks` is their rank there; params->ranks is 0 at
     * those that are in no list, which get null.  params->store is null. */
    pcclBackendResult_t (*split)(void *comm, const pcclBackendParams_t *params, const uint32_t *ranks, void **comm_out);
    /* Ends all works of all ranks soon, with an error; from any thread, any number of times. */
    void (*abort)(void *comm);
} pcclBackend_t;

#ifdef __cplusplus
}
#endif

#endif
