/* test_codes.c - what each call returns for which cause: the rows of the table of causes and codes, through the public
 * interface.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sched.h>
#include <stdatomic.h>

#include "tests/e2e/cluster.h"

static pcclErrorInfo_t last_error(void)
{
    pcclErrorInfo_t info;
    memset(&info, 0, sizeof info);
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    return info;
}

/* Runs first (tests run in the order of the file): nothing has called pcclInit yet. */
TEST(before_init_everything_on_communicators_is_not_initialized)
{
    pcclCommCreateParams_t params = {.master_address = {.port = 1}};
    pcclComm_t *comm = NULL;
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclNotInitialized);
    EXPECT(strlen(pcclGetLastError()) > 0);
    pcclBuildInfo_t build;
    EXPECT_EQ(pcclGetBuildInfo(&build), pcclSuccess);
    EXPECT_EQ(pcclGetBuildInfo(NULL), pcclInvalidArgument);
    int version = 0;
    EXPECT_EQ(pcclGetVersion(&version), pcclSuccess);
    EXPECT_EQ(version, PCCL_VERSION);
    EXPECT_EQ(pcclGetVersion(NULL), pcclInvalidArgument);
}

TEST(null_and_unknown_arguments_are_named)
{
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclInit(), pcclSuccess);
    pcclComm_t *comm = NULL;
    pcclCommCreateParams_t params = {.master_address = {.port = 1}};
    EXPECT_EQ(pcclCreateCommunicator(NULL, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "params") != NULL);
    EXPECT_EQ(pcclCreateCommunicator(&params, NULL), pcclInvalidArgument);
    params.p2p_connection_pool_size = 128; /* as in programs written for the original: 64 */
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    int size = 0;
    EXPECT_EQ(pcclConnect(NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size), pcclInvalidUsage);
    EXPECT_EQ(pcclUpdateTopology(comm), pcclInvalidUsage);
    bool pending = false;
    EXPECT_EQ(pcclArePeersPending(comm, &pending), pcclInvalidUsage);
    EXPECT_EQ(pcclOptimizeTopology(comm), pcclInvalidUsage);
    float x = 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 1);
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, comm, NULL), pcclInvalidUsage);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(NULL), pcclInvalidArgument);
}

static void bad_arguments(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 1);
    EXPECT_EQ(pcclAllReduce(&x, &y, NULL, p->comm, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclAllReduce(NULL, &y, &d, p->comm, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclAllReduce(&x, NULL, &d, p->comm, NULL), pcclInvalidArgument);
    d.op = (pcclRedOp_t)99;
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "99") != NULL);
    d = cluster_floats(1, 1);
    d.src_descriptor.datatype = (pcclDataType_t)77;
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclInvalidArgument);
    d = cluster_floats(1, 1);
    d.quantization_options.algorithm = pcclQuantMinMax;
    d.quantization_options.quantized_datatype = pcclFloat;
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclInvalidArgument);
    int size = 0;
    EXPECT_EQ(pcclGetAttribute(p->comm, (pcclAttribute_t)42, &size), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "attribute is 42: expected 1 (PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) to 4") != NULL);
    EXPECT_EQ(pcclGetAttribute(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, NULL), pcclInvalidArgument);
    pcclReduceOpDescriptor_t op = {&x, &y, cluster_floats(1, 1)};
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(&op, 0, p->comm, NULL, 1), pcclInvalidArgument);
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(&op, 1, p->comm, NULL, 0), pcclInvalidArgument);
    EXPECT_EQ(pcclConnect(p->comm), pcclInvalidUsage);
    /* nothing was lost: the next operation works */
    d = cluster_floats(1, 1);
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclSuccess);
    EXPECT(y == 2.0f);
}

TEST(bad_arguments_fail_locally_and_harm_nothing)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, bad_arguments, NULL);
    cluster_stop(&c);
}

