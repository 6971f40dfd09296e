/* test_kill.c - processes that die at the worst moment: what the others see, and that they go on at once.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { MEGABYTE = 1 << 18 /* floats */ };

static bool start(struct processes *all, int count, uint32_t pool)
{
    return peers_start(all, &(struct processes_options){.count = count, .failures = &test_failures, .pool = pool});
}

static void reduce_all(struct processes *all, unsigned set, size_t count, uint64_t tag)
{
    struct reduce_job job = {.count = count, .tag = tag, .members = set};
    struct reply reply[PROCESSES_MOST];
    processes_do(all, set, peer_reduce, &job, sizeof job, reply);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
        }
    }
}

/* Returns when all in the set have launched it. */
static void send_and_launch(struct processes *all, unsigned set, struct reduce_job *job)
{
    job->announce = true;
    processes_send(all, set, peer_reduce, job, sizeof *job);
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            EXPECT_EQ(process_note(all, i), job->tag + 1);
        }
    }
    job->announce = false;
}

/* R2, R7, R34: inputs intact (peer_reduce checks), one error each, and the next call of all works without any other. */
static void kill_one_of_four(bool in_place, uint32_t pool)
{
    struct processes all;
    if (!start(&all, 4, pool)) {
        return;
    }
    reduce_all(&all, 15, 1000, 1);
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 7, .in_place = in_place, .victim = 3,
                             .signal = SIGKILL, .after = 20 << 20};
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 15, peer_reduce, &job, sizeof job);
    process_wait_killed(&all, 3);
    processes_take(&all, 7, reply);
    job.signal = 0;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCausePeerLost);
        EXPECT(strlen(reply[i].text) > 0);
    }
    processes_do(&all, 7, peer_reduce, &job, sizeof job, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT_EQ(reply[i].value[0], 3);
    }
    processes_stop(&all);
}

TEST(kill_in_the_middle_of_an_out_of_place_reduce_is_one_error_and_the_retry_succeeds)
{
    kill_one_of_four(false, 1);
}

TEST(kill_in_the_middle_of_an_in_place_reduce_restores_inputs_and_the_retry_succeeds)
{
    kill_one_of_four(true, 2);
}

/* Nobody can settle the loss: the calls end within the master-loss time, and say that it is the master that is gone. */
static void kill_master_and_one_of_three(bool master_first)
{
    struct processes all;
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1, .loss_ms = 1500};
    if (!processes_start(&all, &o)) {
        return;
    }
    processes_do(&all, 7, peer_join, &o.count, sizeof o.count, NULL);
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 2, .members = 7, .in_place = true, .victim = 2,
                             .signal = SIGSTOP, .after = 20 << 20};
    struct reply reply[PROCESSES_MOST];
    processes_send(&all, 7, peer_reduce, &job, sizeof job);
    process_wait_stopped(&all, 2); /* in the middle of the operation, which waits for it */
    for (int k = 0; k < 2; k++) {
        if (master_first == (k == 0)) {
            EXPECT_EQ(program_end(&all.master, SIGKILL), 128 + SIGKILL);
        } else {
            process_signal(&all, 2, SIGKILL);
        }
    }
    all.master.status = 0; /* it was not asked to end well */
    processes_take(&all, 3, reply);
    for (int i = 0; i < 2; i++) { /* never "try again": no later view could have another outcome for others */
        bool settled = !master_first && reply[i].result == pcclRankConnectionLost; /* the loss was before */
        EXPECT(settled || reply[i].result == pcclMasterConnectionFailed);
        EXPECT(settled || reply[i].cause == pcclCauseMasterLost);
    }
    EXPECT(!master_first || reply[0].result == reply[1].result); /* its last view may have reached one of them only */
    processes_stop(&all);
}

TEST(a_death_while_the_master_is_gone_ends_all_calls_with_the_loss_of_the_master)
{
    kill_master_and_one_of_three(true);
}

TEST(a_death_just_before_the_masters_ends_all_calls_alike)
{
    kill_master_and_one_of_three(false);
}

/* Peer 2 launches only after the abort that the others have had: its call takes the same error, and the retries pair up.  A
 * forgotten debt would pair its first call with their second. */
