/* pccl.h - fault-tolerant collective communication between processes that may join, crash and leave at any time.
 *
 * A small master keeps the membership. Peers move the data among themselves. A collective succeeds on all surviving
 * peers of the group with identical bits, or fails on all of them and leaves their inputs unchanged.
 *
 * Where to start:
 * - Elastic training: pcclInit, pcclCreateCommunicator, pcclConnect; then a loop of pcclUpdateTopology,
 *   pcclSynchronizeSharedState and pcclAllReduce.
 * - A fixed set of ranks: pcclCreateCommunicatorEx with world_size and rank, pcclConnect, and the ordered
 *   collectives.
 * - The tag family matches operations by tag: pcclAllReduce, pcclAllReduceAsync, pcclAllReduceMultipleWithRetry. The
 *   calls that end in AsyncReduce take their handles.
 * - The ordered family matches the k-th call of each member: pcclAllReduceOrdered, pcclBroadcast, pcclAllGather,
 *   pcclReduceScatter, pcclAllToAll, pcclScatter, pcclGather, pcclReduce, pcclBarrier, windows and splits. Messages
 *   (pcclSend, pcclReceive) match by sender, receiver and tag. pcclAwaitAsync and the calls that end in Async take
 *   their handles.
 * - Per thread: pcclGroupStart, pcclGroupEnd, pcclSetCallDeadline, pcclSetCallPatience, pcclGetLastError,
 *   pcclGetLastErrorInfo. All other calls may use any thread.
 *
 * Every call returns one of the codes below. After an error pcclGetLastError names the cause, the peer, the phase and
 * the remedy, and pcclGetLastErrorInfo has the same as fields. The remedies are (see also pcclErrorClass_t):
 * - pcclRankConnectionLost: a peer or a link was lost, or an operation failed on all peers. Read the world size again
 *   (pcclGetAttribute), then retry. With class pcclClassRejoin the world has ended or never started: connect again.
 * - pcclMasterConnectionFailed: this peer is no longer a member. Call pcclConnect again, then synchronise the shared
 *   state.
 * - pcclTooFewPeers: this peer is alone. Call pcclUpdateTopology until another peer joins.
 * - pcclPendingAsyncOps: await the operations first.
 * - pcclInvalidArgument, pcclInvalidUsage, pcclNotInitialized: fix the call; nothing happened.
 * - pcclNoSharedStateAvailable: no peer holds the state any more; restart from a checkpoint. With cause
 *   pcclCauseRevision all peers offer an old state: raise the revision, then call again.
 * - pcclInternalError: stop and report. The reason is a digest mismatch, a failed invariant, or no memory. If one
 *   peer lacks memory for an operation, or its executor fails, only that peer gets this code. The others get
 *   pcclRankConnectionLost, and the cause names the peer. With class pcclClassRejoin this peer had no memory to
 *   remain a member and has left: free some, then connect again. Later calls return pcclMasterConnectionFailed.
 *
 * In the comments below, error codes are written without their prefix "pccl".
 *
 * Threads: any thread may call any function at any time. Contradicting calls of one communicator return InvalidUsage.
 * Buffers are borrowed until the call returns, or for asynchronous operations until the await returns. The library
 * never exits, aborts or installs signal handlers, and prints nothing but its log (pcclSetLogCallback). After fork,
 * the child must call pcclInit again.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_H
#define PCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ccoip.h"
#include "ccoip_inet.h"

#if defined(_MSC_VER)
#define PCCL_EXPORT __declspec(dllexport)
#else
#define PCCL_EXPORT __attribute__((visibility("default")))
#endif

/* Marks a pointer argument that may be null. */
#define PCCL_NULLABLE

/* Version of this header. pcclGetVersion returns that of the running library. Comparable numbers: 0.1.0 is 100, 1.2.3
 * is 10203. */
#define PCCL_VERSION_MAJOR 0
#define PCCL_VERSION_MINOR 2
#define PCCL_VERSION_PATCH 0
#define PCCL_VERSION (PCCL_VERSION_MAJOR * 10000 + PCCL_VERSION_MINOR * 100 + PCCL_VERSION_PATCH)

/* The initial value of a structure whose first member is its `size`. All other members are zero, which is their
 * default. Example: pcclWindowParams_t params = PCCL_INITIALIZER(pcclWindowParams_t); */
#ifdef __cplusplus
template <typename Type> inline Type pcclInitializer()
{
    Type value = Type();
    value.size = sizeof value;
    return value;
}
#define PCCL_INITIALIZER(type) pcclInitializer<type>()
#else
#define PCCL_INITIALIZER(type) {.size = sizeof(type)}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results ---------------------------------------------------------------------------------------------------- */

typedef enum pcclResult_t {
    pcclSuccess = 0,
    pcclNotInitialized = 1,
    pcclInternalError = 2,
    pcclInvalidArgument = 3,
    pcclInvalidUsage = 4,
    pcclTooFewPeers = 5,
    pcclMasterConnectionFailed = 6,
    pcclRankConnectionFailed = 7, /* never returned */
    pcclRankConnectionLost = 8,
    pcclNoSharedStateAvailable = 9,
    pcclPendingAsyncOps = 10,
    pcclUpdateTopologyFailed = 11,       /* call again at once */
    pcclTopologyOptimizationFailed = 12, /* call again at once */
    pcclOptimizeTopologyFailed = pcclTopologyOptimizationFailed /* older name */
} pcclResult_t;

/* ---- Data types, operators, quantisation ------------------------------------------------------------------------ */

typedef enum pcclDataType_t {
    pcclUint8 = 0,
    pcclInt8 = 1,
    pcclInt16 = 2,
    pcclUint16 = 3,
    pcclUint32 = 4,
    pcclInt32 = 5,
    pcclUint64 = 6,
    pcclInt64 = 7,
    pcclFloat16 = 8,
    pcclBFloat16 = 9,
    pcclFloat = 10,
    pcclDouble = 11,
    pcclBool = 12,      /* a byte: 0 is false, anything else true */
    pcclFloat8E4M3 = 13, /* a byte that nothing is computed with */
    pcclFloat8E5M2 = 14
} pcclDataType_t;

typedef enum pcclDeviceType_t { pcclDeviceCpu = 0, pcclDeviceCuda = 1 } pcclDeviceType_t;

/* Integers wrap. pcclAvg is the sum divided by the world size; integers truncate towards zero. float16 and bfloat16
 * are accumulated in float and rounded once. pcclMax and pcclMin propagate NaN. The bitwise operators are for integer
 * types. For pcclBool, pcclSum, pcclMax and pcclBitOr are true where any input is, and pcclMin and pcclBitAnd where
 * all are; among several members the results are 0 or 1. An operator that a type does not support returns
 * InvalidArgument. */
typedef enum pcclRedOp_t {
    pcclSum,
    pcclAvg,
    pcclProd,
    pcclMax,
    pcclMin,
    pcclBitAnd,
    pcclBitOr,
    pcclBitXor,
    pcclRedOpMost = INT32_MAX /* none: above pcclBitXor lie those of pcclRedOpCreatePreMulSum */
} pcclRedOp_t;

typedef enum pcclFactorResidence_t {
    pcclFactorByPointer = 0, /* read at each launch; the memory is borrowed until the operator is destroyed */
    pcclFactorByValue = 1    /* copied when the operator is created */
} pcclFactorResidence_t;

typedef enum pcclDistributionHint_t {
    pcclDistributionNone = 0,
    pcclDistributionNormal = 1,
    pcclDistributionUniform = 2,
    PCCL_DISTRIBUTION_HINT_NONE = pcclDistributionNone,      /* older names */
    PCCL_NORMAL_DISTRIBUTION_HINT = pcclDistributionNormal,
    PCCL_UNIFORM_DISTRIBUTION_HINT = pcclDistributionUniform
} pcclDistributionHint_t;

/* How values are compressed for transfer. Each input is quantised once and summed in full precision. The result of
 * an all-reduce is quantised once more. The error therefore does not grow with the number of peers. Scales are kept per block of 256
 * elements.
 *
 * Source types are pcclFloat and pcclDouble. All operators are supported.
 * - MinMax: to unsigned integers, with offset and range of each block.
 * - ZeroPointScale: to signed integers (symmetric scale) and unsigned ones (scale and zero point).
 *
 * A block of equal values is exact. A block that contains a NaN or an infinity decodes to NaN on all peers. If the
 * integer type is no narrower than the source (pcclFloat to 32 or 64 bits, pcclDouble to 64), values travel unchanged
 * and exact, with no saving. */
typedef enum pcclQuantizationAlgorithm_t {
    pcclQuantNone = 0,
    pcclQuantMinMax = 1,
    pcclQuantZeroPointScale = 2
} pcclQuantizationAlgorithm_t;

/* ---- Attributes and strategies ---------------------------------------------------------------------------------- */

/* Sizes count accepted peers only. They are a snapshot, which changes only with the answer to connect, update,
 * optimise or sync, with an aborted operation (RankConnectionLost), and with TooFewPeers. Branch on them after
 * pcclUpdateTopology: across peer groups they agree after connect, update and optimise only. */
typedef enum pcclAttribute_t {
    PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE = 1,
    PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE = 2,
    PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS = 3,
    PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE = 4
} pcclAttribute_t;

typedef enum pcclSharedStateSyncStrategy_t {
    PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR = 0, /* the most frequent content wins; send or receive */
    PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY = 1,    /* never elected, never a source */
    PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY = 2        /* this content must win */
} pcclSharedStateSyncStrategy_t;

/* ---- Structures ------------------------------------------------------------------------------------------------- */

typedef struct pcclRankUuid_t { /* unused */
    uint8_t data[16];
} pcclRankUuid_t;

typedef struct pcclRankInfo_t pcclRankInfo_t; /* unused */
typedef struct pcclComm_t pcclComm_t;
typedef struct pcclMasterInstanceState_t pcclMasterInstance_t;

typedef struct pcclBuildInfo_t {
    bool has_cuda_support;
} pcclBuildInfo_t;

