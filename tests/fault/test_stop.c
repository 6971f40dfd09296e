/* test_stop.c - processes that neither die nor go on: silence is told from slowness, and a stop that ends from one that
 * does not.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */ };

static bool start(struct processes *all, int count, uint64_t stall_ms, const char *dead_ms)
{
    struct processes_options o = {
        .count = count, .failures = &test_failures, .pool = 2, .stall_ms = stall_ms, .dead_ms = dead_ms};
    if (!processes_start(all, &o)) {
        return false;
    }
    processes_do(all, processes_set(count), peer_join, &count, sizeof count, NULL);
    return true;
}

static void expect_all(struct processes *all, unsigned set, const struct reduce_job *job, int result)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, peer_reduce, job, sizeof *job, reply);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, result);
        }
    }
}

/* R8.  Its kernel keeps acknowledging: only heartbeats tell. */
TEST(a_stopped_peer_is_excluded_in_the_stall_time_learns_it_and_may_come_back)
{
    struct processes all;
    if (!start(&all, 4, 600, "600")) {
        return;
    }
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 7, .in_place = true, .victim = 3,
                             .signal = SIGSTOP, .after = 20 << 20};
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 15, peer_reduce, &job, sizeof job);
    process_wait_stopped(&all, 3);
    int64_t begin = spawn_now_ms();
    processes_take(&all, 7, reply);
    EXPECT(spawn_now_ms() - begin < 9000); /* by default it would be 10 s at least */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
    }
    job.signal = 0;
    expect_all(&all, 7, &job, pcclSuccess);
    process_signal(&all, 3, SIGCONT);
    struct reply late = process_take(&all, 3);
    EXPECT_EQ(late.result, pcclMasterConnectionFailed);
    EXPECT_EQ(late.cause, pcclCauseExcluded);
    EXPECT_EQ(process_do(&all, 3, peer_update, NULL, 0).result, pcclMasterConnectionFailed);
    int four = 4;
    process_send(&all, 3, peer_join, &four, sizeof four);
    processes_send(&all, 7, peer_update_until, &four, sizeof four);
    processes_take(&all, 15, reply);
    job = (struct reduce_job){.count = MEGABYTE, .tag = 3, .members = 15};
    expect_all(&all, 15, &job, pcclSuccess);
    processes_stop(&all);
}

