/* pccl.h - fault-tolerant collective communication between processes that may join, crash and leave at any time.
 *
 * One small master keeps the membership; peers move the data among themselves.  Every call ends: with success, or with
 * a code below and a text (pcclGetLastError) that names cause, peer, phase and remedy.  For every collective either all
 * surviving peers of the group get success with the same bits, or all get an error and their inputs are as before.
 *
 * What to do for which code (see also pcclErrorClass_t):
 *   pcclRankConnectionLost                            a peer or a link was lost, or an operation given up: read the sizes, call again
 *                                                     (class pcclClassRejoin: the world has ended, or never began: connect again)
 *   pcclMasterConnectionFailed                        no longer a member: pcclConnect again, synchronise shared state
 *   pcclTooFewPeers                                   alone: pcclUpdateTopology until somebody joins
 *   pcclPendingAsyncOps                               await the operations first
 *   pcclInvalidArgument, pcclInvalidUsage, pcclNotInitialized   fix the call; nothing happened
 *   pcclNoSharedStateAvailable                        nobody holds the state any more: restart from a checkpoint; or, cause
 *                                                     pcclCauseRevision, all offer an old one: raise the revision, call again
 *   pcclInternalError                                 stop and report (digest mismatch, failed invariant, no memory); for an
 *                                                     operation that lacks memory, or whose executor failed, at that
 *                                                     peer alone: the others get RankConnectionLost, the cause names it
 *
 * Threads: any thread may call any function at any time; calls of one communicator that contradict each other get
 * pcclInvalidUsage.  Buffers are borrowed until the call (for asynchronous operations: the await) returns.  The library
 * never exits, aborts, prints or installs signal handlers.  After fork, the child must call pcclInit again.
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

/* Version of this header; pcclGetVersion tells that of the library that runs.  Comparable: 0.1.0 is 100, 1.2.3 is 10203. */
#define PCCL_VERSION_MAJOR 0
#define PCCL_VERSION_MINOR 1
#define PCCL_VERSION_PATCH 0
#define PCCL_VERSION (PCCL_VERSION_MAJOR * 10000 + PCCL_VERSION_MINOR * 100 + PCCL_VERSION_PATCH)

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

/* Integers wrap; pcclAvg is the sum divided by the world size (integers truncate towards zero).  float16 and bfloat16
 * are accumulated in float and rounded once.  pcclMax and pcclMin propagate NaN.  The operators of bits are for integer
 * types.  pcclBool has pcclSum, pcclMax and pcclBitOr, which are true where any is, and pcclMin and pcclBitAnd, where all are; among
 * several members results are 0 or 1.  What a type has not is InvalidArgument. */
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

/* How values are compressed on the wire; each input is quantised once, summed in full precision, and the result is
 * quantised once, so the error does not grow with the number of peers.  Scales are kept per block of 256 elements.
 * Source types: pcclFloat and pcclDouble.  MinMax: to the unsigned integers (offset and range of each block), all
 * operators.  ZeroPointScale: to the signed integers (symmetric scale) and the unsigned ones (scale and zero point), all
 * operators.  A block that holds a NaN or an infinity decodes to NaN everywhere.  To an integer that is no narrower than the
 * source (pcclFloat to 32 or 64 bits, pcclDouble to 64) values travel as they are, exact, in as many bytes as without. */
typedef enum pcclQuantizationAlgorithm_t {
    pcclQuantNone = 0,
    pcclQuantMinMax = 1,
    pcclQuantZeroPointScale = 2
} pcclQuantizationAlgorithm_t;

/* ---- Attributes and strategies ---------------------------------------------------------------------------------- */

/* Sizes count accepted peers only and are a snapshot: they change with the answer to connect, update, optimise or sync,
 * with an aborted operation (pcclRankConnectionLost), and with pcclTooFewPeers; never in between.  Branch on them
 * after pcclUpdateTopology: across groups they agree after connect, update and optimise only. */
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

/* How a world that was created with a size goes on after the loss of a member: with an operation that was under way it ends as
 * usual in either case, then */
typedef enum pcclLossRule_t {
    PCCL_LOSS_END = 0,   /* the world is over, at all of its members: their calls return RankConnectionLost, class pcclClassRejoin */
    PCCL_LOSS_SHRINK = 1 /* it goes on with those who are left; ranks close up */
} pcclLossRule_t;

#define PCCL_ANY_RANK UINT32_MAX

/* The same, and more, for pcclCreateCommunicatorEx.  Members are only ever added at the end; zero is a valid default of each. */
typedef struct pcclCommCreateParamsEx_t {
    size_t size; /* sizeof(pcclCommCreateParamsEx_t), as this program was compiled */
    ccoip_socket_address_t master_address;
    uint32_t peer_group;
    uint32_t p2p_connection_pool_size;
    const char *PCCL_NULLABLE world; /* name of the world at that master; null or "": the default one, as pcclCreateCommunicator */
    uint32_t world_size; /* creates a world of so many ranks, 1 to 16384, which needs a name; 0: joins one that has no size */
    uint32_t rank;       /* this peer's in it, below world_size; with `join` also PCCL_ANY_RANK: the lowest that is free */
    pcclLossRule_t loss_rule;
    uint32_t formation_timeout_ms; /* from this rank's arrival at the master on; of all ranks' the earliest counts; 0: for ever */
    bool once; /* with world_size: once this world has begun, no other one is created under its name at this master */
    bool join; /* with world_size, and no other of these: joins the newest world of that name that has begun, in place of a lost rank */
    const char *PCCL_NULLABLE socket_ifname; /* interfaces whose addresses others may dial, in the grammar of PCCL_SOCKET_IFNAME and in its
                                              * place; at most 127 bytes, copied; null or "": that of the environment */
    int32_t socket_send_bytes;    /* SO_SNDBUF and SO_RCVBUF of data connections over TCP: 4096 to 2^30; -1: as the kernel tunes them; */
    int32_t socket_receive_bytes; /* 0: as the environment or an earlier communicator says.  From its connect on, for all of the process */
    int32_t shm_disable; /* 1: no memory shared with processes of this host; -1: shared, whatever PCCL_SHM_DISABLE says; 0: as that says */
    const char *PCCL_NULLABLE net; /* "Socket" or "OFI", in place of PCCL_NET; null or "": as that says.  -1 and "OFI" need that the
                                    * first communicator of the process that connects had it, too: pcclConnect says so if not */
    uint32_t stall_ms;   /* stall time of the world, at least 50: the smallest that a member of a view gives counts for all of them, and
                          * at the master, which excludes who is silent for so long.  0: PCCL_OPTION_STALL_TIMEOUT_MS at this peer, the
                          * master's --dead-ms there.  Neither of these is exceeded.  Worlds made of this one by a split have it, too */
} pcclCommCreateParamsEx_t;

/* tx_bytes, rx_bytes: payload really moved by this peer: 2(W-1)/W of the buffer for an evenly shared operation.  Each payload
 * counts once, at the one who sends it and at the one who receives it; headers, and what a link's loss makes say again, do not. */
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
    uint64_t tag; /* names the operation: equal on all peers, unique among those not yet awaited; at most 2^20 different ones
                   * between two updates that see more than 16,384 */
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
    const char *name; /* key: no two entries of a state may share one; entries must agree in order, name, type, count and flag
                         on all peers */
    void *data;       /* any alignment */
    size_t count;     /* elements */
    pcclDataType_t datatype;
    pcclDeviceType_t device_type;
    bool allow_content_inequality; /* not compared; newcomers and outdated peers still receive it */
} pcclTensorInfo_t;

typedef struct pcclSharedState_t {
    uint64_t revision; /* raise by exactly one per successful sync; set to the elected revision on success.  A newcomer
                          says any lower one, such as 0, and gets the others' */
    size_t count;
    pcclTensorInfo_t *infos;
} pcclSharedState_t;

typedef struct pcclSharedStateSyncInfo_t {
    uint64_t tx_bytes;
    uint64_t rx_bytes;
} pcclSharedStateSyncInfo_t;

