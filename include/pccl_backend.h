/* pccl_backend.h - the functions that a library exports to be a back-end of pccl.comms, the Python package's communicators.
 *
 * pccl.comms opens the library that TORCHCOMMS_BACKEND_LIB_PATH_<NAME> names, or that a program gives to
 * pccl.comms.load_backend.  It does so once per process, and keeps the library open.  The library exports one function,
 *     const pcclBackend_t *create_dynamic_loader_<name>(void);
 * and the table that it returns stays valid as long as the process lives.
 *
 * pccl.comms checks all arguments before a call.  It may call the functions of one communicator from any thread.  It calls
 * `issue` of one communicator one at a time, in the same order on all ranks.
 *
 * Tables and structures begin with their size, and only grow at the end.  A member behind the size that the other side gives
 * does not exist there.  A change that needs more raises the version; then the library and the package must have the same one.
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

/* Results of the functions.  After the last two, `last_error` on the same thread gives the reason. */
typedef enum pcclBackendResult_t {
    pcclBackendSuccess = 0,
    pcclBackendTimedOut = 1,
    pcclBackendFailed = 2
} pcclBackendResult_t;

/* Parts are by rank, and their counts may differ between ranks.  Inputs are never written.  An output may be an input of the same
 * call: it always is in all-reduce and broadcast, and in reduce at the root. */
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
    /* Begins an operation.  A null work: it has succeeded already.  It waits for the other ranks only if it must. */
    pcclBackendResult_t (*issue)(void *comm, const pcclBackendCall_t *call, void **work_out);
    /* Stores whether the work has ended, with success or an error. */
    pcclBackendResult_t (*test)(void *work, bool *done_out);
    /* Waits until the work has ended, and returns its result; may be called any number of times. */
    pcclBackendResult_t (*wait)(void *work);
    /* Called once for each work, ended or abandoned: afterwards its memory is not touched. */
    void (*release)(void *work);
    /* The text of the calling thread's last call that failed; valid until its next call. */
    const char *(*last_error)(void);

    /* These may be null. */
    /* Collective of all ranks of `comm`: makes a communicator of the listed ranks, whose places in `ranks` are their new ranks.
     * A rank that is in no list passes params->ranks 0, and gets null.  params->store is null. */
    pcclBackendResult_t (*split)(void *comm, const pcclBackendParams_t *params, const uint32_t *ranks, void **comm_out);
    /* Ends all works of all ranks soon, with an error.  Any thread may call it, any number of times. */
    void (*abort)(void *comm);
} pcclBackend_t;

#ifdef __cplusplus
}
#endif

#endif
