/* test_split_kill.c - kill -9 in the middle of a split: all callers have one outcome, and the worlds are each other's no loss.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdio.h>

#include "tests/fault/peer_calls.h"

struct job {
    int32_t color[PROCESSES_MOST];
};

/* Says so when it is about to call. */
static void split(struct peer *self, const void *argument, struct reply *reply)
{
    const struct job *job = argument;
    pcclComm_t *child = NULL;
    pcclErrorInfo_t error;
    peer_note(self, 1);
    int32_t color = job->color[self->index];
    if (peer_result(reply, pcclSplitCommunicator(self->comm, color, 0, NULL, &child)) == pcclSuccess) {
        int size = 0;
        reply->value[0] = child != NULL && pcclGetAttribute(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) == pcclSuccess ? size : 0;
        self->own = child;
        return;
    }
    PEER_EXPECT(self, child == NULL);
    PEER_EXPECT(self, pcclGetLastErrorInfo(&error) == pcclSuccess);
    reply->value[1] = error.error_class;
    reply->value[2] = (int64_t)error.peer;
}

/* In the child: success or the end of its world. */
static void barrier(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    peer_result(reply, pcclBarrier(self->own, NULL));
}

static void drop(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    peer_result(reply, self->own != NULL ? pcclDestroyCommunicator(self->own) : pcclSuccess);
    self->own = NULL;
}

/* Killed while the others wait in the split: at the all-gather, or behind it. */
static void kill_in_split(int round)
{
    struct processes all;
    if (!processes_start(&all, &(struct processes_options){.count = 5, .failures = &test_failures, .stall_ms = 2000})) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    int world = 5;
    processes_do(&all, 31, peer_join, &world, sizeof world, NULL);
    struct job job = {.color = {0, 1, 0, 1, PCCL_NO_COLOR}};
    unsigned others = 31 & ~2u, callers = round == 0 ? others : 31;
    processes_send(&all, callers, split, &job, sizeof job);
    for (int i = 0; i < 5; i++) {
        if ((callers >> i & 1) != 0) {
            EXPECT_EQ(process_note(&all, i), 1);
        }
    }
    process_signal(&all, 1, SIGKILL); /* wherever the split is by now, unless it waits for this one */
    processes_take(&all, others, reply);
    for (int i = 0; i < 5; i++) {
        if (i != 1) {
            EXPECT_EQ(reply[i].result, reply[0].result);
            EXPECT_EQ(reply[i].value[1], reply[0].value[1]);
            EXPECT_EQ(reply[i].value[2], reply[0].value[2]);
            EXPECT(reply[i].result == pcclSuccess || reply[i].result == pcclRankConnectionLost);
            EXPECT(round != 0 || reply[i].result == pcclRankConnectionLost);
        }
    }
    if (reply[0].result == pcclSuccess) { /* one color has begun, the other one ends with its loss */
        EXPECT(reply[0].value[0] == 2 && reply[2].value[0] == 2 && reply[4].value[0] == 0);
        processes_do(&all, 1 | 4 | 8, barrier, NULL, 0, reply);
        EXPECT(reply[0].result == pcclSuccess && reply[2].result == pcclSuccess && reply[3].result == pcclRankConnectionLost);
    }
    processes_do(&all, others, drop, NULL, 0, NULL);
    world = 4;
    processes_do(&all, others, peer_update_until, &world, sizeof world, NULL); /* the parent has lost one, and goes on */
    processes_do(&all, others, split, &job, sizeof job, reply);
    EXPECT(reply[0].value[0] == 2 && reply[2].value[0] == 2 && reply[3].value[0] == 1 && reply[4].value[0] == 0);
    for (int i = 0; i < 5; i++) {
        EXPECT(i == 1 || reply[i].result == pcclSuccess);
        if (i != 1 && reply[i].result != pcclSuccess) {
            printf("# peer %d: %s\n", i, reply[i].text);
        }
    }
    processes_do(&all, others, drop, NULL, 0, NULL);
    processes_stop(&all);
}

TEST(a_kill_before_the_victim_has_called_is_one_error_for_all_and_the_next_split_succeeds)
{
    kill_in_split(0);
}

TEST(a_kill_anywhere_in_a_split_has_one_outcome_at_callers_of_all_colors)
{
    for (int round = 1; round <= 6; round++) {
        kill_in_split(round);
    }
}
