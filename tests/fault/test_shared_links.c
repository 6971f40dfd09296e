/* test_shared_links.c - control links in shared memory between processes: answers of one that does nothing, and its death.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <signal.h>
#include <stdlib.h>

#include "tests/fault/peer_calls.h"

enum { ASKED = 10, TAG = 10 };

static bool shares(struct peer *self)
{
    pcclTransport_t t[64];
    size_t count = 0, shared = 0, links = 0;
    PEER_EXPECT(self, pcclGetTransports(self->comm, t, 64, &count) == pcclSuccess);
    for (size_t k = 0; k < count; k++) {
        links += t[k].lane == UINT32_MAX;
        shared += t[k].lane == UINT32_MAX && t[k].kind == pcclTransportSharedMemory;
    }
    return shared == links && links > 0;
}

/* Small reduces until all links of all members share memory.  argument: int, the members.  value[0]: whether they do. */
static void reduce_until_shared(struct peer *self, const void *argument, struct reply *reply)
{
    pcclReduceDescriptor_t d = peer_floats(1, TAG + 1);
    float members = (float)*(const int *)argument, all = 0;
    for (int i = 0; i < 100000 && all < members && reply->result == pcclSuccess; i++) {
        float mine = shares(self);
        peer_result(reply, pcclAllReduce(&mine, &all, &d, self->comm, NULL));
    }
    reply->value[0] = all == members;
}

/* Launches and takes back; the others, whose programs do nothing, have to answer.  value[0]: how often they did. */
static void ask_who_is_away(struct peer *self, const void *argument, struct reply *reply)
{
    pcclReduceDescriptor_t d = peer_floats(1, TAG);
    pcclAsyncReduceOp_t op;
    pcclErrorInfo_t why;
    float x = 1, y = 0;
    (void)argument;
    for (int i = 0; i < ASKED; i++) {
        PEER_EXPECT(self, pcclAllReduceAsync(&x, &y, &d, self->comm, &op) == pcclSuccess);
        PEER_EXPECT(self, pcclCancelAsyncReduce(&op) == pcclSuccess);
        pcclResult_t rc = pcclAwaitAsyncReduce(&op, NULL);
        PEER_EXPECT(self, pcclGetLastErrorInfo(&why) == pcclSuccess);
        reply->value[0] += rc == pcclRankConnectionLost && why.cause == pcclCauseCancelled;
    }
}

/* value[0]: how many of those it was told of. */
static void hear_of_it(struct peer *self, const void *argument, struct reply *reply)
{
    pcclReduceDescriptor_t d = peer_floats(1, TAG);
    float x = 1, y = 0;
    (void)argument;
    for (int i = 0; i < ASKED; i++) {
        reply->value[0] += pcclAllReduce(&x, &y, &d, self->comm, NULL) == pcclRankConnectionLost;
    }
}

TEST(frames_are_served_while_nobody_polls) /* what was looked at while a call polled has to ring when it is gone */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    int two = 2;
    unsetenv("PCCL_SHM_DISABLE"); /* whatever this program is started with */
    if (!peers_start(&all, &(struct processes_options){.count = 2, .failures = &test_failures, .pool = 1})) {
        return;
    }
    for (int i = 0; i < 5; i++) {
        processes_do(&all, 3, reduce_until_shared, &two, sizeof two, reply);
        EXPECT(reply[0].value[0] == 1 && reply[1].value[0] == 1);
        EXPECT_EQ(process_do(&all, i % 2, ask_who_is_away, NULL, 0).value[0], ASKED);
        EXPECT_EQ(process_do(&all, 1 - i % 2, hear_of_it, NULL, 0).value[0], ASKED);
    }
    processes_stop(&all);
}

TEST(a_death_behind_memory_is_seen_at_once) /* long before silence would tell: the socket has closed */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    int three = 3;
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1, .stall_ms = 60000, .dead_ms = "60000"};
    unsetenv("PCCL_SHM_DISABLE");
    if (!peers_start(&all, &o)) {
        return;
    }
    processes_do(&all, 7, reduce_until_shared, &three, sizeof three, reply);
    struct reduce_job job = {.count = 10, .tag = 3, .members = 7, .announce = true};
    for (int i = 0; i < 2; i++) {
        process_send(&all, i, peer_reduce, &job, sizeof job);
    }
    process_note(&all, 0);
    process_note(&all, 1);
    process_signal(&all, 2, SIGKILL);
    processes_take(&all, 3, reply);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
    }
    job = (struct reduce_job){.count = 10, .tag = 4, .members = 3};
    processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
    EXPECT(reply[0].result == pcclSuccess && reply[1].result == pcclSuccess);
    processes_stop(&all);
}
