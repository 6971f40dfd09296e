/* test_relayed_calls.c - collectives, messages, a split and a window of three hosts of which two cannot reach each other: the third stands in.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum kind { ALL_GATHER, BROADCAST, REDUCE_SCATTER, REDUCE_SCATTER_TIMES, REDUCE, SCATTER, GATHER, ALL_TO_ALL, GATHER_UNEVEN, ALL_TO_ALL_UNEVEN, KINDS };
enum { WORLD = 3 };

struct call_job {
    enum kind kind;
    size_t count; /* floats of a part */
    uint32_t root;
};

static float given(uint32_t from, uint32_t to, size_t i)
{
    return (float)((from * 7 + to * 3 + i) % 1000);
}

static bool reduces_parts(enum kind kind)
{
    return kind == REDUCE_SCATTER || kind == REDUCE_SCATTER_TIMES;
}

static float wanted(const struct call_job *job, uint32_t self, uint32_t of, size_t i)
{
    float sum = 0;
    for (uint32_t r = 0; r < WORLD; r++) {
        sum += given(r, reduces_parts(job->kind) ? self : 0, i);
    }
    return job->kind == REDUCE || job->kind == REDUCE_SCATTER ? sum
           : job->kind == REDUCE_SCATTER_TIMES                ? sum / 4
           : job->kind == BROADCAST                           ? given(job->root, 0, i)
           : job->kind == SCATTER                             ? given(job->root, self, i)
                                                              : given(of, job->kind == ALL_TO_ALL || job->kind == ALL_TO_ALL_UNEVEN ? self : 0, i);
}

static pcclResult_t call(struct peer *self, const struct call_job *job, const float *in, float *out)
{
    const size_t counts[WORLD] = {job->count, job->count, job->count};
    switch (job->kind) {
    case ALL_GATHER:
        return pcclAllGather(in, out, job->count, pcclFloat, self->comm, NULL);
    case BROADCAST:
        return pcclBroadcast(in, out, job->count, pcclFloat, job->root, self->comm, NULL);
    case REDUCE_SCATTER:
        return pcclReduceScatter(in, out, job->count, pcclFloat, pcclSum, self->comm, NULL);
    case REDUCE_SCATTER_TIMES: {
        const float quarter = 0.25F; /* summed up in accumulators, and encoded on its way */
        pcclRedOp_t op;
        pcclResult_t made = pcclRedOpCreatePreMulSum(&op, &quarter, pcclFloat, pcclFactorByValue, self->comm);
        pcclResult_t rc = made != pcclSuccess ? made : pcclReduceScatter(in, out, job->count, pcclFloat, op, self->comm, NULL);
        PEER_EXPECT(self, made != pcclSuccess || pcclRedOpDestroy(op, self->comm) == pcclSuccess);
        return rc;
    }
    case REDUCE:
        return pcclReduce(in, out, job->count, pcclFloat, pcclSum, job->root, self->comm, NULL);
    case SCATTER:
        return pcclScatter(in, out, job->count, pcclFloat, job->root, self->comm, NULL);
    case GATHER:
        return pcclGather(in, out, job->count, pcclFloat, job->root, self->comm, NULL);
    case GATHER_UNEVEN:
        return pcclGatherV(in, job->count, out, counts, NULL, pcclFloat, job->root, self->comm, NULL);
    case ALL_TO_ALL:
        return pcclAllToAll(in, out, job->count, pcclFloat, self->comm, NULL);
    case ALL_TO_ALL_UNEVEN:
        return pcclAllToAllV(in, counts, NULL, out, counts, NULL, pcclFloat, self->comm, NULL);
    case KINDS:
        break;
    }
    return pcclInvalidArgument;
}

/* argument: struct call_job; after a success every element is looked at. */
static void collective(struct peer *self, const void *argument, struct reply *reply)
{
    const struct call_job *job = argument;
    pcclPeerInfo_t me;
    if (peer_result(reply, pcclGetSelf(self->comm, &me)) != pcclSuccess) {
        return;
    }
    bool to_root = job->kind == REDUCE || job->kind == GATHER || job->kind == GATHER_UNEVEN;
    bool exchange = job->kind == ALL_TO_ALL || job->kind == ALL_TO_ALL_UNEVEN;
    size_t ins = reduces_parts(job->kind) || job->kind == SCATTER || exchange ? WORLD : 1;
    size_t outs = job->kind == ALL_GATHER || job->kind == GATHER || job->kind == GATHER_UNEVEN || exchange ? WORLD : 1;
    float *in = malloc(ins * job->count * sizeof *in), *out = malloc(outs * job->count * sizeof *out);
    for (size_t i = 0; i < ins * job->count; i++) {
        in[i] = given(me.rank, ins > 1 ? (uint32_t)(i / job->count) : 0, i % job->count);
    }
    pcclResult_t rc = peer_result(reply, call(self, job, in, out));
    for (size_t i = 0; rc == pcclSuccess && (!to_root || me.rank == job->root) && i < outs * job->count; i++) {
        PEER_EXPECT(self, out[i] == wanted(job, me.rank, (uint32_t)(i / job->count), i % job->count));
    }
    free(in);
    free(out);
}