typedef struct pcclCommCreateParams_t {
    ccoip_socket_address_t master_address;
    uint32_t peer_group;
    uint32_t p2p_connection_pool_size; /* parallel connections (lanes) to each peer; 0 means 1, more than 64 mean 64 */
} pcclCommCreateParams_t;

/* How a world of fixed size continues after the loss of a member. In both cases an operation in progress first ends
 * as usual. */
typedef enum pcclLossRule_t {
    PCCL_LOSS_END = 0,   /* the world ends on all members: their calls return RankConnectionLost, class pcclClassRejoin */
    PCCL_LOSS_SHRINK = 1 /* the survivors continue; their ranks close up */
} pcclLossRule_t;

#define PCCL_ANY_RANK UINT32_MAX

/* Parameters of pcclCreateCommunicatorEx. New members are added at the end only, and zero is a valid default of each. */
typedef struct pcclCommCreateParamsEx_t {
    size_t size; /* sizeof(pcclCommCreateParamsEx_t), as this program was compiled: see PCCL_INITIALIZER */
    ccoip_socket_address_t master_address;
    uint32_t peer_group;
    uint32_t p2p_connection_pool_size;
    const char *PCCL_NULLABLE world; /* name of the world at that master; null or "": the default world, as with pcclCreateCommunicator */
    uint32_t world_size; /* creates a world of this many ranks, 1 to 16384, and needs a name; 0: joins a world without a size */
    uint32_t rank;       /* this peer's rank, below world_size; with `join` also PCCL_ANY_RANK: the lowest free rank */
    pcclLossRule_t loss_rule;
    uint32_t formation_timeout_ms; /* counts from this rank's arrival at the master; the earliest deadline of all ranks counts; 0: none */
    bool once; /* with world_size: once this world has started, its name cannot be used again at this master */
    bool join; /* with world_size: joins the newest started world of that name in place of a lost rank; excludes the three members above */
    const char *PCCL_NULLABLE socket_ifname; /* interfaces whose addresses other peers may dial; overrides PCCL_SOCKET_IFNAME and has its
                                              * grammar; at most 127 bytes, copied; null or "": as in the environment */
    int32_t socket_send_bytes;    /* SO_SNDBUF and SO_RCVBUF of TCP data connections: 4096 to 2^30; -1: tuned by the kernel; 0: as */
    int32_t socket_receive_bytes; /* the environment or an earlier communicator says.  From connect on, for the whole process */
    int32_t shm_disable; /* 1: no shared memory with processes of this host; -1: shared memory, despite PCCL_SHM_DISABLE; 0: as that says */
    const char *PCCL_NULLABLE net; /* "Socket" or "OFI"; overrides PCCL_NET; null or "": as that says.  Values -1 and "OFI"
                                    * must be set for the first communicator of the process that connects; pcclConnect checks it */
    uint32_t stall_ms;   /* stall time of the world, at least 50.  The smallest value of the members of a view counts for all of them, and
                          * for the master, which excludes a peer that is silent for so long.  It never exceeds
                          * PCCL_OPTION_STALL_TIMEOUT_MS at a peer or --dead-ms at the master; 0: these.  Splits inherit it */
} pcclCommCreateParamsEx_t;

/* tx_bytes and rx_bytes: payload moved by this peer, 2(W-1)/W of the buffer for an evenly shared operation. Each
 * payload counts once at its sender and once at its receiver. Headers, and data sent again after the loss of a link,
 * do not count. */
typedef struct pcclReduceInfo_t {
    uint32_t local_world_size; /* members of the view that committed the operation */
    uint64_t tx_bytes;
    uint64_t rx_bytes;
} pcclReduceInfo_t;

typedef struct pcclReduceOperandDescriptor_t {
    pcclDataType_t datatype;
    pcclDistributionHint_t distribution_hint;
} pcclReduceOperandDescriptor_t;

typedef struct pcclQuantizationOptions_t {
    pcclDataType_t quantized_datatype; /* ignored with pcclQuantNone */
    pcclQuantizationAlgorithm_t algorithm;
} pcclQuantizationOptions_t;

typedef struct pcclReduceDescriptor_t {
    size_t count; /* elements, not bytes */
    pcclRedOp_t op;
    uint64_t tag; /* names the operation: equal on all peers, unique among operations not yet awaited; at most 2^20 different tags
                   * between two updates that find more than 16,384 */
    pcclReduceOperandDescriptor_t src_descriptor;
    pcclQuantizationOptions_t quantization_options;
} pcclReduceDescriptor_t;

typedef struct pcclReduceSingleDescriptor_t {
    void *sendbuf;
    void *recvbuf; /* may equal sendbuf */
    pcclReduceDescriptor_t descriptor;
} pcclReduceOpDescriptor_t;

typedef struct pcclAsyncReduceOp_t {
    pcclComm_t *comm;
    uint64_t tag;
} pcclAsyncReduceOp_t;

typedef struct pcclTensorInfo_t {
    const char *name; /* key, unique within a state; order, name, type, count and flag of the entries must agree on all peers */
    void *data;       /* any alignment */
    size_t count;     /* elements */
    pcclDataType_t datatype;
    pcclDeviceType_t device_type;
    bool allow_content_inequality; /* not compared; newcomers and outdated peers still receive it */
} pcclTensorInfo_t;

typedef struct pcclSharedState_t {
    uint64_t revision; /* raise it by exactly one per successful sync; success sets it to the elected revision.  A newcomer
                          passes any lower revision, such as 0, and gets the others' */
    size_t count;
    pcclTensorInfo_t *infos;
} pcclSharedState_t;

typedef struct pcclSharedStateSyncInfo_t {
    uint64_t tx_bytes;
    uint64_t rx_bytes;
} pcclSharedStateSyncInfo_t;

/* ---- Library ---------------------------------------------------------------------------------------------------- */

/* Prepares the library and starts nothing. May be called again. A forked child must call it again. */
PCCL_EXPORT pcclResult_t pcclInit(void);

/* Fills `info`. Needs no pcclInit. InvalidArgument: `info` is null. */
PCCL_EXPORT pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info);

/* Stores the version of the running library, in the form of PCCL_VERSION. Needs no pcclInit. InvalidArgument: null. */
PCCL_EXPORT pcclResult_t pcclGetVersion(int *version_out);

/* ---- Communicators ---------------------------------------------------------------------------------------------- */

/* Makes a communicator, without network traffic. `params` is copied. The caller owns *comm_out until
 * pcclDestroyCommunicator. InvalidArgument: null pointer, unknown protocol, port 0, or an invalid PCCL_ALGO (see
 * pcclGetPlan). */
PCCL_EXPORT pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out);

/* Like pcclCreateCommunicator, for a world with a name. `params` and the name are copied.
 *
 * A world is an independent membership with its own peer groups, votes, sizes and newcomers. A failure in one world
 * does not affect another world at the same master. The first peer that connects under a name starts the world. The
 * world ends with its last member, and the name is free again. One process may have communicators in any number of
 * worlds.
 *
 * With world_size, all ranks create the world together: pcclConnect succeeds on all of them, or fails on all of them.
 * A rank that the master refuses (taken, or no room) is missing for the others. A name may be used again as soon as
 * its world has started; the next calls create an independent world. A world with a size and one without cannot share
 * a name.
 *
 * With `once`, the world stays the only one of its name. Peers that create or join it under that name after its start
 * get MasterConnectionFailed, cause pcclCauseNameUsed, class pcclClassFix. This holds while the master runs, for the
 * last 65,536 such names.
 *
 * With `join` and the original world_size, pcclConnect enters the newest started world of that name that has members.
 * It does so at the members' next pcclUpdateTopology, under a rank whose holder is gone. MasterConnectionFailed means
 * one of:
 * - there is no such world, or its last members leave meanwhile (cause pcclCauseNoWorld);
 * - it has another size, or PCCL_LOSS_END;
 * - the rank is held, or none is free, when the update is answered.
 *
 * InvalidArgument, in addition to that of pcclCreateCommunicator:
 * - a name of more than 63 bytes, or with control characters;
 * - a `size` below that of the first version, or unknown members that are not zero;
 * - with world_size: no name, a rank that is not below it, or a peer group;
 * - without world_size: a rank, a loss rule, a timeout, once or join;
 * - with join: a loss rule, a timeout or once. */
PCCL_EXPORT pcclResult_t pcclCreateCommunicatorEx(const pcclCommCreateParamsEx_t *params, pcclComm_t **comm_out);

/* Joins the run at the master. Blocks until the accepted peers admit this one with their next pcclUpdateTopology. The
 * first peer of a run is admitted at once.
 *
 * With a world_size it blocks until all ranks have called it; no vote is needed. If a rank dies, leaves, cannot be
 * linked with the others or is late, the call fails on all ranks with RankConnectionLost, class pcclClassRejoin, and
 * the same cause and text. A rank that arrives later gets the same error. If sizes, loss rules or `once` differ, all
 * ranks get InvalidArgument. If a rank is already claimed, only the second claimant fails, with
 * MasterConnectionFailed.
 *
 * The environment is read first: PCCL_PORT, PCCL_NET and the others that docs/guide/TUNING.md lists. A mistake there
 * returns MasterConnectionFailed, class pcclClassFix.
 *
 * MasterConnectionFailed: the master cannot be reached, or it refused (see the text); the call may be repeated.
 * InvalidUsage: already connected. */
PCCL_EXPORT pcclResult_t pcclConnect(pcclComm_t *communicator);

/* Reads one size from the snapshot (see pcclAttribute_t). */
PCCL_EXPORT pcclResult_t pcclGetAttribute(const pcclComm_t *communicator, pcclAttribute_t attribute,
                                          int *p_attribute_out);

/* Votes to admit waiting newcomers and to remove departed peers. Blocks until every accepted peer of every group has
 * called it. A peer that was just accepted may call it or skip it, because the others' update was its admission. If
 * they continue without another update, its call returns at once and changes nothing.
 * PendingAsyncOps: an operation has not been awaited. InvalidUsage: another vote is in progress on this communicator,
 * or peers wait for each other in different votes. UpdateTopologyFailed: nothing changed; call again. */