/* ---- Library ---------------------------------------------------------------------------------------------------- */

/* Prepares the library; starts nothing.  Repeatable.  Must be called again in a forked child. */
PCCL_EXPORT pcclResult_t pcclInit(void);

/* Fills `info`; needs no pcclInit.  InvalidArgument: `info` is null. */
PCCL_EXPORT pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info);

/* Stores the version of the library that runs, in the form of PCCL_VERSION; needs no pcclInit.  InvalidArgument: null. */
PCCL_EXPORT pcclResult_t pcclGetVersion(int *version_out);

/* ---- Communicators ---------------------------------------------------------------------------------------------- */

/* Makes a communicator; no network traffic.  `params` is copied; the caller owns *comm_out until
 * pcclDestroyCommunicator.  InvalidArgument: null pointer, unknown protocol, port 0, a PCCL_ALGO that cannot be read (see pcclGetPlan). */
PCCL_EXPORT pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out);

/* The same for a world with a name.  A world is a membership of its own: its peer groups, votes, sizes and newcomers are
 * not those of other worlds at the same master, and whatever fails in one is not noticed in another.  The first that
 * connects under a name begins the world; it ends with its last member, and the name is free again.  One process may have
 * communicators in any number of worlds.  `params` and the name are copied.
 *
 * With world_size the call of all those ranks together creates the world: pcclConnect returns with all of them in it, or
 * fails at all of them; a rank that the master refuses (taken, or no room) is missing for the others.
 * A name may be used again as soon as its world has begun: the next calls create another one, that knows nothing of the
 * first.  A world with a size and one without do not share a name.  With `once` it is the only one: all who create one, or
 * join one without a size, after it has begun get MasterConnectionFailed, cause pcclCauseNameUsed, class pcclClassFix, as long as
 * the master runs and 65,536 other such names have not come since.
 * With `join`, and the world_size that it was created with, pcclConnect enters the newest world of that name that has begun and
 * has members, with the next pcclUpdateTopology of those, under a rank whose holder is not in it any more.
 * MasterConnectionFailed: there is none (cause pcclCauseNoWorld, also if its last members go meanwhile), it has another size or
 * PCCL_LOSS_END, or the rank is held, or none is free, when the update is answered.
 * InvalidArgument, beyond what pcclCreateCommunicator says: a name of more than 63 bytes or with control characters; a
 * `size` below that of the first version; members that this library does not know and that are not zero; with world_size no
 * name, a rank that is not below it, a peer group; without it a rank, a loss rule, a timeout, once or join; with join
 * a loss rule, a timeout or once. */
PCCL_EXPORT pcclResult_t pcclCreateCommunicatorEx(const pcclCommCreateParamsEx_t *params, pcclComm_t **comm_out);

/* Joins the run at the master.  What the environment asks of this peer (PCCL_PORT, PCCL_ADVERTISE, PCCL_SOCKET_IFNAME, PCCL_CPU,
 * PCCL_VERIFY, PCCL_SHM_DISABLE, PCCL_NET, PCCL_SPIN_US) is looked at first: a mistake there is MasterConnectionFailed as well, with the class
 * pcclClassFix.  Blocks until the accepted peers admit this one with their next pcclUpdateTopology; the first peer of a run is admitted at once.  With a world_size
 * blocks until all ranks have called it, without a vote.  Given up before that, because a rank died, left, cannot be linked
 * with the others or did not come in time: RankConnectionLost, class pcclClassRejoin, at all ranks, with the same cause and
 * text; a rank that comes later is told the same.  InvalidArgument at all ranks: their sizes, loss rules or `once` differ.
 * MasterConnectionFailed at a rank that somebody else has claimed: the others go on.
 * MasterConnectionFailed: master not reachable, or it refused (see the text); may be called again.  InvalidUsage: already
 * connected. */
PCCL_EXPORT pcclResult_t pcclConnect(pcclComm_t *communicator);

/* Reads one size from the snapshot (see pcclAttribute_t). */
PCCL_EXPORT pcclResult_t pcclGetAttribute(const pcclComm_t *communicator, pcclAttribute_t attribute,
                                          int *p_attribute_out);

/* Votes to admit waiting newcomers and drop the departed.  Blocks until every accepted peer of every group has called it.
 * A peer that has just been accepted may call it first thing or not: the others' update was its admission, and if they go
 * on without another its call returns at once, with nothing changed.
 * PendingAsyncOps: an operation has not been awaited.  InvalidUsage: another vote is under way, here or among peers that
 * wait for each other in different votes.  UpdateTopologyFailed: nothing changed, call again. */
PCCL_EXPORT pcclResult_t pcclUpdateTopology(pcclComm_t *communicator);

/* Asks whether newcomers wait for admission; a vote of all accepted peers that may run beside operations. */
PCCL_EXPORT pcclResult_t pcclArePeersPending(const pcclComm_t *communicator, bool *pending_out);

/* Votes to measure unknown edges and to apply the best ring order; admits nobody.  InvalidUsage: the last snapshot said
 * this peer is alone.  PendingAsyncOps as above.  TopologyOptimizationFailed: call again. */
PCCL_EXPORT pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator);

/* Leaves the run, ends all pending calls with MasterConnectionFailed, frees everything.  Waits at most 1 s for peers to
 * take what was sent.  Legal before connect, after any error and beside any other call; a second one is InvalidUsage, as is
 * any other call afterwards (a handle's memory is used again only after more than 1000 others have been destroyed). */
PCCL_EXPORT pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator);

/* ---- All-reduce ------------------------------------------------------------------------------------------------- */

/* Reduces `count` elements of `sendbuff` over the peer group into `recvbuff`, which may be the same buffer (a hidden copy
 * of the input is then kept until the end).
 *
 * Blocks until every peer has the result or the operation failed on every peer.  RankConnectionLost: a peer or a link was
 * lost, the operation's deadline passed or somebody cancelled it at any peer (pcclGetLastErrorInfo tells which); it is
 * also what the first call of this tag gets whose operation the others started, and gave up, before this peer came to it.
 * The input is unchanged (an in-place buffer is restored), the rest of `recvbuff` is unspecified: read the sizes and call
 * again.  InvalidArgument: bad enum, null buffer with count > 0, `recvbuff` over a part of `sendbuff`, unsupported
 * quantisation, tag in flight; or peers disagree in count, type, operator or quantisation, the same on all of them.
 * TooFewPeers: alone.  `reduce_info_out` is written on success only. */
PCCL_EXPORT pcclResult_t pcclAllReduce(const void *sendbuff, void *recvbuff, const pcclReduceDescriptor_t *descriptor,
                                       const pcclComm_t *communicator,
                                       pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/* Launches the same and returns; end it with one of the awaits below.  Launch order may differ between peers. */
PCCL_EXPORT pcclResult_t pcclAllReduceAsync(const void *sendbuff, void *recvbuff,
                                            const pcclReduceDescriptor_t *descriptor, const pcclComm_t *communicator,
                                            pcclAsyncReduceOp_t *reduce_handle_out);

/* Blocks until the operation ends and spends the handle.  InvalidUsage: unknown or spent handle. */
PCCL_EXPORT pcclResult_t pcclAwaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle,
                                              pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out);

/* Runs `count` all-reduces, at most `max_in_flight` at once, and retries those that fail with RankConnectionLost until
 * all are done: success means that every one is complete.  What was lost is launched again, lowest index first, while
 * the rest is in flight; peers may pass different values of max_in_flight.  One that was given up by itself (its
 * deadline, a cancel, no memory at one peer) is not retried, nor one that another peer called a vote against, since that
 * peer waits for all: it ends with RankConnectionLost, cause Blocked.  Ends with TooFewPeers when alone, else with the error of
 * the lowest index that has one, as it is and the same on all peers; what is in flight behind that one is given up,
 * nothing is left in flight.  Peers with different values of max_in_flight have then made different calls of the tags
 * behind it: call pcclUpdateTopology before using them again. InvalidArgument: null list, count 0, max_in_flight below
 * 1, a bad element (the text names its index), or a result that overlaps a buffer of another element.  The info sums
 * the bytes of all completed operations. */
