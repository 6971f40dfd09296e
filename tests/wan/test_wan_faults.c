/* test_wan_faults.c - faults in the middle of a sum over a wide area: one outcome for all, in time, and the retry succeeds.
 *
 * Three peers, 100 Mb/s and 200 ms apart, whose master has a host of its own.  A fault comes when peer a has moved two of the 42 megabytes
 * that a sum of 16 takes.  An error is in time within four times the stall time and four round trips: only what waits for something
 * else takes longer.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/wan/wan_scene.h"

enum { MEGABYTE = 1 << 18 /* floats */, PEERS = 3, STALL_MS = 3000, DEFAULT_MS = 10000, RTT_MS = 200, IN_TIME_MS = 4 * (STALL_MS + 4 * RTT_MS), CUT_MS = 1000 };

#define HOSTS "[defaults]\nrate = 100mbit\ndelay = 100ms\nqueue = 2500kB\n[host a]\n[host b]\n[host c]\n[host d]\n"

static struct scene s; /* large */
static const char equal[] = HOSTS, hub[] = HOSTS "[path a c]\nrate = 20mbit\n"; /* in the second b is the inner node of the best tree */

static struct reduce_job sum_of(size_t count, uint64_t tag)
{
    return (struct reduce_job){.count = count, .tag = tag, .members = s.set, .after = 2 << 20, .in_place = tag % 2 == 0};
}

/* A fault in a sum, which may get an error by it; then a sum of all. */
static pcclResult_t fault(const char *command, const char *heals)
{
    static uint64_t tag;
    struct reply reply[PROCESSES_MOST] = {{.result = -1}};
    struct reduce_job job = sum_of(16 * MEGABYTE, ++tag), small = sum_of(MEGABYTE, ++tag);
    job.note = true;
    processes_send(&s.all, s.set, peer_reduce, &job, sizeof job);
    EXPECT_EQ(process_note(&s.all, 0), 1);
    EXPECT(scene_set(&s, command));
    int64_t begin = spawn_now_ms();
    if (heals != NULL) {
        EXPECT(!process_answers(&s.all, 0, CUT_MS)); /* nobody can be done without what is cut off */
        EXPECT(scene_set(&s, heals));
    }
    processes_take(&s.all, s.set, reply);
    pcclResult_t result = scene_outcome(&s, reply);
    EXPECT(strncmp(command, "cut", 3) != 0 || spawn_now_ms() - begin < IN_TIME_MS);
    scene_reduce(&s, &small);
    scene_expect_members(&s);
    return result;
}

static void kill_peer(int victim)
{
    struct reply reply[PROCESSES_MOST] = {{.result = -1}};
    struct reduce_job job = sum_of(8 * MEGABYTE, 1000);
    job.victim = victim;
    job.signal = SIGKILL;
    processes_send(&s.all, s.set, peer_reduce, &job, sizeof job);
    process_wait_killed(&s.all, victim);
    int64_t begin = spawn_now_ms();
    s.set &= ~(1u << victim);
    processes_take(&s.all, s.set, reply);
    EXPECT_EQ(scene_outcome(&s, reply), pcclRankConnectionLost);
    EXPECT_EQ(reply[0].cause, pcclCausePeerLost);
    EXPECT(spawn_now_ms() - begin < IN_TIME_MS);
    struct reduce_job small = sum_of(MEGABYTE, 1000);
    scene_reduce(&s, &small);
    scene_expect_members(&s);
}

static bool start(const char *network, const char *algorithm, uint64_t stall_ms)
{
    char wish[64], dead[24];
    snprintf(dead, sizeof dead, "%d", (int)stall_ms);
    snprintf(wish, sizeof wish, "allreduce:%s", algorithm);
    setenv("PCCL_ALGO", wish, 1);
    bool good = scene_start(&s, network, NULL, &(struct processes_options){.count = PEERS, .pool = 1, .stall_ms = stall_ms, .dead_ms = dead, .loss_ms = 20000});
    unsetenv("PCCL_ALGO");
    return good;
}

/* An end of each kind: of the path for a while, of one of its directions, of the path, of a peer. */
static void cut_and_kill(const char *algorithm)
{
    if (start(equal, algorithm, STALL_MS)) {
        (void)fault("cut a b", "heal");
        EXPECT_EQ(fault("cut b to c", NULL), pcclRankConnectionLost);
        EXPECT(scene_set(&s, "heal"));
        EXPECT_EQ(fault("cut a c", NULL), pcclRankConnectionLost);
        EXPECT(scene_set(&s, "heal"));
        kill_peer(1);
        scene_end(&s);
    }
}

/* Worse, but no end: who is slow stays.  The stall time is the default, since a packet may be lost several times in a row. */
static void spoil(const char *algorithm)
{
    if (start(equal, algorithm, DEFAULT_MS)) {
        EXPECT_EQ(fault("path a b rate 10mbit", NULL), pcclSuccess);
        EXPECT(scene_set(&s, "path a b rate 100mbit"));
        (void)fault("path b c loss 20%", NULL);
        EXPECT(scene_set(&s, "path b c loss 0%"));
        scene_end(&s);
    }
}

TEST(cut_path_or_dead_peer_in_a_direct_sum_is_one_outcome_for_all_in_time) /* one would return, and the others wait */
{
    SCENE_NEEDED();
    scene_play(&s, cut_and_kill, "direct");
}

TEST(cut_path_or_dead_peer_in_a_sum_along_a_ring_is_one_outcome_for_all_in_time)
{
    SCENE_NEEDED();
    scene_play(&s, cut_and_kill, "ring");
}

TEST(loss_and_low_rate_in_a_direct_sum_exclude_nobody) /* a slow peer would be taken for a dead one */
{
    SCENE_NEEDED();
    scene_play(&s, spoil, "direct");
}

TEST(loss_and_low_rate_in_a_sum_along_a_ring_exclude_nobody)
{
    SCENE_NEEDED();
    scene_play(&s, spoil, "ring");
}

/* The view has trees from here on. */
static void expect_forest(void)
{
    struct reply reply[PROCESSES_MOST];
    size_t count = 8 * MEGABYTE;
    processes_do(&s.all, s.set, peer_optimise, NULL, 0, NULL);
    processes_do(&s.all, s.set, scene_ask_plan, &count, sizeof count, reply);
    for (int i = 0; i < PEERS; i++) {
        EXPECT_STR(reply[i].text, "forest");
    }
}

static void spoil_and_cut_trees(const char *algorithm)
{
    if (start(hub, algorithm, STALL_MS)) {
        expect_forest();
        EXPECT_EQ(fault("path a b rate 10mbit queue 1MB", NULL), pcclSuccess);
        EXPECT(scene_set(&s, "path a b rate 100mbit queue 2500kB"));
        EXPECT_EQ(fault("cut b c", NULL), pcclRankConnectionLost);
        EXPECT(scene_set(&s, "heal"));
        kill_peer(1);
        scene_end(&s);
    }
}

TEST(late_edge_cut_edge_or_dead_inner_node_of_trees_is_one_outcome_for_all_in_time)
{
    SCENE_NEEDED();
    scene_play(&s, spoil_and_cut_trees, "forest");
}
