/* test_threads.c - calls beside calls: destroying beside all others, and a slow one that holds nobody up.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
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

/* ---- A slow copy ---------------------------------------------------------------------------------------------------------- */

static unsigned char *slow_page; /* its first reader waits for `other_done` */
static atomic_bool copying, other_done;

static void on_fault(int number, siginfo_t *info, void *context)
{
    unsigned char *at = info->si_addr;
    (void)context;
    if (at < slow_page || at >= slow_page + sysconf(_SC_PAGESIZE)) {
        signal(number, SIG_DFL); /* an honest one */
        return;
    }
    atomic_store(&copying, true);
    while (!atomic_load(&other_done)) {
        sched_yield();
    }
    mprotect(slow_page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
}

struct slow {
    pcclComm_t *comm;
    float *buffer;
    size_t count;
    pcclResult_t result;
};

static void *reduce_in_place(void *argument)
{
    struct slow *s = argument;
    pcclReduceDescriptor_t d = cluster_floats(s->count, 1);
    s->result = pcclAllReduce(s->buffer, s->buffer, &d, s->comm, NULL);
    return NULL;
}

static void slow_and_quick(struct cluster_peer *p, void *context)
{
    struct slow slow = {.comm = p->comm, .count = 1 << 19};
    size_t bytes = slow.count * sizeof(float);
    pcclReduceDescriptor_t quick = cluster_floats(1, 2);
    float x = 2, y = 0;
    pthread_t thread;
    (void)context;
    slow.buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < slow.count; i++) {
        slow.buffer[i] = (float)(i % 100);
    }
    if (p->index == 0) {
        slow_page = (unsigned char *)slow.buffer + bytes / 2;
        EXPECT_EQ(mprotect(slow_page, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE), 0);
    }
    EXPECT_EQ(pthread_create(&thread, NULL, reduce_in_place, &slow), 0);
    while (!atomic_load(&copying)) {
        sched_yield();
    }
    EXPECT_EQ(pcclAllReduce(&x, &y, &quick, p->comm, NULL), pcclSuccess);
    EXPECT(y == 4.0f);
    if (p->index == 0) {
        atomic_store(&other_done, true);
    }
    pthread_join(thread, NULL);
    EXPECT_EQ(slow.result, pcclSuccess);
    for (size_t i = 0; i < slow.count; i++) {
        EXPECT(slow.buffer[i] == 2 * (float)(i % 100));
    }
    munmap(slow.buffer, bytes);
}

TEST(the_copy_of_an_in_place_input_holds_nobody_up) /* it held the lane: gigabytes took so long that peers seemed dead */
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
    struct cluster c;
    sigaction(SIGSEGV, &action, &old);
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, slow_and_quick, NULL);
    cluster_stop(&c);
    sigaction(SIGSEGV, &old, NULL);
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
