/* test_window_end.c - how windows end: while others wait for signals, beside the end of their communicator, with nobody else left.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

struct mine {
    pcclComm_t *comm;
    pcclWindow_t *window;
    uint32_t rank;
    pcclResult_t result; /* of a thread of its own */
    pcclErrorInfo_t why;
};

static struct mine make(struct cluster_peer *p)
{
    struct mine m = {.comm = p->comm};
    pcclPeerInfo_t self = {0};
    pcclWindowParams_t params = {.size = sizeof params, .bytes = 64, .rights = pcclWindowAll};
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    m.rank = self.rank;
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &m.window), pcclSuccess);
    return m;
}

static void wait_for(struct mine *m, uint32_t rank)
{
    m->result = pcclWaitSignal(rank, m->window, -1, NULL);
    if (m->result != pcclSuccess) {
        EXPECT_EQ(pcclGetLastErrorInfo(&m->why), pcclSuccess);
    }
}

static void *wait_for_other(void *arg)
{
    struct mine *m = arg;
    wait_for(m, 1 - m->rank);
    return NULL;
}

static void *wait_for_self(void *arg)
{
    struct mine *m = arg;
    wait_for(m, m->rank);
    return NULL;
}

static void *destroy_window(void *arg)
{
    EXPECT_EQ(pcclDestroyWindow(((struct mine *)arg)->window), pcclSuccess);
    return NULL;
}

static void *destroy_communicator(void *arg)
{
    EXPECT_EQ(pcclDestroyCommunicator(((struct mine *)arg)->comm), pcclSuccess);
    return NULL;
}

static void run(int world, void (*what)(struct cluster_peer *, void *))
{
    struct cluster c;
    cluster_start(&c, world, NULL, 1);
    cluster_run(&c, what, NULL);
    cluster_stop(&c);
}

/* Rank 1 waits for rank 0, which destroys its window; the signals it sent before count. */
static void left_waiting(struct cluster_peer *p, void *context)
{
    struct mine m = make(p);
    (void)context;
    if (m.rank == 0) {
        EXPECT_EQ(pcclSignal(1, m.window, NULL), pcclSuccess);
    } else {
        EXPECT_EQ(pcclWaitSignal(0, m.window, -1, NULL), pcclSuccess);
        wait_for(&m, 0);
        EXPECT_EQ(m.result, pcclInvalidUsage);
        EXPECT(strstr(m.why.text, "rank 0 has destroyed its window") != NULL);
        EXPECT_EQ(pcclWaitSignal(0, m.window, -1, NULL), pcclInvalidUsage);
    }
    EXPECT_EQ(pcclDestroyWindow(m.window), pcclSuccess);
}

TEST(a_wait_ends_when_nobody_signals_any_more)
{
    run(2, left_waiting);
}

/* Other threads of both wait, for the other end and for their own, while both are in the call that destroys it. */
static void waiting_in_threads(struct cluster_peer *p, void *context)
{
    struct mine m = make(p), n = m;
    pthread_t thread[2];
    (void)context;
    EXPECT_EQ(pthread_create(&thread[0], NULL, wait_for_other, &m), 0);
    EXPECT_EQ(pthread_create(&thread[1], NULL, wait_for_self, &n), 0);
    EXPECT_EQ(pcclDestroyWindow(m.window), pcclSuccess);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    }
    EXPECT(m.result == pcclInvalidUsage && n.result == pcclInvalidUsage);
}

TEST(to_destroy_a_window_ends_the_waits_of_other_threads)
{
    for (int i = 0; i < 20; i++) {
        run(2, waiting_in_threads);
    }
}

/* In any order, at once, while a third thread waits for a signal. */
static void both_at_once(struct cluster_peer *p, void *context)
{
    struct mine m = make(p);
    pthread_t thread[3];
    uint64_t one = 1;
    (void)context;
    EXPECT_EQ(pcclFetchAdd(NULL, &one, pcclUint64, 1 - m.rank, 0, m.window, NULL), pcclSuccess);
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pthread_create(&thread[0], NULL, wait_for_other, &m), 0);
    EXPECT_EQ(pthread_create(&thread[1], NULL, destroy_window, &m), 0);
    EXPECT_EQ(pthread_create(&thread[2], NULL, destroy_communicator, &m), 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    }
    EXPECT(m.result == pcclInvalidUsage || m.result == pcclMasterConnectionFailed || m.result == pcclRankConnectionLost);
    p->comm = NULL;
}

