/* test_state_faults.c - shared state among processes that die while it moves: nothing half written, another source, or an
 * error that says so; and what it costs in memory.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { WORDS = 12 << 20 /* of 8 bytes: 96 MB */, GUARD = 8 };

struct state_job {
    size_t words;
    uint64_t content;  /* fills the tensor; must hold 1 << 60 parts that tell contents apart */
    uint64_t revision;
    int strategy;
    uint64_t expect;   /* content after success */
    int victim, signal;
    uint64_t after;
    bool measure;      /* value[2]: most bytes above those resident before */
};

static uint64_t word(uint64_t content, size_t i)
{
    uint64_t z = (content << 40) + i;
    return (z ^ z >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

static size_t differing(const uint64_t *at, size_t words, uint64_t content)
{
    size_t n = 0;
    for (size_t i = 0; i < words; i++) {
        n += at[i] != word(content, i);
    }
    return n;
}

/* One sync of one tensor that no alignment suits.  Success: it holds `expect`; error: what it held before (G6).
 * value[0], value[1]: tx and rx bytes. */
static void sync_state(struct peer *self, const void *argument, struct reply *reply)
{
    struct state_job job;
    struct watch watch;
    memcpy(&job, argument, sizeof job);
    uint64_t *at = peer_buffer(self, 0, (job.words + 2 * GUARD) * sizeof(uint64_t));
    memset(at, 0x5A, (job.words + 2 * GUARD) * sizeof(uint64_t));
    for (size_t i = 0; i < job.words; i++) {
        at[GUARD + i] = word(job.content, i);
    }
    pcclTensorInfo_t tensor = {
        .name = "weights", .data = at + GUARD, .count = job.words, .datatype = pcclUint64, .device_type = pcclDeviceCpu};
    pcclSharedState_t state = {.revision = job.revision, .count = 1, .infos = &tensor};
    pcclSharedStateSyncInfo_t info = {0};
    bool watched = job.victim == self->index && job.signal != 0;
    if (watched) {
        watch_start(&watch, self, peer_socket_bytes, job.after, job.signal);
    }
    int64_t before = peer_resident();
    if (job.measure) {
        peer_peak_reset();
    }
    peer_result(reply, pcclSynchronizeSharedState(self->comm, &state, (pcclSharedStateSyncStrategy_t)job.strategy, &info));
    if (job.measure) {
        reply->value[2] = peer_peak() - before;
    }
    if (watched) {
        PEER_EXPECT(self, watch_end(&watch));
    }
    bool ok = reply->result == (int)pcclSuccess;
    PEER_EXPECT(self, differing(at + GUARD, job.words, ok ? job.expect : job.content) == 0);
    PEER_EXPECT(self, !ok || state.revision == job.revision);
    if (!ok) {
        fprintf(stderr, "peer %d: %s\n", self->index, reply->text);
    }
    for (size_t i = 0; i < GUARD; i++) {
        PEER_EXPECT(self, at[i] == UINT64_C(0x5A5A5A5A5A5A5A5A) && at[GUARD + job.words + i] == at[i]);
    }
    reply->value[0] = (int64_t)info.tx_bytes;
    reply->value[1] = (int64_t)info.rx_bytes;
}

static bool start(struct processes *all, int count)
{
    struct processes_options o = {.count = count, .failures = &test_failures, .pool = 1};
    if (!processes_start(all, &o)) {
        return false;
    }
    processes_do(all, processes_set(count), peer_join, &count, sizeof count, NULL);
    return true;
}

/* Those in `holders` have content 1, the others each their own and receive only. */
static void send_jobs(struct processes *all, unsigned set, unsigned holders, struct state_job job)
{
    job.expect = 1;
    job.revision = 1;
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            bool holds = (holders >> i & 1) != 0;
            job.content = holds ? 1 : 100 + (uint64_t)i;
            job.strategy = holds ? PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY
                                 : PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY;
            process_send(all, i, sync_state, &job, sizeof job);
        }
    }
}