PCCL_EXPORT pcclResult_t pcclAllReduceMultipleWithRetry(const pcclReduceOpDescriptor_t *descriptors, size_t count,
                                                        const pcclComm_t *communicator,
                                                        pcclReduceInfo_t *PCCL_NULLABLE reduce_info_out,
                                                        int max_in_flight);

/* ---- Shared state ----------------------------------------------------------------------------------------------- */

/* Brings the tensors of all peers of the group to the same content, elected by vote.
 *
 * Blocks until every accepted peer of the group has called it.  A peer that must receive gets the differing 1 MiB leaves
 * from all holders at once, keeps them beside the user's memory (up to the size of what differs), verifies each, and
 * copies them only when all receivers have everything: tensors are either fully updated or as they were.  Peers whose
 * keys differ from the elected ones, whose revision is too high, or that must receive against their strategy are removed
 * with a reason (MasterConnectionFailed).  Alone it succeeds.  PendingAsyncOps, InvalidUsage as for update;
 * InvalidArgument: null pointer, bad enum, memory that is not the host's, two entries of one name, more than 2^30 entries or
 * 2^47 bytes in all; nothing was sent or changed.
 * NoSharedStateAvailable: no candidate is left (class stop); or, cause pcclCauseRevision (class fix), none of those who may send is
 * at the expected revision, one above the last sync's, though somebody who took part in that is left: all peers get it,
 * nothing has changed, and the same revision is expected of the next call.  A group that has never synchronised, or
 * whose last sync nobody has survived, takes the highest there is.  `sync_info_out` counts payload bytes. */
PCCL_EXPORT pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
                                                    pcclSharedStateSyncStrategy_t strategy,
                                                    pcclSharedStateSyncInfo_t *PCCL_NULLABLE sync_info_out);

/* ---- Master ----------------------------------------------------------------------------------------------------- */

/* Allocates a master; port 0 asks for any free port (see pcclGetMasterAddress). */
PCCL_EXPORT pcclResult_t pcclCreateMaster(ccoip_socket_address_t listen_address,
                                          pcclMasterInstance_t **p_master_handle_out);

/* Binds, starts the master's thread, returns.  InvalidUsage: already running, or the address cannot be bound (the text
 * says which). */
PCCL_EXPORT pcclResult_t pcclRunMaster(pcclMasterInstance_t *master_instance);

/* Asks the master to stop; async-signal-safe, repeatable, from any thread.  InvalidUsage: never run. */
PCCL_EXPORT pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *master_instance);

/* Blocks until the master has stopped; repeatable.  InvalidUsage: never run. */
PCCL_EXPORT pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *master_instance);

/* Frees a master that was never run, has stopped, or is the parent's of this forked process.  InvalidUsage: it still runs, or
 * was destroyed before, which every other call says as well. */
PCCL_EXPORT pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *master_instance);

/* ---- Beyond the original interface ------------------------------------------------------------------------------ */

/* Name of a result code ("pcclRankConnectionLost"); never null. */
PCCL_EXPORT const char *pcclGetResultString(pcclResult_t result);

/* What the caller should do about an error. */
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
    pcclCausePeerLost = 2,         /* a peer died; or one is gone that the call still counted on, in whichever way */
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
    pcclCauseRevision = 20,        /* nobody offers the expected revision of the shared state */
    pcclCauseRevoked = 21,         /* a member ended the world for all: pcclRevoke */
    pcclCauseNameUsed = 22,        /* the name was for one world only, which has been created */
    pcclCauseNoWorld = 23,         /* no world of that name has begun, or nobody is left in it */
    pcclCausePeerLeft = 24         /* a peer left by itself: pcclLeave, pcclDestroyCommunicator */
} pcclCause_t;

typedef struct pcclErrorInfo_t {
    pcclResult_t result;
    pcclErrorClass_t error_class;
    pcclCause_t cause;
    uint64_t peer;      /* id of the peer concerned, 0 if none; with pcclCauseMismatch one whose call differs from this one */
    uint64_t tag;       /* operation concerned, 0 if none */
    int64_t age_ns;     /* how long the condition had lasted when the call returned, 0 if unknown */
    char phase[32];     /* "connect", "launch", "reduce", "update", "sync", ... */
    char text[512];     /* what pcclGetLastError returns */
} pcclErrorInfo_t;

/* Text of the last error that a call returned to this thread: cause, peer, phase, since when, remedy.  Valid until the
 * thread's next call; empty if there was none. */
PCCL_EXPORT const char *pcclGetLastError(void);

/* The same with its fields.  InvalidArgument: null. */
PCCL_EXPORT pcclResult_t pcclGetLastErrorInfo(pcclErrorInfo_t *info_out);

typedef struct pcclPeerInfo_t {
    uint64_t id;         /* epoch << 32 | counter, never reused within a run; texts write it as "epoch.counter" */
    uint32_t rank;       /* position among the members: in a world with a size by the ranks given, else by id */
    uint32_t ring_position; /* in the ring of the installed view; UINT32_MAX: it is no member of that */
    uint32_t peer_group;
    bool is_self;
    ccoip_socket_address_t address; /* where the peer accepts connections */
    uint32_t key;        /* the rank with which it created a world with a size: ranks close up, keys stay; else 0 */
    bool lost;           /* since the snapshot: a call that names it returns RankConnectionLost */
} pcclPeerInfo_t;

/* This peer among the members that the program knows: those of the four sizes, a snapshot that changes with the answer to connect, update,
 * optimise or sync, with an abort and with TooFewPeers, never with a query.  Ranks and roots of calls mean it.  InvalidUsage before
 * connect. */
PCCL_EXPORT pcclResult_t pcclGetSelf(const pcclComm_t *communicator, pcclPeerInfo_t *self_out);

/* Copies up to `capacity` members of that snapshot, in rank order, and stores their number, which may be larger. */
PCCL_EXPORT pcclResult_t pcclGetMembers(const pcclComm_t *communicator, pcclPeerInfo_t *members_out, size_t capacity,
                                        size_t *count_out);

typedef struct pcclWaitInfo_t {
    uint64_t tag;     /* operation that waits; 0 with `phase` "update", "sync", ... for votes */
    uint64_t peer;    /* who is waited for; of a vote or an admission one of those who have not called, by the master's word of at
                         most a heartbeat ago; 0 for the master */
    int64_t age_ns;   /* since when */
    char phase[32];   /* "launch", "data", "hold", "update", "optimise", "sync", "query", "connect", "formation" */
    /* What that peer waits for itself, by the master's word of at most two heartbeats ago; 0 and "" if it waits for nothing, or nothing
     * is known.  In a ring: the end of the chain. */
    uint64_t then_peer;
    uint64_t then_tag;
    char then_phase[32];
    char then_vote[32]; /* the vote that the end of that chain waits in: "update", ...; "" none */
    char text[256];     /* all of it in one sentence, with the address */
} pcclWaitInfo_t;

/* Who is being waited for at this moment, by all calls of this communicator. */
PCCL_EXPORT pcclResult_t pcclGetWaits(const pcclComm_t *communicator, pcclWaitInfo_t *waits_out, size_t capacity,
                                      size_t *count_out);

/* While pcclConnect creates a world of a given size: copies up to `capacity` of the ranks that have not come, by the master's word
 * of at most a heartbeat ago, and stores their number, which may be larger; 0 when nothing is being created, or all have come. */
PCCL_EXPORT pcclResult_t pcclGetMissingRanks(const pcclComm_t *communicator, uint32_t *ranks_out, size_t capacity,
                                             size_t *count_out);

typedef enum pcclOption_t {
    PCCL_OPTION_OPERATION_DEADLINE_MS = 1,  /* operations not complete by then are refused on all peers; 0 = none */
    PCCL_OPTION_STALL_TIMEOUT_MS = 2,       /* silence after which a peer or link counts as lost here; default 10000, or stall_ms of the
                                             * communicator; a shorter one that a member of the world asks for counts instead */
    PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS = 3, /* how long calls wait for a lost master; default 10000 */
    PCCL_OPTION_CONNECT_TIMEOUT_MS = 4,     /* how long pcclConnect tries to reach the master; default 10000 */
    PCCL_OPTION_VOTE_DEADLINE_MS = 5        /* update, optimise, sync, query; passing it leaves the run; 0 = none */
} pcclOption_t;

