/* test_network.c - links that break between living peers, partitions, slow edges: peers in network namespaces.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */ };

/* One process per host; the master on the bridge. */
static bool start(struct processes *all, const struct network *net, int count, uint64_t stall_ms, const char *dead_ms)
{
    return peers_start_on(all, net, &(struct processes_options){.count = count, .failures = &test_failures, .pool = 2,
                                                                .stall_ms = stall_ms, .dead_ms = dead_ms,
                                                                .loss_ms = 20000});
}

/* Three hosts, for a test and what it starts there. */
struct scene {
    struct network net;
    struct processes all;
};

/* False: the test is over; where there can be no namespaces, it is skipped. */
static bool scene_hosts(struct scene *s)
{
    const char *why = network_start(&s->net, 3);
    test_skipped = why != NULL ? why : test_skipped;
    return why == NULL;
}

static bool scene_peers(struct scene *s, uint64_t stall_ms, const char *dead_ms)
{
    bool runs = start(&s->all, &s->net, 3, stall_ms, dead_ms);
    if (!runs) {
        network_stop(&s->net);
    }
    return runs;
}

static void scene_close(struct scene *s)
{
    processes_stop(&s->all);
    network_stop(&s->net);
}

/* Calls until all have success; no more than `most` errors, all of them RankConnectionLost and the same for all. */
static void reduce_with_retry(struct processes *all, unsigned set, struct reduce_job *job, int most)
{
    struct reply reply[PROCESSES_MOST];
    int first = __builtin_ctz(set);
    for (int errors = 0;; errors++) {
        processes_do(all, set, peer_reduce, job, sizeof *job, reply);
        for (int i = 0; i < all->count; i++) {
            if ((set >> i & 1) != 0) {
                EXPECT_EQ(reply[i].result, reply[first].result); /* G1 */
            }
        }
        if (reply[first].result == pcclSuccess) {
            break;
        }
        EXPECT_EQ(reply[first].result, pcclRankConnectionLost);
        if (getenv("PCCL_TEST_MASTER_LOG") != NULL) {
            fprintf(stderr, "tag %d: %s\n", (int)job->tag, reply[first].text);
        }
        EXPECT(errors < most);
        if (errors >= most || test_failures != 0) {
            fprintf(stderr, "%s\n", reply[first].text);
            break;
        }
    }
}

static void expect_members(struct processes *all, unsigned set, int members)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, peer_look, NULL, 0, reply);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].value[4], members);
            EXPECT_EQ(reply[i].value[0], members);
        }
    }
}

/* R6: both ends live, every connection between them dies in the middle of an operation. */
TEST(a_link_killed_between_living_peers_aborts_and_is_dialled_again)
{
    struct scene s;
    if (!scene_hosts(&s) || !scene_peers(&s, 0, NULL)) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    for (uint64_t round = 0; round < 3; round++) {
        struct reduce_job job = {
            .count = 24 * MEGABYTE, .tag = round, .members = 7, .victim = 0, .note = true, .after = 4 << 20,
            .in_place = true};
        processes_send(&s.all, 7, peer_reduce, &job, sizeof job);
        EXPECT_EQ(process_note(&s.all, 0), 1);
        EXPECT(network_kill_connections(&s.net, 0, 1));
        processes_take(&s.all, 7, reply);
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(reply[i].result, reply[0].result);
        }
        EXPECT(reply[0].result == pcclRankConnectionLost || reply[0].result == pcclSuccess);
        job.note = false;
        reduce_with_retry(&s.all, 7, &job, 3);
        expect_members(&s.all, 7, 3); /* nobody is excluded */
    }
    scene_close(&s);
}

/* R15: what one sends to the other arrives nowhere, for good: found by silence, then the third relays. */
TEST(a_pair_that_cannot_talk_is_relayed_by_the_third_and_nobody_is_excluded)
{
    struct scene s;
    if (!scene_hosts(&s) || !scene_peers(&s, 800, "800")) {
        return;
    }
    struct reduce_job job = {.count = 8 * MEGABYTE, .tag = 1, .members = 7};
    reduce_with_retry(&s.all, 7, &job, 0);
    EXPECT(network_drop(&s.net, 0, 1, true)); /* one direction only */
    reduce_with_retry(&s.all, 7, &job, 4);
    for (job.tag = 2; job.tag < 6; job.tag++) {
        reduce_with_retry(&s.all, 7, &job, 2);
    }
    struct reduce_job small = {.count = 10, .tag = 9, .members = 7};
    reduce_with_retry(&s.all, 7, &small, 1);
    expect_members(&s.all, 7, 3);
    EXPECT(network_drop(&s.net, 0, 1, false));
    processes_do(&s.all, 7, peer_update, NULL, 0, NULL);
    reduce_with_retry(&s.all, 7, &job, 3);
    expect_members(&s.all, 7, 3);
    scene_close(&s);
}

