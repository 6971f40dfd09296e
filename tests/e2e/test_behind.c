/* test_behind.c - hundreds of calls in the order of issue fail, one after the other, and the calls after them go on.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <pthread.h>

#include "core/bounds.h"
#include "tests/e2e/cluster.h"

enum { WORLD = 3, CALLS = 2 * BOUNDS_BEHIND + 88, SHORT_MS = 1 };

static pthread_barrier_t here; /* of all threads, as a barrier of the library would be one of the calls */

static uint32_t rank_of(struct cluster_peer *p)
{
    pcclPeerInfo_t self = {0};
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    return self.rank;
}

static void run(void (*each)(struct cluster_peer *p, void *context))
{
    struct cluster c;
    pthread_barrier_init(&here, NULL, WORLD);
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, each, NULL);
    cluster_stop(&c);
    pthread_barrier_destroy(&here);
}

static void expect_success(struct cluster_peer *p)
{
    float x = (float)(1 << rank_of(p)), y = 0;
    EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclFloat, pcclSum, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(y, (1 << WORLD) - 1);
}

/* Rank 0 gives up on the others again and again; the second one comes to its calls beside it, the last one later. */
static void calls_of_one_pass_their_deadlines(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p);
    (void)context;
    if (self == WORLD - 1) {
        pthread_barrier_wait(&here);
    }
    EXPECT_EQ(pcclSetCallDeadline(self == 0 ? SHORT_MS : -1), pcclSuccess);
    for (int i = 0; i < CALLS; i++) {
        float x = 1, y = 0;
        pcclErrorInfo_t why = {0};
        EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclFloat, pcclSum, p->comm, NULL), pcclRankConnectionLost);
        EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
        EXPECT_EQ(why.cause, pcclCauseDeadline);
        EXPECT_EQ(x, 1);
    }
    EXPECT_EQ(pcclSetCallDeadline(-1), pcclSuccess);
    if (self != WORLD - 1) {
        pthread_barrier_wait(&here);
    }
    expect_success(p);
}

TEST(a_member_may_give_up_on_a_late_one_as_often_as_it_likes) /* the 65th of such calls never returned, and the late one hung with it */
{
    run(calls_of_one_pass_their_deadlines);
}

static void await_refused(pcclAsyncOp_t *op, pcclResult_t want, pcclCause_t cause)
{
    pcclErrorInfo_t why = {0};
    EXPECT_EQ(pcclAwaitAsync(op, NULL), want);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT_EQ(why.cause, cause);
}

/* All members make the same calls, asynchronously, and each cancels some of them at once. */
static void all_are_cancelled(struct cluster_peer *p, void *context)
{
    static float x[WORLD][CALLS], y[WORLD][CALLS];
    static pcclAsyncOp_t op[WORLD][CALLS];
    uint32_t self = rank_of(p);
    (void)context;
    for (int i = 0; i < CALLS; i++) {
        EXPECT_EQ(pcclAllReduceOrdered(&x[self][i], &y[self][i], 1, pcclFloat, pcclSum, p->comm, &op[self][i]), pcclSuccess);
        if (self == 0) {
            EXPECT_EQ(pcclCancelAsync(&op[self][i]), pcclSuccess);
        }
        if (i == CALLS / 2) { /* the others come to the second half when all of it has been cancelled */
            if (self != 0) {
                pthread_barrier_wait(&here);
            }
        }
    }
    if (self == 0) {
        pthread_barrier_wait(&here);
    }
    for (int i = 0; i < CALLS; i++) {
        if (i > CALLS / 2) {
            await_refused(&op[self][i], pcclRankConnectionLost, pcclCauseCancelled);
        } else { /* it may be complete by then */
            EXPECT_EQ(pcclAwaitAsync(&op[self][i], NULL) & ~pcclRankConnectionLost, pcclSuccess);
        }
    }
    expect_success(p);
}

