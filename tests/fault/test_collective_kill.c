/* test_collective_kill.c - a process dies or stands still in the middle of each collective, or dies between two: one error at every
 * survivor, inputs as they were, in place too, and the next call, laid out for those who are left, has the right values.
 *
 * Inputs are a function of rank and element, so that each attempt is checked against the ranks it was made for.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SCATTER, ALL_TO_ALL, REDUCE, GATHER, KINDS };

struct kill_job {
    enum kind kind;
    size_t count;   /* floats of a part */
    int victim;     /* kills or stops itself after so many bytes; -1: nobody does */
    uint64_t after;
    int attempts;   /* at most */
    int signal;     /* 0: SIGKILL */
    bool in_place;  /* where the collective has such a form */
};

enum { ROOT = 1 };

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
           : kind == BROADCAST                          ? given(ROOT, 0, i)
           : kind == SCATTER                            ? given(ROOT, self, i)
                                                        : given(of, kind == ALL_TO_ALL ? self : 0, i);
}

/* The buffers of one attempt: where the input lies in the output, or the output in the input, if the call is in place. */
struct laid_out {
    uint32_t rank, world, ins, outs; /* parts of the input and of the output */
    float *memory[2];                /* owned */
    float *in, *out;
    bool within;                     /* at this member one lies in the other */
};

static void lay_out(struct laid_out *l, const struct kill_job *job)
{
    bool root = l->rank == ROOT, parts = job->kind == REDUCE_SCATTER || job->kind == ALL_TO_ALL || job->kind == SCATTER;
    l->ins = parts ? l->world : 1;
    l->outs = job->kind == ALL_GATHER || job->kind == ALL_TO_ALL || job->kind == GATHER ? l->world : 1;
    l->within = job->in_place && job->kind != REDUCE_SCATTER && job->kind != ALL_TO_ALL && (root || job->kind <= ALL_GATHER);
    for (int i = 0; i < 2; i++) {
        l->memory[i] = malloc((i == 0 ? l->ins : l->outs) * job->count * sizeof(float));
    }
    l->in = l->memory[0];
    l->out = l->memory[1];
    if (l->within && job->kind == SCATTER) {
        l->out = l->in + l->rank * job->count;
    } else if (l->within) {
        l->in = l->out + (l->outs > 1 ? l->rank * job->count : 0);
    }
    for (size_t i = 0; i < l->ins * job->count; i++) {
        l->in[i] = given(l->rank, l->ins > 1 ? (uint32_t)(i / job->count) : 0, i % job->count);
    }
}

static pcclResult_t make_call(const struct laid_out *l, const struct kill_job *job, const pcclComm_t *comm)
{
    const float *in = l->in;
    float *out = l->out;
    switch (job->kind) {
    case ALL_REDUCE:
        return pcclAllReduceOrdered(in, out, job->count, pcclFloat, pcclSum, comm, NULL);
    case REDUCE_SCATTER:
        return pcclReduceScatter(in, out, job->count, pcclFloat, pcclSum, comm, NULL);
    case ALL_GATHER:
        return pcclAllGather(in, out, job->count, pcclFloat, comm, NULL);
    case BROADCAST:
        return pcclBroadcast(in, out, job->count, pcclFloat, ROOT, comm, NULL);
    case SCATTER:
        return pcclScatter(in, out, job->count, pcclFloat, ROOT, comm, NULL);
    case ALL_TO_ALL:
        return pcclAllToAll(in, out, job->count, pcclFloat, comm, NULL);
    case REDUCE:
        return pcclReduce(in, out, job->count, pcclFloat, pcclSum, ROOT, comm, NULL);
    case GATHER:
        return pcclGather(in, out, job->count, pcclFloat, ROOT, comm, NULL);
    case KINDS:
        break;
    }
    return pcclInternalError;
}

static pcclResult_t attempt(struct peer *self, const struct kill_job *job)
{
    pcclPeerInfo_t me;
    pcclResult_t rc = pcclGetSelf(self->comm, &me);
    struct laid_out l = {.rank = me.rank, .world = (uint32_t)peer_size(self, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE)};
    if (rc != pcclSuccess) {
        return rc;
    }
    lay_out(&l, job);
    rc = make_call(&l, job, self->comm);
    bool has = (job->kind != REDUCE && job->kind != GATHER) || me.rank == ROOT;
    bool result_there = l.within && (job->kind == ALL_REDUCE || job->kind == REDUCE); /* where the input was */
    size_t wrong = 0;
    for (size_t i = 0; rc == pcclSuccess && has && i < l.outs * job->count; i++) {
        wrong += l.out[i] != wanted(job->kind, l.world, me.rank, (uint32_t)(i / job->count), i % job->count);
    }
    EXPECT_EQ(wrong, 0);
    for (size_t i = 0; (rc != pcclSuccess || !result_there) && i < l.ins * job->count; i++) {
        wrong += l.in[i] != given(me.rank, l.ins > 1 ? (uint32_t)(i / job->count) : 0, i % job->count);
    }
    EXPECT_EQ(wrong, 0);
    free(l.memory[0]);
    free(l.memory[1]);
    return rc;
}