/* The text holds both calls and the address of the other; the peer of the info is that other. */
static void expect_both_calls(struct cluster_peer *p, size_t count, int kind)
{
    char usual[60], odd[60], want[400];
    pcclPeerInfo_t members[3], own;
    size_t found = 0, odd_at = 3, named = 3;
    const char *type = kind == 4 ? "u32" : "f32", *op = kind == 4 ? "and" : "sum";
    snprintf(usual, sizeof usual, "%zu %s, %s", count, type, op);
    snprintf(odd, sizeof odd, "%zu %s, %s%s", count + (kind == 0), kind == 2 ? "i32" : type, kind == 1 ? "max" : kind == 4 ? "or" : op,
             kind == 3 ? ", min-max u8" : "");
    EXPECT_EQ(pcclGetMembers(p->comm, members, 3, &found), pcclSuccess);
    EXPECT_EQ(pcclGetSelf(p->cluster->peer[1].comm, &own), pcclSuccess);
    for (size_t i = 0; i < found; i++) {
        odd_at = members[i].id == own.id ? i : odd_at;
        named = members[i].id == last_error().peer ? i : named;
    }
    EXPECT(named < 3 && !members[named].is_self && (p->index == 1) != (named == odd_at));
    snprintf(want, sizeof want,
             "peers disagree in count, type, operator or quantisation: this peer has all-reduce of %s; "
             "rank %u (peer %llu.%llu at 127.0.0.1:%u) has all-reduce of %s",
             p->index == 1 ? odd : usual, members[named % 3].rank, (unsigned long long)members[named % 3].id >> 32,
             (unsigned long long)members[named % 3].id & 0xFFFFFFFF, members[named % 3].address.port, p->index == 1 ? usual : odd);
    EXPECT(strstr(pcclGetLastError(), want) != NULL);
    if (strstr(pcclGetLastError(), want) == NULL) {
        fprintf(stderr, "no '%s' in: %s\n", want, pcclGetLastError());
    }
}

static void mismatch(struct cluster_peer *p, void *context)
{
    size_t count = *(const size_t *)context;
    float *x = calloc(count + 1, sizeof *x), *y = calloc(count + 1, sizeof *y);
    float other = 3, other_sum = 0;
    pcclReduceDescriptor_t good = cluster_floats(1, 1000), d = cluster_floats(count, 5);
    pcclAsyncReduceOp_t handle;
    EXPECT_EQ(pcclAllReduceAsync(&other, &other_sum, &good, p->comm, &handle), pcclSuccess);
    for (int kind = 0; kind < 5; kind++) {
        for (size_t i = 0; i < count; i++) {
            x[i] = (float)i;
        }
        d = cluster_floats(count, 5);
        if (kind == 4) {
            d.src_descriptor.datatype = pcclUint32;
            d.op = pcclBitAnd;
        }
        if (p->index == 1) {
            d.count += kind == 0;
            d.op = kind == 1 ? pcclMax : kind == 4 ? pcclBitOr : d.op;
            d.src_descriptor.datatype = kind == 2 ? pcclInt32 : d.src_descriptor.datatype;
            d.quantization_options.algorithm = kind == 3 ? pcclQuantMinMax : pcclQuantNone;
        }
        EXPECT_EQ(pcclAllReduce(x, x, &d, p->comm, NULL), pcclInvalidArgument);
        EXPECT_EQ(last_error().cause, pcclCauseMismatch);
        expect_both_calls(p, count, kind);
        for (size_t i = 0; i < count; i++) {
            EXPECT(x[i] == (float)i);
        }
    }
    EXPECT_EQ(pcclAwaitAsyncReduce(&handle, NULL), pcclSuccess);
    EXPECT(other_sum == 9.0f);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 3);
    free(x);
    free(y);
}

TEST(disagreement_in_parameters_is_the_same_error_on_all)
{
    for (size_t count = 4; count <= 40000; count *= 10000) {
        struct cluster c;
        cluster_start(&c, 3, NULL, 2);
        cluster_run(&c, mismatch, &count);
        cluster_stop(&c);
    }
}

TEST(connect_that_may_not_be_made_now_names_the_call_in_the_way)
{
    struct cluster c;
    cluster_start(&c, 1, NULL, 1);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclInvalidUsage);
    EXPECT_STR(pcclGetLastError(), "connect: not allowed now: already connected: pcclLeave comes first: fix the order of the calls");
    EXPECT_EQ(last_error().cause, pcclCauseUsage);
    cluster_stop(&c);
}