TEST(hundreds_of_calls_are_cancelled_at_once_and_the_next_one_has_its_values)
{
    run(all_are_cancelled);
}

/* All members make the same wrong calls, one after the other or all at once. */
static void all_are_wrong(struct cluster_peer *p, void *context)
{
    static pcclAsyncOp_t op[WORLD][CALLS];
    static bool open[WORLD][CALLS];
    uint32_t self = rank_of(p);
    float x = 1, y = 0;
    (void)context;
    for (int i = 0; i < CALLS; i++) {
        pcclResult_t result = pcclBroadcast(&x, &y, 1, pcclFloat, WORLD + 5, p->comm, &op[self][i]);
        open[self][i] = result == pcclSuccess;
        EXPECT(open[self][i] || result == pcclInvalidArgument);
    }
    for (int i = 0; i < CALLS; i++) {
        if (open[self][i]) {
            await_refused(&op[self][i], pcclInvalidArgument, pcclCauseUsage);
        }
    }
    expect_success(p);
}

TEST(hundreds_of_calls_with_a_wrong_root_fail_and_the_next_one_has_its_values)
{
    run(all_are_wrong);
}

/* A call too far ahead of the others is listed by name, and ends with a cancel. */
static void the_next_one_is_cancelled(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p);
    pcclAsyncOp_t op;
    float x = 1, y = 0;
    (void)context;
    if (self != 0) {
        pthread_barrier_wait(&here);
    }
    for (int i = 0; i < BOUNDS_BEHIND; i++) {
        EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclFloat, pcclSum, p->comm, &op), pcclSuccess);
        EXPECT(self != 0 || pcclCancelAsync(&op) == pcclSuccess);
        await_refused(&op, pcclRankConnectionLost, pcclCauseCancelled);
    }
    EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclFloat, pcclSum, p->comm, &op), pcclSuccess);
    if (self == 0) {
        pcclWaitInfo_t waits[8];
        size_t count = 0;
        EXPECT_EQ(pcclGetWaits(p->comm, waits, 8, &count), pcclSuccess);
        EXPECT_EQ(count, WORLD - 1);
        EXPECT(strcmp(waits[0].phase, "launch") == 0 && strstr(waits[0].text, "operation 0 in the order of issue") != NULL);
        EXPECT_EQ(pcclCancelAsync(&op), pcclSuccess);
    }
    await_refused(&op, pcclRankConnectionLost, pcclCauseCancelled);
    if (self == 0) {
        pthread_barrier_wait(&here);
    }
    expect_success(p);
}

TEST(a_call_too_far_ahead_of_the_others_is_listed_and_ends_with_a_cancel)
{
    run(the_next_one_is_cancelled);
}

/* The others vote, which they do without the calls that rank 0 has made. */
static void the_others_vote(struct cluster_peer *p, void *context)
{
    uint32_t self = rank_of(p);
    pcclErrorInfo_t why = {0};
    float x = 1, y = 0;
    pcclAsyncOp_t op;
    (void)context;
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess); /* a newcomer's first one is answered alone */
    for (int i = 0; self == 0 && i < BOUNDS_BEHIND; i++) {
        EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclFloat, pcclSum, p->comm, &op), pcclSuccess);
        EXPECT_EQ(pcclCancelAsync(&op), pcclSuccess);
        await_refused(&op, pcclRankConnectionLost, pcclCauseCancelled);
    }
    pthread_barrier_wait(&here);
    if (self == 0) {
        EXPECT_EQ(pcclAllReduceOrdered(&x, &y, 1, pcclFloat, pcclSum, p->comm, NULL), pcclRankConnectionLost);
        EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
        EXPECT_EQ(why.cause, pcclCauseConflict);
    }
    EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    expect_success(p);
}

TEST(a_call_too_far_ahead_of_members_that_vote_ends_as_one_that_is_launched) /* the master heard of no wait, so that all waited for ever */
{
    run(the_others_vote);
}
