/* test_completion.c - completion queues, waits by several threads, drains, through the public interface and by value.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/cluster.h"

enum { ROUNDS = 40, TAKERS = 3, PEERS = 2 };

static struct cluster all;
static float in[PEERS][2 * ROUNDS], out[PEERS][2 * ROUNDS];

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* ---- Several communicators, both kinds of handles, several threads at one queue ---- */

static pcclCompletionQueue_t *shared_queue;
static atomic_int times[PEERS * 2 * ROUNDS], taken;

static void *take(void *unused)
{
    pcclCompletion_t got[5];
    size_t count = 0;
    while (pcclQueueWait(shared_queue, got, 5, -1, &count) == pcclSuccess && count > 0) {
        for (size_t i = 0; i < count; i++) {
            EXPECT(got[i].result == pcclSuccess && got[i].info.local_world_size == PEERS && got[i].error.text[0] == 0);
            if (atomic_fetch_add(&times[got[i].cookie], 1) == 0) {
                atomic_fetch_add(&taken, 1);
            }
        }
    }
    return unused; /* woken with nothing there */
}

TEST(threads_share_what_a_queue_hands_out_each_once) /* lost, or told to two */
{
    pthread_t taker[TAKERS];
    static pcclAsyncReduceOp_t tagged[PEERS][ROUNDS];
    static pcclAsyncOp_t ordered[PEERS][ROUNDS];
    cluster_start(&all, PEERS, NULL, 1);
    EXPECT_EQ(pcclCreateCompletionQueue(&shared_queue), pcclSuccess);
    atomic_store(&taken, 0);
    for (int i = 0; i < TAKERS; i++) {
        EXPECT_EQ(pthread_create(&taker[i], NULL, take, NULL), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        for (int p = 0; p < PEERS; p++) {
            pcclReduceDescriptor_t d = cluster_floats(1, (uint64_t)i + 1);
            in[p][2 * i] = (float)(i + p);
            in[p][2 * i + 1] = (float)(i * 3 + p);
            EXPECT_EQ(pcclAllReduceAsync(&in[p][2 * i], &out[p][2 * i], &d, all.peer[p].comm, &tagged[p][i]), pcclSuccess);
            EXPECT_EQ(pcclAllReduceOrdered(&in[p][2 * i + 1], &out[p][2 * i + 1], 1, pcclFloat, pcclSum, all.peer[p].comm,
                                           &ordered[p][i]), pcclSuccess);
            uint64_t cookie = (uint64_t)(p * 2 * ROUNDS + 2 * i);
            EXPECT_EQ(pcclQueueAttachReduce(shared_queue, &tagged[p][i], cookie), pcclSuccess);
            EXPECT_EQ(pcclQueueAttach(shared_queue, &ordered[p][i], cookie + 1), pcclSuccess);
        }
    }
    for (int p = 0; p < PEERS; p++) {
        for (int i = 0; i < ROUNDS; i++) { /* beside the deliveries, before or after */
            EXPECT_EQ(pcclAwaitAsyncReduce(&tagged[p][i], NULL), pcclSuccess);
            EXPECT_EQ(pcclAwaitAsync(&ordered[p][i], NULL), pcclSuccess);
            EXPECT_EQ(pcclQueueAttach(shared_queue, &ordered[p][i], 0), pcclInvalidUsage);
            EXPECT(out[p][2 * i] == (float)(2 * i + 1) && out[p][2 * i + 1] == (float)(6 * i + 1));
        }
    }
    while (atomic_load(&taken) < PEERS * 2 * ROUNDS) {
        sched_yield();
    }
    EXPECT_EQ(pcclDestroyCompletionQueue(shared_queue), pcclSuccess);
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(taker[i], NULL);
    }
    for (int i = 0; i < PEERS * 2 * ROUNDS; i++) {
        EXPECT_EQ(atomic_load(&times[i]), 1);
    }
    EXPECT_EQ(pcclQueueWake(shared_queue), pcclInvalidUsage);
    EXPECT_EQ(pcclDestroyCompletionQueue(shared_queue), pcclInvalidUsage);
    cluster_stop(&all);
}

/* ---- One handle, several threads ---- */

struct reader {
    pcclAsyncOp_t op;
    pcclCompletion_t got;
    bool done;
    pcclResult_t result;
};

static void *read_it(void *argument)
{
    struct reader *r = argument;
    r->result = pcclWaitAsync(&r->op, -1, &r->got, &r->done);
    return NULL;
}

