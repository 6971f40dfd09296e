/* test_fabric_peers.c - processes whose data goes through libfabric: who uses it, who cannot, and what a death does to the others.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <signal.h>
#include <stdlib.h>

#include "tests/fault/peer_calls.h"

#define MEGABYTE ((size_t)1 << 20)

/* value[0]: data connections; value[1]: those through a fabric. */
static void count_fabric(struct peer *self, const void *argument, struct reply *reply)
{
    pcclTransport_t t[64];
    size_t count = 0;
    (void)argument;
    PEER_EXPECT(self, pcclGetTransports(self->comm, t, 64, &count) == pcclSuccess);
    for (size_t k = 0; k < count && k < 64; k++) {
        reply->value[0] += t[k].lane != UINT32_MAX;
        reply->value[1] += t[k].kind == pcclTransportFabric;
    }
}

static void use_provider(const char *name)
{
    setenv("PCCL_SHM_DISABLE", "1", 1); /* else processes of one host share memory */
    setenv("FI_PROVIDER", name, 1);
    setenv("FI_TCP_IFACE", "lo", 1);
}

static void expect_fabric(struct processes *all, uint32_t set, int64_t connections, int64_t through)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, count_fabric, NULL, 0, reply);
    for (int i = 0; i < all->options.count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].value[0], connections);
            EXPECT_EQ(reply[i].value[1], through);
        }
    }
}

static void expect_reduces(struct processes *all, uint32_t set, uint64_t tag)
{
    static const size_t counts[] = {1, 1000, 100001, 3 * 1048576};
    struct reply reply[PROCESSES_MOST];
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        struct reduce_job job = {.count = counts[k], .tag = tag + k, .members = set, .in_place = k % 2 == 0};
        processes_do(all, set, peer_reduce, &job, sizeof job, reply);
        for (int i = 0; i < all->options.count; i++) {
            EXPECT((set >> i & 1) == 0 || reply[i].result == pcclSuccess);
        }
    }
}

/* Whether processes of this host have libfabric: they say so when they connect. */
static bool fabric_here(const char *provider)
{
    struct processes all;
    struct processes_options o = {.count = 1, .failures = &test_failures, .net = {"OFI"}};
    int one = 1;
    use_provider(provider);
    if (!processes_start(&all, &o)) {
        return false;
    }
    struct reply reply = process_do(&all, 0, peer_create, NULL, 0);
    if (reply.result == pcclSuccess) {
        reply = process_do(&all, 0, peer_connect, &one, sizeof one);
    }
    processes_stop(&all);
    if (reply.result != pcclSuccess) {
        EXPECT(strstr(reply.text, "PCCL_NET") != NULL);
        printf("# %s\n", reply.text);
        test_skipped = "no libfabric here";
    }
    return reply.result == pcclSuccess;
}

TEST(peers_that_have_a_fabric_use_it_and_a_death_among_them_is_one_error_for_the_others)
{
    struct processes all;
    struct processes_options o = {.count = 4, .failures = &test_failures, .pool = 2, .net = {"OFI", "OFI", "OFI", "OFI"}};
    if (!fabric_here("tcp") || !peers_start(&all, &o)) {
        return;
    }
    expect_reduces(&all, 15, 1);
    expect_fabric(&all, 15, 6, 6);
    struct reply reply[PROCESSES_MOST];
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 20, .members = 7, .in_place = true, .victim = 3, .signal = SIGKILL, .after = 20 << 20};
    processes_do(&all, 15, peer_reduce, &job, sizeof job, reply);
    EXPECT_EQ(reply[3].result, PROCESS_DIED);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCausePeerLost);
    }
    expect_reduces(&all, 7, 30);
    expect_fabric(&all, 7, 4, 4);
    processes_stop(&all);
}

TEST(with_a_peer_that_has_none_they_speak_by_tcp)
{
    struct processes all;
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1, .net = {"OFI", "Socket", "OFI"}};
    if (!fabric_here("tcp") || !peers_start(&all, &o)) {
        return;
    }
    expect_reduces(&all, 7, 1);
    expect_fabric(&all, 5, 2, 1);
    expect_fabric(&all, 2, 2, 0);
    processes_stop(&all);
}

TEST(a_provider_without_a_descriptor_is_looked_at_by_a_timer) /* libfabric's shm has none that tells of messages */
{
    struct processes all;
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1, .net = {"OFI", "OFI", "OFI"}};
    if (!fabric_here("shm") || !peers_start(&all, &o)) {
        return;
    }
    expect_reduces(&all, 7, 1);
    expect_fabric(&all, 7, 2, 2);
    processes_stop(&all);
}

TEST(PCCL_NET_that_cannot_be_is_told_at_the_first_connect)
{
    static const struct {
        const char *net, *provider, *text;
    } cases[] = {{"IB", "tcp", "PCCL_NET 'IB': expected Socket or OFI"}, {"OFI", "nobody", "PCCL_NET"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct processes all;
        struct processes_options o = {.count = 1, .failures = &test_failures, .net = {cases[k].net}};
        use_provider(cases[k].provider);
        if (!processes_start(&all, &o)) {
            return;
        }
        struct reply reply = process_do(&all, 0, peer_create, NULL, 0);
        if (reply.result == pcclSuccess) {
            reply = process_do(&all, 0, peer_connect, NULL, 0);
        }
        EXPECT_EQ(reply.result, pcclMasterConnectionFailed);
        EXPECT(strstr(reply.text, cases[k].text) != NULL);
        processes_stop(&all);
    }
}