/* argument: a peer id.  value[0]: bytes on data connections with it, value[1]: with all others. */
static void lane_bytes(struct peer *self, const void *argument, struct reply *reply)
{
    uint64_t id = *(const uint64_t *)argument;
    pcclConnectionStats_t stats[64];
    size_t count = 0;
    reply->result = (int)pcclGetConnectionStats(self->comm, stats, 64, &count);
    for (size_t i = 0; i < count && i < 64; i++) {
        if (stats[i].lane != UINT32_MAX) {
            reply->value[stats[i].peer == id ? 0 : 1] += (int64_t)(stats[i].tx_bytes + stats[i].rx_bytes);
        }
    }
}

/* Whether the last reduces moved data between two peers directly: bytes on their connections, told before and after. */
static int64_t bytes_between(struct processes *all, int a, int b)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 1u << a | 1u << b, peer_look, NULL, 0, reply);
    uint64_t id = (uint64_t)reply[b].value[6];
    processes_do(all, 1u << a, lane_bytes, &id, sizeof id, reply);
    return reply[a].value[0];
}

/* Three of which the first two cannot talk for a while: the third relays. */
static bool start_relayed(struct scene *s)
{
    struct network *net = &s->net;
    struct processes *all = &s->all;
    if (!scene_hosts(s) || !scene_peers(s, 800, "800")) {
        return false;
    }
    struct reduce_job job = {.count = 2 * MEGABYTE, .tag = 1, .members = 7};
    reduce_with_retry(all, 7, &job, 0);
    EXPECT(network_drop(net, 0, 1, true) && network_drop(net, 1, 0, true));
    reduce_with_retry(all, 7, &job, 4);
    for (int64_t before = bytes_between(all, 0, 1);; before = bytes_between(all, 0, 1)) {
        reduce_with_retry(all, 7, &job, 4);
        if (bytes_between(all, 0, 1) == before || test_failures != 0) {
            break; /* the view goes round the pair */
        }
    }
    EXPECT(network_drop(net, 0, 1, false) && network_drop(net, 1, 0, false));
    return true;
}

TEST(a_pair_that_heals_is_linked_again_and_does_without_its_relay)
{
    struct scene s;
    if (!start_relayed(&s)) {
        return;
    }
    struct reduce_job job = {.count = 2 * MEGABYTE, .tag = 2, .members = 7};
    int64_t end = spawn_now_ms() + 60000, before = bytes_between(&s.all, 0, 1);
    while (bytes_between(&s.all, 0, 1) <= before + (1 << 20) && test_failures == 0) {
        processes_do(&s.all, 7, peer_update, NULL, 0, NULL);
        reduce_with_retry(&s.all, 7, &job, 0); /* no freeze for it */
        EXPECT(spawn_now_ms() < end);
    }
    expect_members(&s.all, 7, 3);
    process_signal(&s.all, 2, SIGKILL);
    job.members = 3;
    reduce_with_retry(&s.all, 3, &job, 2);
    processes_do(&s.all, 3, peer_update, NULL, 0, NULL);
    expect_members(&s.all, 3, 2);
    scene_close(&s);
}

TEST(a_relay_killed_after_a_cut_has_healed_costs_nobody_else_its_place) /* the newer of the pair was excluded */
{
    struct scene s;
    if (!start_relayed(&s)) {
        return;
    }
    process_signal(&s.all, 2, SIGKILL); /* no update has come between: the pair is still a missing edge */
    struct reduce_job job = {.count = 2 * MEGABYTE, .tag = 2, .members = 3};
    reduce_with_retry(&s.all, 3, &job, 3);
    processes_do(&s.all, 3, peer_update, NULL, 0, NULL);
    expect_members(&s.all, 3, 2);
    scene_close(&s);
}

TEST(a_peer_cut_off_from_everybody_is_excluded_and_may_come_back)
{
    struct scene s;
    if (!scene_hosts(&s) || !scene_peers(&s, 800, "800")) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct reduce_job job = {
        .count = 24 * MEGABYTE, .tag = 1, .members = 3, .victim = 2, .signal = SIGSTOP, .after = 4 << 20};
    processes_send(&s.all, 7, peer_reduce, &job, sizeof job);
    process_wait_stopped(&s.all, 2); /* so that the cut comes in the middle, however busy the machine is */
    EXPECT(network_isolate(&s.net, 2, true));
    process_signal(&s.all, 2, SIGCONT);
    processes_take(&s.all, 3, reply);
    EXPECT_EQ(reply[0].result, pcclRankConnectionLost);
    EXPECT_EQ(reply[1].result, pcclRankConnectionLost);
    job.signal = 0;
    reduce_with_retry(&s.all, 3, &job, 2);
    EXPECT(network_isolate(&s.net, 2, false));
    struct reply late = process_take(&s.all, 2);
    EXPECT_EQ(late.result, pcclMasterConnectionFailed);
    int three = 3;
    process_send(&s.all, 2, peer_join, &three, sizeof three);
    processes_do(&s.all, 3, peer_update_until, &three, sizeof three, NULL);
    process_take(&s.all, 2);
    job = (struct reduce_job){.count = MEGABYTE, .tag = 3, .members = 7};
    reduce_with_retry(&s.all, 7, &job, 0);
    scene_close(&s);
}

