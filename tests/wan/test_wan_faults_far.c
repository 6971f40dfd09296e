/* test_wan_faults_far.c - paths that are as bad as paths get: nobody is excluded for what is slow, and calls go on.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>

#include "tests/testing.h"

#include "tests/wan/wan_scene.h"

enum { MEGABYTE = 1 << 18 /* floats */, PEERS = 3, ALL = 7, SMALL = 5 };

static struct scene s; /* large */

static void sum_far_and_lossy(const char *unused)
{
    (void)unused;
    if (!scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 300ms\nloss = 5%\n[host a]\n[host b]\n[host c]\n[host d]\n", NULL,
                     &(struct processes_options){.count = PEERS, .pool = 1})) {
        return;
    }
    static const size_t counts[] = {1, 1000, MEGABYTE / 4};
    for (uint64_t tag = 0; tag < sizeof counts / sizeof *counts; tag++) {
        struct reduce_job job = {.count = counts[tag], .tag = tag};
        scene_reduce(&s, &job);
    }
    processes_do(&s.all, s.set, peer_update, NULL, 0, NULL);
    scene_expect_members(&s);
    scene_end(&s);
}

TEST(peers_600_ms_apart_that_lose_a_packet_of_twenty_form_a_group_and_sum) /* time-outs that are made for shorter ways */
{
    SCENE_NEEDED();
    scene_play(&s, sum_far_and_lossy, NULL);
}

static void sum_very_far(const char *unused)
{
    (void)unused;
    if (!scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 600ms\n[host a]\n[host b]\n[host c]\n", NULL, &(struct processes_options){.count = 2, .pool = 1})) {
        return;
    }
    struct reduce_job job = {.count = MEGABYTE / 4, .tag = 1};
    scene_reduce(&s, &job);
    scene_expect_members(&s);
    scene_end(&s);
}

TEST(peers_1200_ms_apart_form_a_group_and_sum) /* a dialler that gives up while its greeting is on the way */
{
    SCENE_NEEDED();
    scene_play(&s, sum_very_far, NULL);
}

/* SMALL sums of one float each beside a large one that is half-way.  value[2]: so many of them have ended before the large one; value[3]:
 * ms, the quickest of those: a packet that is lost costs one of them a round trip, control frames behind data all of them. */
static void sums_beside(struct peer *self, const void *argument, struct reply *reply)
{
    struct reduce_job large = *(const struct reduce_job *)argument;
    float *in = peer_buffer(self, 0, large.count * sizeof(float)), *out = peer_buffer(self, 1, large.count * sizeof(float));
    float mine = job_value(self->index, 0, 0), sum = 0;
    pcclReduceDescriptor_t d = peer_floats(large.count, large.tag), one = peer_floats(1, large.tag + 1);
    pcclReduceInfo_t info = {0};
    pcclAsyncReduceOp_t handle;
    struct watch watch;
    int64_t quickest = INT64_MAX, before = 0;
    for (size_t i = 0; i < large.count; i++) {
        in[i] = job_value(self->index, i, large.tag);
    }
    watch_start(&watch, self, peer_moved, large.after, 0);
    PEER_EXPECT(self, pcclAllReduceAsync(in, out, &d, self->comm, &handle) == pcclSuccess);
    pthread_join(watch.thread, NULL);
    for (int i = 0; i < SMALL; i++) {
        bool done = true;
        int64_t began = spawn_now_ms();
        PEER_EXPECT(self, pcclAllReduce(&mine, &sum, &one, self->comm, NULL) == pcclSuccess);
        int64_t took = spawn_now_ms() - began;
        PEER_EXPECT(self, sum == job_sum(large.members, 0, 0));
        PEER_EXPECT(self, pcclTestAsyncReduce(&handle, &done) == pcclSuccess);
        before += !done;
        quickest = !done && took < quickest ? took : quickest;
    }
    reply->value[2] = before;
    reply->value[3] = quickest;
    peer_result(reply, pcclAwaitAsyncReduce(&handle, &info));
    reply->value[0] = info.local_world_size;
    for (size_t i = 0; i < large.count; i++) {
        PEER_EXPECT(self, out[i] == job_sum(large.members, i, large.tag));
    }
}

/* All sum beside a large sum, at least so often before it has ended, and nobody is excluded.  Returns ms, the longest such time of a peer. */
static int64_t scene_sum_beside(const struct reduce_job *large, int often)
{
    struct reply reply[PROCESSES_MOST];
    int64_t longest = 0;
    processes_do(&s.all, s.set, sums_beside, large, sizeof *large, reply);
    EXPECT_EQ(scene_outcome(&s, reply), pcclSuccess);
    for (int i = 0; i < PEERS; i++) {
        EXPECT(reply[i].value[2] >= often);
        longest = reply[i].value[3] > longest ? reply[i].value[3] : longest;
    }
    scene_expect_members(&s);
    return longest;
}

