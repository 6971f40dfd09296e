/* test_create_world.c - worlds of a given size among processes that are killed: while they are created, and while they live.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdio.h>
#include <string.h>

#include "tests/fault/peer_calls.h"

struct world {
    uint32_t size;
    unsigned set;          /* of processes: their ranks are their places in it */
    pcclLossRule_t loss;
    char name[16];
    bool note;             /* tell the test that the claim counts */
    bool join;             /* ... in place of a lost one, with any rank */
};

static uint32_t rank_in(unsigned set, int index)
{
    return (uint32_t)__builtin_popcount(set & ((1u << index) - 1));
}

static void on_log(pcclLogLevel_t level, const char *message, void *user)
{
    (void)level;
    if (strstr(message, "registered as rank") != NULL) {
        peer_note(user, 1);
    }
}

/* Leaves what it is in and creates this one.  value[0]: its rank, [1]: the class of the error, [2]: whom it names. */
static void create_world(struct peer *self, const void *argument, struct reply *reply)
{
    const struct world *w = argument;
    pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = self->master, .world = w->name, .world_size = w->size,
                                       .rank = w->join ? PCCL_ANY_RANK : rank_in(w->set, self->index), .loss_rule = w->loss, .join = w->join};
    pcclErrorInfo_t error;
    pcclPeerInfo_t me = {0};
    PEER_EXPECT(self, pcclInit() == pcclSuccess);
    PEER_EXPECT(self, self->comm == NULL || pcclDestroyCommunicator(self->comm) == pcclSuccess);
    PEER_EXPECT(self, pcclCreateCommunicatorEx(&params, &self->comm) == pcclSuccess);
    PEER_EXPECT(self, !w->note || pcclSetLogCallback(on_log, pcclLogInfo, self) == pcclSuccess);
    pcclResult_t result = peer_result(reply, pcclConnect(self->comm));
    if (result == pcclSuccess) {
        PEER_EXPECT(self, pcclGetSelf(self->comm, &me) == pcclSuccess);
        reply->value[0] = me.rank;
    } else {
        PEER_EXPECT(self, pcclGetLastErrorInfo(&error) == pcclSuccess);
        reply->value[1] = error.error_class;
        reply->value[2] = (int64_t)error.peer;
    }
}

/* Reduces until the world is over, which the first loss says.  value[1], [2] as above. */
static void reduce_until_over(struct peer *self, const void *argument, struct reply *reply)
{
    float x = 1, y = 0;
    pcclErrorInfo_t error = {0};
    (void)argument;
    do {
        const pcclReduceDescriptor_t d = peer_floats(1, 1);
        pcclReduceInfo_t info;
        if (peer_result(reply, pcclAllReduce(&x, &y, &d, self->comm, &info)) == pcclSuccess) {
            PEER_EXPECT(self, y == (float)info.local_world_size);
        }
        (void)pcclGetLastErrorInfo(&error);
    } while (reply->result == (int)pcclSuccess);
    reply->value[1] = error.error_class;
    PEER_EXPECT(self, strstr(error.text, "then retry") == NULL);
    reply->value[2] = (int64_t)error.peer;
}

TEST(a_kill_while_a_world_is_created_is_one_error_for_all_and_the_next_one_begins)
{
    struct processes all;
    if (!processes_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures})) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct world w = {.size = 4, .set = 15, .name = "w", .note = true};
    processes_send(&all, 7, create_world, &w, sizeof w); /* the fourth has not come */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(process_note(&all, i), 1);
    }
    process_signal(&all, 1, SIGKILL);
    struct reply late = process_do(&all, 3, create_world, &w, sizeof w);
    processes_take(&all, 1 | 4, reply);
    EXPECT_EQ(late.result, pcclRankConnectionLost);
    for (int i = 0; i < 3; i += 2) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].value[1], pcclClassRejoin);
        EXPECT_EQ(reply[i].value[2], late.value[2]);
        EXPECT_STR(reply[i].text, late.text);
        EXPECT(strstr(reply[i].text, "rank 1 (peer ") != NULL);
    }
    w = (struct world){.size = 3, .set = 13, .name = "w"};
    processes_do(&all, 13, create_world, &w, sizeof w, reply);
    for (int i = 0; i < 4; i++) {
        EXPECT(i == 1 || (reply[i].result == pcclSuccess && reply[i].value[0] == (int64_t)rank_in(13, i)));
    }
    processes_stop(&all);
}

