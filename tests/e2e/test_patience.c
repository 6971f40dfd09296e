/* test_patience.c - calls that give a handle and wait for a while: the operation has ended when they return, or goes on as ever.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/e2e/cluster.h"
#include "tests/e2e/trial.h"

enum { WORLD = 3, SHORT_MS = 2, TAG = 7 };

static uint32_t rank_of(struct cluster_peer *p)
{
    pcclPeerInfo_t self = {0};
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    return self.rank;
}

static void run(int world, void (*each)(struct cluster_peer *p, void *context))
{
    struct cluster c;
    cluster_start(&c, world, NULL, 2);
    cluster_run(&c, each, NULL);
    cluster_stop(&c);
}

/* Two of them, as several threads of a process share their lanes: one drives, the others sleep. */
static void launch_each_without_limit(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p);
    (void)context;
    EXPECT_EQ(pcclSetCallPatience(-1), pcclSuccess);
    for (int i = 0; i < TRIAL_KINDS * 4; i++) {
        struct trial t = {.kind = (enum trial_kind)(i / 4), .type = pcclInt32, .op = pcclSum, .count = i % 2 == 1 ? 60000 : 7,
                          .in_place = i / 2 % 2 == 1, .root = (uint32_t)i % WORLD, .number = (uint32_t)i};
        struct trial_buffers b = trial_make(&t, WORLD, self);
        pcclAsyncOp_t op;
        bool done = false;
        EXPECT_EQ(trial_call(&t, p->comm, WORLD, self, &b, &op), pcclSuccess);
        EXPECT_EQ(pcclTestAsync(&op, &done), pcclSuccess);
        EXPECT(done);
        EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclInvalidUsage); /* spent */
        EXPECT(trial_is_right(&t, WORLD, self, &b));
        trial_buffers_free(&b);
    }
    float x = (float)self + 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, TAG);
    pcclAsyncReduceOp_t reduce;
    pcclReduceInfo_t info = {0};
    bool done = false;
    EXPECT_EQ(pcclAllReduceAsync(&x, &y, &d, p->comm, &reduce), pcclSuccess);
    EXPECT_EQ(pcclTestAsyncReduce(&reduce, &done), pcclSuccess);
    EXPECT(done);
    EXPECT_EQ(pcclAwaitAsyncReduce(&reduce, &info), pcclSuccess);
    EXPECT_EQ(info.local_world_size, WORLD);
    EXPECT_EQ(y, 1 + 2 + 3);
    EXPECT_EQ(pcclSetCallPatience(0), pcclSuccess);
}

TEST(what_was_launched_without_limit_has_ended_when_the_call_returns)
{
    run(WORLD, launch_each_without_limit);
}

/* The others come only when rank 0's call has returned: it must, and goes on without its thread. */
static atomic_bool returned;

static void launch_and_go_on(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p);
    int64_t patience = self == 0 ? SHORT_MS : 0;
    int32_t x = (int32_t)self + 1, y = 0;
    pcclAsyncOp_t op;
    pcclCompletion_t end;
    bool done = true;
    (void)context;
    while (self != 0 && !atomic_load(&returned)) {
        sched_yield();
    }
    EXPECT_EQ(pcclSetCallPatience(patience), pcclSuccess);
    EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclInt32, pcclSum, p->comm, &op), pcclSuccess);
    EXPECT_EQ(pcclSetCallPatience(0), pcclSuccess);
    if (self == 0) {
        EXPECT_EQ(pcclTestAsync(&op, &done), pcclSuccess);
        EXPECT(!done);
        atomic_store(&returned, true);
    } else { /* rank 0 waits for nothing: its pollers have to carry on */
        EXPECT_EQ(pcclWaitAsync(&op, -1, &end, &done), pcclSuccess);
        EXPECT(done);
        EXPECT_EQ(end.result, pcclSuccess);
    }
    EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclSuccess);
    EXPECT_EQ(y, 1 + 2 + 3);
}

TEST(a_call_whose_others_do_not_come_returns_in_time_and_goes_on)
{
    atomic_store(&returned, false);
    run(WORLD, launch_and_go_on);
}

/* Each sends first: with a wait at the first of them neither would come to its receive. */
static void exchange_in_a_group(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p), other = 1 - self;
    static int32_t out[2][300000], in[2][300000];
    const size_t count = sizeof out[0] / sizeof out[0][0];
    (void)context;
    for (size_t i = 0; i < count; i++) {
        out[self][i] = (int32_t)(i * (self + 1));
    }
    EXPECT_EQ(pcclSetCallPatience(-1), pcclSuccess);
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclSend(out[self], count, pcclInt32, other, TAG, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclReceive(in[self], count, pcclInt32, other, TAG, NULL, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclGroupEnd(), pcclSuccess);
    EXPECT_EQ(pcclSetCallPatience(0), pcclSuccess);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += in[self][i] != (int32_t)(i * (other + 1));
    }
    EXPECT_EQ(wrong, 0);
}

TEST(calls_in_a_group_wait_for_nothing)
{
    run(2, exchange_in_a_group);
}

TEST(patience_has_no_other_meaning_below_nothing)
{
    pcclErrorInfo_t why = {0};
    EXPECT_EQ(pcclSetCallPatience(-2), pcclInvalidArgument);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT(strstr(pcclGetLastError(), "timeout_ms is -2") != NULL);
}