TEST(a_stopped_peer_outside_of_operations_is_excluded_from_a_vote)
{
    struct processes all;
    if (!start(&all, 3, 600, "600")) {
        return;
    }
    process_signal(&all, 2, SIGSTOP);
    struct reply reply[PROCESSES_MOST];
    processes_do(&all, 3, peer_update, NULL, 0, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT_EQ(reply[1].result, pcclSuccess);
    EXPECT_EQ(process_do(&all, 0, peer_look, NULL, 0).value[0], 2);
    process_signal(&all, 2, SIGCONT);
    struct reply late;
    do { /* it sleeps in no call, and learns it by itself */
        late = process_do(&all, 2, peer_look, NULL, 0);
    } while (late.result == pcclSuccess);
    for (int i = 0; i < 2; i++) { /* every call says why, not only the first */
        EXPECT_EQ(late.result, pcclMasterConnectionFailed);
        /* By the master's FENCE, its answer to an id that it has forgotten, or a peer that knows a newer view: what is heard first. */
        EXPECT(strstr(late.text, "of the run: ") != NULL && strstr(late.text, "of the run: connect again") == NULL);
        late = process_do(&all, 2, peer_update, NULL, 0);
    }
    processes_stop(&all);
}

static uint32_t other_rank(struct peer *self)
{
    pcclPeerInfo_t me = {0};
    PEER_EXPECT(self, pcclGetSelf(self->comm, &me) == pcclSuccess);
    return 1 - me.rank;
}

/* Its wrong calls, all of them asynchronous, then the ends of these; `self->own` keeps the handles. */
static void launch_wrong(struct peer *self, const void *argument, struct reply *reply)
{
    pcclAsyncOp_t *op = calloc(3, sizeof *op);
    float x[4] = {1, 2, 3, 4};
    (void)argument;
    self->own = op;
    PEER_EXPECT(self, pcclBroadcast(x, x, 4, pcclFloat, 7, self->comm, &op[0]) == pcclSuccess);
    PEER_EXPECT(self, pcclAllGather(NULL, x, 1, pcclFloat, self->comm, &op[1]) == pcclSuccess);
    PEER_EXPECT(self, pcclSend(NULL, 4, pcclFloat, other_rank(self), 5, self->comm, &op[2]) == pcclSuccess);
    for (int i = 0; i < 3; i++) {
        bool done = true;
        PEER_EXPECT(self, pcclTestAsync(&op[i], &done) == pcclSuccess && !done); /* nobody else can have answered */
    }
    reply->result = pcclSuccess;
}

static void await_wrong(struct peer *self, const void *argument, struct reply *reply)
{
    static const char *const said[] = {"broadcast: root is 7: expected a rank below 2", "all-gather: sendbuf is null while 1 elements",
                                       "send: sendbuf is null: pass a buffer"};
    pcclAsyncOp_t *op = self->own;
    (void)argument;
    for (int i = 0; i < 3; i++) {
        PEER_EXPECT(self, pcclAwaitAsync(&op[i], NULL) == pcclInvalidArgument);
        PEER_EXPECT(self, strstr(pcclGetLastError(), said[i]) == pcclGetLastError());
    }
    free(op);
    self->own = NULL;
    reply->result = pcclSuccess;
}

static void meet_wrong(struct peer *self, const void *argument, struct reply *reply)
{
    float x[4] = {1, 2, 3, 4}, y[8];
    (void)argument;
    PEER_EXPECT(self, pcclBroadcast(x, x, 4, pcclFloat, 1, self->comm, NULL) == pcclInvalidArgument);
    PEER_EXPECT(self, pcclAllGather(x, y, 1, pcclFloat, self->comm, NULL) == pcclInvalidArgument);
    PEER_EXPECT(self, pcclReceive(x, 4, pcclFloat, other_rank(self), 5, NULL, self->comm, NULL) == pcclInvalidArgument);
    reply->result = pcclSuccess;
}

TEST(a_wrong_call_with_a_handle_waits_for_nobody) /* it blocked its thread until all members had answered */
{
    struct processes all;
    if (!start(&all, 2, 8000, "8000")) {
        return;
    }
    process_signal(&all, 1, SIGSTOP);
    EXPECT_EQ(process_do(&all, 0, launch_wrong, NULL, 0).result, pcclSuccess);
    process_signal(&all, 1, SIGCONT);
    EXPECT_EQ(process_do(&all, 0, await_wrong, NULL, 0).result, pcclSuccess);
    EXPECT_EQ(process_do(&all, 1, meet_wrong, NULL, 0).result, pcclSuccess);
    struct reduce_job job = {.count = 64, .tag = 3, .members = 3};
    expect_all(&all, 3, &job, pcclSuccess);
    processes_stop(&all);
}

TEST(a_stop_shorter_than_the_stall_time_harms_nothing)
{
    struct processes all;
    if (!start(&all, 4, 8000, "8000")) {
        return;
    }
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 15, .victim = 3, .signal = SIGSTOP,
                             .after = 20 << 20};
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 15, peer_reduce, &job, sizeof job);
    process_wait_stopped(&all, 3);
    EXPECT(!process_answers(&all, 0, 700)); /* nobody can have finished: the stop is felt */
    process_signal(&all, 3, SIGCONT);
    processes_take(&all, 15, reply);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT_EQ(reply[i].value[0], 4);
    }
    processes_stop(&all);
}

/* argument: none; waits until this peer's reduce (on another thread) waits for a launch longer than the note's limit. */
static void reduce_and_tell(struct peer *self, const struct reduce_job *job, int64_t age_ns, struct reply *reply)
{
    float *in = peer_buffer(self, 0, job->count * sizeof(float)), *out = peer_buffer(self, 1, job->count * sizeof(float));
    pcclAsyncReduceOp_t handle;
    pcclReduceDescriptor_t d = peer_floats(job->count, job->tag);
    for (size_t i = 0; i < job->count; i++) {
        in[i] = job_value(self->index, i, job->tag);
    }
    PEER_EXPECT(self, pcclAllReduceAsync(in, out, &d, self->comm, &handle) == pcclSuccess);
    for (bool told = false; !told;) {
        pcclWaitInfo_t waits[8];
        size_t count = 0, index = 0;
        PEER_EXPECT(self, pcclWaitAnyAsyncReduce(&handle, 1, 20, &index) == pcclSuccess);
        PEER_EXPECT(self, pcclGetWaits(self->comm, waits, 8, &count) == pcclSuccess);
        for (size_t i = 0; i < count && i < 8; i++) {
            if (waits[i].tag == job->tag && waits[i].age_ns >= age_ns && strcmp(waits[i].phase, "launch") == 0) {
                PEER_EXPECT(self, !told); /* the others have launched */
                reply->value[3] = (int64_t)waits[i].peer;
                told = true;
            }
        }
        if (index == 0) {
            PEER_EXPECT(self, false); /* it ended before it was launched everywhere */
            break;
        }
    }
    peer_note(self, 1);
    if (peer_result(reply, pcclAwaitAsyncReduce(&handle, NULL)) != pcclSuccess) {
        fprintf(stderr, "peer %d: %s\n", self->index, reply->text);
        return;
    }
    for (size_t i = 0; i < job->count; i++) {
        PEER_EXPECT(self, out[i] == job_sum(job->members, i, job->tag));
    }
}