TEST(a_peer_that_had_not_launched_owes_the_abort_to_its_next_call)
{
    for (size_t count = 10; count <= MEGABYTE; count = count == 10 ? MEGABYTE : 2 * MEGABYTE) {
        struct processes all;
        if (!start(&all, 4, 1)) {
            return;
        }
        struct reduce_job job = {.count = count, .tag = 5, .members = 7};
        struct reply reply[PROCESSES_MOST];
        send_and_launch(&all, 3, &job);
        process_signal(&all, 3, SIGKILL);
        processes_take(&all, 3, reply);
        EXPECT_EQ(reply[0].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[1].result, pcclRankConnectionLost);
        struct reply late = process_do(&all, 2, peer_reduce, &job, sizeof job); /* at once: it waits for nobody */
        EXPECT_EQ(late.result, pcclRankConnectionLost);
        EXPECT_EQ(late.cause, pcclCausePeerLost);
        reduce_all(&all, 7, count, 5);
        processes_stop(&all);
    }
}

/* In this peer's view too: that is of the others alone. */
static void wait_for_a_loss(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t members[PROCESSES_MOST];
    size_t count = 0;
    bool lost = false;
    (void)argument;
    (void)reply;
    while (!lost && pcclGetMembers(self->comm, members, PROCESSES_MOST, &count) == pcclSuccess) {
        for (size_t i = 0; i < count; i++) {
            lost = lost || (members[i].lost && members[i].ring_position == UINT32_MAX);
        }
        sched_yield();
    }
    PEER_EXPECT(self, lost);
}

/* It knows of the abort, so that its call ends where it is made: what that took for the lanes comes back, which the end of a
 * process looks at.  So large that a ring carries it, in which every member folds. */
TEST(a_call_that_takes_an_abort_it_owes_gives_its_room_back)
{
    struct processes all;
    if (!start(&all, 4, 1)) {
        return;
    }
    struct reduce_job job = {.count = 16 * MEGABYTE, .tag = 5, .members = 7};
    struct reply reply[PROCESSES_MOST];
    send_and_launch(&all, 3, &job);
    process_signal(&all, 3, SIGKILL);
    processes_take(&all, 3, reply);
    process_do(&all, 2, wait_for_a_loss, NULL, 0);
    EXPECT_EQ(process_do(&all, 2, peer_reduce, &job, sizeof job).result, pcclRankConnectionLost);
    reduce_all(&all, 7, job.count, 5);
    processes_stop(&all);
}

/* A data loader's child keeps running when its parent dies: if it held the sockets, nobody would notice the death. */
static void fork_and_stay(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    pid_t child = fork();
    if (child == 0) {
        int size = 0;
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(SIGALRM, &dfl, NULL);
        alarm(120); /* nobody reaps it for the test: it ends by itself, or at once by the note below */
        /* A lock of the sanitizer's allocator that another thread held at the fork is never opened here. */
        bool may_free = getenv("PCCL_SANITIZED") == NULL;
        bool useless = pcclGetAttribute(self->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) == pcclInvalidUsage &&
                       (!may_free || (pcclDestroyCommunicator(self->comm) == pcclSuccess && pcclInit() == pcclSuccess));
        peer_note(self, useless ? (uint64_t)getpid() : 1);
        for (;;) {
            pause();
        }
    }
    reply->value[0] = child;
}

TEST(a_death_is_noticed_although_a_forked_child_lives_on)
{
    struct processes all;
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 2, .stall_ms = 60000, .dead_ms = "60000"};
    if (!processes_start(&all, &o)) { /* silence alone would be noticed only when this test has lost its patience */
        return;
    }
    processes_do(&all, 7, peer_join, &o.count, sizeof o.count, NULL);
    reduce_all(&all, 7, 100000, 1);
    struct reply forked = process_do(&all, 2, fork_and_stay, NULL, 0);
    uint64_t child = process_note(&all, 2);
    EXPECT_EQ(child, forked.value[0]); /* 1: the old communicator was of use in the child */
    struct reduce_job job = {.count = MEGABYTE, .tag = 2, .members = 3};
    struct reply reply[PROCESSES_MOST];
    send_and_launch(&all, 3, &job);
    process_signal(&all, 2, SIGKILL);
    processes_take(&all, 3, reply);
    EXPECT_EQ(kill((pid_t)forked.value[0], 0), 0); /* it does live on */
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCausePeerLost);
    }
    reduce_all(&all, 3, MEGABYTE, 2);
    kill((pid_t)forked.value[0], SIGKILL);
    processes_stop(&all);
}

