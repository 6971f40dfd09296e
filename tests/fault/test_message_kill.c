/* test_message_kill.c - kill -9 of the receiver, of the sender and of a third while large messages are under way: what the two are told.
 *
 * Contents are a function of the element, so that a success is checked by value.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { SENDER = 0, RECEIVER = 1, THIRD = 2, TAG = 7 };

struct message_job {
    size_t count;
    int victim;      /* kills itself after so many bytes; -1: nobody does */
    uint64_t after;
    int attempts;    /* at most */
};

/* value[0]: errors; value[1]: members in the end.  Both try again, for as long as both are there. */
static void exchange(struct peer *self, const void *argument, struct reply *reply)
{
    const struct message_job *job = argument;
    pcclPeerInfo_t me = {0};
    struct watch w = {0};
    bool dies = job->victim == self->index;
    uint32_t *b = malloc(job->count * sizeof *b);
    EXPECT_EQ(pcclGetSelf(self->comm, &me), pcclSuccess);
    for (size_t i = 0; i < job->count; i++) {
        b[i] = me.rank == SENDER ? (uint32_t)(i * 2654435761u) : 0;
    }
    if (dies) {
        watch_start(&w, self, peer_moved, job->after, SIGKILL);
    }
    for (int i = 0; i < job->attempts; i++) {
        reply->result = (int)(me.rank == SENDER ? pcclSend(b, job->count, pcclUint32, RECEIVER, TAG, self->comm, NULL)
                                                : pcclReceive(b, job->count, pcclUint32, SENDER, TAG, NULL, self->comm, NULL));
        if (reply->result != pcclRankConnectionLost) {
            break;
        }
        reply->value[0]++;
        pcclErrorInfo_t e;
        EXPECT_EQ(pcclGetLastErrorInfo(&e), pcclSuccess);
        EXPECT(e.cause == pcclCausePeerLost && e.peer != 0);
    }
    size_t wrong = 0;
    for (size_t i = 0; i < job->count && reply->result == pcclSuccess; i++) {
        wrong += b[i] != (uint32_t)(i * 2654435761u);
    }
    EXPECT_EQ(wrong, 0);
    reply->value[1] = peer_size(self, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE);
    if (dies) {
        (void)watch_end(&w);
    }
    free(b);
}

static void tell_rank(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t me = {0};
    (void)argument;
    reply->result = (int)pcclGetSelf(self->comm, &me);
    reply->value[0] = me.rank;
}

/* The process of each rank: these are counted in the order of admission. */
static void find_ranks(struct processes *all, int of[3])
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 7, tell_rank, NULL, 0, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT(reply[i].result == pcclSuccess && reply[i].value[0] < 3);
        of[reply[i].value[0] % 3] = i;
    }
}

static void one_of_the_two(int role)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    int of[3] = {0};
    if (!peers_start(&all, &(struct processes_options){.count = 3, .failures = &test_failures, .pool = 2})) {
        return;
    }
    find_ranks(&all, of);
    int victim = of[role], other = of[1 - role], two = 1 << victim | 1 << other;
    struct message_job job = {.count = 100, .victim = -1, .attempts = 1};
    processes_do(&all, two, exchange, &job, sizeof job, reply);
    EXPECT(reply[victim].result == pcclSuccess && reply[other].result == pcclSuccess);
    job = (struct message_job){.count = 32 << 18, .victim = victim, .after = 1 << 20, .attempts = 1};
    processes_send(&all, two, exchange, &job, sizeof job);
    process_wait_killed(&all, victim);
    processes_take(&all, 1 << other, reply);
    EXPECT_EQ(reply[other].result, pcclRankConnectionLost);
    EXPECT_EQ(reply[other].value[0], 1);
    EXPECT_EQ(reply[other].value[1], 2); /* the sizes move with it */
    processes_stop(&all);
}

TEST(who_is_left_of_the_two_gets_an_error_and_the_sizes)
{
    one_of_the_two(RECEIVER);
    one_of_the_two(SENDER);
}

