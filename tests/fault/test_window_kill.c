/* test_window_kill.c - kill -9 and SIGSTOP of a member in the middle of operations on windows: those that are left count each number
 * once, have each other's bytes, and learn who is lost.
 *
 * Every member adds many times to a number of its own in each other's window, puts a part of its own there and signals, round after
 * round; what a target holds and has heard in the end is known from the rounds alone.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { WORLD = 4, PART = 200000, PUTS = 4, ADDS = 12, SIGNALS = 3, CALLS = ADDS + SIGNALS + 1 };

struct window_job {
    uint32_t rounds;
    uint32_t victim, after; /* the rank that kills itself in that round, with puts under way; WORLD: nobody */
    bool mapped, updates;   /* in each round all update the topology, while operations are under way */
};

/* What this process knows. */
struct window_run {
    struct peer *self;
    const struct window_job *job;
    pcclWindow_t *window;
    unsigned char *own, *memory, *out[WORLD];
    uint32_t rank;
    uint64_t counted[WORLD];
    bool lost[WORLD];
};

static uint8_t value(uint32_t from, uint32_t to, uint32_t round, size_t i)
{
    return (uint8_t)((from * 31u + to * 977u + round * 7919u + i) * 2654435761u >> 24);
}

/* Only who was killed may be lost. */
static bool succeeded(struct window_run *w, uint32_t to, pcclResult_t rc)
{
    pcclErrorInfo_t why;
    if (rc == pcclSuccess) {
        return true;
    }
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT(rc == pcclRankConnectionLost && why.cause == pcclCausePeerLost && to == w->job->victim);
    w->lost[to] = true;
    return false;
}

static void one_round(struct window_run *w, uint32_t round)
{
    pcclAsyncOp_t call[WORLD][CALLS];
    uint64_t one = 1, was[WORLD][ADDS];
    bool begun[WORLD] = {false};
    bool dies = w->job->victim == w->rank && w->job->after == round;
    for (uint32_t to = 0; to < WORLD; to++) {
        if (to == w->rank || w->lost[to]) {
            continue;
        }
        for (size_t i = 0; i < PART; i++) {
            w->out[to][i] = value(w->rank, to, round, i);
        }
        begun[to] = true;
        for (int i = 0; i < ADDS; i++) {
            EXPECT_EQ(pcclFetchAdd(&was[to][i], &one, pcclUint64, to, w->rank * sizeof one, w->window, &call[to][i]), pcclSuccess);
        }
        EXPECT_EQ(pcclPut(w->out[to], PART, to, WORLD * sizeof one + (size_t)w->rank * PART, w->window, &call[to][ADDS]), pcclSuccess);
        for (int i = ADDS + 1; i < CALLS; i++) {
            EXPECT_EQ(pcclSignal(to, w->window, &call[to][i]), pcclSuccess);
        }
    }
    if (dies) {
        raise(SIGKILL);
    }
    if (w->job->updates) {
        EXPECT_EQ(pcclUpdateTopology(w->self->comm), pcclSuccess);
    }
    for (uint32_t to = 0; to < WORLD; to++) {
        if (!begun[to]) {
            continue;
        }
        for (int i = 0; i < CALLS; i++) {
            if (succeeded(w, to, pcclAwaitAsync(&call[to][i], NULL)) && i < ADDS) {
                EXPECT_EQ(was[to][i], w->counted[to]);
                w->counted[to]++;
            }
        }
    }
}

static void check_own(struct window_run *w)
{
    for (uint32_t from = 0; from < WORLD; from++) {
        uint64_t counted;
        size_t wrong = 0;
        memcpy(&counted, w->own + from * sizeof counted, sizeof counted);
        if (from == w->rank) {
            EXPECT_EQ(counted, 0);
        } else if (w->lost[from]) {
            EXPECT(counted <= ADDS * (w->job->after + 1u));
        } else {
            EXPECT_EQ(counted, ADDS * w->job->rounds);
            for (size_t i = 0; i < PART; i++) {
                wrong += w->own[WORLD * sizeof counted + from * (size_t)PART + i] != value(from, w->rank, w->job->rounds - 1, i);
            }
            EXPECT_EQ(wrong, 0);
        }
    }
}

/* value[0]: members that it has found lost; value[1]: its rank. */
static void count_and_put(struct peer *self, const void *argument, struct reply *reply)
{
    struct window_run w = {.self = self, .job = argument};
    pcclPeerInfo_t me = {0};
    size_t bytes = WORLD * (sizeof(uint64_t) + PART);
    EXPECT_EQ(pcclGetSelf(self->comm, &me), pcclSuccess);
    w.rank = me.rank;
    w.memory = w.job->mapped ? NULL : calloc(1, bytes);
    pcclWindowParams_t params = {.size = sizeof params, .memory = w.memory, .bytes = bytes, .rights = pcclWindowAll};
    reply->result = (int)pcclCreateWindow(&params, self->comm, &w.window);
    if (reply->result != pcclSuccess) {
        return;
    }
    pcclWindowInfo_t info;
    EXPECT_EQ(pcclGetWindowInfo(w.window, w.rank, &info), pcclSuccess);
    w.own = info.address;
    for (uint32_t r = 0; r < WORLD; r++) {
        w.out[r] = malloc(PART);
    }
    for (uint32_t round = 0; round < w.job->rounds; round++) {
        one_round(&w, round);
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        for (uint32_t i = 0; r != w.rank && !w.lost[r] && i < SIGNALS * w.job->rounds; i++) {
            (void)succeeded(&w, r, pcclWaitSignal(r, w.window, -1, NULL));
        }
        if (r != w.rank && !w.lost[r]) {
            EXPECT(pcclWaitSignal(r, w.window, 0, NULL) != pcclSuccess);
        }
        reply->value[0] += w.lost[r];
    }
    reply->value[1] = w.rank;
    check_own(&w);
    reply->result = (int)pcclDestroyWindow(w.window);
    for (uint32_t r = 0; r < WORLD; r++) {
        free(w.out[r]);
    }
    free(w.memory);
}

