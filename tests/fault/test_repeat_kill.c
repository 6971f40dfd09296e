/* test_repeat_kill.c - kill -9 of a member in the middle of a group that is repeated: all who are left succeed, with the same right values.
 *
 * Inputs are a function of process and element; an input in place is written once, so that a repeat sums up what the failed
 * attempt has left there.  Invariant: process 1 is the root and never the victim.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { ALL_REDUCE, BIG_MESSAGE, ALL_GATHER, BROADCAST, TO_VICTIM, REDUCE, SMALL, OPERATIONS, ROOT = 1, WORLD = 4, LARGE = 2 << 20, TINY = 100 };

struct repeat_job {
    int victim;
    uint64_t after;  /* kills itself after so many bytes; 0: when it is to launch operation `at` */
    size_t at;
    bool all_again;
};

/* What one process knows of its group. */
struct repeat_group {
    struct peer *self;
    const struct repeat_job *job;
    uint32_t process[WORLD]; /* by rank, of all four */
    uint32_t world[OPERATIONS], attempts;
    uint32_t source;
    float *in[OPERATIONS], *out[OPERATIONS];
};

static size_t elements(size_t index)
{
    return index == SMALL || index == TO_VICTIM ? TINY : LARGE;
}

static float given(uint32_t process, size_t index, size_t i)
{
    return (float)((process * 131 + index * 17 + i * 7) % 1021);
}

/* Who is of rank r among `world` of them: the victim has left its place to those behind it. */
static uint32_t process_of(const struct repeat_group *g, uint32_t world, uint32_t r)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < WORLD; k++) {
        bool gone = world < WORLD && g->process[k] == (uint32_t)g->job->victim;
        if (!gone && at++ == r) {
            return g->process[k];
        }
    }
    return UINT32_MAX;
}

static uint32_t rank_of(const struct repeat_group *g, uint32_t world, uint32_t process)
{
    uint32_t r = 0;
    while (r < world && process_of(g, world, r) != process) {
        r++;
    }
    return r;
}

/* Launches nothing where one of the two is gone, or this one is neither. */
static pcclResult_t message(struct repeat_group *g, size_t index, uint32_t world, uint32_t from, uint32_t to, const pcclComm_t *comm,
                            pcclAsyncOp_t *op)
{
    uint32_t self = (uint32_t)g->self->index;
    bool there = rank_of(g, world, from) < world && rank_of(g, world, to) < world;
    if (there && self == from) {
        return pcclSend(g->in[index], elements(index), pcclFloat, rank_of(g, world, to), 5, comm, op);
    }
    return there && self == to ? pcclReceive(g->out[index], elements(index), pcclFloat, rank_of(g, world, from), 5, &g->source, comm, op)
                               : pcclSuccess;
}

static pcclResult_t launch(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct repeat_group *g = user;
    uint32_t world = (uint32_t)peer_size(g->self, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE);
    uint32_t root = rank_of(g, world, ROOT), self = (uint32_t)g->self->index;
    size_t n = elements(index);
    if (g->job->victim == g->self->index && g->job->after == 0 && index == g->job->at) {
        (void)raise(SIGKILL);
    }
    g->world[index] = world;
    g->attempts = attempt + 1;
    switch (index) {
    case ALL_REDUCE:
    case SMALL:
        return pcclAllReduceOrdered(g->in[index], g->out[index], n, pcclFloat, pcclSum, comm, op);
    case BIG_MESSAGE:
        return message(g, index, world, 0, 2, comm, op);
    case TO_VICTIM:
        return message(g, index, world, 2, (uint32_t)g->job->victim, comm, op);
    case ALL_GATHER:
        return pcclAllGather(g->in[index], g->out[index], n, pcclFloat, comm, op);
    case BROADCAST:
        return pcclBroadcast(self == ROOT ? g->in[index] : NULL, g->out[index], n, pcclFloat, root, comm, op);
    case REDUCE:
        return pcclReduce(g->in[index], g->out[index], n, pcclFloat, pcclSum, root, comm, op);
    default:
        return pcclInvalidArgument;
    }
}

static float wanted(const struct repeat_group *g, size_t index, size_t i)
{
    uint32_t world = g->world[index];
    float sum = 0;
    switch (index) {
    case ALL_GATHER:
        return given(process_of(g, world, (uint32_t)(i / elements(index))), index, i % elements(index));
    case BROADCAST:
        return given(ROOT, index, i);
    case BIG_MESSAGE:
        return given(0, index, i);
    case TO_VICTIM:
        return given(2, index, i);
    default:
        for (uint32_t r = 0; r < world; r++) {
            sum += given(process_of(g, world, r), index, i);
        }
        return sum;
    }
}

/* Whether this process has a result of it. */
static bool has_result(const struct repeat_group *g, size_t index)
{
    int self = g->self->index;
    switch (index) {
    case BIG_MESSAGE:
        return self == 2 && rank_of(g, g->world[index], 0) < g->world[index];
    case TO_VICTIM:
        return false; /* a survivor sends it */
    case REDUCE:
        return self == ROOT;
    default:
        return true;
    }
}

