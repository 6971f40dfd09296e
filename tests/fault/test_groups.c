/* test_groups.c - several peer groups in one run: what happens in one is no business of the others, votes of all are.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */ };

/* Peers 0 and 1 are group 1, the others group 2. */
static bool start(struct processes *all, int count)
{
    struct processes_options o = {.count = count, .failures = &test_failures, .pool = 1};
    for (int i = 0; i < PROCESSES_MOST; i++) {
        o.group[i] = i < 2 ? 1 : 2;
    }
    if (!processes_start(all, &o)) {
        return false;
    }
    processes_do(all, processes_set(count), peer_join, &count, sizeof count, NULL);
    return true;
}

static void expect_results(const struct reply *reply, unsigned set, int result)
{
    for (int i = 0; i < PROCESSES_MOST; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, result);
        }
    }
}

/* Kills peer 4 in the middle of its group's reduce; the survivors of that group take their error and retry at once. */
static void kill_in_group_two(struct processes *all)
{
    struct reply reply[PROCESSES_MOST];
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 4 | 8, .in_place = true, .victim = 4,
                             .signal = SIGKILL, .after = 20 << 20};
    processes_send(all, 4 | 8 | 16, peer_reduce, &job, sizeof job);
    process_wait_killed(all, 4);
    processes_take(all, 4 | 8, reply);
    expect_results(reply, 4 | 8, pcclRankConnectionLost);
    job.signal = 0;
    processes_do(all, 4 | 8, peer_reduce, &job, sizeof job, reply);
    expect_results(reply, 4 | 8, pcclSuccess);
}

TEST(a_failure_in_one_group_is_settled_inside_it) /* R11: group 1 calls nothing all the while */
{
    struct processes all;
    if (!start(&all, 5)) {
        return;
    }
    kill_in_group_two(&all);
    struct reply reply[PROCESSES_MOST];
    struct reply before = process_do(&all, 0, peer_look, NULL, 0);
    EXPECT_EQ(before.value[0], 5); /* a snapshot: nothing has told group 1 */
    EXPECT_EQ(before.value[2], 2);
    struct reduce_job job = {.count = MEGABYTE, .tag = 2, .members = 3};
    processes_do(&all, 3, peer_reduce, &job, sizeof job, reply);
    expect_results(reply, 3, pcclSuccess);
    processes_do(&all, 15, peer_update, NULL, 0, reply);
    expect_results(reply, 15, pcclSuccess);
    processes_do(&all, 15, peer_look, NULL, 0, reply);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(reply[i].value[0], 4);
        EXPECT_EQ(reply[i].value[1], 2);
        EXPECT_EQ(reply[i].value[2], 2);
        EXPECT_EQ(reply[i].value[3], 2);
    }
    processes_stop(&all);
}

TEST(an_operation_running_in_one_group_survives_a_death_in_another)
{
    struct processes all;
    if (!start(&all, 5)) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct reduce_job half = {.count = 16 * MEGABYTE, .tag = 9, .members = 3};
    process_send(&all, 0, peer_reduce, &half, sizeof half); /* launched: peer 1 has not yet */
    kill_in_group_two(&all);
    process_send(&all, 1, peer_reduce, &half, sizeof half);
    processes_take(&all, 3, reply);
    expect_results(reply, 3, pcclSuccess);
    processes_stop(&all);
}

TEST(a_group_recovers_while_another_waits_in_an_update_and_both_finish) /* R13 */
{
    struct processes all;
    if (!start(&all, 5)) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 3, peer_update, NULL, 0);
    EXPECT(!process_answers(&all, 0, 50)); /* it needs all groups */
    kill_in_group_two(&all);
    EXPECT(!process_answers(&all, 0, 0));
    processes_do(&all, 4 | 8, peer_update, NULL, 0, reply);
    expect_results(reply, 4 | 8, pcclSuccess);
    processes_take(&all, 3, reply);
    expect_results(reply, 3, pcclSuccess);
    processes_do(&all, 15, peer_look, NULL, 0, reply);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(reply[i].value[0], 4);
    }
    processes_stop(&all);
}

/* ---- A grid as sharded training uses it: group = shard, one column = one replica --------------------------------- */

