/* test_transport_words.c - peers of different hosts, or users, say so when they are asked what carries their data.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

/* argument: a reason, with NUL.  value[0]: data connections over TCP for that reason, where neither has a fabric; value[1]: all others. */
static void count_reasons(struct peer *self, const void *argument, struct reply *reply)
{
    pcclTransport_t t[64];
    size_t count = 0;
    const char *reason = argument;
    char whole[128];
    snprintf(whole, sizeof whole, "%s; no fabric", reason);
    PEER_EXPECT(self, pcclGetTransports(self->comm, t, 64, &count) == pcclSuccess);
    for (size_t k = 0; k < count && k < 64; k++) {
        bool data = t[k].lane != UINT32_MAX;
        bool told = t[k].kind == pcclTransportTcp && strcmp(t[k].reason, data ? whole : reason) == 0;
        reply->value[told && data ? 0 : 1] += data || !told;
    }
}

static atomic_int log_lines; /* about what carries data */

static void log_count(pcclLogLevel_t level, const char *message, void *user)
{
    (void)level;
    (void)user;
    atomic_fetch_add(&log_lines, strstr(message, ": data goes ") != NULL);
}

static void listen_from_now_on(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    peer_result(reply, pcclSetLogCallback(log_count, pcclLogDebug, self));
}

/* value[0]: lines since then. */
static void count_lines(struct peer *self, const void *argument, struct reply *reply)
{
    (void)self;
    (void)argument;
    reply->value[0] = atomic_load(&log_lines);
}

static void expect_reasons(struct processes *all, const char *reason)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 3, count_reasons, reason, strlen(reason) + 1, reply);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].value[0], 2);
        EXPECT_EQ(reply[i].value[1], 0);
    }
}

TEST(peers_of_different_hosts_say_so) /* whoever dialled, and whoever was dialled; new connections that go the same way are no news */
{
    struct network net;
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    const char *why = network_start(&net, 2);
    if (why != NULL) {
        test_skipped = why;
        return;
    }
    if (peers_start_on(&all, &net, &(struct processes_options){.count = 2, .failures = &test_failures, .pool = 2, .net = {"", ""}})) {
        struct reduce_job job = {.count = 100000, .tag = 1, .members = 3};
        processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
        EXPECT(reply[0].result == pcclSuccess && reply[1].result == pcclSuccess);
        expect_reasons(&all, "another host");
        processes_do(&all, 3, listen_from_now_on, NULL, 0, NULL);
        EXPECT(network_kill_connections(&net, 0, 1));
        for (int i = 0; i < 5 && (i == 0 || reply[0].result != pcclSuccess); i++) {
            processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
            EXPECT_EQ(reply[0].result, reply[1].result);
        }
        EXPECT_EQ(reply[0].result, pcclSuccess);
        expect_reasons(&all, "another host");
        processes_do(&all, 3, count_lines, NULL, 0, reply);
        EXPECT(reply[0].value[0] == 0 && reply[1].value[0] == 0);
        processes_stop(&all);
    }
    network_stop(&net);
}

/* value[0]: whether that went. */
static void become_nobody(struct peer *self, const void *argument, struct reply *reply)
{
    enum { NOBODY = 65534 };
    (void)self;
    (void)argument;
    reply->value[0] = setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0;
}

TEST(peers_of_different_users_say_so) /* whichever of them dials */
{
    if (geteuid() != 0) {
        TEST_SKIP("to become another user needs root");
    }
    unsetenv("PCCL_SHM_DISABLE"); /* whatever this program is started with */
    for (int nobody = 0; nobody < 2; nobody++) {
        struct processes all;
        struct reply reply[PROCESSES_MOST];
        int one = 1, two = 2;
        if (!processes_start(&all, &(struct processes_options){.count = 2, .failures = &test_failures, .pool = 2, .net = {"", ""}})) {
            return;
        }
        EXPECT_EQ(process_do(&all, nobody, become_nobody, NULL, 0).value[0], 1);
        process_do(&all, 0, peer_join, &one, sizeof one);
        process_send(&all, 1, peer_join, &two, sizeof two);
        process_do(&all, 0, peer_update_until, &two, sizeof two);
        (void)process_take(&all, 1);
        struct reduce_job job = {.count = 100000, .tag = 1, .members = 3};
        processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
        EXPECT(reply[0].result == pcclSuccess && reply[1].result == pcclSuccess);
        expect_reasons(&all, "another user");
        processes_stop(&all);
    }
}