/* Sets an option; takes effect for calls made after it.  STALL and LOSS timeouts must be set while this peer is neither a
 * member nor connecting. */
PCCL_EXPORT pcclResult_t pcclSetOption(pcclComm_t *communicator, pcclOption_t option, uint64_t value);
PCCL_EXPORT pcclResult_t pcclGetOption(const pcclComm_t *communicator, pcclOption_t option, uint64_t *value_out);
/* The deadline of what this thread calls from now on, at whichever communicator: reduces, collectives, messages, operations on windows but
 * signals; in place of PCCL_OPTION_OPERATION_DEADLINE_MS and with the same effect.  0: none; -1: the option holds again.  So an operation has a
 * deadline of its own: set it, call, set it back.  InvalidArgument: below -1. */
PCCL_EXPORT pcclResult_t pcclSetCallDeadline(int64_t timeout_ms);
/* How long reduces, collectives and messages that give a handle may take to return, of what this thread calls from now on: they wait, and do
 * the waiting thread's share of the work, until the operation has ended or the time is over.  The handle is valid and to be awaited as ever.
 * For bindings whose blocking calls are a launch and waits in slices: nobody has to be woken for such an operation.  0, as at first: they
 * return at once, as calls in a group always do; -1: without limit.  InvalidArgument: below -1. */
PCCL_EXPORT pcclResult_t pcclSetCallPatience(int64_t timeout_ms);

/* Leaves the run but keeps the communicator: pending calls end with MasterConnectionFailed, pcclConnect may follow. */
PCCL_EXPORT pcclResult_t pcclLeave(pcclComm_t *communicator);

/* Ends the world for all of its members, whatever they wait for: never blocks, from any thread, repeatable.  This peer leaves: its
 * pending calls, a pcclConnect too, return at once, as with pcclLeave.  Of the others' operations each ends the same at all of
 * them, as with a loss; what they call after that returns RankConnectionLost, class pcclClassRejoin, cause pcclCauseRevoked, and
 * names this peer, until they connect again.  A world without a given size then begins anew with those who do, or wait for their
 * admission; while one with a size is created, it is given up.  If the master is out of reach this peer only leaves.
 * InvalidUsage: never connected. */
PCCL_EXPORT pcclResult_t pcclRevoke(pcclComm_t *communicator);

/* Stores whether the operation has ended; does not spend the handle. */
PCCL_EXPORT pcclResult_t pcclTestAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, bool *done_out);

/* Blocks until one of `count` handles has ended or `timeout_ms` (-1: none) passed; stores its index, or `count` on
 * timeout; spends nothing.  InvalidArgument: null pointer or handle, count 0, timeout below -1.  InvalidUsage: a handle is
 * unknown or spent. */
PCCL_EXPORT pcclResult_t pcclWaitAnyAsyncReduce(const pcclAsyncReduceOp_t *reduce_handles, size_t count,
                                                int64_t timeout_ms, size_t *index_out);

/* Asks all peers to give the operation up; its await returns RankConnectionLost, or success if it was complete. */
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

/* Sends log lines at or above `level` to `callback` (null: nowhere, the default).  Called from any thread, without
 * locks; must not call back into the library.  A call of the callback before that has begun may still be running when this
 * returns: what its `user` points to has to outlive it.  Without a call of this, the variable PCCL_LOG_LEVEL (trace, debug, info, warn,
 * error, none; read by pcclInit) sends the lines to standard error. */
PCCL_EXPORT pcclResult_t pcclSetLogCallback(pcclLogCallback_t PCCL_NULLABLE callback, pcclLogLevel_t level, void *user);

/* Parses "host:port", "host", "1.2.3.4:5", "[::1]:5"; names are resolved (this may block), and of several addresses the
 * first is taken, but of "localhost" that of IPv4.  A scope ("fe80::1%eth0") is refused: the structure has no room for it.
 * InvalidArgument: the text says what is wrong. */
PCCL_EXPORT pcclResult_t pcclParseAddress(const char *text, uint16_t default_port, ccoip_socket_address_t *address_out);

/* Address a running master is bound to, with its real port.  InvalidUsage: not running. */
PCCL_EXPORT pcclResult_t pcclGetMasterAddress(const pcclMasterInstance_t *master_instance,
                                              ccoip_socket_address_t *address_out);

typedef struct pcclConnectionStats_t {
    uint64_t peer;
    uint32_t lane;     /* 0 .. pool size - 1; UINT32_MAX: the control link */
    uint64_t tx_bytes; /* payload and headers since the connection was made */
    uint64_t rx_bytes;
} pcclConnectionStats_t;

/* Counters of every connection to other peers. */
PCCL_EXPORT pcclResult_t pcclGetConnectionStats(const pcclComm_t *communicator, pcclConnectionStats_t *stats_out,
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

/* What carries the bytes of every connection to other peers, and why: processes of one user on one host share memory where they can,
 * unless PCCL_SHM_DISABLE or shm_disable keeps one of them from it; processes that both have a fabric, by PCCL_NET or net, use it.
 * Both ends of a connection give the same reason, each from where it stands ("here" and "there").  The first `capacity` of
 * `*count_out` connections are written. */
PCCL_EXPORT pcclResult_t pcclGetTransports(const pcclComm_t *communicator, pcclTransport_t *transports_out, size_t capacity,
                                           size_t *count_out);

/* The collectives, for those who ask about them. */
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
    const char *algorithm; /* "tiny", "direct", "ring", "halving", "tree", "chain", "bruck", "pairwise"; static */
    double predicted_us;   /* from the last member's launch to the end; 0: no member has measured what messages cost */
} pcclPlan_t;

/* Stores by which algorithm an operation of these parameters would go now, and how long that should take: the least of what a
 * cost model gives for each algorithm that the kind has, with the costs of a message, a byte and a sum that the members have measured at
 * their start (the greatest of each; they travel with the membership, so that all choose alike).  `count` as the function of that
 * collective has it, equal parts; `op` only of those that reduce.
 *
 * The variable PCCL_ALGO, read when a communicator is created, says which algorithms may be chosen, as NCCL_ALGO does: "ring,direct"
 * (one of these), "^ring" (all others), "allreduce:ring,tiny;broadcast:tree" (by function: allreduce, reducescatter, allgather,
 * broadcast, scatter, alltoall, reduce, gather).  A list without a function leaves a function alone that has none of its names; where
 * none of those named can do what is asked (a sum of float16 or a quantised one by ring, halving, tree or chain; a reduce of more than
 * 16 MiB by tree or chain; an all-to-all with counts, or that would need as much memory, by bruck; anything but direct where two
 * members have no link), the others are taken.  Above 32 members all-reduces go by tree and halving, and reduces by tree and chain,
 * only where nothing else is allowed.
 * All members must have it alike: where they choose differently the call is InvalidArgument at all, with both algorithms in the text.
 * InvalidArgument: null, unknown collective, type or operator, a count that no memory holds. */
PCCL_EXPORT pcclResult_t pcclGetPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count,
                                     pcclDataType_t datatype, pcclRedOp_t op, pcclPlan_t *plan_out);

/* The cost model's whole answer: the plan that pcclGetPlan tells first, then every other algorithm that could do it, whatever PCCL_ALGO
 * says.  The first `capacity` of `*count_out` plans are written; there are at most 8.  InvalidArgument: as of pcclGetPlan. */
PCCL_EXPORT pcclResult_t pcclExplainPlan(const pcclComm_t *communicator, pcclCollective_t collective, size_t count,
                                         pcclDataType_t datatype, pcclRedOp_t op, pcclPlan_t *plans_out, size_t capacity,
                                         size_t *count_out);

/* ---- Collectives, in the order of issue ------------------------------------------------------------------------- */