/* Those with a link make a world of two, the other one is alone; a barrier there. */
static void split(struct peer *self, const void *argument, struct reply *reply)
{
    pcclComm_t *child = NULL;
    (void)argument;
    if (peer_result(reply, pcclSplitCommunicator(self->comm, self->index == 1, 0, NULL, &child)) == pcclSuccess) {
        int size = 0;
        PEER_EXPECT(self, pcclGetAttribute(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) == pcclSuccess);
        PEER_EXPECT(self, size == (self->index == 1 ? 1 : 2));
        PEER_EXPECT(self, size == 1 || pcclBarrier(child, NULL) == pcclSuccess);
        PEER_EXPECT(self, pcclDestroyCommunicator(child) == pcclSuccess);
    }
}

/* Each puts a number and large bytes into the windows of both others, counts there, and says so; looks at what it was given. */
static void window(struct peer *self, const void *argument, struct reply *reply)
{
    enum { LARGE = 20000 };
    static uint64_t memory[WORLD][1 + LARGE], own[1 + LARGE];
    pcclWindow_t *made = NULL;
    pcclPeerInfo_t me;
    const pcclWindowParams_t params = {.size = sizeof params, .memory = memory, .bytes = sizeof memory, .rights = pcclWindowAll};
    (void)argument;
    memset(memory, 0, sizeof memory);
    if (peer_result(reply, pcclCreateWindow(&params, self->comm, &made)) != pcclSuccess) {
        return;
    }
    PEER_EXPECT(self, pcclGetSelf(self->comm, &me) == pcclSuccess);
    for (size_t i = 0; i <= LARGE; i++) {
        own[i] = me.rank * 1000003 + i;
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        const uint64_t one = 1;
        uint64_t before = 7;
        if (r != me.rank) {
            PEER_EXPECT(self, pcclPut(own, sizeof own, r, me.rank * sizeof own, made, NULL) == pcclSuccess);
            PEER_EXPECT(self, pcclFetchAdd(&before, &one, pcclUint64, r, r * sizeof own, made, NULL) == pcclSuccess && before < 2);
            PEER_EXPECT(self, pcclSignal(r, made, NULL) == pcclSuccess);
        }
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        PEER_EXPECT(self, r == me.rank || pcclWaitSignal(r, made, -1, NULL) == pcclSuccess);
        for (size_t i = 0; r != me.rank && i <= LARGE; i++) {
            PEER_EXPECT(self, memory[r][i] == r * 1000003 + i);
        }
    }
    PEER_EXPECT(self, memory[me.rank][0] == WORLD - 1);
    peer_result(reply, pcclDestroyWindow(made));
}

struct message_job {
    size_t count;   /* floats */
    bool any;       /* whom a receive is from is not said */
    uint64_t after; /* process 2 kills itself when its sockets have moved so many bytes; 0: it does not */
};

/* Everybody sends to everybody; what has succeeded is right in every element. */
static void messages(struct peer *self, const void *argument, struct reply *reply)
{
    const struct message_job *job = argument;
    size_t bytes = job->count * sizeof(float);
    pcclPeerInfo_t me = {0};
    float *in = malloc(WORLD * bytes), *out = malloc(WORLD * bytes);
    pcclResult_t rc = pcclGetSelf(self->comm, &me), made[2 * WORLD] = {pcclSuccess};
    pcclAsyncOp_t op[2 * WORLD];
    struct watch w = {0};
    if (job->after > 0 && self->index == 2) {
        watch_start(&w, self, peer_socket_bytes, job->after, SIGKILL);
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        uint64_t mine = job->any ? 100 + me.rank : 5, theirs = job->any ? 100 + r : 5;
        for (size_t i = 0; i < job->count; i++) {
            in[r * job->count + i] = given(me.rank, r, i);
        }
        made[2 * r] = made[2 * r + 1] = pcclInvalidArgument;
        if (r != me.rank) {
            made[2 * r] = pcclSend(&in[r * job->count], job->count, pcclFloat, r, mine, self->comm, &op[2 * r]);
            made[2 * r + 1] = pcclReceive(&out[r * job->count], job->count, pcclFloat, job->any ? PCCL_ANY_RANK : r, theirs, NULL, self->comm,
                                          &op[2 * r + 1]);
        }
    }
    for (uint32_t i = 0; i < 2 * WORLD; i++) {
        pcclResult_t one = i / 2 == me.rank ? pcclSuccess : made[i] == pcclSuccess ? pcclAwaitAsync(&op[i], NULL) : made[i];
        for (size_t k = 0; one == pcclSuccess && i % 2 == 1 && i / 2 != me.rank && k < job->count; k++) {
            PEER_EXPECT(self, out[i / 2 * job->count + k] == given(i / 2, me.rank, k));
        }
        rc = rc == pcclSuccess ? one : rc;
    }
    peer_result(reply, rc);
    free(in);
    free(out);
}