TEST(all_who_wait_for_a_handle_read_the_same) /* the second was refused, or read what was freed */
{
    struct reader r[TAKERS];
    pthread_t thread[TAKERS];
    pcclAsyncOp_t mine, others;
    pcclCompletion_t got = {.cookie = 9};
    bool done = true;
    size_t left = 7;
    float x = 2, y = 5, sum[2] = {0, 0};
    cluster_start(&all, PEERS, NULL, 1);
    EXPECT_EQ(pcclDrain(all.peer[0].comm, -1, &left), pcclSuccess);
    EXPECT_EQ(left, 0);
    EXPECT_EQ(pcclAllReduceOrdered(&x, &sum[0], 1, pcclFloat, pcclSum, all.peer[0].comm, &mine), pcclSuccess);
    EXPECT_EQ(pcclWaitAsync(&mine, 1, &got, &done), pcclSuccess);
    EXPECT(!done && got.cookie == 9);
    EXPECT_EQ(pcclDrain(all.peer[0].comm, 0, &left), pcclSuccess);
    EXPECT_EQ(left, 1);
    for (int i = 0; i < TAKERS; i++) {
        r[i] = (struct reader){.op = mine};
        EXPECT_EQ(pthread_create(&thread[i], NULL, read_it, &r[i]), 0);
    }
    EXPECT_EQ(pcclAllReduceOrdered(&y, &sum[1], 1, pcclFloat, pcclSum, all.peer[1].comm, &others), pcclSuccess);
    EXPECT_EQ(pcclDrain(all.peer[0].comm, -1, &left), pcclSuccess);
    EXPECT_EQ(left, 0);
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(thread[i], NULL);
        EXPECT(r[i].result == pcclSuccess && r[i].done && r[i].got.result == pcclSuccess && r[i].got.info.local_world_size == PEERS);
    }
    EXPECT(sum[0] == 7);
    EXPECT_EQ(pcclAwaitAsync(&mine, NULL), pcclSuccess); /* read, not spent */
    EXPECT_EQ(pcclWaitAsync(&mine, -1, &got, &done), pcclInvalidUsage);
    EXPECT_EQ(pcclAwaitAsync(&others, NULL), pcclSuccess);
    EXPECT(sum[1] == 7);
    cluster_stop(&all);
}

/* ---- What goes before it is delivered ---- */

TEST(a_queue_outlives_communicators_and_they_it) /* deliveries lost, inputs not restored, memory freed under the other */
{
    pcclCompletionQueue_t *q = NULL, *other = NULL;
    pcclAsyncOp_t a, b;
    pcclCompletion_t got[4];
    size_t count = 9;
    int fd = -1;
    float x = 3, y = 4, z = 0;
    cluster_start(&all, PEERS, NULL, 1);
    EXPECT_EQ(pcclCreateCompletionQueue(&q), pcclSuccess);
    EXPECT_EQ(pcclCreateCompletionQueue(&other), pcclSuccess);
    EXPECT_EQ(pcclQueueDescriptor(q, &fd), pcclSuccess);
    EXPECT_EQ(pcclAllReduceOrdered(&x, &x, 1, pcclFloat, pcclSum, all.peer[0].comm, &a), pcclSuccess);
    EXPECT_EQ(pcclAllReduceOrdered(&y, &z, 1, pcclFloat, pcclSum, all.peer[0].comm, &b), pcclSuccess);
    EXPECT_EQ(pcclQueueAttach(q, &a, 11), pcclSuccess);
    EXPECT_EQ(pcclQueueAttach(q, &a, 12), pcclInvalidUsage);
    EXPECT_EQ(pcclQueueAttach(other, &b, 13), pcclSuccess);
    EXPECT(!readable(fd));
    EXPECT_EQ(pcclQueueWait(q, got, 4, 1, &count), pcclSuccess);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(pcclDestroyCompletionQueue(other), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(all.peer[0].comm), pcclSuccess);
    all.peer[0].comm = NULL;
    EXPECT(readable(fd));
    EXPECT_EQ(pcclQueueWait(q, got, 4, -1, &count), pcclSuccess);
    EXPECT_EQ(count, 1);
    EXPECT(got[0].cookie == 11 && got[0].result == pcclMasterConnectionFailed && got[0].error.result == got[0].result);
    EXPECT(x == 3);
    EXPECT(!readable(fd));
    EXPECT_EQ(pcclDestroyCompletionQueue(q), pcclSuccess);
    cluster_stop(&all);
}