/* As many as may be under way, of the size that travels with its launch, to one who is stopped until the deadlines of most have passed. */
static void many_with_deadlines(struct peer *self, const void *argument, struct reply *reply)
{
    enum { MOST = 1024, BYTES = 65536, FIRST = 100 };
    pcclPeerInfo_t me = {0};
    bool sends = (pcclGetSelf(self->comm, &me), me.rank == SENDER), done = false;
    unsigned char *b = calloc(1, BYTES);
    pcclAsyncOp_t *op = calloc(MOST, sizeof *op);
    pcclCompletion_t end;
    (void)argument;
    EXPECT_EQ(pcclSetOption(self->comm, PCCL_OPTION_OPERATION_DEADLINE_MS, sends ? 500 : 0), pcclSuccess);
    for (int i = 0; i < 200; i++) { /* the control link moves into shared memory, where little is under way */
        EXPECT_EQ(pcclBarrier(self->comm, NULL), pcclSuccess);
    }
    if (!sends) {
        raise(SIGSTOP);
    }
    for (int i = 0; i < MOST; i++) {
        EXPECT_EQ(sends ? pcclSend(b, BYTES, pcclUint8, RECEIVER, FIRST + (uint64_t)i, self->comm, &op[i])
                        : pcclReceive(b, BYTES, pcclUint8, SENDER, FIRST + (uint64_t)i, NULL, self->comm, &op[i]), pcclSuccess);
    }
    if (sends) {
        EXPECT_EQ(pcclWaitAsync(&op[MOST - 1], 700, &end, &done), pcclSuccess);
        peer_note(self, 1);
    }
    for (int i = 0; i < MOST; i++) {
        pcclResult_t rc = pcclAwaitAsync(&op[i], NULL);
        pcclErrorInfo_t why = {0};
        (void)pcclGetLastErrorInfo(&why);
        reply->value[0] += rc == pcclSuccess;
        EXPECT(rc == pcclSuccess || (rc == pcclRankConnectionLost && why.cause == pcclCauseDeadline));
    }
    free(op);
    free(b);
}

TEST(as_much_as_may_be_under_way_to_one_who_does_not_read_breaks_no_link)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &(struct processes_options){.count = 2, .failures = &test_failures, .pool = 1})) {
        return;
    }
    processes_do(&all, 3, tell_rank, NULL, 0, reply);
    int from = reply[0].value[0] == SENDER ? 0 : 1, to = 1 - from;
    processes_send(&all, 3, many_with_deadlines, NULL, 0);
    process_wait_stopped(&all, to);
    EXPECT_EQ(process_note(&all, from), 1);
    process_signal(&all, to, SIGCONT);
    processes_take(&all, 3, reply);
    EXPECT_EQ(reply[0].value[0], reply[1].value[0]); /* alike at both */
    processes_stop(&all);
}

TEST(a_message_outlives_the_death_of_a_third_by_one_more_call_of_both)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &(struct processes_options){.count = 3, .failures = &test_failures, .pool = 2})) {
        return;
    }
    int of[3] = {0};
    find_ranks(&all, of);
    int from = of[SENDER], to = of[RECEIVER], two = 1 << from | 1 << to;
    struct message_job job = {.count = 64 << 18, .victim = -1, .attempts = 3};
    processes_send(&all, two, exchange, &job, sizeof job);
    process_signal(&all, of[THIRD], SIGKILL);
    processes_take(&all, two, reply);
    EXPECT(reply[from].result == pcclSuccess && reply[to].result == pcclSuccess);
    EXPECT_EQ(reply[from].value[0], reply[to].value[0]); /* alike at both: none where it was over before */
    EXPECT(reply[from].value[0] <= 1);
    processes_do(&all, two, exchange, &job, sizeof job, reply);
    EXPECT(reply[from].result == pcclSuccess && reply[to].result == pcclSuccess);
    EXPECT_EQ(reply[from].value[0], reply[to].value[0]);
    processes_stop(&all);
}
