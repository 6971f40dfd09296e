/* test_collective_kill.c - a process dies in the middle of each collective, or between two: one error at every survivor, and the next
 * call, laid out for those who are left, has the right values.
 *
 * Inputs are a function of rank and element, so that each attempt is checked against the ranks it was made for.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SCATTER, ALL_TO_ALL, REDUCE, GATHER, KINDS };

struct kill_job {
    enum kind kind;
    size_t count;   /* floats of a part */
    int victim;     /* kills itself after so many bytes; -1: nobody does */
    uint64_t after;
    int attempts;   /* at most */
};

static float given(uint32_t from, uint32_t to, size_t i)
{
    return (float)((from * 7 + to * 3 + i) % 1000);
}

static float wanted(enum kind kind, uint32_t world, uint32_t self, uint32_t of, size_t i)
{
    float sum = 0;
    for (uint32_t r = 0; r < world; r++) {
        sum += given(r, kind == REDUCE_SCATTER ? self : 0, i);
    }
    return kind == ALL_REDUCE || kind == REDUCE_SCATTER || kind == REDUCE ? sum
           : kind == BROADCAST                          ? given(1, 0, i)
           : kind == SCATTER                            ? given(1, self, i)
                                                        : given(of, kind == ALL_TO_ALL ? self : 0, i);
}

static pcclResult_t attempt(struct peer *self, const struct kill_job *job)
{
    pcclPeerInfo_t me;
    pcclResult_t rc = pcclGetSelf(self->comm, &me);
    uint32_t world = (uint32_t)peer_size(self, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE);
    if (rc != pcclSuccess) {
        return rc;
    }
    uint32_t ins = job->kind == REDUCE_SCATTER || job->kind == ALL_TO_ALL || job->kind == SCATTER ? world : 1;
    uint32_t outs = job->kind == ALL_GATHER || job->kind == ALL_TO_ALL || job->kind == GATHER ? world : 1;
    bool has = (job->kind != REDUCE && job->kind != GATHER) || me.rank == 1;
    float *in = malloc(ins * job->count * sizeof *in), *out = malloc(outs * job->count * sizeof *out);
    for (size_t i = 0; i < ins * job->count; i++) {
        in[i] = given(me.rank, ins > 1 ? (uint32_t)(i / job->count) : 0, i % job->count);
    }
    switch (job->kind) {
    case ALL_REDUCE:
        rc = pcclAllReduceOrdered(in, out, job->count, pcclFloat, pcclSum, self->comm, NULL);
        break;
    case REDUCE_SCATTER:
        rc = pcclReduceScatter(in, out, job->count, pcclFloat, pcclSum, self->comm, NULL);
        break;
    case ALL_GATHER:
        rc = pcclAllGather(in, out, job->count, pcclFloat, self->comm, NULL);
        break;
    case BROADCAST:
        rc = pcclBroadcast(in, out, job->count, pcclFloat, 1, self->comm, NULL);
        break;
    case SCATTER:
        rc = pcclScatter(in, out, job->count, pcclFloat, 1, self->comm, NULL);
        break;
    case ALL_TO_ALL:
        rc = pcclAllToAll(in, out, job->count, pcclFloat, self->comm, NULL);
        break;
    case REDUCE:
        rc = pcclReduce(in, out, job->count, pcclFloat, pcclSum, 1, self->comm, NULL);
        break;
    case GATHER:
        rc = pcclGather(in, out, job->count, pcclFloat, 1, self->comm, NULL);
        break;
    case KINDS:
        break;
    }
    size_t wrong = 0;
    for (size_t i = 0; rc == pcclSuccess && has && i < outs * job->count; i++) {
        wrong += out[i] != wanted(job->kind, world, me.rank, (uint32_t)(i / job->count), i % job->count);
    }
    EXPECT_EQ(wrong, 0);
    for (size_t i = 0; i < ins * job->count; i++) {
        wrong += in[i] != given(me.rank, ins > 1 ? (uint32_t)(i / job->count) : 0, i % job->count);
    }
    EXPECT_EQ(wrong, 0);
    free(in);
    free(out);
    return rc;
}