static void wait_for_launch(struct peer *self, const void *argument, struct reply *reply)
{
    struct reduce_job job;
    memcpy(&job, argument, sizeof job);
    reduce_and_tell(self, &job, 1600000000, reply);
}

/* A program may compile for minutes: it is named as the one that is waited for, never excluded (G4). */
TEST(a_peer_that_launches_late_is_named_and_never_excluded)
{
    for (size_t count = 100; count <= MEGABYTE; count = count == 100 ? MEGABYTE : 2 * MEGABYTE) {
        struct processes all;
        if (!start(&all, 3, 400, "400")) {
            return;
        }
        struct reply late = process_do(&all, 2, peer_look, NULL, 0);
        struct reduce_job job = {.count = count, .tag = 9, .members = 7};
        processes_send(&all, 3, wait_for_launch, &job, sizeof job);
        EXPECT_EQ(process_note(&all, 0), 1);
        EXPECT_EQ(process_note(&all, 1), 1);
        process_send(&all, 2, peer_reduce, &job, sizeof job);
        struct reply reply[PROCESSES_MOST];
        processes_take(&all, 7, reply);
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
        }
        EXPECT_EQ(reply[0].value[3], late.value[6]);
        EXPECT_EQ(reply[1].value[3], late.value[6]);
        processes_stop(&all);
    }
}

/* Until process 0 answers or that process has had a core for so long; one that only waits has none, so not for ever. */
static bool answers_while_it_runs(struct processes *all, int index, int64_t run_ns)
{
    int64_t begin = process_cpu_ns(all, index);
    bool answered = false;
    for (int i = 0; i < 300 && !answered && process_cpu_ns(all, index) < begin + run_ns; i++) {
        answered = process_answers(all, 0, 1);
    }
    return answered;
}

/* Stopped and continued so often that one call takes longer than the stall time, although it moves a little all the time. */
TEST(a_slow_but_moving_peer_is_never_excluded)
{
    enum { STALL_MS = 4000 /* a busy machine gives a process no core for long */, MOST = 256 * MEGABYTE };
    const int64_t run_ns = test_scaled(10) == 10 ? 1000000 : 5000000; /* sanitizers are slow */
    struct processes all;
    if (!start(&all, 3, STALL_MS, "4000")) {
        return;
    }
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 7};
    int64_t longest = 0;
    for (; longest <= STALL_MS && job.count <= MOST && test_failures == 0; job.tag++, job.count *= 2) {
        struct reply reply[PROCESSES_MOST];
        int64_t begin = spawn_now_ms();
        processes_send(&all, 7, peer_reduce, &job, sizeof job);
        while (!answers_while_it_runs(&all, 2, run_ns)) {
            process_signal(&all, 2, SIGSTOP);
            poll(NULL, 0, 150); /* the fault's own length */
            process_signal(&all, 2, SIGCONT);
            if (spawn_now_ms() - begin > PROCESS_PATIENCE_MS) {
                break;
            }
        }
        processes_take(&all, 7, reply);
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
            if (reply[i].result != pcclSuccess) {
                printf("# peer %d: %s\n", i, reply[i].text);
            }
        }
        longest = spawn_now_ms() - begin;
    }
    EXPECT(longest > STALL_MS); /* else nothing was tried */
    processes_stop(&all);
}

/* Blocked calls cost nothing: a member waits in an update for one that does not come. */
TEST(waiting_uses_no_processor_time)
{
    struct processes all;
    if (!start(&all, 2, 0, NULL)) {
        return;
    }
    struct reduce_job job = {.count = MEGABYTE, .tag = 2, .members = 3};
    for (int what = 0; what < 2; what++) {
        process_send(&all, 0, what == 0 ? peer_update : peer_reduce, &job, sizeof job);
        EXPECT(!process_answers(&all, 0, 200)); /* begun, spun, asleep */
        int64_t before = process_cpu_ns(&all, 0), begin = spawn_now_ms();
        EXPECT(!process_answers(&all, 0, 1000));
        int64_t used = process_cpu_ns(&all, 0) - before, waited = (spawn_now_ms() - begin) * 1000000;
        EXPECT(before > 0 && used < waited / 33); /* heartbeats, and nothing that runs all the time */
        process_send(&all, 1, what == 0 ? peer_update : peer_reduce, &job, sizeof job);
        EXPECT_EQ(process_take(&all, 0).result, pcclSuccess);
        EXPECT_EQ(process_take(&all, 1).result, pcclSuccess);
    }
    processes_stop(&all);
}