TEST(everybody_but_one_dies_and_the_last_one_goes_on_alone_until_somebody_joins)
{
    struct processes all;
    if (!start(&all, 4, 1)) {
        return;
    }
    reduce_all(&all, 15, 1000, 1);
    struct reduce_job job = {.count = MEGABYTE, .tag = 2, .members = 1};
    send_and_launch(&all, 1, &job);
    for (int i = 1; i < 4; i++) {
        process_signal(&all, i, SIGKILL);
    }
    /* one error, or several if the deaths were told one by one; then alone */
    struct reply reply = process_take(&all, 0);
    EXPECT_EQ(reply.result, pcclRankConnectionLost);
    for (int i = 0; i < 3 && reply.result == (int)pcclRankConnectionLost; i++) {
        reply = process_do(&all, 0, peer_reduce, &job, sizeof job);
    }
    EXPECT_EQ(reply.result, pcclTooFewPeers);
    reply = process_do(&all, 0, peer_look, NULL, 0);
    EXPECT_EQ(reply.value[0], 1);
    EXPECT_EQ(reply.value[1], 1);
    EXPECT_EQ(process_do(&all, 0, peer_update, NULL, 0).result, pcclSuccess);
    int two = 2, late = processes_add(&all, 0, NULL);
    EXPECT_EQ(late, 4);
    process_send(&all, late, peer_join, &two, sizeof two);
    process_do(&all, 0, peer_update_until, &two, sizeof two);
    process_take(&all, late);
    reduce_all(&all, 1 | 16, MEGABYTE, 3);
    processes_stop(&all);
}

TEST(a_clean_leave_is_told_at_once_and_the_rest_goes_on)
{
    struct processes all;
    if (!start(&all, 3, 1)) {
        return;
    }
    struct reduce_job job = {.count = MEGABYTE, .tag = 2, .members = 3};
    struct reply reply[PROCESSES_MOST];
    send_and_launch(&all, 3, &job);
    EXPECT_EQ(process_do(&all, 2, peer_destroy, NULL, 0).result, pcclSuccess);
    processes_take(&all, 3, reply);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCausePeerLeft);
    }
    reduce_all(&all, 3, MEGABYTE, 2);
    processes_stop(&all);
}

/* The joiner dies after the master has heard of it, while two members wait in the update that would admit it. */
TEST(a_joiner_that_dies_while_others_wait_for_it_hangs_nobody)
{
    for (int round = 0; round < 3; round++) {
        struct processes all;
        if (!start(&all, 2, 1)) {
            return;
        }
        int late = processes_add(&all, 0, NULL);
        process_send(&all, late, peer_connect, NULL, 0);
        process_send(&all, 0, peer_update, NULL, 0);
        if (round > 0) {
            process_send(&all, 1, peer_update, NULL, 0); /* the admission may be under way, or be done */
        }
        process_signal(&all, late, SIGKILL);
        if (round == 0) {
            process_send(&all, 1, peer_update, NULL, 0);
        }
        struct reply reply[PROCESSES_MOST];
        processes_take(&all, 3, reply);
        EXPECT_EQ(reply[0].result, pcclSuccess);
        EXPECT_EQ(reply[1].result, pcclSuccess);
        int two = 2;
        processes_do(&all, 3, peer_update_until, &two, sizeof two, NULL); /* it may have been admitted dying */
        reduce_all(&all, 3, 1000, 1);
        processes_stop(&all);
    }
}

/* One dies in the vote for a better ring: the others get an answer and go on (R9). */
TEST(a_death_in_an_optimise_vote_releases_the_other_voters)
{
    struct processes all;
    if (!start(&all, 4, 1)) {
        return;
    }
    processes_send(&all, 7, peer_optimise, NULL, 0);
    EXPECT(!process_answers(&all, 0, 50)); /* one vote is missing */
    process_signal(&all, 3, SIGKILL);
    struct reply reply[PROCESSES_MOST];
    processes_take(&all, 7, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT(reply[i].result == pcclSuccess || reply[i].result == pcclTopologyOptimizationFailed);
        EXPECT_EQ(reply[i].result, reply[0].result);
    }
    reduce_all(&all, 7, MEGABYTE, 1);
    processes_stop(&all);
}