/* These have no tags: the k-th of these calls at one member meets the k-th at every other, whatever threads make them.  All must agree
 * in kind, count, type, operator, root, and in counts where everybody passes all of them; if not, InvalidArgument, naming both,
 * at all.
 *
 * Ranks are 0 .. W-1 as pcclGetMembers lists them; W, ranks, roots and counts mean the members that the program knows: its sizes.
 * When a member has been lost since, the next call of each survivor fails with RankConnectionLost, though nothing may have been
 * under way: read the sizes and the members, lay the buffers out anew, call again.
 *
 * Success means that EVERY member has its whole output (of a broadcast or scatter: its data; of a reduce or gather: the
 * root), at all of them with the same bits;
 * an error is an error at all, with the classes and causes of pcclAllReduce.  Then outputs are unspecified, and inputs as they
 * were: an in-place all-reduce or reduce is restored, the own part of an in-place all-gather, gather or scatter and the root's buffer of a broadcast
 * are never written.  Alone (W = 1) they succeed as copies.
 *
 * A call that cannot be made as it was given (InvalidArgument: null buffer, unknown type or operator, root not below W, buffers that
 * overlap in a way not allowed below) still takes its turn, or the next calls would meet the wrong ones: it fails with
 * InvalidArgument at all.  Not so without a communicator that is a member, while a vote is under way (InvalidUsage), and beyond 1,024
 * operations not awaited (RankConnectionLost, cause Usage): then the call was not made.
 *
 * Where places are given, parts of an output must not overlap: InvalidArgument on all members.
 *
 * Where two members have no link, others hand on what goes between them.
 *
 * `async_op_out`: null: blocks until the operation has ended.  Else it is launched only, and the handle stored; the buffers are
 * borrowed, the lists of counts and places copied.  Counts are elements, above 2^31 too; those that move and do not reduce take
 * every type. */
typedef struct pcclAsyncOp_t {
    pcclComm_t *comm;
    uint64_t id; /* never used again by this communicator */
} pcclAsyncOp_t;

/* Blocks until the operation has ended and spends the handle; errors are those of the blocking form.  InvalidUsage: unknown or
 * spent handle, or awaited by another thread.  `info_out` is written on success only. */
PCCL_EXPORT pcclResult_t pcclAwaitAsync(const pcclAsyncOp_t *async_op, pcclReduceInfo_t *PCCL_NULLABLE info_out);
/* Stores whether the operation has ended; does not spend the handle. */
PCCL_EXPORT pcclResult_t pcclTestAsync(const pcclAsyncOp_t *async_op, bool *done_out);
/* As pcclWaitAnyAsyncReduce, for handles of any communicators. */
PCCL_EXPORT pcclResult_t pcclWaitAnyAsync(const pcclAsyncOp_t *async_ops, size_t count, int64_t timeout_ms, size_t *index_out);
/* Asks all members to give the operation up; its await returns RankConnectionLost, or success if it was complete. */
PCCL_EXPORT pcclResult_t pcclCancelAsync(const pcclAsyncOp_t *async_op);

/* How an operation has ended. */
typedef struct pcclCompletion_t {
    uint64_t cookie;       /* as it was attached to a queue with; else 0 */
    pcclResult_t result;   /* what the blocking form would have returned */
    pcclReduceInfo_t info; /* zeros after an error */
    pcclErrorInfo_t error; /* zeros after a success */
} pcclCompletion_t;

/* Blocks until the operation has ended or `timeout_ms` (-1: none) passed.  If it has, stores true, and how it ended; any number of
 * threads may do so with one handle, one after the other or at once, beside a pcclAwaitAsync too.  The buffers are the program's
 * again, and pcclUpdateTopology and its kin do not wait for it any more, but the handle is not spent: do that with pcclAwaitAsync, or
 * what it keeps stays until the communicator's end, and a tag in flight.
 * InvalidArgument: null, timeout below -1.  InvalidUsage: unknown or spent handle.  Nothing is stored then. */
PCCL_EXPORT pcclResult_t pcclWaitAsync(const pcclAsyncOp_t *async_op, int64_t timeout_ms, pcclCompletion_t *completion_out,
                                       bool *done_out);
PCCL_EXPORT pcclResult_t pcclWaitAsyncReduce(const pcclAsyncReduceOp_t *reduce_handle, int64_t timeout_ms,
                                             pcclCompletion_t *completion_out, bool *done_out);

/* Waits until no operation of this communicator is in flight, launched by whichever thread, or `timeout_ms` (-1: none) passed; stores
 * how many still are.  Spends no handle.  InvalidArgument: null, timeout below -1. */
PCCL_EXPORT pcclResult_t pcclDrain(const pcclComm_t *communicator, int64_t timeout_ms, size_t *left_out);

/* pcclConnect that does not wait, so that one thread brings many worlds up at once: the handle ends as that would return, and is awaited,
 * waited for, tested and attached to a queue like any other; until then the communicator is not connected.  pcclCancelAsync gives the
 * attempt up: MasterConnectionFailed, cause pcclCauseCancelled; a world of a size is then given up at all of its ranks.  Names and the
 * environment are looked at in this call, which may take some milliseconds where the engine starts with it.
 * InvalidArgument: null.  MasterConnectionFailed, InvalidUsage, InternalError: it has not begun, as of pcclConnect; no handle is stored. */
PCCL_EXPORT pcclResult_t pcclConnectAsync(pcclComm_t *communicator, pcclAsyncOp_t *async_op_out);

/* ---- Completion queues ------------------------------------------------------------------------------------------ */

/* A queue hands out what has ended, of any communicators and both kinds of handles, in the order in which it did: each once, to one of
 * any number of threads that wait.  Its memory does not depend on how many are attached.
 *
 * A delivery is a pcclWaitAsync, and spends no handle; await the handle when no thread wants it any more, before or after its
 * delivery: it is delivered all the same.  When a communicator is destroyed or left, what it has attached ends with
 * MasterConnectionFailed, and is delivered.  When a queue is destroyed, attached operations go on, their handles stay as they are.
 * A forked child can only destroy what it has of the parent's queue. */
typedef struct pcclCompletionQueue_t pcclCompletionQueue_t;

/* The caller owns it until pcclDestroyCompletionQueue.  InvalidArgument: null. */
PCCL_EXPORT pcclResult_t pcclCreateCompletionQueue(pcclCompletionQueue_t **queue_out);

/* Has the queue deliver the operation, with `cookie`, when it has ended; at once if it has.  InvalidUsage: unknown or spent handle, it
 * is attached and not yet delivered, the queue was destroyed. */
PCCL_EXPORT pcclResult_t pcclQueueAttach(pcclCompletionQueue_t *queue, const pcclAsyncOp_t *async_op, uint64_t cookie);
PCCL_EXPORT pcclResult_t pcclQueueAttachReduce(pcclCompletionQueue_t *queue, const pcclAsyncReduceOp_t *reduce_handle,
                                               uint64_t cookie);

/* Blocks until something has ended, `timeout_ms` (-1: none; 0: only looks) passed, or somebody wakes it; stores up to `capacity` of
 * what has ended, and their number, which is 0 in the last two cases if nothing is there.  InvalidArgument: null, capacity 0, timeout
 * below -1.  InvalidUsage: the queue was destroyed, meanwhile too. */
PCCL_EXPORT pcclResult_t pcclQueueWait(pcclCompletionQueue_t *queue, pcclCompletion_t *completions_out, size_t capacity,
                                       int64_t timeout_ms, size_t *count_out);

/* Has one pcclQueueWait return with what is there, the next one if none is under way; several before it does are one. */
PCCL_EXPORT pcclResult_t pcclQueueWake(pcclCompletionQueue_t *queue);

/* Stores a descriptor for poll and its kin, which is readable while pcclQueueWait would not block.  It is the queue's: do not read,
 * write or close it.  InternalError: none could be opened. */
PCCL_EXPORT pcclResult_t pcclQueueDescriptor(pcclCompletionQueue_t *queue, int *descriptor_out);