struct grid {
    int shards, columns, victim, die_at_step; /* die_at_step < 0: nobody dies */
    bool newcomer;
};

/* Steps until the grid has been full again for three steps after a death.  In every step: wait for the full grid (global
 * size = shards x largest group, as the examples do), then reduce ones in the own group; the sum must be the group's size. */
static void train(struct peer *self, const void *argument, struct reply *reply)
{
    struct grid g;
    memcpy(&g, argument, sizeof g);
    bool seen_hole = g.newcomer;
    pcclResult_t result = g.newcomer ? pcclConnect(self->comm) : pcclSuccess;
    bool updated = g.newcomer;
    for (int step = 0, full_steps = 0; full_steps < 3 && result == pcclSuccess; step++) {
        if (!updated) {
            result = pcclUpdateTopology(self->comm);
        }
        while (result == pcclSuccess && peer_size(self, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) <
                                            g.shards * peer_size(self, PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE)) {
            if (!seen_hole) {
                peer_note(self, 1);
            }
            seen_hole = true;
            result = pcclUpdateTopology(self->comm);
            PEER_EXPECT(self, result == pcclSuccess);
        }
        updated = false;
        full_steps += seen_hole;
        float ones[1000], sum[1000];
        for (int i = 0; i < 1000; i++) {
            ones[i] = 1;
        }
        pcclReduceDescriptor_t d = peer_floats(1000, (uint64_t)self->group);
        pcclReduceInfo_t info;
        pcclAsyncReduceOp_t handle;
        pcclResult_t reduced = pcclAllReduceAsync(ones, sum, &d, self->comm, &handle);
        if (self->index == g.victim && step == g.die_at_step) {
            raise(SIGKILL);
        }
        reduced = reduced == pcclSuccess ? pcclAwaitAsyncReduce(&handle, &info) : reduced;
        while (reduced == pcclRankConnectionLost) {
            reduced = pcclAllReduce(ones, sum, &d, self->comm, &info);
        }
        PEER_EXPECT(self, reduced == pcclSuccess || reduced == pcclTooFewPeers);
        for (int i = 0; i < 1000 && reduced == pcclSuccess; i++) {
            PEER_EXPECT(self, sum[i] == (float)info.local_world_size);
        }
        reply->value[0] = reduced == pcclSuccess ? (int64_t)info.local_world_size : 1;
        reply->value[1] = step;
    }
    peer_result(reply, result);
}

static void run_grid(int shards, int columns, int victim)
{
    struct processes all;
    int count = shards * columns;
    struct processes_options o = {.count = count, .failures = &test_failures, .pool = 1};
    struct reply reply[PROCESSES_MOST];
    for (int i = 0; i < count; i++) {
        o.group[i] = (uint32_t)(i % shards);
    }
    if (!processes_start(&all, &o)) {
        return;
    }
    processes_do(&all, processes_set(count), peer_join, &count, sizeof count, NULL);
    struct grid g = {.shards = shards, .columns = columns, .victim = victim, .die_at_step = 5};
    processes_send(&all, processes_set(count), train, &g, sizeof g);
    process_wait_killed(&all, victim);
    EXPECT_EQ(process_note(&all, victim == 0 ? 1 : 0), 1); /* else the newcomer might fill the hole unseen */
    int late = processes_add(&all, (uint32_t)(victim % shards), NULL);
    g.newcomer = true;
    g.die_at_step = -1;
    EXPECT_EQ(process_do(&all, late, peer_create, NULL, 0).result, pcclSuccess);
    process_send(&all, late, train, &g, sizeof g);
    unsigned set = processes_set(count + 1) & ~(1u << victim);
    processes_take(&all, set, reply);
    expect_results(reply, set, pcclSuccess);
    for (int i = 0; i <= count; i++) {
        if (i != victim) {
            EXPECT_EQ(reply[i].value[0], columns); /* the last step was one of the full grid */
        }
    }
    processes_stop(&all);
}

TEST(a_grid_of_groups_waits_for_a_newcomer_after_a_death_and_goes_on)
{
    run_grid(2, 2, 3);
    run_grid(2, 3, 0);
    run_grid(3, 2, 4);
}