static void check(const struct repeat_group *g, size_t index)
{
    size_t wrong = 0, count = elements(index) * (index == ALL_GATHER ? g->world[index] : 1);
    for (size_t i = 0; i < count && has_result(g, index); i++) {
        wrong += g->out[index][i] != wanted(g, index, i);
    }
    EXPECT_EQ(wrong, 0);
    for (size_t i = 0; i < elements(index) && g->in[index] != g->out[index]; i++) {
        wrong += g->in[index][i] != given((uint32_t)g->self->index, index, i);
    }
    EXPECT_EQ(wrong, 0);
    if (wrong != 0) {
        fprintf(stderr, "# process %d: operation %zu among %u\n", g->self->index, index, g->world[index]);
    }
}

/* value[0]: attempts; value[1]: members at the end; value[2 + index]: members of each operation's success. */
static void repeat(struct peer *self, const void *argument, struct reply *reply)
{
    const struct repeat_job *job = argument;
    struct repeat_group g = {.self = self, .job = job};
    struct watch w = {0};
    uint32_t own = (uint32_t)self->index;
    pcclReduceInfo_t info = {0};
    pcclRepeatParams_t params = {.size = sizeof params, .all_again = job->all_again};
    EXPECT_EQ(pcclAllGather(&own, g.process, 1, pcclUint32, self->comm, NULL), pcclSuccess);
    for (size_t k = 0; k < OPERATIONS; k++) {
        bool in_place = !job->all_again && (k == ALL_REDUCE || k == SMALL || (k == REDUCE && own == ROOT));
        g.in[k] = malloc(elements(k) * sizeof(float));
        g.out[k] = in_place ? g.in[k] : malloc(elements(k) * (k == ALL_GATHER ? WORLD : 1) * sizeof(float));
        for (size_t i = 0; i < elements(k); i++) {
            g.in[k][i] = given(own, k, i);
        }
    }
    bool watched = job->victim == self->index && job->after != 0;
    if (watched) {
        watch_start(&w, self, peer_moved, job->after, SIGKILL);
    }
    peer_result(reply, pcclRepeatGroup(self->comm, OPERATIONS, launch, &g, &params, &info));
    reply->value[0] = g.attempts;
    reply->value[1] = info.local_world_size;
    for (size_t k = 0; k < OPERATIONS; k++) {
        reply->value[2 + k] = g.world[k];
        if (reply->result == pcclSuccess) {
            check(&g, k);
        }
        if (g.in[k] != g.out[k]) {
            free(g.out[k]);
        }
        free(g.in[k]);
    }
    if (watched) {
        (void)watch_end(&w);
    }
}

static void kill_one(struct repeat_job job)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    unsigned left = 15 & ~(1u << job.victim);
    if (!peers_start(&all, &(struct processes_options){.count = WORLD, .failures = &test_failures, .pool = 2})) {
        return;
    }
    processes_send(&all, 15, repeat, &job, sizeof job);
    process_wait_killed(&all, job.victim);
    processes_take(&all, left, reply);
    const struct reply *first = &reply[ROOT];
    for (int i = 0; i < WORLD; i++) {
        if ((left >> i & 1) == 0) {
            continue;
        }
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT_EQ(reply[i].value[0], first->value[0]);
        EXPECT_EQ(reply[i].value[1], first->value[1]);
        for (size_t k = 0; k < OPERATIONS; k++) { /* a message is of two: who is neither has seen the sizes of that moment */
            bool same = reply[i].value[2 + k] == first->value[2 + k], one = first->value[2 + k] == first->value[2 + ALL_REDUCE];
            bool of_all = k != BIG_MESSAGE && k != TO_VICTIM;
            EXPECT(!of_all || (same && (one || !job.all_again)));
            if (of_all && !same) {
                fprintf(stderr, "# operation %zu: %d members at process %d, %d at the root\n", k, (int)reply[i].value[2 + k], i,
                        (int)first->value[2 + k]);
            }
        }
        if (job.after == 0) { /* what it has not launched cannot have succeeded with it */
            EXPECT(reply[i].value[0] >= 2);
            EXPECT_EQ(reply[i].value[1], WORLD - 1);
            for (size_t k = job.at; k < OPERATIONS; k++) {
                EXPECT(k == TO_VICTIM || k == BIG_MESSAGE || reply[i].value[2 + k] == WORLD - 1);
            }
        }
        if (reply[i].result != pcclSuccess) {
            printf("# process %d: %s\n", i, reply[i].text);
        }
    }
    processes_stop(&all);
}

TEST(a_member_killed_while_it_launches_costs_another_attempt_of_what_was_lost)
{
    for (int again = 0; again < 2; again++) {
        kill_one((struct repeat_job){.victim = 3, .at = REDUCE, .all_again = again});
        kill_one((struct repeat_job){.victim = 0, .at = ALL_GATHER, .all_again = again});
    }
}

TEST(a_member_killed_while_bytes_move_leaves_success_and_the_same_values_at_all_others)
{
    static const uint64_t after[] = {24 << 20, 6 << 20, 50 << 20, 100 << 10};
    unsigned count = 1 + test_scaled(sizeof after / sizeof *after - 1);
    for (int again = 0; again < 2; again++) {
        for (unsigned k = 0; k < count; k++) {
            kill_one((struct repeat_job){.victim = k % 2 == 0 ? 3 : 0, .after = after[k], .all_again = again});
        }
    }
}