static void handles(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1, y = 0, z = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    pcclAsyncReduceOp_t h, unknown = {p->comm, 12345};
    EXPECT_EQ(pcclAwaitAsyncReduce(&unknown, NULL), pcclInvalidUsage);
    EXPECT_EQ(pcclAllReduceAsync(&x, &y, &d, p->comm, &h), pcclSuccess);
    EXPECT_EQ(pcclAllReduceAsync(&x, &z, &d, p->comm, &unknown), pcclInvalidArgument); /* tag in flight */
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclPendingAsyncOps);
    EXPECT_EQ(pcclOptimizeTopology(p->comm), pcclPendingAsyncOps);
    pcclTensorInfo_t t = {.name = "x", .data = &x, .count = 1, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &t};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, NULL), pcclPendingAsyncOps);
    size_t index = 9;
    EXPECT_EQ(pcclWaitAnyAsyncReduce(&h, 1, -1, &index), pcclSuccess);
    EXPECT_EQ(index, 0);
    bool done = false;
    EXPECT_EQ(pcclTestAsyncReduce(&h, &done), pcclSuccess);
    EXPECT(done);
    EXPECT_EQ(pcclAwaitAsyncReduce(&h, NULL), pcclSuccess);
    EXPECT(y == 2.0f);
    EXPECT_EQ(pcclAwaitAsyncReduce(&h, NULL), pcclInvalidUsage); /* spent */
    EXPECT_EQ(pcclTestAsyncReduce(&h, &done), pcclInvalidUsage);
}

TEST(handles_and_pending_operations)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, handles, NULL);
    cluster_stop(&c);
}

static void cancel_or_deadline(struct cluster_peer *p, void *context)
{
    bool cancel = *(const bool *)context;
    if (p->index == 1) {
        return; /* never launches: it answers without its program */
    }
    float x[3] = {1, 2, 3};
    pcclReduceDescriptor_t d = cluster_floats(3, 7);
    pcclAsyncReduceOp_t h;
    EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_OPERATION_DEADLINE_MS, cancel ? 0 : 50), pcclSuccess);
    EXPECT_EQ(pcclAllReduceAsync(x, x, &d, p->comm, &h), pcclSuccess);
    if (cancel) {
        EXPECT_EQ(pcclCancelAsyncReduce(&h), pcclSuccess);
    }
    EXPECT_EQ(pcclAwaitAsyncReduce(&h, NULL), pcclRankConnectionLost);
    EXPECT_EQ(last_error().cause, cancel ? pcclCauseCancelled : pcclCauseDeadline);
    EXPECT(x[0] == 1 && x[1] == 2 && x[2] == 3);
}

static void take_refusal(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    if (p->index == 1) {
        EXPECT_EQ(pcclAllReduce(&x, &x, &d, p->comm, NULL), pcclRankConnectionLost);
    }
    EXPECT_EQ(pcclAllReduce(&x, &x, &d, p->comm, NULL), pcclSuccess);
    EXPECT(x == 2.0f);
}

TEST(cancel_and_deadline_end_an_operation_that_somebody_never_launched)
{
    for (int i = 0; i < 2; i++) {
        bool cancel = i == 0;
        struct cluster c;
        cluster_start(&c, 2, NULL, 1);
        cluster_run(&c, cancel_or_deadline, &cancel);
        cluster_run(&c, take_refusal, NULL);
        cluster_stop(&c);
    }
}

enum { PATIENT_TAG = 21, SHORT_MS = 30, LONG_MS = 600000 };

static atomic_bool waited;

static void expect_deadline(pcclResult_t result)
{
    EXPECT_EQ(result, pcclRankConnectionLost);
    EXPECT_EQ(last_error().cause, pcclCauseDeadline);
}

