/* test_slow.c - operations that take many stall times on slow links, and others behind them: slowness is no standstill.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum { STALL_MS = 2000, BEHIND = 3 };

struct behind_job {
    size_t count[BEHIND]; /* floats; launched in this order */
    unsigned members;
};

/* Launches all, awaits all.  value[k]: the result of each. */
static void launch_behind(struct peer *self, const void *argument, struct reply *reply)
{
    struct behind_job b;
    pcclAsyncReduceOp_t handle[BEHIND];
    float *out[BEHIND];
    memcpy(&b, argument, sizeof b);
    size_t most = b.count[0], at = 0;
    float *in = peer_buffer(self, 0, most * sizeof *in), *all = peer_buffer(self, 1, (most * 2) * sizeof *all);
    for (size_t i = 0; i < most; i++) {
        in[i] = job_value(self->index, i, 1);
    }
    for (int k = 0; k < BEHIND; k++) {
        pcclReduceDescriptor_t d = peer_floats(b.count[k], (uint64_t)k);
        out[k] = all + at;
        at += b.count[k];
        PEER_EXPECT(self, at <= 2 * most);
        PEER_EXPECT(self, pcclAllReduceAsync(in, out[k], &d, self->comm, &handle[k]) == pcclSuccess);
    }
    for (int k = 0; k < BEHIND; k++) {
        reply->value[k] = (int64_t)peer_result(reply, pcclAwaitAsyncReduce(&handle[k], NULL));
        for (size_t i = 0; reply->value[k] == pcclSuccess && i < b.count[k]; i++) {
            PEER_EXPECT(self, out[k][i] == job_sum(b.members, i, 1));
        }
    }
}

static void expect_all(struct processes *all, unsigned set, const struct behind_job *b)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, launch_behind, b, sizeof *b, reply);
    for (int i = 0; i < all->count; i++) {
        for (int k = 0; k < BEHIND; k++) {
            EXPECT_EQ(reply[i].value[k], pcclSuccess);
        }
        if (reply[i].result != pcclSuccess) {
            fprintf(stderr, "peer %d: %s\n", i, reply[i].text);
        }
    }
}

static bool start(struct processes *all, const struct network *net, int count)
{
    return peers_start_on(all, net, &(struct processes_options){.count = count, .failures = &test_failures, .pool = 1,
                                                                .stall_ms = STALL_MS, .loss_ms = 20000});
}

/* `alone`: links with this host keep their speed; -1: none does. */
static void slow_links(int hosts, int alone, const char *rate, const struct behind_job *b)
{
    struct network net;
    struct processes all;
    const char *why = network_start(&net, hosts);
    if (why != NULL) {
        TEST_SKIP(why);
    }
    for (int i = 0; i < hosts; i++) {
        EXPECT(network_shape(&net, i));
        for (int k = 0; k < hosts; k++) {
            EXPECT(k == i || i == alone || k == alone || network_limit(&net, i, k, rate));
        }
    }
    if (start(&all, &net, hosts)) {
        expect_all(&all, processes_set(hosts), b);
        processes_stop(&all);
    }
    network_stop(&net);
}

/* 240 MiB at 200 Mb/s take ten seconds, in which nothing of what is behind them can move. */
TEST(operations_behind_a_large_one_succeed_however_long_it_takes)
{
    slow_links(2, -1, "200mbit", &(struct behind_job){.count = {60 << 20, 1 << 18, 10}, .members = 3});
}

/* Five peers whose staging slots the first operation takes for twice a stall time: 9.6 MiB in each direction of each pair. */
TEST(operations_of_many_senders_that_share_room_succeed)
{
    slow_links(5, -1, "20mbit", &(struct behind_job){.count = {6 << 20, 6 << 19, 1 << 18}, .members = 31});
}

/* The link of peer 1 with peer 2 is busy with the first operation when that is over between peers 0 and 1; so 0 waits for 1, with nothing
 * on the link between them, and 1 waits for what is behind the first operation at 2. */
TEST(a_member_that_waits_for_a_slow_link_is_not_blamed_by_those_who_wait_for_it) /* the second time, it lost its place */
{
    slow_links(3, 0, "20mbit", &(struct behind_job){.count = {12 << 20, 1 << 20, 1 << 18}, .members = 7});
}