static void killed(const struct window_job *job)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &(struct processes_options){.count = WORLD, .failures = &test_failures, .pool = 2})) {
        return;
    }
    processes_do(&all, processes_set(WORLD), count_and_put, job, sizeof *job, reply);
    int dead = 0;
    for (int i = 0; i < WORLD; i++) {
        dead += reply[i].result == PROCESS_DIED;
        EXPECT(reply[i].result == PROCESS_DIED || (reply[i].result == pcclSuccess && reply[i].value[0] == (job->victim < WORLD)));
    }
    EXPECT_EQ(dead, job->victim < WORLD);
    processes_stop(&all);
}

TEST(who_is_left_counts_once_and_has_all_bytes)
{
    for (uint32_t victim = 0; victim < WORLD; victim++) {
        killed(&(struct window_job){.rounds = 12, .victim = victim, .after = 3 + victim});
    }
    killed(&(struct window_job){.rounds = 12, .victim = 2, .after = 5, .mapped = true});
}

TEST(updates_and_deaths_in_the_middle_of_operations_lose_none)
{
    killed(&(struct window_job){.rounds = 25, .victim = WORLD, .updates = true});
    killed(&(struct window_job){.rounds = 25, .victim = 1, .after = 7, .updates = true});
}

/* argument: none.  Rank 0 puts to rank 1, which is stopped and goes on. */
static void put_to_one_stopped(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t me = {0};
    pcclWindow_t *window = NULL;
    unsigned char *memory = calloc(1, PUTS * PART), *out = malloc(PUTS * PART);
    pcclAsyncOp_t put[PUTS];
    (void)argument;
    EXPECT_EQ(pcclGetSelf(self->comm, &me), pcclSuccess);
    pcclWindowParams_t params = {.size = sizeof params, .memory = memory, .bytes = PUTS * PART, .rights = pcclWindowAll};
    EXPECT_EQ(pcclCreateWindow(&params, self->comm, &window), pcclSuccess);
    reply->value[1] = me.rank;
    if (me.rank == 1) {
        raise(SIGSTOP);
        EXPECT_EQ(pcclWaitSignal(0, window, -1, NULL), pcclSuccess);
        for (size_t i = 0; i < (size_t)PUTS * PART; i++) {
            reply->value[0] += memory[i] != value(0, 1, 0, i);
        }
    } else {
        pcclWindowInfo_t info;
        bool done = false;
        pcclCompletion_t end;
        for (size_t i = 0; i < (size_t)PUTS * PART; i++) {
            out[i] = value(0, 1, 0, i);
        }
        for (size_t i = 0; i < PUTS; i++) {
            EXPECT_EQ(pcclPut(out + i * PART, PART, 1, i * PART, window, &put[i]), pcclSuccess);
        }
        EXPECT_EQ(pcclWaitAsync(&put[0], 100, &end, &done), pcclSuccess);
        peer_note(self, 1);
        for (size_t i = 0; i < PUTS; i++) {
            EXPECT_EQ(pcclAwaitAsync(&put[i], NULL), pcclSuccess);
        }
        EXPECT_EQ(pcclSignal(1, window, NULL), pcclSuccess);
        EXPECT_EQ(pcclGetWindowInfo(window, 1, &info), pcclSuccess);
        EXPECT(!info.lost && info.address == NULL);
    }
    reply->result = (int)pcclDestroyWindow(window);
    free(memory);
    free(out);
}

TEST(a_stop_shorter_than_the_stall_time_delays_a_put_only)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &(struct processes_options){.count = 2, .failures = &test_failures, .pool = 1})) {
        return;
    }
    int first = process_do(&all, 0, peer_look, NULL, 0).value[6] < process_do(&all, 1, peer_look, NULL, 0).value[6] ? 0 : 1;
    processes_send(&all, 3, put_to_one_stopped, NULL, 0);
    process_wait_stopped(&all, 1 - first);
    EXPECT_EQ(process_note(&all, first), 1);
    process_signal(&all, 1 - first, SIGCONT);
    processes_take(&all, 3, reply);
    EXPECT(reply[0].result == pcclSuccess && reply[1].result == pcclSuccess);
    EXPECT_EQ(reply[1 - first].value[0], 0);
    EXPECT_EQ(reply[1 - first].value[1], 1);
    processes_stop(&all);
}