PCCL_EXPORT pcclResult_t pcclUpdateTopology(pcclComm_t *communicator);

/* Asks whether newcomers wait for admission. This is a vote of all accepted peers, and may run beside operations. */
PCCL_EXPORT pcclResult_t pcclArePeersPending(const pcclComm_t *communicator, bool *pending_out);

/* Votes to measure unknown edges, usually for up to 20 s, and to apply the best ring order. Admits no peer. Edges that
 * are left are measured beside later operations. InvalidUsage: this peer is alone, according to the last snapshot.
 * PendingAsyncOps: as for pcclUpdateTopology. TopologyOptimizationFailed: call again. */
PCCL_EXPORT pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator);

/* Leaves the run, ends all pending calls with MasterConnectionFailed, and frees everything. Waits at most 1 s for
 * peers to take what was sent. Allowed before connect, after any error, and beside any other call. Every later call
 * returns InvalidUsage, a second destroy too. An asynchronous operation that was not awaited before may have succeeded,
 * so its output holds the old values or the result. (The memory of a handle is used again only after more than 1000
 * others have been destroyed.) */
PCCL_EXPORT pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator);

/* ---- All-reduce ------------------------------------------------------------------------------------------------- */

/* Reduces `count` elements of `sendbuff` over the peer group into `recvbuff`, which may be the same buffer. In place,
 * a hidden copy of the input is kept until the end.
 *
 * Blocks until every peer has the result, or the operation has failed on every peer. `reduce_info_out` is written on
 * success only.
 *
 * RankConnectionLost: a peer or a link was lost, the operation's deadline passed, or a peer cancelled it;
 * pcclGetLastErrorInfo says which. A late peer gets it too, from its first call of a tag whose operation has already
 * failed on the others. The input is unchanged (an in-place buffer is restored), and the rest of `recvbuff` is
 * unspecified. Read the world size again (pcclGetAttribute), then retry.
 *
 * InvalidArgument: an unknown enumerator, a null buffer with count > 0, a `recvbuff` that overlaps a part of
 * `sendbuff`, unsupported quantisation, or a tag in flight. All peers get it if they disagree in count, type,
 * operator or quantisation. TooFewPeers: alone. */
PCCL_EXPORT pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff, const pcclReduceDescriptor_t *descriptor,
                                       const pcclComm_t *communicator,
                                       pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/* Launches the same operation and returns. End it with one of the awaits below. Peers may launch operations in
 * different orders. */
PCCL_EXPORT pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
                                            const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
                                            pcclAsyncReduceOp_t *reduce_handle_out);

/* Blocks until the operation ends, then frees the handle. InvalidUsage: unknown or freed handle. */
PCCL_EXPORT pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle,
                                              pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/* Runs `count` all-reduces, at most `max_in_flight` at once, and retries those that fail with RankConnectionLost
 * until all are complete. Failed ones are launched again, lowest index first, while the rest is in flight. Peers may
 * pass different values of max_in_flight. `reduce_info_out` sums the bytes of all completed operations.
 *
 * An operation is not retried if it failed by its deadline, by a cancel or by lack of memory at one peer. It is also
 * not retried if another peer called a vote instead, because that peer waits for all; the result is then
 * RankConnectionLost, cause pcclCauseConflict.
 *
 * Returns TooFewPeers when alone, otherwise the error of the lowest index that has one, the same on all peers.
 * Operations behind that index are aborted, and nothing is left in flight. Peers with different values of
 * max_in_flight have then made different calls of those tags: call pcclUpdateTopology before using them again.
 *
 * InvalidArgument: null list, count 0, max_in_flight below 1, an invalid element (the text names its index), or a
 * result that overlaps a buffer of another element. */
PCCL_EXPORT pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors, size_t count,
                                                        const pcclComm_t *communicator,
                                                        pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out,
                                                        int max_in_flight);

/* ---- Shared state ----------------------------------------------------------------------------------------------- */

/* Brings the tensors of all peers of the group to the same content, elected by vote. Blocks until every accepted peer
 * of the group has called it. Alone it succeeds. `sync_info_out` counts payload bytes.
 *
 * A receiving peer fetches the differing leaves of 1 MiB from all holders at once, stores them beside the user's
 * memory, and verifies each. It copies them when all receivers have everything, so tensors are either fully updated
 * or unchanged. The extra memory is at most the size of what differs.
 *
 * MasterConnectionFailed: this peer was removed, because its keys differ from the elected ones, its revision is too
 * high, or it would have to receive against its strategy. PendingAsyncOps, InvalidUsage: as for pcclUpdateTopology.
 * InvalidArgument: null pointer, unknown enumerator, memory that is not the host's, two entries of one name, more
 * than 2^30 entries or 2^47 bytes in all; nothing was sent or changed.
 *
 * NoSharedStateAvailable, class pcclClassStop: no candidate is left. NoSharedStateAvailable, cause pcclCauseRevision,
 * class pcclClassFix: no peer that may send is at the expected revision, one above that of the last sync, although a
 * participant of that sync is left. All peers get it, nothing has changed, and the next call expects the same
 * revision. A group that has never synchronised, or that no participant of the last sync has survived, takes the
 * highest revision offered.
 *
 * InternalError, class pcclClassRejoin: this peer has no memory to store what differs, and has left. Its tensors are
 * unchanged, and the others continue. */
PCCL_EXPORT pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
                                                    pcclSharedStateSyncStrategy_t strategy,
                                                    pcclSharedStateSyncInfo_t *PCCL_NULLABLE sync_info_out);

/* ---- Master ----------------------------------------------------------------------------------------------------- */

/* Allocates a master. Port 0 asks for any free port (see pcclGetMasterAddress). */
PCCL_EXPORT pcclResult_t pcclCreateMaster(ccoip_socket_address_t listen_address,
                                          pcclMasterInstance_t **p_master_handle_out);

/* Binds the address, starts the master's thread, and returns. InvalidUsage: already running, or the address cannot be
 * bound; the text says which. */
PCCL_EXPORT pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance);

/* Asks the master to stop. Async-signal-safe, repeatable, allowed from any thread. InvalidUsage: never run. */
PCCL_EXPORT pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *master_instance);

/* Blocks until the master has stopped. Repeatable. InvalidUsage: never run. */
PCCL_EXPORT pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance);

/* Frees a master that never ran, has stopped, or belongs to the parent of this forked process. InvalidUsage: it still
 * runs, or was destroyed before. All other calls on a destroyed master return InvalidUsage too. */
PCCL_EXPORT pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *master_instance);

/* ---- Beyond the original interface ------------------------------------------------------------------------------ */

/* Name of a result code ("pcclRankConnectionLost"); never null. */
PCCL_EXPORT const char *pcclGetResultString(pcclResult_t result);

/* The remedy of an error. */
typedef enum pcclErrorClass_t {
    pcclClassNone = 0,   /* no error */
    pcclClassFix = 1,    /* the call is wrong: fix it */
    pcclClassRetry = 2,  /* still a member, inputs intact: call again */
    pcclClassRejoin = 3, /* no longer a member: connect again */
    pcclClassStop = 4    /* stop and report */
} pcclErrorClass_t;

typedef enum pcclCause_t {
    pcclCauseNone = 0,
    pcclCauseUsage = 1,            /* wrong argument, phase or order */
    pcclCausePeerLost = 2,         /* a peer died, or a peer that the call needs is gone */
    pcclCausePeerSilent = 3,       /* a peer stopped answering */
    pcclCauseLinkLost = 4,         /* a link between two living peers broke */
    pcclCauseNoProgress = 5,       /* no bytes moved for the stall time */
    pcclCauseDeadline = 6,         /* the deadline set by the program passed */
    pcclCauseCancelled = 7,
    pcclCauseMismatch = 8,         /* peers disagree in the parameters of an operation */
    pcclCauseDigest = 9,           /* peers computed different results */
    pcclCauseNoMemory = 10,
    pcclCauseExcluded = 11,        /* this peer was removed from the run */
    pcclCauseKicked = 12,          /* the master refused or removed this peer for what it did */
    pcclCauseMasterLost = 13,
    pcclCauseMasterUnreachable = 14,
    pcclCauseAlone = 15,
    pcclCauseConflict = 16,        /* peers wait for each other in different votes */
    pcclCauseNoCandidate = 17,     /* no peer can provide the shared state */
    pcclCauseInternal = 18,
    pcclCauseLeft = 19,            /* the communicator was destroyed or left meanwhile */
    pcclCauseRevision = 20,        /* no peer offers the expected revision of the shared state */
    pcclCauseRevoked = 21,         /* a member ended the world on all members: pcclRevoke */
    pcclCauseNameUsed = 22,        /* the name was reserved for one world, which has been created */
    pcclCauseNoWorld = 23,         /* no world of that name has started, or it has no members left */
    pcclCausePeerLeft = 24         /* a peer left on its own: pcclLeave, pcclDestroyCommunicator */
} pcclCause_t;

#define PCCL_NO_RANK (-1)

typedef struct pcclErrorInfo_t {
    pcclResult_t result;
    pcclErrorClass_t error_class;
    pcclCause_t cause;
    uint64_t peer;      /* id of the peer concerned, 0 if none; with pcclCauseMismatch one whose call differs from this one */
    uint64_t tag;       /* operation concerned, 0 if none */
    int64_t age_ns;     /* how long the condition had lasted when the call returned, 0 if unknown */
    char phase[32];     /* "connect", "launch", "reduce", "update", "sync", ... */
    char text[512];     /* what pcclGetLastError returns */
    int32_t rank;       /* of `peer`, before the loss; PCCL_NO_RANK: no peer is concerned, it is not a member, or its rank is unknown */
    char address[56];   /* where `peer` accepts connections, "10.0.0.3:48150" or "[fd00:0:0:0:0:0:0:1]:48150"; "" if unknown */
} pcclErrorInfo_t;

/* Text of the last error that a call returned to this thread: cause, peer, phase, duration, remedy. Valid until the
 * thread's next call; empty if there was none. */