/* Rank 0's thread has a deadline of its own, rank 1's has none and does not launch in time; then the other way round. */
static void call_deadline(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1, y = 0;
    pcclPeerInfo_t self = {0};
    pcclReduceDescriptor_t d = cluster_floats(1, PATIENT_TAG);
    pcclAsyncReduceOp_t reduce;
    pcclAsyncOp_t op;
    pcclCompletion_t end;
    bool done = true;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_OPERATION_DEADLINE_MS, self.rank == 0 ? LONG_MS : 0), pcclSuccess);
    EXPECT_EQ(pcclSetCallDeadline(-2), pcclInvalidArgument);
    if (self.rank == 0) {
        EXPECT_EQ(pcclSetCallDeadline(SHORT_MS), pcclSuccess);
        expect_deadline(pcclAllReduce(&x, &y, &d, p->comm, NULL));
        expect_deadline(pcclReceive(&y, 1, pcclFloat, 1, 5, NULL, p->comm, NULL));
        expect_deadline(pcclBroadcast(&x, &y, 1, pcclFloat, 0, p->comm, NULL));
        EXPECT_EQ(pcclSetCallDeadline(0), pcclSuccess); /* none, whatever the option says */
        EXPECT_EQ(pcclSetOption(p->comm, PCCL_OPTION_OPERATION_DEADLINE_MS, 1), pcclSuccess);
        EXPECT_EQ(pcclBroadcast(&x, &y, 1, pcclFloat, 0, p->comm, &op), pcclSuccess);
        EXPECT_EQ(pcclWaitAsync(&op, SHORT_MS, &end, &done), pcclSuccess);
        EXPECT(!done);
        atomic_store(&waited, true);
        EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclSuccess);
        EXPECT_EQ(pcclSetCallDeadline(-1), pcclSuccess); /* the option again */
        d.tag++;
        EXPECT_EQ(pcclAllReduceAsync(&x, &y, &d, p->comm, &reduce), pcclSuccess);
        expect_deadline(pcclAwaitAsyncReduce(&reduce, NULL));
    } else {
        while (!atomic_load(&waited)) {
            sched_yield();
        }
        EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclRankConnectionLost); /* as it ended there */
        EXPECT_EQ(pcclSend(&x, 1, pcclFloat, 0, 5, p->comm, NULL), pcclRankConnectionLost);
        EXPECT_EQ(pcclBroadcast(NULL, &y, 1, pcclFloat, 0, p->comm, NULL), pcclRankConnectionLost);
        EXPECT_EQ(pcclBroadcast(NULL, &y, 1, pcclFloat, 0, p->comm, NULL), pcclSuccess);
        EXPECT_EQ(y, 1);
    }
}

TEST(a_thread_gives_its_calls_deadlines_of_their_own)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, call_deadline, NULL);
    cluster_stop(&c);
}

static void conflict(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess); /* a newcomer's first update beside an optimise is answered alone */
    pcclResult_t r = p->index == 0 ? pcclUpdateTopology(p->comm) : pcclOptimizeTopology(p->comm);
    EXPECT_EQ(r, pcclInvalidUsage);
    EXPECT_EQ(last_error().cause, pcclCauseConflict);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
}

TEST(conflicting_votes_fail_at_once_on_both_sides)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, conflict, NULL);
    cluster_stop(&c);
}

TEST(alone_is_too_few_peers)
{
    struct cluster c;
    cluster_start(&c, 1, NULL, 1);
    float x = 5, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    pcclReduceOpDescriptor_t op = {&x, &y, d};
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, c.peer[0].comm, NULL), pcclTooFewPeers);
    EXPECT_EQ(pcclAllReduceMultipleWithRetry(&op, 1, c.peer[0].comm, NULL, 1), pcclTooFewPeers);
    EXPECT_EQ(pcclOptimizeTopology(c.peer[0].comm), pcclInvalidUsage);
    EXPECT_EQ(pcclUpdateTopology(c.peer[0].comm), pcclSuccess);
    pcclTensorInfo_t t = {.name = "x", .data = &x, .count = 1, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &t};
    EXPECT_EQ(pcclSynchronizeSharedState(c.peer[0].comm, &state, NULL), pcclSuccess);
    EXPECT(x == 5);
    cluster_stop(&c);
}

static void only_receive(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = (float)p->index;
    pcclTensorInfo_t t = {.name = "x", .data = &x, .count = 1, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &t};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY, NULL),
              pcclNoSharedStateAvailable);
    EXPECT_EQ(last_error().cause, pcclCauseNoCandidate);
    EXPECT(x == (float)p->index);
}

TEST(nobody_can_provide_the_state)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, only_receive, NULL);
    cluster_stop(&c);
}