static void sum_behind_a_queue(const char *unused)
{
    (void)unused;
    if (!scene_start(&s, "[defaults]\nuplink = 40mbit\nuplink_queue = 10MB\ndelay = 10ms\ntcp_wmem = 64MB\ntcp_rmem = 64MB\n[host a]\n[host b]\n[host c]\n[host d]\n",
                     "give 10.77.0.2 60 reno", &(struct processes_options){.count = PEERS, .pool = 1})) {
        return;
    }
    (void)scene_sum_beside(&(struct reduce_job){.count = MEGABYTE, .tag = 1, .members = ALL, .after = 256 << 10}, 1);
    scene_end(&s);
    EXPECT(lab_count(&s.lab, "a", "d", "highest_queue_bytes") > 9e6); /* what the words to the master had before them */
}

TEST(heartbeats_and_a_small_sum_pass_two_seconds_of_queue) /* a full buffer that passes for a dead peer */
{
    SCENE_NEEDED();
    scene_play(&s, sum_behind_a_queue, NULL);
}

static void sum_beside_a_full_path(const char *congestion)
{
    setenv("PCCL_TCP_CONGESTION", congestion, 1);
    bool good = scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 50ms\nqueue = 1250KB\n[host a]\n[host b]\n[host c]\n[host d]\n", NULL,
                            &(struct processes_options){.count = PEERS, .pool = 1});
    unsetenv("PCCL_TCP_CONGESTION");
    if (!good) {
        return;
    }
    struct reduce_job first = {.count = 4 * MEGABYTE, .tag = 1}, job = {.count = 24 * MEGABYTE, .tag = 1, .members = ALL, .after = 8 << 20};
    scene_reduce(&s, &first); /* rates and windows are known */
    int64_t took = scene_sum_beside(&job, 3);
    scene_end(&s);
    double queue = 0; /* the longest there was, in ms: 12.5 KB each */
    for (int i = 0; i < PEERS; i++) {
        for (int j = 0; j < PEERS; j++) {
            char from[] = {(char)('a' + i), 0}, to[] = {(char)('a' + j), 0};
            double bytes = i != j ? lab_count(&s.lab, from, to, "highest_queue_bytes") : 0;
            queue = bytes / 12.5e3 > queue ? bytes / 12.5e3 : queue;
        }
    }
    fprintf(stderr, "%s: a small sum took %lld ms; the longest queue was %.0f ms\n", congestion, (long long)took, queue);
    EXPECT((double)took <= 2 * 100 + queue);
}

TEST(small_sum_beside_a_full_path_takes_two_round_trips_and_its_queue) /* control frames behind what the socket has not sent yet */
{
    SCENE_NEEDED();
    scene_play(&s, sum_beside_a_full_path, "bbr");
    scene_play(&s, sum_beside_a_full_path, "cubic");
}

static void sum_over_a_cut_stripe(const char *unused)
{
    (void)unused;
    setenv("PCCL_STRIPE", "4", 1);
    bool good = scene_start(&s, "[defaults]\nrate = 100mbit\ndelay = 50ms\n[host a]\n[host b]\n[host c]\n[host d]\n", NULL,
                            &(struct processes_options){.count = PEERS, .pool = 1, .stall_ms = 3000, .dead_ms = "3000"});
    unsetenv("PCCL_STRIPE");
    if (!good) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct reduce_job job = {.count = 8 * MEGABYTE, .tag = 1, .members = ALL};
    scene_reduce(&s, &job); /* sockets beyond the first come while it runs */
    job.note = true;
    job.after = 6 << 20;
    job.in_place = true;
    processes_send(&s.all, s.set, peer_reduce, &job, sizeof job);
    EXPECT_EQ(process_note(&s.all, 0), 1);
    EXPECT(scene_set(&s, "cut a b"));
    processes_take(&s.all, s.set, reply);
    EXPECT_EQ(scene_outcome(&s, reply), pcclRankConnectionLost);
    scene_reduce(&s, &job); /* c passes on what a and b have for each other */
    EXPECT(scene_set(&s, "heal"));
    processes_do(&s.all, s.set, peer_update, NULL, 0, NULL);
    scene_reduce(&s, &job);
    scene_expect_members(&s);
    scene_end(&s);
}

TEST(path_that_is_cut_under_a_stripe_of_sockets_is_one_outcome_for_all) /* a socket that nobody reads, with records of the sum */
{
    SCENE_NEEDED();
    scene_play(&s, sum_over_a_cut_stripe, NULL);
}