PCCL_EXPORT const char *pcclGetLastError(void);

/* The last error of this thread as fields. InvalidArgument: null. */
PCCL_EXPORT pcclResult_t pcclGetLastErrorInfo(pcclErrorInfo_t *info_out);

typedef struct pcclPeerInfo_t {
    uint64_t id;         /* epoch << 32 | counter, never reused within a run; texts write it as "epoch.counter" */
    uint32_t rank;       /* position among the members: by the given ranks in a world of fixed size, else by id */
    uint32_t ring_position; /* in the ring of the installed view; UINT32_MAX: not a member of that view */
    uint32_t peer_group;
    bool is_self;
    ccoip_socket_address_t address; /* where the peer accepts connections */
    uint32_t key;        /* the rank with which it created a world of fixed size: ranks close up, keys stay; else 0 */
    bool lost;           /* since the snapshot: a call that names it returns RankConnectionLost */
} pcclPeerInfo_t;

/* Describes this peer. The known members are a snapshot, like the four sizes. It changes with the answer to connect,
 * update, optimise or sync, with an abort, and with TooFewPeers. Ranks and roots of calls refer to it. InvalidUsage:
 * before connect. */
PCCL_EXPORT pcclResult_t pcclGetSelf(const pcclComm_t *communicator, pcclPeerInfo_t *self_out);

/* Copies up to `capacity` members of that snapshot, in rank order. Stores their total number, which may be larger. */
PCCL_EXPORT pcclResult_t pcclGetMembers(const pcclComm_t *communicator, pcclPeerInfo_t *members_out, size_t capacity,
                                        size_t *count_out);

typedef struct pcclWaitInfo_t {
    uint64_t tag;     /* operation that waits; 0 with `phase` "update", "sync", ... for votes */
    uint64_t peer;    /* the peer that is waited for; for a vote or an admission one of the peers that have not called, as the master
                         reported at most a heartbeat ago; 0 for the master */
    int64_t age_ns;   /* since when */
    char phase[32];   /* "launch", "data", "hold", "update", "optimise", "sync", "query", "connect", "formation" */
    /* The wait of that peer itself, as the master reported at most two heartbeats ago; 0 and "" if it waits for nothing or nothing is
     * known.  In a chain of waits: its end. */
    uint64_t then_peer;
    uint64_t then_tag;
    char then_phase[32];
    char then_vote[32]; /* the vote in which the end of that chain waits: "update", ...; "": none */
    char text[256];     /* the whole as one sentence, with the address */
} pcclWaitInfo_t;

/* Lists the current waits of all calls of this communicator. Copies up to `capacity`, and stores their total number. */
PCCL_EXPORT pcclResult_t pcclGetWaits(const pcclComm_t *communicator, pcclWaitInfo_t *waits_out, size_t capacity,
                                      size_t *count_out);

/* Lists the ranks that have not arrived while pcclConnect creates a world of fixed size, as the master reported at
 * most a heartbeat ago. Copies up to `capacity` ranks and stores their total number, which is 0 if nothing is being
 * created or all ranks have arrived. */
PCCL_EXPORT pcclResult_t pcclGetMissingRanks(const pcclComm_t *communicator, uint32_t *ranks_out, size_t capacity,
                                             size_t *count_out);

typedef enum pcclOption_t {
    PCCL_OPTION_OPERATION_DEADLINE_MS = 1,  /* operations that take longer fail on all peers; 0: none */
    PCCL_OPTION_STALL_TIMEOUT_MS = 2,       /* silence after which a peer or link counts as lost; default 10000, or stall_ms of the
                                             * communicator; the shortest value of the members of the world counts */
    PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS = 3, /* how long calls wait for a lost master; default 10000 */
    PCCL_OPTION_CONNECT_TIMEOUT_MS = 4,     /* how long pcclConnect tries to reach the master; default 10000 */
    PCCL_OPTION_VOTE_DEADLINE_MS = 5        /* a vote that takes longer makes this peer leave the run; 0: none */
} pcclOption_t;

/* Sets an option for the calls that follow. Set the stall and master-loss timeouts while this peer is neither a
 * member nor connecting. */
PCCL_EXPORT pcclResult_t pcclSetOption(pcclComm_t *communicator, pcclOption_t option, uint64_t value);
PCCL_EXPORT pcclResult_t pcclGetOption(const pcclComm_t *communicator, pcclOption_t option, uint64_t *value_out);
/* Sets the deadline of the following calls of this thread, on any communicator: reduces, collectives, messages, and
 * operations on windows except signals. It overrides PCCL_OPTION_OPERATION_DEADLINE_MS and has the same effect. 0:
 * none; -1: the option counts again. To give one operation its own deadline, set it, call, and set it back.
 * InvalidArgument: below -1. */
PCCL_EXPORT pcclResult_t pcclSetCallDeadline(int64_t timeout_ms);
/* Lets asynchronous reduces, collectives and messages of this thread wait for this time before they return, and do
 * the waiting thread's share of the work meanwhile. The handle is valid and must be awaited as usual. It is for
 * bindings whose blocking calls consist of a launch and several waits: such an operation wakes no other thread. 0,
 * the default: they return at once, as calls in a group always do; -1: no limit. InvalidArgument: below -1. */
PCCL_EXPORT pcclResult_t pcclSetCallPatience(int64_t timeout_ms);

/* Leaves the run but keeps the communicator. Pending calls end with MasterConnectionFailed; pcclConnect may follow. */
PCCL_EXPORT pcclResult_t pcclLeave(pcclComm_t *communicator);

/* Ends the world on all of its members, whatever they wait for. Never blocks; allowed from any thread, and
 * repeatable. This peer leaves: its pending calls, pcclConnect included, return at once, as with pcclLeave.
 *
 * Each operation of the others ends identically on all of them, as after a loss. Their later calls return
 * RankConnectionLost, class pcclClassRejoin, cause pcclCauseRevoked, and name this peer, until they connect again. A
 * world without a fixed size then starts anew with the peers that connect or wait for admission. A world of fixed
 * size that is still being created fails on all ranks. If the master is out of reach, this peer only leaves.
 * InvalidUsage: never connected. */
PCCL_EXPORT pcclResult_t pcclRevoke(pcclComm_t *communicator);

/* Stores whether the operation has ended.  Does not free the handle. */
PCCL_EXPORT pcclResult_t pcclTestAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, bool *done_out);

/* Blocks until one of `count` handles has ended, or `timeout_ms` (-1: none) has passed. Stores its index, or `count`
 * on timeout. Frees nothing. InvalidArgument: null pointer or handle, count 0, timeout below -1. InvalidUsage: a
 * handle is unknown or freed. */
PCCL_EXPORT pcclResult_t pcclWaitAnyAsyncReduce(const pcclAsyncReduceOp_t *reduce_handles, size_t count,
                                                int64_t timeout_ms, size_t *index_out);

/* Asks all peers to abort the operation. Its await returns RankConnectionLost, or success if it was already complete. */
PCCL_EXPORT pcclResult_t pcclCancelAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle);

typedef enum pcclLogLevel_t {
    pcclLogTrace = 0,
    pcclLogDebug = 1,
    pcclLogInfo = 2,
    pcclLogWarn = 3,
    pcclLogError = 4,
    pcclLogNone = 5
} pcclLogLevel_t;

typedef void (*pcclLogCallback_t)(pcclLogLevel_t level, const char *message, void *user);

/* Sends log lines at or above `level` to `callback` (null: nowhere). The callback may run on any thread, without
 * locks, and must not call the library. A call of the previous callback may still be running when this function
 * returns, so its `user` must outlive it. Without a call of this function, lines go to standard error. Their level is
 * PCCL_LOG_LEVEL (trace, debug, info, warn, error, none; read by pcclInit), by default warn. At level warn a call
 * that other programs keep waiting for 5 s writes one line. */
PCCL_EXPORT pcclResult_t pcclSetLogCallback(pcclLogCallback_t PCCL_NULLABLE callback, pcclLogLevel_t level, void *user);

/* Parses "host:port", "host", "1.2.3.4:5" or "[::1]:5". Names are resolved, which may block. The first address
 * counts, but for "localhost" the IPv4 one. Brackets are needed where an IPv6 address may end in a port ("::1:2110").
 * A scope ("fe80::1%eth0") is refused, because the structure has no room for it. InvalidArgument: the text says what
 * is wrong. */
PCCL_EXPORT pcclResult_t pcclParseAddress(const char *text, uint16_t default_port, ccoip_socket_address_t *address_out);

/* Stores the address to which a running master is bound, with its real port. InvalidUsage: not running. */
PCCL_EXPORT pcclResult_t pcclGetMasterAddress(const pcclMasterInstance_t *master_instance,
                                              ccoip_socket_address_t *address_out);

typedef struct pcclConnectionStats_t {
    uint64_t peer;
    uint32_t lane; /* 0 .. pool size - 1; UINT32_MAX: the control link, which has no window */
    uint64_t tx_bytes, rx_bytes; /* payload and headers since the connection was made */
    uint64_t window_bytes;       /* contributions that the peer is to have under way, by the rate and delay of its link */
    uint64_t granted_bytes;      /* what there was room for in the last operation that PCCL_STAGING_BYTES cut short */
    uint64_t bounded_operations; /* cut short to less than half of the window; 0: granted_bytes is window_bytes */
} pcclConnectionStats_t;

/* Counters of every connection to other peers. Copies up to `capacity` of them and stores their total number. */
PCCL_EXPORT pcclResult_t pcclGetConnectionStats(const pcclComm_t *communicator, pcclConnectionStats_t *stats_out,
                                                size_t capacity, size_t *count_out);

typedef struct pcclTcpConnection_t {
    uint64_t peer;
    uint32_t lane;       /* 0 .. pool size - 1 */
    uint32_t sockets;    /* TCP sockets that carry it */
    char congestion[16]; /* the congestion control of the first socket, as "bbr"; "": not known */
    uint64_t rate;       /* bytes per second that were delivered last, by all sockets together */
    uint64_t retransmitted_bytes; /* since its sockets were made */
    uint32_t rtt_us, least_rtt_us; /* round-trip time of the first socket: smoothed, least; 0: not known */
} pcclTcpConnection_t;