static void optimise_and_die(struct peer *self, const void *argument, struct reply *reply)
{
    struct watch watch;
    uint64_t after;
    memcpy(&after, argument, sizeof after);
    watch_start(&watch, self, peer_socket_bytes, after, SIGKILL);
    peer_optimise(self, NULL, reply);
    watch_end(&watch);
}

/* One dies while edges with it are measured: whoever sends to it has a queue that never fills (R9). */
TEST(a_death_while_edges_are_measured_hangs_nobody)
{
    for (uint64_t after = 1 << 16; after <= 1 << 26; after *= 4) {
        struct processes all;
        if (!start(&all, 3, 1)) {
            return;
        }
        processes_send(&all, 3, peer_optimise, NULL, 0);
        process_send(&all, 2, optimise_and_die, &after, sizeof after);
        struct reply reply[PROCESSES_MOST];
        processes_take(&all, 3, reply);
        EXPECT(reply[0].result == pcclSuccess || reply[0].result == pcclTopologyOptimizationFailed);
        EXPECT_EQ(reply[0].result, reply[1].result);
        process_signal(&all, 2, SIGKILL); /* should it have lived to see the answer */
        int two = 2;
        processes_do(&all, 3, peer_update_until, &two, sizeof two, NULL);
        reduce_all(&all, 3, MEGABYTE, 1);
        processes_stop(&all);
    }
}

struct beside {
    struct peer *self;
    atomic_bool over;
};

static void *optimise_beside(void *argument)
{
    struct beside *b = argument;
    pcclResult_t result = pcclOptimizeTopology(b->self->comm);
    PEER_EXPECT(b->self, result == pcclMasterConnectionFailed || result == pcclSuccess);
    atomic_store(&b->over, true);
    return NULL;
}

/* argument: bytes after which it leaves the vote, and the run; then it connects again and is a member like any other. */
static void leave_and_return(struct peer *self, const void *argument, struct reply *reply)
{
    uint64_t until;
    int three = 3;
    pthread_t thread;
    struct beside beside = {.self = self};
    memcpy(&until, argument, sizeof until);
    until += peer_socket_bytes(self);
    if (pthread_create(&thread, NULL, optimise_beside, &beside) != 0) {
        abort();
    }
    while (peer_socket_bytes(self) < until && !atomic_load(&beside.over)) { /* a slow machine does not move so many */
        sched_yield();
    }
    peer_result(reply, pcclLeave(self->comm));
    pthread_join(thread, NULL);
    peer_join(self, &three, reply);
}

/* What is measured by the membership that is over means nothing in the next one: the master would exclude who tells it. */
TEST(a_peer_that_leaves_while_edges_are_measured_may_come_back)
{
    for (uint64_t after = 1 << 16; after <= 1 << 26; after *= 4) {
        struct processes all;
        if (!start(&all, 3, 1)) {
            return;
        }
        processes_send(&all, 3, peer_optimise, NULL, 0);
        process_send(&all, 2, leave_and_return, &after, sizeof after);
        struct reply reply[PROCESSES_MOST];
        processes_take(&all, 3, reply);
        EXPECT(reply[0].result == pcclSuccess || reply[0].result == pcclTopologyOptimizationFailed);
        EXPECT_EQ(reply[0].result, reply[1].result);
        int three = 3;
        processes_send(&all, 3, peer_update, NULL, 0); /* it waits for the leaver where the optimisation ended before */
        processes_take(&all, 3, reply);
        EXPECT_EQ(reply[0].result, pcclSuccess);
        processes_send(&all, 3, peer_update_until, &three, sizeof three);
        struct reply back = process_take(&all, 2);
        processes_take(&all, 3, reply);
        EXPECT_EQ(back.result, pcclSuccess);
        reduce_all(&all, 7, MEGABYTE, 1);
        processes_stop(&all);
    }
}