TEST(a_window_and_its_communicator_may_be_destroyed_at_once)
{
    for (int i = 0; i < 60; i++) {
        run(2, both_at_once);
    }
}

/* Both destroy it while a large get and many numbers are under way: they end with success first. */
static void under_way(struct cluster_peer *p, void *context)
{
    enum { BYTES = 32 << 20, ADDS = 100 };
    unsigned char *memory = malloc(BYTES), *out = calloc(1, BYTES);
    pcclWindow_t *window = NULL;
    pcclPeerInfo_t self = {0};
    pcclAsyncOp_t get, add[ADDS];
    uint64_t one = 1;
    size_t wrong = 0;
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    memset(memory, 3 + (int)self.rank, BYTES);
    memset(memory, 0, sizeof one);
    pcclWindowParams_t params = {.size = sizeof params, .memory = memory, .bytes = BYTES, .rights = pcclWindowAll};
    EXPECT_EQ(pcclCreateWindow(&params, p->comm, &window), pcclSuccess);
    EXPECT_EQ(pcclGet(out + 8, BYTES - 8, 1 - self.rank, 8, window, &get), pcclSuccess);
    for (int i = 0; i < ADDS; i++) {
        EXPECT_EQ(pcclFetchAdd(NULL, &one, pcclUint64, 1 - self.rank, 0, window, &add[i]), pcclSuccess);
    }
    EXPECT_EQ(pcclDestroyWindow(window), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&get, NULL), pcclSuccess);
    for (int i = 0; i < ADDS; i++) {
        EXPECT_EQ(pcclAwaitAsync(&add[i], NULL), pcclSuccess);
    }
    for (size_t i = 8; i < BYTES; i++) {
        wrong += out[i] != 3 + 1 - self.rank;
    }
    EXPECT_EQ(wrong, 0);
    memcpy(&one, memory, sizeof one);
    EXPECT_EQ(one, ADDS);
    free(memory);
    free(out);
}

TEST(to_destroy_a_window_waits_for_what_is_under_way)
{
    run(2, under_way);
}

/* Rank 1 goes; rank 0, alone, waits for itself, then leaves. */
static void left_alone(struct cluster_peer *p, void *context)
{
    struct mine m = make(p);
    pcclWindowInfo_t info = {0};
    pcclAsyncOp_t wait;
    (void)context;
    if (m.rank == 1) {
        EXPECT_EQ(pcclDestroyCommunicator(p->comm), pcclSuccess);
        p->comm = NULL;
    } else {
        while (!info.lost) {
            EXPECT_EQ(pcclGetWindowInfo(m.window, 1, &info), pcclSuccess);
            sched_yield();
        }
        EXPECT_EQ(pcclWaitSignal(1, m.window, -1, NULL), pcclRankConnectionLost);
        EXPECT_EQ(pcclWaitSignal(0, m.window, -1, &wait), pcclSuccess);
        EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&wait, NULL), pcclMasterConnectionFailed);
        EXPECT_EQ(pcclWaitSignal(0, m.window, -1, NULL), pcclMasterConnectionFailed);
    }
    EXPECT_EQ(pcclDestroyWindow(m.window), pcclSuccess);
}

TEST(to_leave_ends_waits_of_one_that_is_alone)
{
    run(2, left_alone);
}

/* Rank 1 signals and goes at once: what it sent is there, then it is lost. */
static void last_signal(struct cluster_peer *p, void *context)
{
    struct mine m = make(p);
    (void)context;
    if (m.rank == 1) {
        EXPECT_EQ(pcclSignal(0, m.window, NULL), pcclSuccess);
        EXPECT_EQ(pcclDestroyCommunicator(p->comm), pcclSuccess);
        p->comm = NULL;
    } else {
        EXPECT_EQ(pcclWaitSignal(1, m.window, -1, NULL), pcclSuccess);
        EXPECT_EQ(pcclWaitSignal(1, m.window, -1, NULL), pcclRankConnectionLost);
    }
    EXPECT_EQ(pcclDestroyWindow(m.window), pcclSuccess);
}

TEST(a_signal_that_has_come_outlives_its_sender)
{
    for (int i = 0; i < 10; i++) {
        run(2, last_signal);
    }
}