static void everybody_sends(struct processes *all, const struct message_job *job)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 7, messages, job, sizeof *job, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        if (reply[i].result != pcclSuccess) {
            printf("# peer %d: %s\n", i, reply[i].text);
        }
    }
}

static void rank_of(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t me = {0};
    (void)argument;
    peer_result(reply, pcclGetSelf(self->comm, &me));
    reply->value[0] = me.rank;
}

/* The same result at all; those of cut links are called again. */
static int everybody(struct processes *all, const struct call_job *job)
{
    struct reply reply[PROCESSES_MOST];
    for (int errors = 0;; errors++) {
        processes_do(all, 7, collective, job, sizeof *job, reply);
        EXPECT(reply[1].result == reply[0].result && reply[2].result == reply[0].result);
        if (reply[0].result != pcclRankConnectionLost || errors > 6 || test_failures != 0) {
            return reply[0].result;
        }
    }
}

/* It goes between any two: as soon as the view does without their link, it says so. */
static void until_the_link_is_missed(struct processes *all)
{
    struct call_job job = {.kind = ALL_TO_ALL_UNEVEN, .count = 100000};
    int rc = everybody(all, &job);
    while (rc == pcclSuccess && test_failures == 0) {
        rc = everybody(all, &job);
    }
    EXPECT_EQ(rc, pcclInvalidUsage);
}

TEST(two_that_cannot_reach_each_other_gather_scatter_reduce_split_send_and_make_windows) /* all but all-reduce was InvalidUsage */
{
    struct network net;
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    const char *why = network_start(&net, WORLD);
    test_skipped = why != NULL ? why : test_skipped;
    if (why != NULL) {
        return;
    }
    if (!peers_start_on(&all, &net, &(struct processes_options){.count = WORLD, .failures = &test_failures, .pool = 2, .stall_ms = 800,
                                                                .dead_ms = "800", .loss_ms = 20000})) {
        network_stop(&net);
        return;
    }
    EXPECT(network_drop(&net, 0, 1, true) && network_drop(&net, 1, 0, true));
    until_the_link_is_missed(&all);
    processes_do(&all, 7, rank_of, NULL, 0, reply);
    uint32_t third = (uint32_t)reply[2].value[0];
    for (int kind = 0; kind < GATHER_UNEVEN; kind++) {
        for (uint32_t root = 0; root < (kind == BROADCAST || (kind >= REDUCE && kind != ALL_TO_ALL) ? WORLD : 1); root++) {
            EXPECT_EQ(everybody(&all, &(struct call_job){.kind = (enum kind)kind, .count = 3, .root = root}), pcclSuccess);
            EXPECT_EQ(everybody(&all, &(struct call_job){.kind = (enum kind)kind, .count = 300000, .root = root}), pcclSuccess);
        }
    }
    for (uint32_t root = 0; root < WORLD; root++) { /* only two know each count: nobody can stand in */
        int rc = everybody(&all, &(struct call_job){.kind = GATHER_UNEVEN, .count = 2000, .root = root});
        EXPECT_EQ(rc, root == third ? pcclSuccess : pcclInvalidUsage);
    }
    processes_do(&all, 7, split, NULL, 0, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        if (reply[i].result != pcclSuccess) {
            printf("# peer %d: %s\n", i, reply[i].text);
        }
    }
    processes_do(&all, 7, window, NULL, 0, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    for (int i = 0; i < 4; i++) {
        everybody_sends(&all, &(struct message_job){.count = i < 2 ? 3 : 300000, .any = i % 2 == 1});
    }
    processes_send(&all, 7, messages, &(struct message_job){.count = 2000000, .after = 3 << 20}, sizeof(struct message_job));
    process_wait_killed(&all, 2); /* who carries what the two say */
    processes_take(&all, 3, reply);
    EXPECT(reply[0].result != pcclSuccess && reply[1].result != pcclSuccess);
    processes_stop(&all);
    network_stop(&net);
}
