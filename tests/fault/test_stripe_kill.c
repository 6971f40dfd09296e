/* test_stripe_kill.c - one of the sockets of a data connection is lost in the middle of an operation.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */, HOSTS = 3, ALL = 7, SOCKETS = 4, BUSY_BYTES = 128 << 10, TRIES = 50 };

/* Sums until every pair moves its data over four sockets: those beyond the first come while operations run. */
static bool spread(struct processes *all, const struct network *net, uint64_t *tag)
{
    for (int tries = 0; tries < TRIES && test_failures == 0; tries++) {
        struct reduce_job job = {.count = 8 * MEGABYTE, .tag = (*tag)++, .members = ALL};
        struct reply reply[PROCESSES_MOST];
        processes_do(all, ALL, peer_reduce, &job, sizeof job, reply);
        EXPECT_EQ(reply[0].result, pcclSuccess);
        bool good = true;
        for (int i = 0; i < HOSTS; i++) {
            good = good && network_busy(net, i, (i + 1) % HOSTS, SOCKETS, BUSY_BYTES);
        }
        if (good) {
            return true;
        }
    }
    return false;
}

/* G1: success, or an error after which the retry is a success. */
static void expect_same(const struct reply *reply)
{
    for (int i = 0; i < HOSTS; i++) {
        EXPECT_EQ(reply[i].result, reply[0].result);
    }
    EXPECT(reply[0].result == pcclSuccess || reply[0].result == pcclRankConnectionLost);
}

static void kill_in_reduce(struct processes *all, const struct network *net, int host, uint64_t *tag)
{
    struct reply reply[PROCESSES_MOST] = {{.result = -1}};
    struct reduce_job job = {.count = 24 * MEGABYTE, .tag = (*tag)++, .members = ALL, .victim = host, .note = true, .after = 4 << 20, .in_place = true};
    processes_send(all, ALL, peer_reduce, &job, sizeof job);
    EXPECT_EQ(process_note(all, host), 1);
    EXPECT(network_reset_busy(net, host, (host + 1) % HOSTS, BUSY_BYTES));
    processes_take(all, ALL, reply);
    expect_same(reply);
    EXPECT_EQ(reply[0].result, pcclRankConnectionLost); /* 20 MB were left to move */
    job.note = false;
    for (int tries = 0; reply[0].result != pcclSuccess && test_failures == 0; tries++) {
        processes_do(all, ALL, peer_reduce, &job, sizeof job, reply);
        expect_same(reply);
        EXPECT(tries < 3);
    }
}

TEST(operation_whose_stripe_loses_a_socket_ends_alike_for_all_and_the_next_has_a_whole_one) /* records would be missing for ever */
{
    struct network net;
    struct processes all;
    uint64_t tag = 1;
    struct reply before[PROCESSES_MOST], after[PROCESSES_MOST];
    const char *why = network_start(&net, HOSTS);
    if (why != NULL) {
        TEST_SKIP(why);
    }
    setenv("PCCL_STRIPE", "4", 1);
    if (!peers_start_on(&all, &net, &(struct processes_options){.count = HOSTS, .failures = &test_failures, .pool = 1, .loss_ms = 20000})) {
        network_stop(&net);
        return;
    }
    EXPECT(spread(&all, &net, &tag));
    processes_do(&all, ALL, peer_look, NULL, 0, before);
    for (int host = 0; host < HOSTS && test_failures == 0; host++) {
        kill_in_reduce(&all, &net, host, &tag);
        EXPECT(spread(&all, &net, &tag));
    }
    processes_do(&all, ALL, peer_look, NULL, 0, after);
    for (int i = 0; i < HOSTS; i++) {
        EXPECT_EQ(after[i].value[6], before[i].value[6]); /* nobody has lost its place */
        EXPECT_EQ(after[i].value[4], HOSTS);
    }
    processes_stop(&all);
    network_stop(&net);
    unsetenv("PCCL_STRIPE");
}