TEST(a_source_killed_in_the_middle_is_replaced) /* R10 */
{
    struct processes all;
    if (!start(&all, 4)) {
        return;
    }
    struct state_job job = {.words = WORDS, .victim = 1, .signal = SIGKILL, .after = 16 << 20};
    struct reply reply[PROCESSES_MOST];
    send_jobs(&all, 15, 1 | 2, job);
    process_wait_killed(&all, 1);
    processes_take(&all, 1 | 4 | 8, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT_EQ(reply[2].result, pcclSuccess);
    EXPECT_EQ(reply[3].result, pcclSuccess);
    EXPECT(reply[2].value[1] >= (int64_t)WORDS * 8);
    EXPECT_EQ(process_do(&all, 0, peer_look, NULL, 0).value[4], 3);
    struct reduce_job after = {.count = 1 << 18, .tag = 1, .members = 1 | 4 | 8};
    processes_do(&all, 1 | 4 | 8, peer_reduce, &after, sizeof after, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    processes_stop(&all);
}

TEST(when_the_only_source_dies_the_receivers_are_told_and_hold_what_they_held)
{
    struct processes all;
    if (!start(&all, 3)) {
        return;
    }
    struct state_job job = {.words = WORDS, .victim = 0, .signal = SIGKILL, .after = 16 << 20};
    struct reply reply[PROCESSES_MOST];
    send_jobs(&all, 7, 1, job);
    process_wait_killed(&all, 0);
    processes_take(&all, 2 | 4, reply);
    for (int i = 1; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclNoSharedStateAvailable);
        EXPECT_EQ(reply[i].cause, pcclCauseNoCandidate);
    }
    /* and may start afresh: peer 1's content of the moment is elected */
    struct state_job again = {.words = WORDS, .content = 7, .expect = 7, .revision = 1,
                              .strategy = PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY};
    process_send(&all, 1, sync_state, &again, sizeof again);
    again.content = 8;
    again.strategy = PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY;
    process_send(&all, 2, sync_state, &again, sizeof again);
    processes_take(&all, 2 | 4, reply);
    EXPECT_EQ(reply[1].result, pcclSuccess);
    EXPECT_EQ(reply[2].result, pcclSuccess);
    processes_stop(&all);
}

TEST(a_receiver_killed_in_the_middle_keeps_nobody_else_from_the_state)
{
    struct processes all;
    if (!start(&all, 3)) {
        return;
    }
    struct state_job job = {.words = WORDS, .victim = 2, .signal = SIGKILL, .after = 16 << 20};
    struct reply reply[PROCESSES_MOST];
    send_jobs(&all, 7, 1, job);
    process_wait_killed(&all, 2);
    processes_take(&all, 3, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT_EQ(reply[1].result, pcclSuccess);
    processes_stop(&all);
}

/* Half of the group dies, among them a receiver: whoever is left has all of the new state or all of the old. */
TEST(nothing_is_half_written_when_most_of_the_group_dies)
{
    for (uint64_t after = 4 << 20; after <= 36 << 20; after *= 3) {
        struct processes all;
        if (!start(&all, 4)) {
            return;
        }
        struct state_job job = {.words = WORDS / 2, .victim = 2, .signal = SIGKILL, .after = after};
        struct reply reply[PROCESSES_MOST];
        send_jobs(&all, 15, 1, job);
        process_wait_killed(&all, 2);
        process_signal(&all, 0, SIGKILL);
        processes_take(&all, 2 | 8, reply); /* each has checked its memory against its result */
        EXPECT_EQ(reply[1].result, reply[3].result);
        EXPECT(reply[1].result == pcclSuccess || reply[1].result == pcclNoSharedStateAvailable);
        processes_stop(&all);
    }
}

TEST(two_holders_each_serve_at_least_a_quarter)
{
    struct processes all;
    if (!start(&all, 3)) {
        return;
    }
    struct state_job job = {.words = WORDS / 2};
    struct reply reply[PROCESSES_MOST];
    send_jobs(&all, 7, 3, job);
    processes_take(&all, 7, reply);
    int64_t bytes = (int64_t)job.words * 8;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    EXPECT(reply[2].value[1] >= bytes && reply[2].value[1] <= bytes + bytes / 50);
    EXPECT(reply[0].value[0] >= bytes / 4 && reply[1].value[0] >= bytes / 4);
    EXPECT(reply[0].value[0] + reply[1].value[0] >= bytes);
    EXPECT_EQ(reply[0].value[1], 0);
    processes_stop(&all);
}

/* The header promises: beside the user's memory, what differs; holders next to nothing. */
TEST(a_sync_costs_the_receiver_what_differs_and_nobody_more)
{
    struct processes all;
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("a sanitizer's own memory is larger than what is measured");
    }
    if (!start(&all, 3)) {
        return;
    }
    struct state_job job = {.words = WORDS, .measure = true};
    struct reply reply[PROCESSES_MOST];
    int64_t bytes = (int64_t)job.words * 8, slack = bytes / 3; /* what a receiver has asked for: 5 MiB, and up to 20 where others keep it from a core */
    send_jobs(&all, 7, 3, job);
    processes_take(&all, 7, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT(reply[i].value[2] <= (i == 2 ? bytes + slack : slack));
    }
    job.content = job.expect = 1;
    job.revision = 2; /* one above that of the first sync */
    processes_do(&all, 7, sync_state, &job, sizeof job, reply); /* nothing differs: nothing moves */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT(reply[i].value[0] == 0 && reply[i].value[1] == 0 && reply[i].value[2] <= slack);
    }
    processes_stop(&all);
}

static void reduce_in_place_measured(struct peer *self, const void *argument, struct reply *reply)
{
    int64_t before;
    struct reduce_job job;
    memcpy(&job, argument, sizeof job);
    memset(peer_buffer(self, 0, job.count * sizeof(float)), 0, job.count * sizeof(float));
    memset(peer_buffer(self, 1, job.count * sizeof(float)), 0, job.count * sizeof(float));
    before = peer_resident();
    peer_peak_reset();
    peer_reduce(self, argument, reply);
    reply->value[3] = peer_peak() - before;
}

TEST(an_in_place_reduce_costs_one_copy_of_its_input_and_an_out_of_place_one_next_to_nothing)
{
    struct processes all;
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("a sanitizer's own memory is larger than what is measured");
    }
    if (!start(&all, 2)) {
        return;
    }
    struct reduce_job job = {.count = 32 << 20, .tag = 1, .members = 3};
    struct reply reply[PROCESSES_MOST];
    int64_t bytes = (int64_t)job.count * 4, slack = 40 << 20; /* staging: 16 MiB per lane, socket buffers aside */
    processes_do(&all, 3, reduce_in_place_measured, &job, sizeof job, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT(reply[0].value[3] <= slack);
    job.in_place = true;
    processes_do(&all, 3, reduce_in_place_measured, &job, sizeof job, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT(reply[0].value[3] <= bytes + slack);
    processes_stop(&all);
}