/* The whole takes several stall times, bytes move all the time. */
TEST(a_slow_network_excludes_nobody)
{
    struct scene s;
    if (!scene_hosts(&s)) {
        return;
    }
    EXPECT(network_shape(&s.net, 2) && network_limit(&s.net, 2, 0, "24mbit") && network_limit(&s.net, 2, 1, "24mbit"));
    if (!scene_peers(&s, 1000, "1000")) {
        return;
    }
    struct reduce_job job = {.count = 14 * MEGABYTE, .tag = 1, .members = 7};
    int64_t begin = spawn_now_ms();
    reduce_with_retry(&s.all, 7, &job, 0);
    EXPECT(spawn_now_ms() - begin > 2000); /* it was slow indeed */
    expect_members(&s.all, 7, 3);
    scene_close(&s);
}

/* ---- Rings ------------------------------------------------------------------------------------------------------------ */

/* Distance of two peers in the ring that `of` sees; ids as they told them. */
static int ring_distance(const struct reply *of, int64_t a, int64_t b)
{
    int n = (int)of->value[4], at_a = -1, at_b = -1;
    for (int i = 0; i < n && i < 8; i++) {
        at_a = of->value[8 + i] == a ? i : at_a;
        at_b = of->value[8 + i] == b ? i : at_b;
    }
    int d = at_a > at_b ? at_a - at_b : at_b - at_a;
    return at_a < 0 || at_b < 0 ? -1 : d < n - d ? d : n - d;
}

static void expect_apart(struct processes *all, unsigned set, int a, int b)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, peer_look, NULL, 0, reply);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT(ring_distance(&reply[i], reply[a].value[6], reply[b].value[6]) >= 2);
            for (int k = 0; k < 8; k++) {
                EXPECT_EQ(reply[i].value[8 + k], reply[__builtin_ctz(set)].value[8 + k]); /* one ring for all */
            }
        }
    }
}

/* The data of a reduce goes round the slow edge, not over it: the order is applied. */
static void expect_unused(struct processes *all, int a, int b)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 1u << a | 1u << b, peer_look, NULL, 0, reply);
    uint64_t id = (uint64_t)reply[b].value[6];
    processes_do(all, 1u << a, lane_bytes, &id, sizeof id, reply);
    EXPECT_EQ(reply[a].result, pcclSuccess);
    EXPECT(reply[a].value[0] < 4096);
    EXPECT(reply[a].value[1] > 1 << 20);
}

/* R18.  Which pair is adjacent by default depends on the order of joining: every edge is tried. */
static void slow_edge(struct network *net, int a, int b)
{
    struct processes all;
    /* a sanitizer on a busy machine makes the other edges slow as well */
    const char *rate = getenv("PCCL_SANITIZED") != NULL ? "10mbit" : "100mbit";
    for (int i = 0; i < 5; i++) {
        EXPECT(network_shape(net, i));
    }
    EXPECT(network_limit(net, a, b, rate) && network_limit(net, b, a, rate));
    if (!start(&all, net, 4, 0, NULL)) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct reduce_job job = {.count = MEGABYTE, .tag = 1, .members = 15};
    processes_do(&all, 15, peer_optimise, NULL, 0, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    expect_apart(&all, 15, a, b);
    reduce_with_retry(&all, 15, &job, 0);
    expect_unused(&all, a, b);
    int five = 5, four = 4, late = processes_add(&all, 0, net->name[4]);
    process_send(&all, late, peer_join, &five, sizeof five);
    processes_do(&all, 15, peer_update_until, &five, sizeof five, NULL);
    process_take(&all, late);
    expect_apart(&all, 31, a, b); /* repaired, not reset */
    job.members = 31;
    reduce_with_retry(&all, 31, &job, 0);
    processes_do(&all, 1u << late, peer_destroy, NULL, 0, NULL);
    processes_do(&all, 15, peer_update_until, &four, sizeof four, NULL);
    expect_apart(&all, 15, a, b);
    processes_stop(&all);
}

TEST(an_optimised_ring_avoids_the_slow_edge_and_keeps_doing_so_over_a_join_and_a_leave)
{
    static const int edges[][2] = {{0, 1}, {1, 2}, {0, 3}};
    size_t count = test_scaled(sizeof edges / sizeof edges[0]);
    setenv("PCCL_ALGO", "allreduce:ring", 1); /* trees would use all edges at once, the slow one for a little */
    for (size_t i = 0; i < count && test_failures == 0; i++) {
        struct network net;
        const char *why = network_start(&net, 5);
        if (why != NULL) {
            TEST_SKIP(why);
        }
        slow_edge(&net, edges[i][0], edges[i][1]);
        network_stop(&net);
    }
    unsetenv("PCCL_ALGO");
}