/* Lists the data connections over TCP as the kernel sees them. Copies up to `capacity` and stores their total number. */
PCCL_EXPORT pcclResult_t pcclGetTcpConnections(const pcclComm_t *communicator, pcclTcpConnection_t *connections_out,
                                               size_t capacity, size_t *count_out);

typedef enum pcclTransportKind_t {
    pcclTransportTcp = 0,
    pcclTransportSharedMemory = 1,
    pcclTransportFabric = 2 /* libfabric: InfiniBand, RoCE, EFA */
} pcclTransportKind_t;

typedef struct pcclTransport_t {
    uint64_t peer;
    uint32_t lane; /* 0 .. pool size - 1; UINT32_MAX: the control link, TCP until it is used */
    pcclTransportKind_t kind;
    char provider[32]; /* libfabric's, as "verbs;ofi_rxm"; "" of the other kinds */
    char reason[128];  /* why this kind and no faster one, as "another host; no fabric", "shared memory is off there (...)" */
} pcclTransport_t;

/* Lists the transport of every connection to other peers, and the reason for it. Processes of one user on one host
 * use shared memory, unless PCCL_SHM_DISABLE or shm_disable forbids it at one of them. Processes that both have a
 * fabric, by PCCL_NET or net, use it. Both ends of a connection report the same reason, each from its own side
 * ("here" and "there"). Copies up to `capacity` connections and stores their total number. */
PCCL_EXPORT pcclResult_t pcclGetTransports(const pcclComm_t *communicator, pcclTransport_t *transports_out, size_t capacity,
                                           size_t *count_out);

/* The collectives, as arguments of pcclGetPlan. */
typedef enum pcclCollective_t {
    pcclCollectiveAllReduce = 0,
    pcclCollectiveReduceScatter = 1,
    pcclCollectiveAllGather = 2,
    pcclCollectiveBroadcast = 3,
    pcclCollectiveScatter = 4,
    pcclCollectiveAllToAll = 5,
    pcclCollectiveReduce = 6,
    pcclCollectiveGather = 7
} pcclCollective_t;

typedef struct pcclPlan_t {
    const char *algorithm; /* "tiny", "direct", "ring", "halving", "tree", "chain", "bruck", "pairwise", "forest"; static */
    double predicted_us;   /* from the last member's launch to the end; 0: no member has measured the cost of messages */
} pcclPlan_t;

/* Stores the algorithm that an operation with these parameters would use now, and its predicted time. The cost model
 * takes the fastest algorithm that the collective has. Each member measures its costs of a message, a byte and a sum
 * at its start. The greatest ones count, and travel with the membership, so all members choose identically. `count`
 * is that of the collective's function, with equal parts. `op` matters only for collectives that reduce. Values
 * are not quantised.
 *
 * PCCL_ALGO limits the choice; it is read when a communicator is created, and has the grammar of NCCL_ALGO. Examples
 * are "ring,direct" (one of these), "^ring" (all others) and "allreduce:ring,tiny;broadcast:tree" (by function). The
 * functions are allreduce, reducescatter, allgather, broadcast, scatter, alltoall, reduce and gather. A list without
 * a function does not restrict a function that has none of its names. If none of the named algorithms can do the
 * operation, the others are used:
 * - ring, halving, tree, chain and forest cannot sum float16, or quantised values;
 * - tree and chain cannot reduce more than 16 MiB;
 * - bruck cannot do an all-to-all with counts, or of more than 16 MiB;
 * - forest needs trees, which a group of 3 to 32 members has once its links are measured (pcclOptimizeTopology),
 *   and is not for what travels with its launch;
 * - where two members have no link only direct works, and a forest whose trees do without that link.
 *
 * Above 32 members all-reduces use tree and halving, and reduces tree and chain, only if nothing else is allowed. All
 * members must have the same PCCL_ALGO. Where they choose differently the call returns InvalidArgument on all
 * members, with both algorithms in the text.
 *
 * InvalidArgument: null, unknown collective, type or operator, or a count that no memory holds. */
PCCL_EXPORT pcclResult_t pcclGetPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count,
                                     pcclDataType_t datatype, pcclRedOp_t op, pcclPlan_t *plan_out);

/* Stores all predictions of the cost model: first the plan that pcclGetPlan returns, then every other possible
 * algorithm, whatever PCCL_ALGO says. Copies up to `capacity` plans and stores their total number, at most 9.
 * InvalidArgument: as for pcclGetPlan. */
PCCL_EXPORT pcclResult_t pcclExplainPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count,
                                         pcclDataType_t datatype, pcclRedOp_t op, pcclPlan_t *plans_out, size_t capacity,
                                         size_t *count_out);

/* ---- Collectives, in the order of issue ------------------------------------------------------------------------- */

/* These calls have no tags: the k-th call of one member matches the k-th call of every other member, whatever threads
 * make them. All members must agree in kind, count, type, operator and root, and in counts where every member passes
 * all of them. If they do not, all members get InvalidArgument, which names both calls.
 *
 * Ranks are 0 .. W-1 as pcclGetMembers lists them. W, ranks, roots and counts refer to the members that the program
 * knows. If a member was lost since, the next call of each survivor fails with RankConnectionLost, even if nothing
 * was in progress. Read the size and the members again, lay out the buffers anew, and call again.
 *
 * Success means that EVERY member has its whole output, with identical bits: after a broadcast or scatter its data,
 * after a reduce or gather the root's result. An error is an error on all members, with the classes and causes of
 * pcclAllReduce. Outputs are then unspecified, and inputs are unchanged. An in-place all-reduce or reduce is
 * restored. The own part of an in-place all-gather, gather or scatter and the root's buffer of a broadcast are never
 * written. Alone (W = 1) the calls succeed as copies.
 *
 * A call with a wrong argument still takes its turn, because the next calls would otherwise match the wrong ones; it
 * fails with InvalidArgument on all members. Such arguments are a null buffer, an unknown type or operator, a root
 * not below W, and buffers that overlap in a way not allowed below. With `async_op_out`, or in a group, such a call
 * launches and returns success; its await, or the end of the group, returns the error. The call is not made, and
 * takes no turn, without a connected communicator, during a vote (InvalidUsage), and beyond 1,024 operations not
 * awaited (RankConnectionLost, cause pcclCauseUsage).
 *
 * Where places are given, parts of an output must not overlap: InvalidArgument on all members. Where two members have
 * no link, other members forward their data.
 *
 * `async_op_out`: null: the call blocks until the operation has ended. Otherwise the operation is launched, and the
 * handle stored. Buffers are borrowed until the await returns; lists of counts and places are copied. Counts are
 * elements and may exceed 2^31. Collectives that do not reduce accept every type. */
typedef struct pcclAsyncOp_t {
    pcclComm_t *comm;
    uint64_t id; /* never reused by this communicator */
} pcclAsyncOp_t;

/* Blocks until the operation has ended, then frees the handle. Errors are those of the blocking form. InvalidUsage:
 * unknown or freed handle, or awaited by another thread. `info_out` is written on success only. */
PCCL_EXPORT pcclResult_t pcclAwaitAsync(const pcclAsyncOp_t *async_op, pcclReduceInfo_t *PCCL_NULLABLE info_out);
/* Stores whether the operation has ended.  Does not free the handle. */
PCCL_EXPORT pcclResult_t pcclTestAsync(const pcclAsyncOp_t *async_op, bool *done_out);
/* Like pcclWaitAnyAsyncReduce, for handles of any communicators. */
PCCL_EXPORT pcclResult_t pcclWaitAnyAsync(const pcclAsyncOp_t *async_ops, size_t count, int64_t timeout_ms, size_t *index_out);
/* Asks all members to abort the operation. Its await returns RankConnectionLost, or success if it was already
 * complete. */
PCCL_EXPORT pcclResult_t pcclCancelAsync(const pcclAsyncOp_t *async_op);

/* The end of an operation. */
typedef struct pcclCompletion_t {
    uint64_t cookie;       /* the value given to pcclQueueAttach; else 0 */
    pcclResult_t result;   /* the result that the blocking form would have returned */
    pcclReduceInfo_t info; /* zeros after an error */
    pcclErrorInfo_t error; /* after a success: zeros, and rank PCCL_NO_RANK */
} pcclCompletion_t;

/* Blocks until the operation has ended, or `timeout_ms` (-1: none) has passed. In the first case it stores true, and
 * the end of the operation. Any number of threads may call it with one handle, also beside pcclAwaitAsync. Afterwards
 * the buffers belong to the program again, and votes no longer wait for the operation. The handle is not freed: call
 * pcclAwaitAsync, or its memory, and a tag in flight, stay until the communicator's end. InvalidArgument: null,
 * timeout below -1. InvalidUsage: unknown or freed handle. Nothing is stored in these cases. */
PCCL_EXPORT pcclResult_t pcclWaitAsync(const pcclAsyncOp_t *async_op, int64_t timeout_ms, pcclCompletion_t *completion_out,
                                       bool *done_out);
PCCL_EXPORT pcclResult_t pcclWaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, int64_t timeout_ms,
                                             pcclCompletion_t *completion_out, bool *done_out);

/* Waits until no operation of this communicator is in flight, from any thread, or `timeout_ms` (-1: none) has passed.
 * Stores how many still are. Frees no handle. InvalidArgument: null, timeout below -1. */
PCCL_EXPORT pcclResult_t pcclDrain(const pcclComm_t *communicator, int64_t timeout_ms, size_t *left_out);

/* Starts pcclConnect and returns, so that one thread can connect to many worlds at once. The handle ends with the
 * result of pcclConnect. It can be awaited, waited for, tested and attached to a queue like any other; until then the
 * communicator is not connected. pcclCancelAsync aborts the attempt: MasterConnectionFailed, cause
 * pcclCauseCancelled. A world of fixed size then fails on all of its ranks. The call itself resolves names and reads
 * the environment, which may take some milliseconds if it starts the engine. InvalidArgument: null.
 * MasterConnectionFailed, InvalidUsage, InternalError: the attempt has not started, as for pcclConnect, and no handle
 * is stored. */
