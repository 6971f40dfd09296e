/* test_forest_kill.c - sums along the trees of a view, between processes: by value, and when one of them dies in the middle.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */, WORLD = 4 };

/* Which algorithm a large sum takes: 1 if that is a forest.  value[0]: of the algorithms that are explained; value[1]: whether a sum of
 * halves takes it. */
static void ask_plan(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPlan_t plan = {"", 0}, all[9], half = {"", 0};
    size_t count = 0;
    (void)argument;
    EXPECT_EQ(pcclGetPlan(self->comm, pcclCollectiveAllReduce, MEGABYTE, pcclFloat, pcclSum, &plan), pcclSuccess);
    EXPECT_EQ(pcclGetPlan(self->comm, pcclCollectiveAllReduce, MEGABYTE, pcclFloat16, pcclSum, &half), pcclSuccess);
    EXPECT_EQ(pcclExplainPlan(self->comm, pcclCollectiveAllReduce, MEGABYTE, pcclFloat, pcclSum, all, 9, &count), pcclSuccess);
    for (size_t i = 0; i < count; i++) {
        reply->value[0] += strcmp(all[i].algorithm, "forest") == 0 && all[i].predicted_us > 0;
    }
    reply->value[1] = strcmp(half.algorithm, "forest") == 0;
    reply->result = strcmp(plan.algorithm, "forest") == 0;
}

static void expect_forest(struct processes *all, unsigned set, bool forest)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, ask_plan, NULL, 0, reply);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, forest);
            EXPECT_EQ(reply[i].value[0], forest);
            EXPECT_EQ(reply[i].value[1], 0);
        }
    }
}

static void reduce_all(struct processes *all, unsigned set, const struct reduce_job *job)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, peer_reduce, job, sizeof *job, reply);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
        }
    }
}

/* Links measured: the view has trees from here on. */
static bool start(struct processes *all, uint32_t pool)
{
    setenv("PCCL_ALGO", "allreduce:forest", 1);
    bool good = peers_start(all, &(struct processes_options){.count = WORLD, .failures = &test_failures, .pool = pool});
    unsetenv("PCCL_ALGO");
    if (!good) {
        return false;
    }
    expect_forest(all, 15, false); /* nothing is known of the links yet */
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 15, peer_optimise, NULL, 0, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    expect_forest(all, 15, true);
    return true;
}

TEST(sums_along_trees_have_the_right_values_whatever_the_count) /* slices that end at the wrong element, or are summed at two roots */
{
    static const size_t counts[] = {16400, 20011, 65537, MEGABYTE + 3, 8 * MEGABYTE + 1};
    struct processes all;
    for (uint32_t pool = 1; pool <= 3; pool += 2) {
        if (!start(&all, pool)) {
            return;
        }
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            reduce_all(&all, 15, &(struct reduce_job){.count = counts[i], .tag = 2 * i, .members = 15, .in_place = i % 2 == 0});
        }
        processes_stop(&all);
    }
}

/* An inner node or a leaf of each tree dies: everybody's call ends, inputs are as they were, and the retry goes along new trees. */
static void kill_one(bool in_place, uint32_t pool)
{
    struct processes all;
    if (!start(&all, pool)) {
        return;
    }
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 7, .in_place = in_place, .victim = 3,
                             .signal = SIGKILL, .after = 20 << 20};
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 15, peer_reduce, &job, sizeof job);
    process_wait_killed(&all, 3);
    processes_take(&all, 7, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCausePeerLost);
    }
    job.signal = 0;
    reduce_all(&all, 7, &job);
    expect_forest(&all, 7, true);
    processes_stop(&all);
}

TEST(kill_in_the_middle_of_a_sum_along_trees_is_one_error_and_the_retry_succeeds)
{
    kill_one(false, 1);
}

TEST(kill_in_the_middle_of_an_in_place_sum_along_trees_restores_inputs)
{
    kill_one(true, 2);
}