TEST(a_forked_child_has_nothing_of_a_queue) /* it would wait with locks that nobody opens */
{
    pcclCompletionQueue_t *q = NULL;
    pcclCompletion_t got;
    size_t count = 0;
    int status = -1;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCompletionQueue(&q), pcclSuccess);
    pid_t child = fork();
    if (child == 0) {
        bool good = pcclQueueWait(q, &got, 1, -1, &count) == pcclInvalidUsage && pcclQueueWake(q) == pcclInvalidUsage &&
                    pcclDestroyCompletionQueue(q) == pcclSuccess && pcclDestroyCompletionQueue(q) == pcclInvalidUsage;
        _exit(good ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT_EQ(pcclQueueWake(q), pcclSuccess);
    EXPECT_EQ(pcclQueueWait(q, &got, 1, -1, &count), pcclSuccess);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(pcclDestroyCompletionQueue(q), pcclSuccess);
}

enum { ASLEEP = 3 };

struct sleeper {
    pcclAsyncOp_t op;
    atomic_int thread; /* as the system knows it */
    pcclResult_t result, ended;
};

static void *sleep_in_it(void *argument)
{
    struct sleeper *s = argument;
    pcclCompletion_t end = {0};
    bool done = false;
    atomic_store(&s->thread, (int)syscall(SYS_gettid));
    s->result = pcclWaitAsync(&s->op, -1, &end, &done);
    s->ended = end.result;
    return NULL;
}

/* The system says that it sleeps. */
static bool sleeps(struct sleeper *s)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&s->thread));
    FILE *f = atomic_load(&s->thread) != 0 ? fopen(path, "re") : NULL;
    bool read = f != NULL && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
    if (f != NULL) {
        fclose(f);
    }
    return read && state == 'S';
}

TEST(a_forked_child_frees_what_threads_of_its_parent_wait_for) /* it waited for these threads, for ever: as data loaders do that end */
{
    struct cluster c;
    struct sleeper sleeper[ASLEEP];
    pthread_t threads[ASLEEP];
    pcclAsyncOp_t op;
    float x = 0;
    int status = -1;
    cluster_start(&c, 2, NULL, 1);
    EXPECT_EQ(pcclReceive(&x, 1, pcclFloat, PCCL_ANY_RANK, 1, NULL, c.peer[0].comm, &op), pcclSuccess); /* of nobody */
    for (int i = 0; i < ASLEEP; i++) {
        sleeper[i] = (struct sleeper){.op = op};
        EXPECT_EQ(pthread_create(&threads[i], NULL, sleep_in_it, &sleeper[i]), 0);
    }
    for (int i = 0; i < ASLEEP; i++) {
        while (!sleeps(&sleeper[i])) {
            sched_yield();
        }
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(20); /* ends it */
        bool good = pcclDestroyCommunicator(c.peer[0].comm) == pcclSuccess && pcclDestroyCommunicator(c.peer[1].comm) == pcclSuccess;
        _exit(good ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT_EQ(pcclCancelAsync(&op), pcclSuccess);
    for (int i = 0; i < ASLEEP; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_EQ(sleeper[i].result, pcclSuccess);
        EXPECT_EQ(sleeper[i].ended, pcclRankConnectionLost);
    }
    EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclRankConnectionLost);
    cluster_stop(&c);
}

TEST(mistakes_with_queues_are_named)
{
    pcclCompletionQueue_t *q = NULL;
    pcclCompletion_t got;
    size_t count = 3;
    EXPECT_EQ(pcclCreateCompletionQueue(NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclCreateCompletionQueue(&q), pcclSuccess);
    EXPECT_EQ(pcclQueueWait(q, NULL, 1, 0, &count), pcclInvalidArgument);
    EXPECT_EQ(pcclQueueWait(q, &got, 0, 0, &count), pcclInvalidArgument);
    EXPECT_EQ(pcclQueueWait(q, &got, 1, -2, &count), pcclInvalidArgument);
    EXPECT_STR(pcclGetLastError(), "queue wait: timeout_ms is -2: expected -1 (no limit), 0 or more");
    EXPECT_EQ(pcclQueueWait(NULL, &got, 1, 0, &count), pcclInvalidArgument);
    EXPECT_EQ(pcclQueueAttach(q, NULL, 0), pcclInvalidArgument);
    EXPECT_EQ(pcclQueueDescriptor(q, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclDestroyCompletionQueue(NULL), pcclInvalidArgument);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(pcclDestroyCompletionQueue(q), pcclSuccess);
}