/* Ends the waits under way, closes the descriptor, frees the queue; what has ended and nobody has fetched is dropped.  A second
 * one is InvalidUsage, as is any other call afterwards. */
PCCL_EXPORT pcclResult_t pcclDestroyCompletionQueue(pcclCompletionQueue_t *queue);

/* ---- Operators with a factor -------------------------------------------------------------------------------------- */

/* Makes an operator of this communicator that sums up every member's input times that member's own factor, one number of
 * `datatype`: pcclFloat16, pcclBFloat16, pcclFloat or pcclDouble, of which the operations must be.  Each product is rounded to that
 * type, then summed as by pcclSum; quantised ones are multiplied first.  Factors may differ between members, and so may the values that
 * the operators have.  Inputs are never written: after an error an in-place buffer is as it was, not multiplied.  All calls with an
 * operator take it.  One repeated by pcclAllReduceMultipleWithRetry reads a factor by pointer each time.
 * It lives until pcclRedOpDestroy or the communicator's end; operations that were launched with it go on, but no call may be reading a
 * factor by pointer while its memory goes.
 * InvalidArgument: null, another type or residence.  InternalError: no memory, or 65,536 of them exist. */
PCCL_EXPORT pcclResult_t pcclRedOpCreatePreMulSum(pcclRedOp_t *op_out, const void *factor, pcclDataType_t datatype,
                                                  pcclFactorResidence_t residence, const pcclComm_t *communicator);
/* InvalidArgument: not made by pcclRedOpCreatePreMulSum, or destroyed before. */
PCCL_EXPORT pcclResult_t pcclRedOpDestroy(pcclRedOp_t op, const pcclComm_t *communicator);

/* ---- The collectives -------------------------------------------------------------------------------------------- */

