/* test_wait_words.c - a call that another program keeps waiting says so by itself, once, and in words when asked.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sched.h>
#include <time.h>

#include "api/api.h"
#include "engine/comm.h"
#include "tests/e2e/cluster.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static int notices;
static char notice[500];
static pthread_barrier_t looked; /* both have seen what the first waits for */

static void listen_for_it(pcclLogLevel_t level, const char *message, void *user)
{
    (void)level;
    (void)user;
    if (strstr(message, "waits for peer") != NULL) {
        pthread_mutex_lock(&lock);
        notices++;
        snprintf(notice, sizeof notice, "%s", message);
        pthread_cond_broadcast(&heard);
        pthread_mutex_unlock(&lock);
    }
}

/* Both that the first waits for, as the line names them. */
static void expect_both(const struct cluster_peer *p)
{
    pcclPeerInfo_t members[3];
    size_t count = 0;
    EXPECT_EQ(pcclGetMembers(p->comm, members, 3, &count), pcclSuccess);
    for (size_t i = 0; i < 3 && count == 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "peer %u.%u (", (unsigned)(members[i].id >> 32), (unsigned)members[i].id);
        pcclPeerInfo_t first = {0};
        EXPECT_EQ(pcclGetSelf(p->cluster->peer[0].comm, &first), pcclSuccess);
        EXPECT_EQ(strstr(notice, name) != NULL, members[i].id != first.id);
    }
}

static uint32_t rank_of(const struct cluster_peer *p)
{
    pcclPeerInfo_t self = {0};
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    return self.rank;
}

/* Waits until it has looked for calls that hang once more, and has said what it had to say of them: that is behind it when it looks again. */
static void looks_again(struct comm *c)
{
    for (int looks = 0; looks < 2; looks++) {
        pthread_mutex_lock(&c->lock);
        for (int64_t before = c->patience.look_at; c->patience.look_at == before;) {
            pthread_mutex_unlock(&c->lock);
            sched_yield();
            pthread_mutex_lock(&c->lock);
        }
        pthread_mutex_unlock(&c->lock);
    }
}

/* The others launch only when the first has said that it waits.  A receive that it keeps open all the while is no call that hangs. */
static void late(struct cluster_peer *p, void *context)
{
    float value[4] = {1, 2, 3, 4};
    pcclReduceDescriptor_t desc = cluster_floats(4, 7);
    uint32_t got = 0, sent = 5;
    pcclAsyncOp_t open = {0};
    (void)context;
    if (p->index == 0) {
        EXPECT_EQ(pcclReceive(&got, 1, pcclUint32, rank_of(&p->cluster->peer[1]), 9, NULL, p->comm, &open), pcclSuccess);
    }
    if (p->index > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 30;
        pthread_mutex_lock(&lock);
        while (notices == 0 && pthread_cond_timedwait(&heard, &lock, &until) == 0) {
        }
        EXPECT_EQ(notices, 1);
        EXPECT(strstr(notice, "reduce waits for peer ") != NULL && strstr(notice, " to launch tag 7; its program is in no call") != NULL);
        EXPECT(strstr(notice, "127.0.0.1:") != NULL && strstr(notice, "PCCL_LOG_LEVEL=info") != NULL);
        expect_both(p);
        pthread_mutex_unlock(&lock);
        pcclWaitInfo_t waits[4];
        size_t count = 4;
        EXPECT_EQ(pcclGetWaits(p->cluster->peer[0].comm, waits, 4, &count), pcclSuccess);
        bool there = false;
        for (size_t i = 0; i < count && i < 4; i++) {
            there = there || (strstr(waits[i].text, " to launch tag 7") != NULL && waits[i].then_peer == 0);
        }
        EXPECT(there);
        looks_again(p->cluster->peer[0].comm->comm);
        pthread_mutex_lock(&lock);
        EXPECT_EQ(notices, 1); /* not once a second */
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&looked);
    }
    EXPECT_EQ(pcclAllReduce(value, value, &desc, p->comm, NULL), pcclSuccess);
    if (p->index == 1) {
        EXPECT_EQ(pcclSend(&sent, 1, pcclUint32, rank_of(&p->cluster->peer[0]), 9, p->comm, NULL), pcclSuccess);
    } else if (p->index == 0) {
        EXPECT(pcclAwaitAsync(&open, NULL) == pcclSuccess && got == 5);
    }
}

TEST(a_call_that_waits_for_another_program_says_so_once) /* it hangs in silence, and nobody knows which of all is late */
{
    static struct cluster c;
    pcclSetLogCallback(listen_for_it, pcclLogWarn, NULL);
    EXPECT_EQ(pthread_barrier_init(&looked, NULL, 2), 0);
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, late, NULL);
    cluster_stop(&c);
    pthread_barrier_destroy(&looked);
    EXPECT_EQ(notices, 1);
    pcclSetLogCallback(NULL, pcclLogNone, NULL);
}
