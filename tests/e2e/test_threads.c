/* test_threads.c - calls beside calls: destroying beside all others, a large one beside a small one, waiting for any.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/engine.h"
#include "tests/e2e/cluster.h"

static pcclCommCreateParams_t nowhere(void)
{
    return (pcclCommCreateParams_t){.master_address = {.inet = {.ipv4 = {{127, 0, 0, 1}}}, .port = 1}};
}

static _Atomic(pcclComm_t *) shared_comm;
static atomic_bool over;
static atomic_int odd_results;

static void *poke(void *unused)
{
    while (!atomic_load(&over)) {
        pcclComm_t *comm = atomic_load(&shared_comm);
        int size = 0;
        uint64_t value = 0;
        pcclResult_t option = pcclGetOption(comm, PCCL_OPTION_STALL_TIMEOUT_MS, &value);
        atomic_fetch_add(&odd_results, pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) != pcclInvalidUsage);
        atomic_fetch_add(&odd_results, option != pcclInvalidUsage && (option != pcclSuccess || value != 10000));
    }
    return unused;
}

TEST(a_communicator_may_be_destroyed_beside_calls_that_enter) /* they would read, or count in, memory that is gone */
{
    pcclCommCreateParams_t params = nowhere();
    pcclComm_t *comm = NULL;
    pthread_t threads[2];
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    atomic_store(&shared_comm, comm);
    atomic_store(&over, false);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(pthread_create(&threads[i], NULL, poke, NULL), 0);
    }
    for (unsigned round = test_scaled(5000); round > 0; round--) { /* more than handles are kept from being used again */
        pcclComm_t *next = NULL;
        EXPECT_EQ(pcclCreateCommunicator(&params, &next), pcclSuccess);
        atomic_store(&shared_comm, next);
        EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
        comm = next;
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_EQ(atomic_load(&odd_results), 0);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

static void *destroy(void *result)
{
    *(pcclResult_t *)result = pcclDestroyCommunicator(atomic_load(&shared_comm));
    return result;
}

TEST(of_two_that_destroy_one_has_destroyed_it) /* both would free it */
{
    pcclCommCreateParams_t params = nowhere();
    EXPECT_EQ(pcclInit(), pcclSuccess);
    for (unsigned round = test_scaled(500); round > 0; round--) {
        pcclComm_t *comm = NULL;
        pcclResult_t result[2];
        pthread_t threads[2];
        EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
        atomic_store(&shared_comm, comm);
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(pthread_create(&threads[i], NULL, destroy, &result[i]), 0);
        }
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        EXPECT_EQ(result[0] == pcclSuccess ? result[1] : result[0], pcclInvalidUsage);
        EXPECT(result[0] == pcclSuccess || result[1] == pcclSuccess);
    }
}

/* ---- A large input ------------------------------------------------------------------------------------------------------ */

static atomic_bool readable;

/* One page of it may not even be read until the small call is done; the other launches the large one after that. */
static void large_and_small(struct cluster_peer *p, void *context)
{
    size_t count = 1 << 19, bytes = count * sizeof(float), page = (size_t)sysconf(_SC_PAGESIZE);
    pcclReduceDescriptor_t large = cluster_floats(count, 1), small = cluster_floats(1, 2);
    pcclAsyncReduceOp_t op;
    float x = 2, y = 0;
    (void)context;
    float *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *guarded = (unsigned char *)buffer + bytes / 2;
    for (size_t i = 0; i < count; i++) {
        buffer[i] = (float)(i % 100);
    }
    if (p->index == 0) {
        EXPECT_EQ(mprotect(guarded, page, PROT_NONE), 0);
        EXPECT_EQ(pcclAllReduceAsync(buffer, buffer, &large, p->comm, &op), pcclSuccess);
    }
    EXPECT_EQ(pcclAllReduce(&x, &y, &small, p->comm, NULL), pcclSuccess);
    EXPECT(y == 4.0f);
    if (p->index == 0) {
        EXPECT_EQ(mprotect(guarded, page, PROT_READ | PROT_WRITE), 0);
        atomic_store(&readable, true);
        EXPECT_EQ(pcclAwaitAsyncReduce(&op, NULL), pcclSuccess);
    } else {
        while (!atomic_load(&readable)) { /* its small call may have returned first */
            sched_yield();
        }
        EXPECT_EQ(pcclAllReduce(buffer, buffer, &large, p->comm, NULL), pcclSuccess);
    }
    for (size_t i = 0; i < count; i++) {
        EXPECT(buffer[i] == 2 * (float)(i % 100));
    }
    munmap(buffer, bytes);
}

TEST(the_launch_of_an_in_place_call_touches_no_input) /* a copy of gigabytes took so long that peers seemed dead */
{
    struct cluster c;
    atomic_store(&readable, false);
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, large_and_small, NULL);
    cluster_stop(&c);
}

/* ---- waiting for any of several ---- */

enum { WATCHED = 1, OTHER = 2, OTHERS = 20 };

static void reduce_others(struct cluster_peer *p, void *context)
{
    float value = 1, sum;
    pcclReduceDescriptor_t d = cluster_floats(1, OTHER);
    (void)context;
    for (int i = 0; i < OTHERS; i++) {
        EXPECT_EQ(pcclAllReduce(&value, &sum, &d, p->comm, NULL), pcclSuccess);
    }
}

struct any_wait {
    pcclAsyncReduceOp_t handle;
    size_t index;
    pcclResult_t result;
};

static void *wait_any(void *argument)
{
    struct any_wait *w = argument;
    w->result = pcclWaitAnyAsyncReduce(&w->handle, 1, -1, &w->index);
    return NULL;
}

static uint64_t any_ends(void)
{
    pthread_mutex_lock(&engine_global.any_lock);
    uint64_t count = engine_global.any_count;
    pthread_mutex_unlock(&engine_global.any_lock);
    return count;
}

TEST(who_waits_for_any_is_woken_by_the_ends_of_these_only) /* a thousand handles looked at whenever anything ends anywhere */
{
    static struct cluster c;
    struct any_wait w = {.index = 7, .result = pcclInternalError};
    float in[2] = {1, 2}, out[2] = {0, 0};
    pthread_t thread;
    pcclReduceDescriptor_t d = cluster_floats(1, WATCHED);
    cluster_start(&c, 2, NULL, 1);
    EXPECT_EQ(pcclAllReduceAsync(&in[0], &out[0], &d, c.peer[0].comm, &w.handle), pcclSuccess);
    EXPECT_EQ(pthread_create(&thread, NULL, wait_any, &w), 0);
    while (atomic_load(&engine_global.any_waiters) == 0) {
        sched_yield();
    }
    uint64_t before = any_ends();
    cluster_run(&c, reduce_others, NULL);
    EXPECT_EQ(any_ends(), before);
    EXPECT_EQ(pcclAllReduce(&in[1], &out[1], &d, c.peer[1].comm, NULL), pcclSuccess);
    pthread_join(thread, NULL);
    EXPECT(w.result == pcclSuccess && w.index == 0);
    EXPECT_EQ(pcclAwaitAsyncReduce(&w.handle, NULL), pcclSuccess);
    EXPECT(out[0] == 3 && out[1] == 3);
    cluster_stop(&c);
}
