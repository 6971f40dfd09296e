/* test_memory.c - a peer without memory for its backup: the operation fails alike everywhere, nothing else does.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <sys/resource.h>

#include "tests/fault/peer_calls.h"

enum { FLOATS = 16 << 20 };

static int64_t address_space(void)
{
    long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    int got = f != NULL ? fscanf(f, "%lld", &pages) : 0;
    if (f != NULL) {
        fclose(f);
    }
    return got == 1 ? pages * 4096 : 0;
}

/* The limit so far.  If asked, the process may map only so many bytes more, until that limit is set again. */
static struct rlimit tighten(bool really, int more)
{
    struct rlimit before;
    getrlimit(RLIMIT_AS, &before);
    if (really) {
        struct rlimit tight = before;
        tight.rlim_cur = (rlim_t)(address_space() + more);
        setrlimit(RLIMIT_AS, &tight);
    }
    return before;
}

/* An in-place reduce of 64 MB; peer 1 may not map that much more.  Then a small one that needs little. */
static void reduce_without_memory(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    float *data = peer_buffer(self, 0, FLOATS * sizeof(float));
    for (size_t i = 0; i < FLOATS; i++) {
        data[i] = (float)(i % 5);
    }
    const struct rlimit before = tighten(self->index == 1, 32 << 20);
    pcclReduceDescriptor_t d = peer_floats(FLOATS, 8);
    pcclErrorInfo_t info = {0};
    reply->result = pcclAllReduce(data, data, &d, self->comm, NULL);
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    reply->cause = info.cause;
    reply->value[0] = (int64_t)info.peer;
    pcclPeerInfo_t own = {0};
    EXPECT_EQ(pcclGetSelf(self->comm, &own), pcclSuccess);
    reply->value[1] = (int64_t)own.id;
    setrlimit(RLIMIT_AS, &before);
    for (size_t i = 0; i < FLOATS; i++) {
        if (data[i] != (float)(i % 5)) {
            EXPECT(!"input unchanged");
            break;
        }
    }
    float one = 1, sum = 0;
    pcclReduceDescriptor_t small = peer_floats(1, 9);
    EXPECT_EQ(pcclAllReduce(&one, &sum, &small, self->comm, NULL), pcclSuccess);
    EXPECT(sum == 3.0f);
    EXPECT_EQ(peer_size(self, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 3);
}

TEST(no_memory_at_one_peer_has_one_cause_and_culprit_on_all_and_harms_no_other_operation) /* all were told to stop */
{
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("sanitizers map more than any limit");
    }
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1};
    if (!processes_start(&all, &o)) {
        EXPECT(!"start");
        return;
    }
    int three = 3;
    processes_do(&all, 7, peer_join, &three, sizeof three, NULL);
    processes_do(&all, 7, reduce_without_memory, NULL, 0, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, i == 1 ? pcclInternalError : pcclRankConnectionLost); /* the others may go on without it */
        EXPECT_EQ(reply[i].value[0], reply[1].value[1]);
        EXPECT_EQ(reply[i].cause, pcclCauseNoMemory);
    }
    processes_stop(&all);
}

/* A reduce by a chain: between its ends sums need memory, which rank 2 may not map; then a small one. */
static void sum_without_memory(struct peer *self, const void *argument, struct reply *reply)
{
    enum { MOST = 4 << 20 }; /* 16 MiB, the largest that goes so */
    float *in = peer_buffer(self, 0, MOST * sizeof *in), *out = peer_buffer(self, 1, MOST * sizeof *out);
    pcclPeerInfo_t own = {0};
    pcclErrorInfo_t info = {0};
    (void)argument;
    for (size_t i = 0; i < MOST; i++) {
        in[i] = (float)(i % 5);
        out[i] = 0;
    }
    EXPECT_EQ(pcclGetSelf(self->comm, &own), pcclSuccess);
    EXPECT_EQ(pcclReduce(in, out, MOST / 8, pcclFloat, pcclSum, 0, self->comm, NULL), pcclSuccess);
    const struct rlimit before = tighten(own.rank == 2, 8 << 20);
    reply->result = pcclReduce(in, out, MOST, pcclFloat, pcclSum, 0, self->comm, NULL);
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    setrlimit(RLIMIT_AS, &before);
    reply->cause = info.cause;
    reply->value[0] = own.rank;
    EXPECT_EQ(pcclReduce(in, out, MOST, pcclFloat, pcclSum, 0, self->comm, NULL), pcclSuccess);
    for (size_t i = 0; i < MOST; i++) {
        if (in[i] != (float)(i % 5) || out[i] != (own.rank == 0 ? 3 * in[i] : 0)) {
            EXPECT(!"the sum at the root, nothing elsewhere");
            break;
        }
    }
}