TEST(a_kill_in_a_world_with_the_rule_end_ends_it_for_all_and_they_create_the_next)
{
    struct processes all;
    if (!processes_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures})) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct world w = {.size = 4, .set = 15, .name = "w", .loss = PCCL_LOSS_END};
    processes_do(&all, 15, create_world, &w, sizeof w, reply);
    processes_send(&all, 15, reduce_until_over, NULL, 0);
    process_signal(&all, 2, SIGKILL);
    processes_take(&all, 11, reply);
    for (int i = 0; i < 4; i++) {
        if (i != 2) {
            EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
            EXPECT_EQ(reply[i].value[1], pcclClassRejoin);
            EXPECT(reply[i].value[2] != 0 && reply[i].value[2] == reply[0].value[2]);
        }
    }
    w = (struct world){.size = 3, .set = 11, .name = "w", .loss = PCCL_LOSS_END};
    processes_do(&all, 11, create_world, &w, sizeof w, reply);
    for (int i = 0; i < 4; i++) {
        EXPECT(i == 2 || (reply[i].result == pcclSuccess && reply[i].value[0] == (int64_t)rank_in(11, i)));
    }
    processes_stop(&all);
}

/* Ends the world for all.  value[2]: its own id. */
static void end_world(struct peer *self, const void *argument, struct reply *reply)
{
    pcclPeerInfo_t me = {0};
    (void)argument;
    PEER_EXPECT(self, pcclGetSelf(self->comm, &me) == pcclSuccess);
    reply->value[2] = (int64_t)me.id;
    peer_result(reply, pcclRevoke(self->comm));
}

TEST(a_kill_while_a_world_is_being_revoked_changes_nothing_of_its_end)
{
    struct processes all;
    if (!processes_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures})) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct world w = {.size = 4, .set = 15, .name = "w", .loss = PCCL_LOSS_SHRINK};
    processes_do(&all, 15, create_world, &w, sizeof w, reply);
    processes_send(&all, 3, reduce_until_over, NULL, 0);
    process_signal(&all, 3, SIGSTOP); /* its report is waited for */
    struct reply revoked = process_do(&all, 2, end_world, NULL, 0);
    EXPECT_EQ(revoked.result, pcclSuccess);
    process_signal(&all, 3, SIGKILL);
    processes_take(&all, 3, reply);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].cause, pcclCauseRevoked);
        EXPECT_EQ(reply[i].value[1], pcclClassRejoin);
        EXPECT_EQ(reply[i].value[2], revoked.value[2]);
    }
    w = (struct world){.size = 3, .set = 7, .name = "w"};
    processes_do(&all, 7, create_world, &w, sizeof w, reply);
    for (int i = 0; i < 3; i++) {
        EXPECT(reply[i].result == pcclSuccess && reply[i].value[0] == i);
    }
    processes_stop(&all);
}

TEST(a_process_joins_in_place_of_a_killed_one_under_its_rank)
{
    struct processes all;
    if (!processes_start(&all, &(struct processes_options){.count = 4, .failures = &test_failures})) {
        return;
    }
    struct reply reply[PROCESSES_MOST];
    struct world w = {.size = 3, .set = 7, .name = "w", .loss = PCCL_LOSS_SHRINK};
    int three = 3;
    processes_do(&all, 7, create_world, &w, sizeof w, reply);
    w = (struct world){.size = 3, .name = "w", .join = true};
    process_send(&all, 3, create_world, &w, sizeof w);
    process_signal(&all, 1, SIGKILL);
    processes_do(&all, 5, peer_update, NULL, 0, reply); /* without the one that is dead, with or without the new one */
    processes_do(&all, 5, peer_update_until, &three, sizeof three, reply);
    EXPECT(reply[0].result == pcclSuccess && reply[2].result == pcclSuccess);
    struct reply joined = process_take(&all, 3);
    EXPECT_EQ(joined.result, pcclSuccess);
    EXPECT_EQ(joined.value[0], 1);
    processes_stop(&all);
}