/* Reduces `count` elements of all members into everybody's recvbuf, which may be sendbuf. */
PCCL_EXPORT pcclResult_t pcclAllReduceOrdered(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                              pcclRedOp_t op, const pcclComm_t *communicator,
                                              pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Copies `count` elements of the root's sendbuf into everybody's recvbuf; at the root these may be the same.  Others may pass a
 * null sendbuf, which is not looked at. */
PCCL_EXPORT pcclResult_t pcclBroadcast(const void *PCCL_NULLABLE sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                       uint32_t root, const pcclComm_t *communicator,
                                       pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Puts `count` elements of each member into everybody's recvbuf of W * count, by rank.  In place: sendbuf is the own part of
 * recvbuf. */
PCCL_EXPORT pcclResult_t pcclAllGather(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                       const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with counts[r] elements of rank r, which go to the element places[r] of recvbuf (null: one behind the other); all
 * members pass all counts. */
PCCL_EXPORT pcclResult_t pcclAllGatherV(const void *sendbuf, void *recvbuf, const size_t *counts,
                                        const size_t *PCCL_NULLABLE places, pcclDataType_t datatype,
                                        const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Reduces everybody's sendbuf of W * count elements; each rank gets its part of `count` elements.  Not in place. */
PCCL_EXPORT pcclResult_t pcclReduceScatter(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                           pcclRedOp_t op, const pcclComm_t *communicator,
                                           pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with counts[r] elements for rank r, from the element places[r] of sendbuf on (null: one behind the other). */
PCCL_EXPORT pcclResult_t pcclReduceScatterV(const void *sendbuf, void *recvbuf, const size_t *counts,
                                            const size_t *PCCL_NULLABLE places, pcclDataType_t datatype, pcclRedOp_t op,
                                            const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Sends part r of `count` elements of sendbuf to rank r, and gets as much of each into recvbuf, by rank.  Not in place. */
PCCL_EXPORT pcclResult_t pcclAllToAll(const void *sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                      const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with send_counts[r] elements to rank r and recv_counts[r] from it, which only these two need to agree in, as this rank does
 * with itself: else InvalidArgument. */
PCCL_EXPORT pcclResult_t pcclAllToAllV(const void *sendbuf, const size_t *send_counts, const size_t *PCCL_NULLABLE send_places,
                                       void *recvbuf, const size_t *recv_counts, const size_t *PCCL_NULLABLE recv_places,
                                       pcclDataType_t datatype, const pcclComm_t *communicator,
                                       pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Copies part r of `count` elements of the root's sendbuf into rank r's recvbuf.  In place at the root: recvbuf is its own part of
 * sendbuf.  Others may pass a null sendbuf. */
PCCL_EXPORT pcclResult_t pcclScatter(const void *PCCL_NULLABLE sendbuf, void *recvbuf, size_t count, pcclDataType_t datatype,
                                     uint32_t root, const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with counts[r] elements for rank r; counts and places are the root's, others may pass null; `count` is the own part, at
 * the root as well. */
PCCL_EXPORT pcclResult_t pcclScatterV(const void *PCCL_NULLABLE sendbuf, const size_t *PCCL_NULLABLE counts,
                                      const size_t *PCCL_NULLABLE places, void *recvbuf, size_t count, pcclDataType_t datatype,
                                      uint32_t root, const pcclComm_t *communicator,
                                      pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Reduces `count` elements of all members into the root's recvbuf; at the root it may be sendbuf (restored after an error).  Others may
 * pass a null recvbuf, which is not touched.  Success, at whichever member, means that the root has the whole result. */
PCCL_EXPORT pcclResult_t pcclReduce(const void *sendbuf, void *PCCL_NULLABLE recvbuf, size_t count, pcclDataType_t datatype,
                                    pcclRedOp_t op, uint32_t root, const pcclComm_t *communicator,
                                    pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Puts `count` elements of each member into the root's recvbuf of W * count, by rank.  In place at the root: sendbuf is its own part
 * of recvbuf.  Others may pass a null recvbuf.  Success means that the root has all of it. */
PCCL_EXPORT pcclResult_t pcclGather(const void *sendbuf, void *PCCL_NULLABLE recvbuf, size_t count, pcclDataType_t datatype,
                                    uint32_t root, const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* The same with counts[r] elements of rank r; counts and places are the root's, others may pass null; `count` is the own part, at
 * the root as well. */
PCCL_EXPORT pcclResult_t pcclGatherV(const void *sendbuf, size_t count, void *PCCL_NULLABLE recvbuf,
                                     const size_t *PCCL_NULLABLE counts, const size_t *PCCL_NULLABLE places,
                                     pcclDataType_t datatype, uint32_t root, const pcclComm_t *communicator,
                                     pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* Succeeds at all members when all have called it. */
PCCL_EXPORT pcclResult_t pcclBarrier(const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* ---- Messages from one member to another ------------------------------------------------------------------------ */

/* Only the two take part, ranks as above.  Messages of one sender, one receiver and one tag meet the receives of these three in the order
 * of the calls, whatever threads make them; different tags may be received in any order.  Receives of one tag, from whomever, are matched in the
 * order of their calls: one from PCCL_ANY_RANK takes what was announced first, and those called after it wait until it has.  Count
 * and type must be equal at both, or both get InvalidArgument, naming both.
 *
 * Success, at either, means that the RECEIVER has the message: a blocking send returns when it has been received.  An error is an error at
 * both, with the classes and causes of pcclAllReduce; then the receive buffer is unspecified.  When both are alive they are told the same.
 * When one of the two is lost, the other gets RankConnectionLost; a sender also where the receiver had the message when it was lost.  When a
 * third member is lost, what had not ended may fail at both (RankConnectionLost): call again.  An error of a send that nobody has received
 * yet is that of the receive that would have met it.  A receive from PCCL_ANY_RANK that is matched with nothing also fails when any
 * member is lost, or when all others wait in votes (cause pcclCauseConflict).  A call to, or from, a member that has been lost fails
 * at once (RankConnectionLost), and the sizes move.
 * A call that cannot be made as it was given, for its buffer or type, fails with InvalidArgument at both.
 *
 * Where two have no link in this view, a third member passes their messages on, more slowly; it needs to call nothing.
 * InvalidUsage: while a vote is under way; or too far ahead of a peer that has not come to 64 messages that were given up.  TooFewPeers: a receive from PCCL_ANY_RANK of one who is alone.
 *
 * `async_op_out`: as for collectives.  A deadline or a cancel ends both calls; a receive that is matched with nothing yet is given up alone.
 * pcclUpdateTopology forgets messages that have failed and were not received. */

/* Sends `count` elements to rank `peer`; `sendbuf` is never written. */
PCCL_EXPORT pcclResult_t pcclSend(const void *sendbuf, size_t count, pcclDataType_t datatype, uint32_t peer, uint64_t tag,
                                  const pcclComm_t *communicator, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Receives them from rank `peer` or from PCCL_ANY_RANK.  `source_out`: the rank it came from, as ranks counted when the receive was
 * called; stored with success, by the call or by the await of its handle. */
PCCL_EXPORT pcclResult_t pcclReceive(void *recvbuf, size_t count, pcclDataType_t datatype, uint32_t peer, uint64_t tag,
                                     uint32_t *PCCL_NULLABLE source_out, const pcclComm_t *communicator,
                                     pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

/* ---- Groups ----------------------------------------------------------------------------------------------------- */

/* Between these two, this thread's calls of collectives in the order of issue, pcclSend and pcclReceive start and return at once, also
 * without an async_op_out; pcclGroupEnd waits for those.  So calls of one group never wait for each other, in whatever order they stand at
 * each member: two members that send to and receive from each other do not lock each other out.  Buffers are borrowed until
 * pcclGroupEnd returns.  Inside of a group a peer may also send to itself, with one receive of that rank and tag for each send
 * (not by PCCL_ANY_RANK, and without an async_op_out): that is a copy.  What has an async_op_out is awaited by its handle, not by the group.
 * A result must not overlap a buffer of another call of the group: the later call is InvalidArgument on all members, or at both ends.
 *
 * Groups are a thread's own, may hold calls of any communicators, and may be nested: the outermost end counts.
 * pcclGroupEnd returns the first error among the calls, those that returned one themselves included; the others have ended
 * all the same.  InvalidUsage: this thread has no group open.  InvalidArgument: a message to itself that nobody receives. */
PCCL_EXPORT pcclResult_t pcclGroupStart(void);
PCCL_EXPORT pcclResult_t pcclGroupEnd(void);

/* ---- Groups until they have succeeded --------------------------------------------------------------------------- */

/* Launches operation `index` of the group on this communicator: by one call of a collective in the order of issue, pcclSend or pcclReceive
 * with `async_op_out`, whose result it returns.  Who takes no part in the operation launches nothing and returns success.  `attempt`
 * counts from 0.  Ranks, sizes and members may move from call to call, within one attempt too: read them in each, lay out by them.
 * Called by the thread that called pcclRepeatGroup, without locks; it may be called again for the same attempt where 1,024 operations
 * were not awaited.  A message to oneself: a group of its own inside, whose end's result it returns. */
typedef pcclResult_t (*pcclLaunchCallback_t)(const pcclComm_t *communicator, size_t index, uint32_t attempt, pcclAsyncOp_t *async_op_out,
                                             void *PCCL_NULLABLE user);

/* When it stops; null in its place, or zeros behind `size`: what was lost is repeated as long as there is anybody. */
typedef struct pcclRepeatParams_t {
    size_t size;             /* sizeof(pcclRepeatParams_t), as this program was compiled */
    bool all_again;          /* after a loss everything is repeated, so that all results are of the same members; alike at all */
    uint32_t fewest_members; /* with fewer left in the peer group nothing is repeated: TooFewPeers; of all members' the most counts */
    uint32_t timeout_ms;     /* after that nothing is repeated: RankConnectionLost, cause Deadline; of all members' the earliest counts.
                                An attempt under way is not ended by it; PCCL_OPTION_OPERATION_DEADLINE_MS does that.  0: none */
} pcclRepeatParams_t;

/* Starts `count` operations together, as a group, and repeats after a loss those that did not succeed, until all of them have: success is one
 * at all members.  All members of the peer group call it, in the order of issue, with the same count, and index means the same operation at
 * each: a collective that all launch, or a message that one sends and one receives (an exchange is two).  Their buffers are apart from each
 * other, as in a group.  After each attempt the members agree on what was
 * lost anywhere, by one all-reduce of 2 bytes an operation, and all repeat that.
 *
 * Between the attempts buffers are as after an error of each operation: sent ones, and inputs in place, as they were, so that the same
 * call with the same buffers may follow; what was to be received is unspecified until its operation has succeeded: off the root that is
 * the buffer of a broadcast, too.  What has succeeded is not repeated, and is of the members there were then; with all_again it is
 * repeated too: then let no input be an output, since an all-reduce or reduce in place would be summed up twice.
 *
 * Stops, for all members after the same attempt, with the error of the lowest index that failed otherwise than by a loss at anybody (one that was
 * given up by a deadline or cancel, or that a vote stood against, is such); the text is more exact where it failed.  Nothing is in flight
 * then, and each output unspecified but for those that had succeeded.  A callback that fails and has launched nothing counts so, too; if that
 * was a message, its other end waits for it as for any that is never sent.  TooFewPeers, RankConnectionLost: as `params` say, or the world has
 * ended (class pcclClassRejoin).  MasterConnectionFailed: this peer is no member any more; the others go on.
 * InvalidArgument, at this peer alone, which the others then wait for: null launch, count 0, wrong params->size; at all: all_again differs.
 * Counts that differ are calls that differ: they get InvalidArgument, and who has made more of them waits for the next of the others.
 * InvalidUsage, at this peer alone: this thread has a group open.  InternalError, at this peer alone: no memory for the list.
 * The info sums up all operations that have succeeded; its size is that of the peer group at the end. */
PCCL_EXPORT pcclResult_t pcclRepeatGroup(const pcclComm_t *communicator, size_t count, pcclLaunchCallback_t launch,
                                         void *PCCL_NULLABLE user, const pcclRepeatParams_t *PCCL_NULLABLE params,
                                         pcclReduceInfo_t *PCCL_NULLABLE info_out);

/* ---- Windows ---------------------------------------------------------------------------------------------------- */

/* A window is memory of each member that the others write, read and count in without its program: the library answers for it, also
 * while the program computes or waits in a vote.  Made and destroyed by all members of the peer group; from then on each call is one
 * member's own, by any of its threads, beside all other calls.
 *
 * Members of a window are those who made it, with their ranks at that time, for as long as it lives: who joins later is none, and a loss
 * moves no rank.  Losses and updates do not interrupt operations between members that are left: they begin again by themselves, and
 * counting operations are done once all the same.  What concerns a lost member fails (RankConnectionLost); the sizes stay what they are,
 * pcclGetWindowInfo says who is lost.
 *
 * A put, a counting operation or a signal that has ended with success is in the target's memory, or counted.  Those of one member to
 * another under way at once: bytes of several puts land in no order; a counting operation, a get and a signal come after everything
 * that was called before them.  After an error a put may have written any part of its bytes, a counting operation may have been done.
 * Where memory is reached directly (pcclGetWindowInfo), nothing but signals travels, and operations end at once.  Between two that have
 * no link a third member passes everything on.
 *
 * `async_op_out`: as for collectives; pcclUpdateTopology and its kin do not wait for operations of windows.  At most 64 of one
 * communicator travel at a time, further ones wait.  InvalidArgument, alone and with nothing sent: null, a rank that is none, bytes beyond the
 * window, not its rights.  InvalidUsage: the window or its communicator was destroyed. */
typedef struct pcclWindow_t pcclWindow_t;

/* What others may do; each member says so for its own. */
typedef enum pcclWindowRights_t {
    pcclWindowRead = 1,  /* pcclGet */
    pcclWindowWrite = 2, /* pcclPut */
    pcclWindowCount = 4, /* pcclFetchAdd, pcclCompareSwap: the memory has to begin at a multiple of 8 */
    pcclWindowAll = 7,
} pcclWindowRights_t;

typedef struct pcclWindowParams_t {
    size_t size;     /* sizeof(pcclWindowParams_t), as this program was compiled */
    void *memory;    /* the program's, borrowed until pcclDestroyWindow has returned; null: `bytes` of zeros of the library's own, which
                        members on the same host map */
    size_t bytes;    /* may differ from member to member; 0 too */
    unsigned rights; /* of pcclWindowRights_t */
} pcclWindowParams_t;

/* Called by all members, in the order of issue of the collectives; succeeds at all or at none, with the errors of an all-gather.
 * InternalError, at all: a member has no memory for it, or no room (64 windows of a communicator; with one, 768 operations not awaited).
 * InvalidArgument, alone, and before the others are told: null, params that cannot be; they wait for this member's next call. */
PCCL_EXPORT pcclResult_t pcclCreateWindow(const pcclWindowParams_t *params, const pcclComm_t *communicator, pcclWindow_t **window_out);
/* Called by all members that are left: waits until this member's operations have ended, then until all others have called it, too; so
 * that afterwards nobody touches the memory.  Memory of the library's own is freed, also what others have mapped of it.  No other thread of this member may be in a vote meanwhile.  Waits for signals of a member
 * that has called it end, as do, in this process, those for its own.  A window whose communicator was destroyed, or is no member any more,
 * goes at once. */
PCCL_EXPORT pcclResult_t pcclDestroyWindow(pcclWindow_t *window);

/* Writes `bytes` of `source`, which is never written, at byte `offset` of the window of that rank. */
PCCL_EXPORT pcclResult_t pcclPut(const void *source, size_t bytes, uint32_t rank, size_t offset, pcclWindow_t *window,
                                 pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Reads them into `target`, which is unspecified after an error. */
PCCL_EXPORT pcclResult_t pcclGet(void *target, size_t bytes, uint32_t rank, size_t offset, pcclWindow_t *window,
                                 pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* On the number at byte `offset`, a multiple of its size: adds `*addend`, or stores `*desired` if it equals `*expected`; what was there
 * before goes to `previous_out`, with success only.  Types: pcclInt32, pcclUint32, pcclInt64, pcclUint64; sums wrap.  Each is atomic, also
 * beside atomic instructions of programs that have the memory mapped.  Operands are read during the call. */
PCCL_EXPORT pcclResult_t pcclFetchAdd(void *PCCL_NULLABLE previous_out, const void *addend, pcclDataType_t datatype, uint32_t rank,
                                      size_t offset, pcclWindow_t *window, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
PCCL_EXPORT pcclResult_t pcclCompareSwap(void *PCCL_NULLABLE previous_out, const void *expected, const void *desired,
                                         pcclDataType_t datatype, uint32_t rank, size_t offset, pcclWindow_t *window,
                                         pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Tells that rank that everything called before for it is done there; has no deadline. */
PCCL_EXPORT pcclResult_t pcclSignal(uint32_t rank, pcclWindow_t *window, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);
/* Waits for a signal of that rank, or `timeout_ms` (-1: none; RankConnectionLost, cause pcclCauseDeadline): n signals are enough for n
 * waits.  Signals of a member that was lost meanwhile count.  InvalidUsage: that rank destroys its window, and signals no more. */
PCCL_EXPORT pcclResult_t pcclWaitSignal(uint32_t rank, pcclWindow_t *window, int64_t timeout_ms, pcclAsyncOp_t *PCCL_NULLABLE async_op_out);

typedef struct pcclWindowInfo_t {
    uint64_t peer;   /* id of the member, as in pcclPeerInfo_t */
    uint32_t rank, world; /* this member's own; number of members */
    size_t bytes;
    unsigned rights;
    bool lost;
    void *address;   /* where this process reaches that member's memory by itself, until pcclDestroyWindow: its own, and memory of the library's
                        own on the same host (without pcclWindowWrite and pcclWindowCount: only to read); else null */
} pcclWindowInfo_t;
PCCL_EXPORT pcclResult_t pcclGetWindowInfo(pcclWindow_t *window, uint32_t rank, pcclWindowInfo_t *info_out);

/* ---- Worlds out of a communicator ------------------------------------------------------------------------------- */

#define PCCL_NO_COLOR (-1)

/* What the new world is; null in its place, or zeros behind `size`: ends with its first loss, no timeout, as many lanes as the parent.
 * Loss rule and timeout mean what they do in pcclCommCreateParamsEx_t. */
typedef struct pcclDeriveParams_t {
    size_t size; /* sizeof(pcclDeriveParams_t), as this program was compiled */
    pcclLossRule_t loss_rule;          /* alike at all members of one new world */
    uint32_t formation_timeout_ms;     /* of all callers' the earliest counts, whatever their colours; nor is the master looked for longer */
    uint32_t p2p_connection_pool_size; /* 0: the parent's */
} pcclDeriveParams_t;

/* All members of the group call it, in the order of issue of the collectives: those that give the same color (0 or more) are a new
 * world, with ranks by (key, rank here), and each stores its communicator there, connected; the caller owns it.  With PCCL_NO_COLOR a
 * member is in none of them, and null is stored.  Blocks, inside of a group too, until all of the new worlds have begun, or none
 * will: then all callers get the same error, those without a color, too.
 *
 * The new worlds are worlds of their own at the same master: sizes, votes, losses, ends of this one and those are not each other's,
 * and each lives until its last member has left it, also longer than this one.  They have one peer group, 0, and no name that could
 * be joined; options are as this communicator's are now.  When one is over or was left, pcclConnect there is InvalidUsage: split again.
 *
 * RankConnectionLost: somebody was lost before all of them had begun, cannot be linked with the others, has left this world before it
 * had called, or did not come in time; class pcclClassRejoin where the new worlds were given up, with one cause and text at all;
 * else as of an all-gather, that comes first: read the sizes, call again.  InvalidArgument: null comm_out, a color below PCCL_NO_COLOR,
 * params that cannot be; then at all members, as of any call in the order of issue; or loss rules differ.  MasterConnectionFailed:
 * this peer is no member any more; or, class pcclClassRetry, it is still, and the master cannot be reached or has no place: call again;
 * the others then get RankConnectionLost.  InternalError: no memory at this peer; the others get RankConnectionLost, cause NoMemory. */
PCCL_EXPORT pcclResult_t pcclSplitCommunicator(const pcclComm_t *communicator, int32_t color, int32_t key,
                                               const pcclDeriveParams_t *PCCL_NULLABLE params, pcclComm_t **comm_out);

/* A new world of all members of the group, with the same ranks: a split into one color. */
PCCL_EXPORT pcclResult_t pcclDuplicateCommunicator(const pcclComm_t *communicator,
                                                   const pcclDeriveParams_t *PCCL_NULLABLE params, pcclComm_t **comm_out);

/* A new world of those members of the group whose ids (pcclPeerInfo_t) stand in `peers`, with ranks as they stand there.  Called by
 * these alone, and not in the order of issue; `tag` tells lists that several threads use at a time from each other: calls with one list
 * and tag meet in their order at each member.  Blocks, and fails, as pcclSplitCommunicator; a listed member that never calls is waited
 * for until it leaves this world, or formation_timeout_ms.  InvalidArgument, at this peer alone, which the others then wait for: null,
 * no peers or more than 16,384, one of them twice, or not this one. */
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
/* Older form without a strategy, told apart by the number of arguments: three, commas outside of parentheses counted; any
 * other number (a compound literal has commas, too) goes to the function as it is. */
#define PCCL_SYNC_FORM(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, form, ...) form
#define PCCL_SYNC_FOUR(...) (pcclSynchronizeSharedState)(__VA_ARGS__)
#define PCCL_SYNC_THREE(comm, state, info)                                                                             \
    (pcclSynchronizeSharedState)(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, info)
#define pcclSynchronizeSharedState(...)                                                                                \
    PCCL_SYNC_FORM(__VA_ARGS__, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR,        \
                   PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR,                     \
                   PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR,                     \
                   PCCL_SYNC_FOUR, PCCL_SYNC_FOUR, PCCL_SYNC_THREE, PCCL_SYNC_FOUR, PCCL_SYNC_FOUR,                    \
                   0)(__VA_ARGS__)
#endif

#endif