PCCL_EXPORT pcclResult_t pcclConnectAsync(pcclComm_t *communicator, pcclAsyncOp_t *async_op_out);

/* ---- Completion queues ------------------------------------------------------------------------------------------ */

/* A queue delivers the ends of operations, of any communicators and both kinds of handles, in their order in time.
 * Each end is delivered once, to one of any number of waiting threads. The queue's memory does not depend on the
 * number of attached operations.
 *
 * A delivery frees no handle. Await the handle when no thread needs it any more, before or after its delivery; it is
 * delivered in both cases. When a communicator is destroyed or leaves, its attached operations end with
 * MasterConnectionFailed, and are delivered. When a queue is destroyed, attached operations continue, and their
 * handles stay valid. A forked child can only destroy its copy of the parent's queue. */
typedef struct pcclCompletionQueue_t pcclCompletionQueue_t;

/* Makes a queue, which the caller owns until pcclDestroyCompletionQueue. InvalidArgument: null. */
PCCL_EXPORT pcclResult_t pcclCreateCompletionQueue(pcclCompletionQueue_t **queue_out);

/* Makes the queue deliver the end of the operation with `cookie`, at once if it has ended already. InvalidUsage:
 * unknown or freed handle, an attached one not yet delivered, or a destroyed queue. */
PCCL_EXPORT pcclResult_t pcclQueueAttach(pcclCompletionQueue_t *queue, const pcclAsyncOp_t *async_op, uint64_t cookie);
PCCL_EXPORT pcclResult_t pcclQueueAttachReduce(pcclCompletionQueue_t *queue, const pcclAsyncReduceOp_t *reduce_handle,
                                               uint64_t cookie);

/* Blocks until an attached operation has ended, `timeout_ms` (-1: none; 0: do not block) has passed, or pcclQueueWake
 * is called. Stores up to `capacity` ends and their number, which may be 0 in the last two cases. InvalidArgument:
 * null, capacity 0, timeout below -1. InvalidUsage: the queue was destroyed, also while waiting. */
PCCL_EXPORT pcclResult_t pcclQueueWait(pcclCompletionQueue_t *queue, pcclCompletion_t *completions_out, size_t capacity,
                                       int64_t timeout_ms, size_t *count_out);

/* Makes one pcclQueueWait return with what is there, or the next call if none waits. Several wakes before that count
 * as one. */
PCCL_EXPORT pcclResult_t pcclQueueWake(pcclCompletionQueue_t *queue);

/* Stores a descriptor for poll and epoll, which is readable while pcclQueueWait would not block. It belongs to the
 * queue: do not read, write or close it. InternalError: no descriptor could be opened. */
PCCL_EXPORT pcclResult_t pcclQueueDescriptor(pcclCompletionQueue_t *queue, int *descriptor_out);

/* Ends the current waits, closes the descriptor, and frees the queue. Ends that were not fetched are dropped. Every
 * later call returns InvalidUsage, a second destroy too. */
PCCL_EXPORT pcclResult_t pcclDestroyCompletionQueue(pcclCompletionQueue_t *queue);

/* ---- Operators with a factor -------------------------------------------------------------------------------------- */

/* Makes an operator of this communicator that sums every member's input times that member's own factor, a number of
 * `datatype`: pcclFloat16, pcclBFloat16, pcclFloat or pcclDouble. Operations must use the same type. Each product is
 * rounded to that type, then summed as by pcclSum; quantisation comes after the multiplication. Factors, and the
 * values of the operators, may differ between members. Inputs are never written: after an error an in-place buffer
 * holds its input, not the product. All calls with an operator accept it. pcclAllReduceMultipleWithRetry reads a
 * factor by pointer at each retry.
 *
 * The operator lives until pcclRedOpDestroy or the communicator's end. Operations already launched continue. The
 * memory of a factor by pointer must stay valid while a call may read it. InvalidArgument: null, another type or
 * residence. InternalError: no memory, or 65,536 operators exist. */
PCCL_EXPORT pcclResult_t pcclRedOpCreatePreMulSum(pcclRedOp_t *op_out, const void *factor, pcclDataType_t datatype,
                                                  pcclFactorResidence_t residence, const pcclComm_t *communicator);
/* Destroys such an operator. InvalidArgument: not made by pcclRedOpCreatePreMulSum, or already destroyed. */
PCCL_EXPORT pcclResult_t pcclRedOpDestroy(pcclRedOp_t op, const pcclComm_t *communicator);

/* ---- The collectives -------------------------------------------------------------------------------------------- */