/* All forget to raise the revision: nobody can say whose content is newer. */
static void repeats(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1;
    pcclTensorInfo_t t = {.name = "x", .data = &x, .count = 1, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 57, .count = 1, .infos = &t};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, NULL), pcclSuccess);
    x = 2 + (float)p->index;
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, NULL), pcclNoSharedStateAvailable);
    EXPECT_EQ(last_error().cause, pcclCauseRevision);
    EXPECT_EQ(last_error().error_class, pcclClassFix);
    EXPECT(strstr(pcclGetLastError(), "expected 58, highest offered 57 by peer 1.") != NULL);
    EXPECT(x == 2 + (float)p->index && state.revision == 57);
    state.revision++;
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, NULL), pcclSuccess);
    EXPECT_EQ(state.revision, 58);
}

TEST(a_revision_that_nobody_raised_is_an_error_on_all_and_changes_nothing)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, repeats, NULL);
    cluster_stop(&c);
}

/* Peer 1 claims a revision from the future: it is removed, told why, and every call says so until it connects again. */
static void too_high(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1;
    pcclTensorInfo_t t = {.name = "x", .data = &x, .count = 1, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &t};
    EXPECT_EQ(pcclSynchronizeSharedState(p->comm, &state, NULL), pcclSuccess);
    state.revision = p->index == 1 ? 9 : 2;
    pcclResult_t r = pcclSynchronizeSharedState(p->comm, &state, NULL);
    if (p->index != 1) {
        EXPECT_EQ(r, pcclSuccess);
        return;
    }
    EXPECT_EQ(r, pcclMasterConnectionFailed);
    EXPECT_EQ(last_error().cause, pcclCauseKicked);
    EXPECT(strstr(pcclGetLastError(), "revision") != NULL);
    int size = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    EXPECT_EQ(pcclGetAttribute(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size), pcclMasterConnectionFailed);
    EXPECT(last_error().cause == pcclCauseKicked && strstr(pcclGetLastError(), "revision") != NULL);
    EXPECT_EQ(pcclAllReduce(&x, &x, &d, p->comm, NULL), pcclMasterConnectionFailed);
    EXPECT(last_error().cause == pcclCauseKicked && strstr(pcclGetLastError(), "revision") != NULL);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclMasterConnectionFailed);
    EXPECT(last_error().cause == pcclCauseKicked && strstr(pcclGetLastError(), "revision") != NULL);
}

static void rejoin(struct cluster_peer *p, void *context)
{
    (void)context;
    if (p->index == 1) {
        EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    } else {
        while (cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < 3) {
            EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
        }
    }
    float x = 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclSuccess);
    EXPECT(y == 3.0f);
}

static void settle(struct cluster_peer *p, void *context)
{
    (void)context;
    if (p->index != 1) {
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    }
}

TEST(kicked_peers_learn_why_and_may_come_back)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, too_high, NULL);
    cluster_run(&c, settle, NULL);
    EXPECT_EQ(cluster_size(c.peer[0].comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
    cluster_run(&c, rejoin, NULL);
    cluster_stop(&c);
}

/* Running operations need no master; calls that do fail after the configured time (G7). */
static void without_master(struct cluster_peer *p, void *context)
{
    (void)context;
    float x = 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 7);
    EXPECT_EQ(pcclAllReduce(&x, &y, &d, p->comm, NULL), pcclSuccess);
    EXPECT(y == 2.0f);
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclMasterConnectionFailed);
    EXPECT_EQ(last_error().cause, pcclCauseMasterLost);
}

static void join_two(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(cluster_join(p->comm, 2), pcclSuccess);
}

TEST(operations_finish_without_the_master_and_votes_fail_in_time)
{
    struct cluster c;
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 300);
    cluster_create(&c, 1, 0, 1, 300);
    cluster_run(&c, join_two, NULL);
    EXPECT_EQ(pcclInterruptMaster(c.master), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(c.master), pcclSuccess);
    cluster_run(&c, without_master, NULL);
    cluster_stop(&c);
}

TEST(an_unreachable_master_is_named)
{
    struct cluster c;
    cluster_master(&c);
    EXPECT_EQ(pcclInterruptMaster(c.master), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(c.master), pcclSuccess);
    cluster_create(&c, 0, 0, 1, 0);
    EXPECT_EQ(pcclSetOption(c.peer[0].comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 200), pcclSuccess);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "127.0.0.1") != NULL);
    cluster_stop(&c);
}