TEST(no_memory_for_sums_of_others_fails_alike_at_all) /* the others would wait for a sum that never comes */
{
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("sanitizers map more than any limit");
    }
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1};
    setenv("PCCL_ALGO", "reduce:chain", 1);
    bool started = processes_start(&all, &o);
    unsetenv("PCCL_ALGO");
    EXPECT(started);
    if (!started) {
        return;
    }
    int three = 3;
    processes_do(&all, 7, peer_join, &three, sizeof three, NULL);
    processes_do(&all, 7, sum_without_memory, NULL, 0, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, reply[i].value[0] == 2 ? pcclInternalError : pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCauseNoMemory);
    }
    processes_stop(&all);
}

/* Which could not grow later, either. */
__attribute__((noinline)) static void grow_stack(void)
{
    volatile char stack[1 << 18];
    for (size_t i = 0; i < sizeof stack; i += 4096) {
        stack[i] = 1;
    }
}

/* Its table has room for the largest world there may be, 384 KiB: peer 1 may map less, but enough for what its links need. */
static void split_without_memory(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t own = {0};
    pcclErrorInfo_t info = {0};
    pcclComm_t *child = NULL;
    (void)argument;
    grow_stack();
    const struct rlimit before = tighten(self->index == 1, 256 << 10);
    reply->result = pcclSplitCommunicator(self->comm, 0, 0, NULL, &child);
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    setrlimit(RLIMIT_AS, &before);
    EXPECT_EQ(pcclGetSelf(self->comm, &own), pcclSuccess);
    reply->cause = info.cause;
    reply->value[0] = (int64_t)info.peer;
    reply->value[1] = (int64_t)own.id;
    EXPECT(child == NULL);
    EXPECT_EQ(pcclDuplicateCommunicator(self->comm, NULL, &child), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
}

TEST(no_memory_for_a_split_at_one_peer_is_told_to_the_others_as_that) /* they were told that its call was wrong */
{
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("sanitizers map more than any limit");
    }
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1};
    if (!peers_start(&all, &o)) {
        return;
    }
    processes_do(&all, 7, split_without_memory, NULL, 0, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, i == 1 ? pcclInternalError : pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCauseNoMemory);
        EXPECT(i == 1 || reply[i].value[0] == reply[1].value[1]);
    }
    processes_stop(&all);
}

/* The age of the error stands between the two parts of its text on a busy machine. */
static void expect_unstaged(const pcclErrorInfo_t *info)
{
    EXPECT_EQ(info->error_class, pcclClassRejoin);
    EXPECT_EQ(info->cause, pcclCauseNoMemory);
    EXPECT(strstr(info->text, "no memory to stage the shared state") != NULL);
    EXPECT(strstr(info->text, ": free some memory, then connect again") != NULL);
}

/* A sync that peer 1 cannot stage, since it may not map so much.  Then its next call. */
static void sync_without_memory(struct peer *self, const void *argument, struct reply *reply)
{
    float *data = peer_buffer(self, 0, FLOATS * sizeof(float));
    pcclTensorInfo_t tensor = {.name = "weights", .data = data, .count = FLOATS, .datatype = pcclFloat};
    pcclSharedState_t state = {.revision = 1, .count = 1, .infos = &tensor};
    pcclErrorInfo_t info = {0}, next = {0};
    (void)argument;
    for (size_t i = 0; i < FLOATS; i++) {
        data[i] = (float)(self->index == 1);
    }
    const struct rlimit before = tighten(self->index == 1, 32 << 20);
    reply->result = pcclSynchronizeSharedState(self->comm, &state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL);
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    setrlimit(RLIMIT_AS, &before);
    EXPECT(data[0] == (float)(self->index == 1) && data[FLOATS - 1] == data[0]);
    if (self->index != 1) {
        return;
    }
    expect_unstaged(&info);
    EXPECT_EQ(pcclBarrier(self->comm, NULL), pcclMasterConnectionFailed);
    EXPECT_EQ(pcclGetLastErrorInfo(&next), pcclSuccess);
    expect_unstaged(&next);
}

TEST(a_member_that_leaves_for_lack_of_memory_is_told_to_connect_again) /* the class was Stop, then the cause Excluded */
{
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("sanitizers map more than any limit");
    }
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1};
    if (!peers_start(&all, &o)) {
        return;
    }
    processes_do(&all, 7, sync_without_memory, NULL, 0, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT_EQ(reply[1].result, pcclInternalError);
    EXPECT_EQ(reply[2].result, pcclSuccess);
    int three = 3;
    process_send(&all, 1, peer_join, &three, sizeof three);
    processes_send(&all, 5, peer_update_until, &three, sizeof three);
    processes_take(&all, 7, reply);
    struct reduce_job job = {.count = 64, .tag = 3, .members = 7};
    processes_do(&all, 7, peer_reduce, &job, sizeof job, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    processes_stop(&all);
}
