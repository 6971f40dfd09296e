/* test_master_stop.c - a master that stands still, with all of its connections open: calls that need it end in their time, and what they
 * advise helps once it goes on.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { SPLITS = 4, SPLIT_MS = 100, WORLDS = 3 };

/* Nobody loses its place meanwhile. */
static bool start(struct processes *all, int count)
{
    struct processes_options o = {.count = count, .failures = &test_failures, .stall_ms = 60000, .loss_ms = 60000, .dead_ms = "60000"};
    return peers_start(all, &o);
}

/* argument: int, the milliseconds a split may take; 0: as many as it likes.  value[0]: the class of its error; value[1]: the size of the child. */
static void split(struct peer *self, const void *argument, struct reply *reply)
{
    pcclDeriveParams_t params = {.size = sizeof params, .formation_timeout_ms = (uint32_t) * (const int *)argument};
    pcclComm_t *child = NULL;
    pcclErrorInfo_t error = {0};
    int size = 0;
    if (peer_result(reply, pcclSplitCommunicator(self->comm, 0, 0, &params, &child)) != pcclSuccess) {
        PEER_EXPECT(self, pcclGetLastErrorInfo(&error) == pcclSuccess && child == NULL);
    } else {
        PEER_EXPECT(self, pcclGetAttribute(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) == pcclSuccess);
        PEER_EXPECT(self, pcclBarrier(child, NULL) == pcclSuccess); /* both have looked before one goes */
        PEER_EXPECT(self, pcclDestroyCommunicator(child) == pcclSuccess);
    }
    reply->value[0] = error.error_class;
    reply->value[1] = size;
}

TEST(a_split_while_the_master_stands_still_ends_in_its_time_and_is_called_again) /* "connect again": what, since the parent is connected? */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    int some = SPLIT_MS, any = 0;
    if (!start(&all, 2)) {
        return;
    }
    EXPECT(program_stop(&all.master));
    int64_t least = INT64_MAX; /* of many: others may keep the machine busy */
    for (int k = 0; k < SPLITS; k++) {
        int64_t begin = spawn_now_ms();
        processes_do(&all, 3, split, &some, sizeof some, reply);
        int64_t took = spawn_now_ms() - begin;
        least = took < least ? took : least;
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(reply[i].result, pcclMasterConnectionFailed);
            EXPECT_EQ(reply[i].cause, pcclCauseMasterUnreachable);
            EXPECT_EQ(reply[i].value[0], pcclClassRetry);
            EXPECT(strstr(reply[i].text, "retry when the master answers") != NULL);
        }
    }
    EXPECT(least < 1000); /* and not one second more, in which the child is said goodbye to */
    kill(all.master.pid, SIGCONT);
    processes_do(&all, 3, split, &any, sizeof any, reply);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        EXPECT_EQ(reply[i].value[1], 2);
    }
    processes_stop(&all);
}

static void make_worlds(struct peer *self, const void *argument, struct reply *reply)
{
    pcclComm_t **world = calloc(WORLDS, sizeof(pcclComm_t *));
    char name[] = "a";
    (void)argument;
    for (int i = 0; world != NULL && i < WORLDS; i++, name[0]++) {
        world[i] = peer_world(self, &(pcclCommCreateParamsEx_t){.size = sizeof(pcclCommCreateParamsEx_t), .world = name});
    }
    self->own = world;
    reply->result = world != NULL ? pcclSuccess : pcclInternalError;
}

static void destroy_worlds(struct peer *self, const void *argument, struct reply *reply)
{
    pcclComm_t **world = self->own;
    (void)argument;
    reply->result = pcclSuccess;
    int64_t least = INT64_MAX;
    for (int i = 0; i < WORLDS; i++) {
        int64_t begin = spawn_now_ms();
        PEER_EXPECT(self, pcclDestroyCommunicator(world[i]) == pcclSuccess);
        int64_t took = spawn_now_ms() - begin;
        least = took < least ? took : least;
    }
    PEER_EXPECT(self, least < 1900);
    free(world);
}

TEST(to_destroy_a_communicator_whose_master_stands_still_takes_a_second_at_most) /* it took two */
{
    struct processes all;
    if (!start(&all, 1)) {
        return;
    }
    EXPECT_EQ(process_do(&all, 0, make_worlds, NULL, 0).result, pcclSuccess);
    EXPECT(program_stop(&all.master));
    EXPECT_EQ(process_do(&all, 0, destroy_worlds, NULL, 0).result, pcclSuccess);
    kill(all.master.pid, SIGCONT);
    processes_stop(&all);
}