/* Calls again after RankConnectionLost, with what is left; value[0]: errors, value[1]: world of the success. */
static void call_until_success(struct peer *self, const void *argument, struct reply *reply)
{
    const struct kill_job *job = argument;
    struct watch w = {0};
    bool dies = job->victim == self->index;
    if (dies) {
        watch_start(&w, self, peer_moved, job->after, job->signal != 0 ? job->signal : SIGKILL);
    }
    for (int i = 0; i < job->attempts; i++) {
        reply->result = (int)attempt(self, job);
        if (reply->result != pcclRankConnectionLost) {
            break;
        }
        pcclErrorInfo_t e;
        EXPECT_EQ(pcclGetLastErrorInfo(&e), pcclSuccess);
        bool still = job->signal == SIGSTOP && (e.cause == pcclCausePeerSilent || e.cause == pcclCauseNoProgress);
        EXPECT(still || (job->signal != SIGSTOP && e.cause == pcclCausePeerLost));
        EXPECT(e.error_class == pcclClassRetry && e.peer != 0);
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

static void kill_in_the_middle(enum kind kind, int victim, bool in_place)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures, .pool = 2})) {
        return;
    }
    struct kill_job job = {.kind = kind, .count = 1000, .victim = -1, .attempts = 1, .in_place = in_place};
    processes_do(&all, 15, call_until_success, &job, sizeof job, reply); /* eager ones first */
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    uint64_t count = in_place ? 2 << 18 : test_scaled(16 << 18);
    job = (struct kill_job){.kind = kind, .count = count, .victim = victim, .after = 1 << 20, .attempts = 3, .in_place = in_place};
    processes_send(&all, 15, call_until_success, &job, sizeof job);
    process_wait_killed(&all, victim);
    processes_take(&all, 7, reply);
    int64_t errors = reply[0].value[0]; /* none where it had done its part before it died */
    check_survivors(reply, errors, errors == 0 ? 4 : 3);
    job = (struct kill_job){.kind = kind, .count = 3000, .victim = -1, .attempts = 3, .in_place = in_place};
    processes_do(&all, 7, call_until_success, &job, sizeof job, reply);
    check_survivors(reply, 1 - errors, 3);
    processes_stop(&all);
}

TEST(a_death_in_the_middle_of_each_collective_is_one_error_and_the_next_has_the_right_values)
{
    for (int kind = 0; kind < KINDS; kind++) {
        kill_in_the_middle((enum kind)kind, 3, false);
    }
}

/* Parts of others are in the buffer already, beside the own one or over it. */
TEST(after_a_death_in_the_middle_an_input_in_place_is_as_it_was)
{
    static const enum kind kinds[] = {ALL_REDUCE, ALL_GATHER, BROADCAST, SCATTER, REDUCE, GATHER};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        kill_in_the_middle(kinds[i], 3, true);
    }
}

/* Its kernel goes on acknowledging what comes, so that the call ends by silence alone. */
static void stop_in_the_middle(enum kind kind, bool for_good)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 4, .failures = &test_failures, .pool = 2, .stall_ms = for_good ? 1500 : 20000,
                                  .dead_ms = for_good ? "1500" : "20000"};
    if (!peers_start(&all, &o)) {
        return;
    }
    struct kill_job job = {.kind = kind, .count = (for_good ? 8 : 2) << 18, .victim = 3, .after = 1 << 20, .attempts = 3,
                           .signal = SIGSTOP, .in_place = true};
    processes_send(&all, 15, call_until_success, &job, sizeof job);
    process_wait_stopped(&all, 3);
    if (for_good) {
        processes_take(&all, 7, reply);
        int64_t errors = reply[0].value[0]; /* none where it had done its part before it stopped */
        check_survivors(reply, errors, errors == 0 ? 4 : 3);
        process_signal(&all, 3, SIGCONT);
        EXPECT_EQ(process_take(&all, 3).result, errors == 0 ? pcclSuccess : pcclMasterConnectionFailed);
    } else {
        process_signal(&all, 3, SIGCONT);
        processes_take(&all, 15, reply);
        check_survivors(reply, 0, 4);
        EXPECT_EQ(reply[3].result, pcclSuccess);
    }
    processes_stop(&all);
}

TEST(a_member_that_stops_in_the_middle_is_excluded_and_the_others_call_again)
{
    stop_in_the_middle(ALL_GATHER, true);
    stop_in_the_middle(REDUCE_SCATTER, true);
}

TEST(a_member_that_stops_and_goes_on_costs_no_collective)
{
    for (int kind = 0; kind < KINDS; kind += test_step()) {
        stop_in_the_middle((enum kind)kind, false);
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
    for (int kind = 0; kind < KINDS; kind += test_step()) {
        kill_between((enum kind)kind, 3);
        kill_between((enum kind)kind, 0);
    }
}