/* Calls again after RankConnectionLost, with what is left; value[0]: errors, value[1]: world of the success. */
static void call_until_success(struct peer *self, const void *argument, struct reply *reply)
{
    const struct kill_job *job = argument;
    struct watch w = {0};
    bool dies = job->victim == self->index;
    if (dies) {
        watch_start(&w, self, peer_moved, job->after, SIGKILL);
    }
    for (int i = 0; i < job->attempts; i++) {
        reply->result = (int)attempt(self, job);
        if (reply->result != pcclRankConnectionLost) {
            break;
        }
        pcclErrorInfo_t e;
        EXPECT_EQ(pcclGetLastErrorInfo(&e), pcclSuccess);
        EXPECT(e.cause == pcclCausePeerLost && e.error_class == pcclClassRetry && e.peer != 0);
        reply->value[0]++;
    }
    reply->value[1] = peer_size(self, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE);
    if (dies) {
        (void)watch_end(&w);
    }
}

/* The sizes and ranks that the program reads do not change with it. */
static void wait_for_view_of_three(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t members[4] = {0};
    size_t count = 0, lost = 0;
    (void)argument;
    while (pcclGetMembers(self->comm, members, 4, &count) == pcclSuccess && lost == 0) {
        for (uint32_t i = 0; i < 4; i++) {
            EXPECT_EQ(members[i].rank, i);
            EXPECT(members[i].lost == (members[i].ring_position == UINT32_MAX) && members[i].address.port != 0);
            lost += members[i].lost;
        }
        sched_yield();
    }
    EXPECT_EQ(count, 4);
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(peer_size(self, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE), 4);
    reply->result = pcclSuccess;
}

/* The same at all three: so many errors, then success among so many. */
static void check_survivors(const struct reply *reply, int64_t errors, int64_t world)
{
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT_EQ(reply[i].value[0], errors);
        EXPECT_EQ(reply[i].value[1], world);
        if (reply[i].result != pcclSuccess) {
            printf("# peer %d: %s\n", i, reply[i].text);
        }
    }
}

static void kill_in_the_middle(enum kind kind, int victim)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures, .pool = 2})) {
        return;
    }
    struct kill_job job = {.kind = kind, .count = 1000, .victim = -1, .attempts = 1};
    processes_do(&all, 15, call_until_success, &job, sizeof job, reply); /* eager ones first */
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    job = (struct kill_job){.kind = kind, .count = 16 << 18, .victim = victim, .after = 1 << 20, .attempts = 3};
    processes_send(&all, 15, call_until_success, &job, sizeof job);
    process_wait_killed(&all, victim);
    processes_take(&all, 7, reply);
    int64_t errors = reply[0].value[0]; /* none where it had done its part before it died */
    check_survivors(reply, errors, errors == 0 ? 4 : 3);
    job = (struct kill_job){.kind = kind, .count = 3000, .victim = -1, .attempts = 3};
    processes_do(&all, 7, call_until_success, &job, sizeof job, reply);
    check_survivors(reply, 1 - errors, 3);
    processes_stop(&all);
}

TEST(a_death_in_the_middle_of_each_collective_is_one_error_and_the_next_has_the_right_values)
{
    for (int kind = 0; kind < KINDS; kind++) {
        kill_in_the_middle((enum kind)kind, 3);
    }
}

/* With the first member all ranks move up: who was no root is one, in what the program reads of itself, while sizes are as before. */
static void kill_between(enum kind kind, int victim)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    unsigned left = 15 & ~(1u << victim);
    if (!peers_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures, .pool = 1})) {
        return;
    }
    struct kill_job job = {.kind = kind, .count = 2000, .victim = -1, .attempts = 3};
    processes_do(&all, 15, call_until_success, &job, sizeof job, reply);
    process_signal(&all, victim, SIGKILL);
    processes_do(&all, left, wait_for_view_of_three, NULL, 0, reply);
    processes_do(&all, left, call_until_success, &job, sizeof job, reply);
    check_survivors(reply + (victim == 0), 1, 3);
    processes_stop(&all);
}

TEST(a_death_between_two_collectives_is_one_error_since_the_next_was_laid_out_for_more)
{
    for (int kind = 0; kind < KINDS; kind++) {
        kill_between((enum kind)kind, 3);
        kill_between((enum kind)kind, 0);
    }
}