/* Reduces `count` elements of all members into every member's recvbuf, which may be sendbuf. */
PCCL_EXPORT pcclResult_t pcclAllReduceOrdered(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                              pcclRedOp_t op, const pcclComm_t *communicator,
                                              pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Like pcclAllReduceOrdered, with what travels quantised. Each contribution is quantised once, and so is the sum,
 * which is the same on all members. All members pass the same options; null quantises nothing, nor does a world of
 * one. InvalidArgument on all members: values that are not pcclFloat or pcclDouble, or options that differ. */
PCCL_EXPORT pcclResult_t pcclAllReduceQuantized(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                                pcclRedOp_t op, const pcclQuantizationOptions_t *PCCL_NULLABLE quantization,
                                                const pcclComm_t *communicator,
                                                pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Copies `count` elements of the root's sendbuf into every member's recvbuf; at the root these may be the same
 * buffer. Others may pass a null sendbuf, which is not read. */
PCCL_EXPORT pcclResult_t pcclBroadcast(const void *PCCL_NULLABLE sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                       uint32_t root, const pcclComm_t *communicator,
                                       pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Gathers `count` elements of each member into every member's recvbuf of W * count elements, by rank. In place:
 * sendbuf is the own part of recvbuf. */
PCCL_EXPORT pcclResult_t pcclAllGather(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                       const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Like pcclAllGather, with counts[r] elements of rank r, which go to element places[r] of recvbuf (null:
 * consecutive). All members pass all counts. */
PCCL_EXPORT pcclResult_t pcclAllGatherV(const void *sendbuf, void *recvbuf, const size_t *counts,
                                        const size_t *PCCL_NULLABLE places, pcclDataType_t datatype,
                                        const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Reduces the sendbufs of W * count elements; each rank gets its part of `count` elements. Not in place. */
PCCL_EXPORT pcclResult_t pcclReduceScatter(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                           pcclRedOp_t op, const pcclComm_t *communicator,
                                           pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Like pcclReduceScatter, with counts[r] elements for rank r, from element places[r] of sendbuf on (null:
 * consecutive). */
PCCL_EXPORT pcclResult_t pcclReduceScatterV(const void *sendbuf, void *recvbuf, const size_t *counts,
                                            const size_t *PCCL_NULLABLE places, pcclDataType_t datatype, pcclRedOp_t op,
                                            const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Like pcclReduceScatter and pcclReduceScatterV, with options as for pcclAllReduceQuantized. Each contribution is quantised once. The sum is not, unless its member lacks a link and another one sums up for it. */
PCCL_EXPORT pcclResult_t pcclReduceScatterQuantized(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                                    pcclRedOp_t op,
                                                    const pcclQuantizationOptions_t *PCCL_NULLABLE quantization,
                                                    const pcclComm_t *communicator,
                                                    pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
PCCL_EXPORT pcclResult_t pcclReduceScatterVQuantized(const void *sendbuf, void *recvbuf, const size_t *counts,
                                                     const size_t *PCCL_NULLABLE places, pcclDataType_t datatype,
                                                     pcclRedOp_t op,
                                                     const pcclQuantizationOptions_t *PCCL_NULLABLE quantization,
                                                     const pcclComm_t *communicator,
                                                     pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Sends part r of `count` elements of sendbuf to rank r, and receives as many from each rank into recvbuf, by rank.
 * Not in place. */
PCCL_EXPORT pcclResult_t pcclAllToAll(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                      const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Like pcclAllToAll, with send_counts[r] elements to rank r and recv_counts[r] elements from it. Only these two need
 * to agree in each count, and a rank with itself; otherwise InvalidArgument. */
PCCL_EXPORT pcclResult_t pcclAllToAllV(const void *sendbuf, const size_t *send_counts, const size_t *PCCL_NULLABLE send_places,
                                       void *recvbuf, const size_t *recv_counts, const size_t *PCCL_NULLABLE recv_places,
                                       pcclDataType_t datatype, const pcclComm_t *communicator,
                                       pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Copies part r of `count` elements of the root's sendbuf into rank r's recvbuf. In place at the root: recvbuf is its
 * own part of sendbuf. Others may pass a null sendbuf. */
PCCL_EXPORT pcclResult_t pcclScatter(const void *PCCL_NULLABLE sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                     uint32_t root, const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with counts[r] elements for rank r; counts and places are the root's, others may pass null; `count` is the own part, at
 * the root as well. */
PCCL_EXPORT pcclResult_t pcclScatterV(const void *PCCL_NULLABLE sendbuf, const size_t *PCCL_NULLABLE counts,
                                      const size_t *PCCL_NULLABLE places, void *recvbuf, size_t count, pcclDataType_t datatype,
                                      uint32_t root, const pcclComm_t *communicator,
                                      pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Reduces `count` elements of all members into the root's recvbuf; at the root it may be sendbuf, which is restored
 * after an error. Others may pass a null recvbuf, which is not written. Success, on any member, means that the root
 * has the whole result. */
PCCL_EXPORT pcclResult_t pcclReduce(const void *sendbuf, void *PCCL_NULLABLE recvbuf, size_t count, pcclDataType_t datatype,
                                    pcclRedOp_t op, uint32_t root, const pcclComm_t *communicator,
                                    pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Like pcclReduce, with options as for pcclAllReduceQuantized. Each contribution is quantised once.
 * The sum is not, unless the root lacks a link and another member sums up for it. */
PCCL_EXPORT pcclResult_t pcclReduceQuantized(const void *sendbuf, void *PCCL_NULLABLE recvbuf, size_t count,
                                             pcclDataType_t datatype, pcclRedOp_t op,
                                             const pcclQuantizationOptions_t *PCCL_NULLABLE quantization, uint32_t root,
                                             const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Gathers `count` elements of each member into the root's recvbuf of W * count elements, by rank. In place at the
 * root: sendbuf is its own part of recvbuf. Others may pass a null recvbuf. Success means that the root has
 * everything. */
PCCL_EXPORT pcclResult_t pcclGather(const void *sendbuf, void *PCCL_NULLABLE recvbuf, size_t count, pcclDataType_t datatype,
                                    uint32_t root, const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with counts[r] elements of rank r; counts and places are the root's, others may pass null; `count` is the own part, at
 * the root as well. */
PCCL_EXPORT pcclResult_t pcclGatherV(const void *sendbuf, size_t count, void *PCCL_NULLABLE recvbuf,
                                     const size_t *PCCL_NULLABLE counts, const size_t *PCCL_NULLABLE places,
                                     pcclDataType_t datatype, uint32_t root, const pcclComm_t *communicator,
                                     pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Succeeds on all members when all have called it. */
PCCL_EXPORT pcclResult_t pcclBarrier(const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* ---- Messages from one member to another ------------------------------------------------------------------------ */

/* Only the two ends take part; ranks are as above. Messages of one sender, one receiver and one tag match the
 * receives of these three in the order of the calls, whatever threads make them. Different tags may be received in
 * any order. Receives of one tag are matched in the order of their calls: one from PCCL_ANY_RANK takes the message
 * announced first, and later receives wait until it has. Count and type must be equal at both ends; otherwise both
 * get InvalidArgument, which names both calls.
 *
 * Success, at either end, means that the RECEIVER has the message: a blocking send returns when it has been received.
 * An error is an error at both ends, with the classes and causes of pcclAllReduce, and the same at both if both are
 * alive. The receive buffer is then unspecified.
 * - When one end is lost, the other gets RankConnectionLost. A sender may get it although the receiver had the
 *   message.
 * - When a third member is lost, messages in progress may fail at both ends (RankConnectionLost): call again.
 * - The error of a send that has not been received is that of the receive that would have matched it.
 * - An unmatched receive from PCCL_ANY_RANK also fails when any member is lost, or when all others wait in votes
 *   (cause pcclCauseConflict). A blocking one fails so, too, when one other member waits in a vote and the rest
 *   have waited for a call of this one for the stall time.
 * - A call to or from a lost member fails at once (RankConnectionLost), and the sizes change.
 * - A call with a wrong buffer or type fails with InvalidArgument at both ends. With `async_op_out`, or in a group,
 *   its await or the group's end returns the error.
 *
 * Where two members have no link, a third one forwards their messages, more slowly, without a call of its program.
 * InvalidUsage: a vote is in progress, or this peer is too far ahead of one that has not reached 64 failed messages.
 * TooFewPeers: a receive from PCCL_ANY_RANK when alone.
 *
 * `async_op_out`: as for collectives. A deadline or a cancel ends both calls; an unmatched receive fails alone.
 * pcclUpdateTopology forgets messages that have failed and were not received. */

/* Sends `count` elements to rank `peer`. `sendbuf` is never written. */
PCCL_EXPORT pcclResult_t pcclSend(const void *sendbuf, size_t count, pcclDataType_t datatype, uint32_t peer, uint64_t tag,
                                  const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Receives `count` elements from rank `peer` or from PCCL_ANY_RANK. `source_out` gets the sender's rank, as ranks
 * were when the receive was called. It is stored on success, by the call or by the await of its handle. */
PCCL_EXPORT pcclResult_t pcclReceive(void *recvbuf, size_t count, pcclDataType_t datatype, uint32_t peer, uint64_t tag,
                                     uint32_t *PCCL_NULLABLE source_out, const pcclComm_t *communicator,
                                     pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* ---- Groups ----------------------------------------------------------------------------------------------------- */

/* Between these two calls, this thread's ordered collectives, pcclSend and pcclReceive start and return at once, also
 * without an async_op_out. pcclGroupEnd waits for them. Calls of one group therefore never wait for each other, in
 * whatever order each member makes them; two members that exchange messages cannot deadlock. Buffers are borrowed
 * until pcclGroupEnd returns. Inside a group a peer may send to itself, with one receive of that rank and tag per
 * send; the data is copied. Such a receive cannot use PCCL_ANY_RANK or an async_op_out. A call with an async_op_out
 * is awaited by its handle, not by the group.
 *
 * A result of one call must not overlap a buffer of another call of the group. The later call fails with
 * InvalidArgument on all members, or at both ends of a message.
 *
 * A group belongs to a thread. It may contain calls of any communicators, and groups may be nested; the outermost end
 * counts. pcclGroupEnd returns the first error among the calls, including errors that they returned themselves. The
 * other calls have ended too. InvalidUsage: this thread has no open group. InvalidArgument: a message to itself that
 * is not received. */
PCCL_EXPORT pcclResult_t pcclGroupStart(void);
PCCL_EXPORT pcclResult_t pcclGroupEnd(void);

/* ---- Groups until they have succeeded --------------------------------------------------------------------------- */

/* Launches operation `index` of the group on this communicator, with one call of an ordered collective, pcclSend or
 * pcclReceive with `async_op_out`, and returns its result. If this member takes no part in the operation, the
 * callback launches nothing and returns success. `attempt` counts from 0. Ranks, sizes and members may change from
 * call to call, even within one attempt, so read them in each call. The callback runs on the thread of
 * pcclRepeatGroup, without locks. It may be called twice in one attempt if 1,024 operations were not awaited. For a
 * message to itself, open a group inside the callback and return the result of its end. */
typedef pcclResult_t (*pcclLaunchCallback_t)(const pcclComm_t *communicator, size_t index, uint32_t attempt, pcclAsyncOp_t *async_op_out,
                                             void *PCCL_NULLABLE user);

/* When pcclRepeatGroup stops. Null, or zeros after `size`: it repeats as long as any member is left. */
typedef struct pcclRepeatParams_t {
    size_t size;             /* sizeof(pcclRepeatParams_t), as this program was compiled: see PCCL_INITIALIZER */
    bool all_again;          /* repeat everything after a loss, so that all results are of the same members; the same on all members */
    uint32_t fewest_members; /* stop with TooFewPeers if fewer are left in the peer group; the largest value of all members counts */
    uint32_t timeout_ms;     /* stop after this time: RankConnectionLost, cause pcclCauseDeadline; the earliest of all members counts.  It does not
                                end an attempt in progress; PCCL_OPTION_OPERATION_DEADLINE_MS does that.  0: none */
} pcclRepeatParams_t;

/* Starts `count` operations together, as a group, and after a loss repeats those that failed, until all have
 * succeeded on all members. All members of the peer group call it, in the order of issue, with the same count. An
 * index names the same operation on each member: a collective that all launch, or a message that one sends and one
 * receives. An exchange is two messages. Buffers must not overlap, as in a group. After each attempt the members
 * agree on the failed operations, by one all-reduce of 2 bytes per operation, and all repeat the same ones.
 *
 * Between attempts, buffers are as after an error of each operation: send buffers and in-place inputs are unchanged,
 * so the same call may follow. Receive buffers are unspecified until their operation has succeeded; this includes the
 * buffer of a broadcast, except at the root. Completed operations are not repeated, and are of the members present
 * then. With all_again they are repeated too: no input may then be an output, because an in-place reduce would be
 * summed twice.
 *
 * All members stop after the same attempt. They stop with the error of the lowest index that failed on any member for
 * another reason than a loss, for example a deadline, a cancel or a conflicting vote. The text is most exact on the
 * member where it failed. Nothing is in flight then, and outputs are unspecified except those of completed
 * operations. A callback that fails without a launch counts as such an error; the other end of its message waits as
 * for any message that is never sent.
 *
 * TooFewPeers, RankConnectionLost: as `params` say, or the world has ended (class pcclClassRejoin).
 * MasterConnectionFailed: this peer is no longer a member; the others continue. InvalidArgument, on this peer alone,
 * while the others wait: null launch, count 0, wrong params->size. InvalidArgument, on all members: all_again
 * differs. Different counts are different calls: they get InvalidArgument, and the member with more calls waits for
 * the next calls of the others. InvalidUsage, on this peer alone: this thread has an open group. InternalError, on
 * this peer alone: no memory for the list. `info_out` sums all completed operations; its size is that of the peer
 * group at the end. */
PCCL_EXPORT pcclResult_t pcclRepeatGroup(const pcclComm_t *communicator, size_t count, pcclLaunchCallback_t launch,
                                         void *PCCL_NULLABLE user, const pcclRepeatParams_t *PCCL_NULLABLE params,
                                         pcclReduceInfo_t *PCCL_NULLABLE info_out);

/* ---- Windows ---------------------------------------------------------------------------------------------------- */

/* A window exposes memory of each member. The other members read it, write it and count in it, and the library
 * answers, also while the owner's program computes or waits in a vote. All members of the peer group make and destroy
 * it together. In between, each call is one member's own, from any thread, beside all other calls.
 *
 * The members of a window are its makers, with their ranks at that time, for its whole life. Peers that join later
 * are not members, and a loss changes no rank. Losses and updates do not interrupt operations between surviving
 * members: these continue, and each counting operation happens exactly once. Operations with a lost member fail
 * (RankConnectionLost). The sizes do not change; pcclGetWindowInfo says which members are lost.
 *
 * After success, a put, a counting operation or a signal has reached the target's memory. The bytes of several puts
 * of one member to another arrive in no particular order. A counting operation, a get and a signal take effect after
 * everything that the member called before them. After an error a put may have written any part of its bytes, and a
 * counting operation may have been done. Where memory is mapped (pcclGetWindowInfo), only signals travel, and
 * operations end at once. Where two members have no link, a third one forwards everything.
 *
 * `async_op_out`: as for collectives; votes do not wait for operations of windows. At most 64 of one communicator
 * travel at a time, and further ones wait. InvalidArgument, on this member alone and with nothing sent: null, an
 * unknown rank, bytes beyond the window, or missing rights. InvalidUsage: the window or its communicator was
 * destroyed. */
typedef struct pcclWindow_t pcclWindow_t;

/* The rights of the other members; each member gives them for its own memory. */
typedef enum pcclWindowRights_t {
    pcclWindowRead = 1,  /* pcclGet */
    pcclWindowWrite = 2, /* pcclPut */
    pcclWindowCount = 4, /* pcclFetchAdd, pcclCompareSwap; the memory must begin at a multiple of 8 */
    pcclWindowAll = 7,
} pcclWindowRights_t;

typedef struct pcclWindowParams_t {
    size_t size;     /* sizeof(pcclWindowParams_t), as this program was compiled: see PCCL_INITIALIZER */
    void *memory;    /* the program's, borrowed until pcclDestroyWindow has returned; null: the library allocates `bytes` zeros, which
                        members of the same host map */
    size_t bytes;    /* may differ between members, and may be 0 */
    unsigned rights; /* of pcclWindowRights_t */
} pcclWindowParams_t;

/* Makes a window. All members call it, in the order of the ordered collectives; it succeeds on all members or fails
 * on all, with the errors of an all-gather. InternalError, on all members: a member has no memory or no room for it
 * (64 windows per communicator; with a window, 768 operations not awaited). InvalidArgument, on this member alone,
 * before the others learn of the call: null, or impossible params; the others wait for this member's next call. */
PCCL_EXPORT pcclResult_t pcclCreateWindow(const pcclWindowParams_t *params, const pcclComm_t *communicator, pcclWindow_t **window_out);
/* Destroys a window. All remaining members call it. It waits until this member's operations have ended, then until
 * all others have called it too. The memory is not used afterwards. The call does not wait for a member that has been
 * silent for the stall time: a network may be cut, or a process stopped. Operations on the window of that member fail
 * with RankConnectionLost, cause PeerSilent. Memory of the library is freed, including the mappings of other members. No other thread of this member may be in a vote meanwhile. Waits for signals of a
 * member that has called it end, and so do this process's waits for its own. A window whose communicator was
 * destroyed, or is no longer a member, is freed at once. */
PCCL_EXPORT pcclResult_t pcclDestroyWindow(pcclWindow_t *window);

/* Writes `bytes` of `source`, which is never written, to byte `offset` of that rank's window. */
PCCL_EXPORT pcclResult_t pcclPut(const void *source, size_t bytes, uint32_t rank, size_t offset, pcclWindow_t *window,
                                 pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Reads `bytes` at byte `offset` of that rank's window into `target`, which is unspecified after an error. */
PCCL_EXPORT pcclResult_t pcclGet(void *target, size_t bytes, uint32_t rank, size_t offset, pcclWindow_t *window,
                                 pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Atomic operations on the number at byte `offset`, a multiple of its size. pcclFetchAdd adds `*addend`.
 * pcclCompareSwap stores `*desired` if the number equals `*expected`. On success `previous_out` gets the old number.
 * Types: pcclInt32, pcclUint32, pcclInt64, pcclUint64; sums wrap. They are also atomic with respect to atomic
 * instructions of programs that map the memory. Operands are read during the call. */
PCCL_EXPORT pcclResult_t pcclFetchAdd(void *PCCL_NULLABLE previous_out, const void *addend, pcclDataType_t datatype, uint32_t rank,
                                      size_t offset, pcclWindow_t *window, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
PCCL_EXPORT pcclResult_t pcclCompareSwap(void *PCCL_NULLABLE previous_out, const void *expected, const void *desired,
                                         pcclDataType_t datatype, uint32_t rank, size_t offset, pcclWindow_t *window,
                                         pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Signals to that rank that everything called before for it is complete there. It has no deadline. */
PCCL_EXPORT pcclResult_t pcclSignal(uint32_t rank, pcclWindow_t *window, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Waits for a signal of that rank, or until `timeout_ms` (-1: none) has passed: RankConnectionLost, cause
 * pcclCauseDeadline. n signals satisfy n waits. Signals of a member that was lost meanwhile count. InvalidUsage: that
 * rank destroys its window and will not signal. */
PCCL_EXPORT pcclResult_t pcclWaitSignal(uint32_t rank, pcclWindow_t *window, int64_t timeout_ms, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

typedef struct pcclWindowInfo_t {
    uint64_t peer;   /* id of the member, as in pcclPeerInfo_t */
    uint32_t rank, world; /* this member's own; number of members */
    size_t bytes;
    unsigned rights;
    bool lost;
    void *address;   /* where this process can access that member's memory directly, until pcclDestroyWindow: its own memory, and the library's
                        memory on the same host (read-only without pcclWindowWrite and pcclWindowCount); else null */
} pcclWindowInfo_t;
PCCL_EXPORT pcclResult_t pcclGetWindowInfo(pcclWindow_t *window, uint32_t rank, pcclWindowInfo_t *info_out);

/* ---- Worlds out of a communicator ------------------------------------------------------------------------------- */

#define PCCL_NO_COLOR (-1)

/* Parameters of a new world. Null, or zeros after `size`: it ends with its first loss, has no timeout, and has as
 * many lanes as the parent. Loss rule and timeout have the meaning of pcclCommCreateParamsEx_t. */
typedef struct pcclDeriveParams_t {
    size_t size; /* sizeof(pcclDeriveParams_t), as this program was compiled: see PCCL_INITIALIZER */
    pcclLossRule_t loss_rule;          /* the same on all members of one new world */
    uint32_t formation_timeout_ms;     /* the earliest of all callers counts, whatever their colours; it also limits the search for the master */
    uint32_t p2p_connection_pool_size; /* 0: the parent's */
} pcclDeriveParams_t;

/* Splits a world. All members of the group call it, in the order of the ordered collectives. The members with the
 * same color (0 or more) form a new world, with ranks by (key, rank here). Each stores its communicator, which is
 * connected; the caller owns it. A member with PCCL_NO_COLOR is in no new world, and gets null. The call blocks,
 * inside a group too, until all of the new worlds have started, or all have failed. All callers then get the same
 * error, those without a color too.
 *
 * The new worlds are independent worlds at the same master: sizes, votes, losses and ends do not affect the parent or
 * each other. Each lives until its last member has left it, even beyond the parent. They have one peer group, 0, and
 * no name under which peers could join. Their options are those of this communicator now. When a new world has ended
 * or was left, pcclConnect on it returns InvalidUsage: split again.
 *
 * RankConnectionLost: a member was lost before all new worlds had started, cannot be linked with the others, left
 * this world before its call, or was late. With class pcclClassRejoin the new worlds failed, with one cause and text
 * on all members. Otherwise it is the error of the all-gather that comes first: read the world size again, then
 * retry. InvalidArgument: null comm_out, a color below PCCL_NO_COLOR, or impossible params, on all members like any
 * ordered call; or loss rules differ. MasterConnectionFailed: this peer is no longer a member. With class
 * pcclClassRetry it still is, and the master cannot be reached or has no place: call again; the others get
 * RankConnectionLost. InternalError: no memory on this peer; the others get RankConnectionLost, cause
 * pcclCauseNoMemory. */
PCCL_EXPORT pcclResult_t pcclSplitCommunicator(const pcclComm_t *communicator, int32_t color, int32_t key,
                                               const pcclDeriveParams_t *PCCL_NULLABLE params, pcclComm_t **comm_out);

/* Makes a new world of all members of the group, with the same ranks: a split into one color. */
PCCL_EXPORT pcclResult_t pcclDuplicateCommunicator(const pcclComm_t *communicator,
                                                   const pcclDeriveParams_t *PCCL_NULLABLE params, pcclComm_t **comm_out);

/* Makes a new world of the members whose ids (pcclPeerInfo_t) `peers` lists, with ranks in the order of the list.
 * Only these members call it, in any order with respect to other calls. `tag` distinguishes lists that several
 * threads use at once: calls with the same list and tag match in their order on each member. Blocks, and fails, like
 * pcclSplitCommunicator. A listed member that never calls is waited for until it leaves this world, or until
 * formation_timeout_ms. InvalidArgument, on this peer alone, while the others wait: null, no peers, more than 16,384
 * peers, a peer listed twice, or this peer missing. */
PCCL_EXPORT pcclResult_t pcclCreateFromList(const pcclComm_t *communicator, const uint64_t *peers, size_t count, uint64_t tag,
                                            const pcclDeriveParams_t *PCCL_NULLABLE params, pcclComm_t **comm_out);

#ifdef __cplusplus
}

/* Older form without a strategy: ENFORCE_POPULAR.  It makes the name overloaded: to take the function's address, say which. */
inline pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
                                               pcclSharedStateSyncInfo_t *sync_info_out)
{
    return pcclSynchronizeSharedState(communicator, shared_state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
                                      sync_info_out);
}
#else
/* The older form without a strategy has three arguments: ENFORCE_POPULAR.  C has no overloads, so a macro of the function's own name
 * counts the arguments.  Only three are changed; any other number expands to itself, so that a member of a table or a declaration may
 * have this name.  Commas outside of parentheses count, as those of a compound literal do. */
#define PCCL_SYNC_FORM(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, form, ...) form
#define PCCL_SYNC_SAME(...) pcclSynchronizeSharedState(__VA_ARGS__)
#define PCCL_SYNC_THREE(comm, state, info)                                                                             \
    pcclSynchronizeSharedState(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, info)
#define pcclSynchronizeSharedState(...)                                                                                \
    PCCL_SYNC_FORM(__VA_ARGS__, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME,        \
                   PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME,                     \
                   PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_SAME,                     \
                   PCCL_SYNC_SAME, PCCL_SYNC_SAME, PCCL_SYNC_THREE, PCCL_SYNC_SAME, PCCL_SYNC_SAME,                    \
                   0)(__VA_ARGS__)
#endif

#endif
