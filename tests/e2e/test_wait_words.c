/* test_wait_words.c - a call that another program keeps waiting says so by itself, once, and in words when asked.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <time.h>

#include "tests/e2e/cluster.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static int notices;
static char notice[400];

static void listen_for_it(pcclLogLevel_t level, const char *message, void *user)
{
    (void)level;
    (void)user;
    if (strstr(message, "a call waits for peer") != NULL) {
        pthread_mutex_lock(&lock);
        notices++;
        snprintf(notice, sizeof notice, "%s", message);
        pthread_cond_broadcast(&heard);
        pthread_mutex_unlock(&lock);
    }
}

/* The second launches only when the first has said that it waits. */
static void late(struct cluster_peer *p, void *context)
{
    float value[4] = {1, 2, 3, 4};
    pcclReduceDescriptor_t desc = cluster_floats(4, 7);
    (void)context;
    if (p->index == 1) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 30;
        pthread_mutex_lock(&lock);
        while (notices == 0 && pthread_cond_timedwait(&heard, &lock, &until) == 0) {
        }
        EXPECT_EQ(notices, 1);
        EXPECT(strstr(notice, " to launch tag 7; its program is in no call") != NULL && strstr(notice, "127.0.0.1:") != NULL);
        pthread_mutex_unlock(&lock);
        pcclWaitInfo_t waits[4];
        size_t count = 4;
        EXPECT_EQ(pcclGetWaits(p->cluster->peer[0].comm, waits, 4, &count), pcclSuccess);
        EXPECT_EQ(count, 1);
        EXPECT(strstr(waits[0].text, " to launch tag 7; its program is in no call") != NULL);
        EXPECT_EQ(waits[0].then_peer, 0);
    }
    EXPECT_EQ(pcclAllReduce(value, value, &desc, p->comm, NULL), pcclSuccess);
}

TEST(a_call_that_waits_for_another_program_says_so_once) /* it hangs in silence, and nobody knows which of all is late */
{
    static struct cluster c;
    pcclSetLogCallback(listen_for_it, pcclLogWarn, NULL);
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, late, NULL);
    cluster_stop(&c);
    EXPECT_EQ(notices, 1);
    pcclSetLogCallback(NULL, pcclLogNone, NULL);
}
