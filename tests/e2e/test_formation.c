/* test_formation.c - worlds of a given size, created by all their ranks together, through the public interface.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/cluster.h"

enum { COUNT = 1000 };

static void world_create(struct cluster *c, int index, uint32_t size, uint32_t rank, pcclLossRule_t loss, uint32_t timeout_ms)
{
    cluster_create_ex(c, index, (pcclCommCreateParamsEx_t){.world = "w", .world_size = size, .rank = rank, .loss_rule = loss,
                                                           .formation_timeout_ms = timeout_ms});
}

/* Sums up what all are; the world has no vote and nobody waits for one. */
static pcclResult_t reduce(struct cluster_peer *p, uint64_t tag, uint32_t members, float want)
{
    float *x = malloc(COUNT * sizeof *x), *y = calloc(COUNT, sizeof *y);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(p->index + 1);
    }
    pcclReduceDescriptor_t d = cluster_floats(COUNT, tag);
    pcclReduceInfo_t info = {0};
    pcclResult_t result = pcclAllReduce(x, y, &d, p->comm, &info);
    if (result == pcclSuccess) {
        EXPECT_EQ(info.local_world_size, members);
        for (int i = 0; i < COUNT; i++) {
            EXPECT_EQ(y[i], want);
        }
    }
    free(x);
    free(y);
    return result;
}

/* Rank 4 - index, so that ranks are not in the order in which the peers come. */
static void connect_and_reduce(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t self, all[8];
    size_t count = 0;
    (void)context;
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 5);
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    EXPECT(self.rank == (uint32_t)(4 - p->index) && self.key == self.rank && self.is_self);
    EXPECT_EQ(pcclGetMembers(p->comm, all, 8, &count), pcclSuccess);
    EXPECT_EQ(count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT(all[i].rank == i && all[i].key == i && all[i].is_self == (i == self.rank));
    }
    EXPECT_EQ(all[self.rank].id, self.id);
    EXPECT_EQ(reduce(p, 1, 5, 1 + 2 + 3 + 4 + 5), pcclSuccess);
}

TEST(all_ranks_together_create_a_world_and_its_ranks_are_as_given)
{
    struct cluster c;
    cluster_master(&c);
    for (uint32_t i = 0; i < 5; i++) {
        world_create(&c, (int)i, 5, 4 - i, PCCL_LOSS_END, 0);
    }
    cluster_run(&c, connect_and_reduce, NULL);
    cluster_stop(&c);
}

/* The same name, ten times: each connects, sums up and leaves when it has; nobody waits for the others to be gone. */
static void create_again_and_again(struct cluster_peer *p, void *context)
{
    (void)context;
    for (uint64_t round = 0; round < 10; round++) {
        pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = p->cluster->address, .world = "w", .world_size = 3,
                                           .rank = (uint32_t)p->index, .loss_rule = PCCL_LOSS_SHRINK};
        pcclComm_t *before = p->comm;
        EXPECT_EQ(pcclCreateCommunicatorEx(&params, &p->comm), pcclSuccess);
        EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
        EXPECT_EQ(reduce(p, round, 3, 1 + 2 + 3), pcclSuccess);
        if (before != NULL) { /* two of one name at once */
            EXPECT_EQ(pcclDestroyCommunicator(before), pcclSuccess);
        }
    }
}

TEST(a_name_is_used_again_at_once_while_the_world_before_still_lives)
{
    struct cluster c;
    cluster_master(&c);
    for (int i = 0; i < 3; i++) {
        c.peer[i] = (struct cluster_peer){.cluster = &c, .index = i};
    }
    c.count = 3;
    cluster_run(&c, create_again_and_again, NULL);
    cluster_stop(&c);
}

/* Rank 2 comes when rank 0 has heard that it is missing. */
static void come_when_missed(struct cluster_peer *p, void *context)
{
    size_t count = 0;
    uint32_t missing[4] = {9, 9, 9, 9};
    pcclWaitInfo_t wait = {0};
    (void)context;
    while (p->index == 2 && count == 0) {
        EXPECT_EQ(pcclGetMissingRanks(p->cluster->peer[0].comm, missing, 4, &count), pcclSuccess);
        if (count > 1 || (count == 1 && missing[0] != 2)) {
            count = 0; /* the other one is on its way */
        }
        sched_yield();
    }
    if (p->index == 2) {
        EXPECT(count == 1 && missing[0] == 2 && missing[1] == 9);
        EXPECT_EQ(pcclGetWaits(p->cluster->peer[0].comm, &wait, 1, &count), pcclSuccess);
        EXPECT_EQ(count, 1);
        EXPECT_STR(wait.phase, "formation");
        EXPECT_STR(wait.text, "waits for these ranks of world 'w' to come: 2");
    }
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    EXPECT_EQ(pcclGetMissingRanks(p->comm, missing, 4, &count), pcclSuccess);
    EXPECT_EQ(count, 0);
}

TEST(who_waits_for_a_world_can_ask_which_ranks_are_missing)
{
    struct cluster c;
    cluster_master(&c);
    for (uint32_t i = 0; i < 3; i++) {
        world_create(&c, (int)i, 3, i, PCCL_LOSS_END, 0);
    }
    EXPECT_EQ(pcclGetMissingRanks(c.peer[0].comm, NULL, 1, NULL), pcclInvalidArgument);
    cluster_run(&c, come_when_missed, NULL);
    cluster_stop(&c);
}

struct given_up {
    pcclResult_t result;
    pcclErrorInfo_t error;
};

static void connect_and_fail(struct cluster_peer *p, void *context)
{
    struct given_up *all = context;
    all[p->index].result = pcclConnect(p->comm);
    (void)pcclGetLastErrorInfo(&all[p->index].error);
}

TEST(a_rank_that_does_not_come_in_time_is_named_to_all)
{
    struct cluster c;
    struct given_up all[3];
    cluster_master(&c);
    world_create(&c, 0, 4, 0, PCCL_LOSS_END, 0);
    world_create(&c, 1, 4, 1, PCCL_LOSS_END, 300);
    world_create(&c, 2, 4, 3, PCCL_LOSS_END, 60000);
    cluster_run(&c, connect_and_fail, all);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(all[i].result, pcclRankConnectionLost);
        EXPECT_EQ(all[i].error.cause, pcclCauseDeadline);
        EXPECT_EQ(all[i].error.error_class, pcclClassRejoin);
        EXPECT_STR(all[i].error.text, "connect: creating the world failed on all of its peers: these ranks have not come in "
                                      "time: 2: create it again");
    }
    EXPECT_EQ(pcclUpdateTopology(c.peer[0].comm), pcclInvalidUsage); /* it may be connected again */
    world_create(&c, 3, 4, 2, PCCL_LOSS_END, 0);
    EXPECT_EQ(pcclConnect(c.peer[3].comm), pcclRankConnectionLost); /* it hears of the same */
    EXPECT(strstr(pcclGetLastError(), "not come in time: 2") != NULL);
    cluster_stop(&c);
}

TEST(ranks_that_disagree_in_the_size_are_told_both)
{
    struct cluster c;
    struct given_up all[2];
    cluster_master(&c);
    world_create(&c, 0, 4, 0, PCCL_LOSS_END, 0);
    world_create(&c, 1, 3, 1, PCCL_LOSS_END, 0);
    cluster_run(&c, connect_and_fail, all);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(all[i].result, pcclInvalidArgument);
        EXPECT_EQ(all[i].error.error_class, pcclClassFix);
        EXPECT(strstr(all[i].error.text, "4 and") != NULL || strstr(all[i].error.text, "4 ranks") != NULL);
        EXPECT(strstr(all[i].error.text, "make identical calls on all peers") != NULL);
    }
    cluster_stop(&c);
}

/* Rank 2 leaves when all have begun; the others reduce until they hear of it. */
static void leave_or_reduce(struct cluster_peer *p, void *context)
{
    struct given_up *all = context;
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    EXPECT_EQ(reduce(p, 0, 3, 1 + 2 + 3), pcclSuccess);
    if (p->index == 2) {
        EXPECT_EQ(pcclDestroyCommunicator(p->comm), pcclSuccess);
        p->comm = NULL;
        return;
    }
    all[p->index].result = reduce(p, 1, 2, 1 + 2); /* ends with the view, or comes after it: the same class */
    (void)pcclGetLastErrorInfo(&all[p->index].error);
}

TEST(with_the_rule_end_a_world_is_over_with_its_first_loss)
{
    struct cluster c;
    struct given_up all[3];
    cluster_master(&c);
    for (uint32_t i = 0; i < 3; i++) {
        world_create(&c, (int)i, 3, i, PCCL_LOSS_END, 0);
    }
    cluster_run(&c, leave_or_reduce, all);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(all[i].result, pcclRankConnectionLost);
        EXPECT_EQ(all[i].error.error_class, pcclClassRejoin);
        EXPECT_EQ(all[i].error.cause, pcclCausePeerLeft);
        EXPECT(all[i].error.peer != 0 && all[i].error.peer == all[1 - i].error.peer);
        EXPECT(strstr(all[i].error.text, "rank 2 (peer ") != NULL && strstr(all[i].error.text, ": create it again") != NULL);
        EXPECT_EQ(pcclUpdateTopology(c.peer[i].comm), pcclRankConnectionLost); /* until it is left */
    }
    cluster_stop(&c);
}

/* Whose calls were launched before the loss: they fail with it, so programs know of it, and their ranks are those after it. */
static void lose_and_reduce(struct cluster_peer *p, void *context)
{
    atomic_int *launched = context;
    float x = 1, y = 0;
    pcclReduceDescriptor_t d = cluster_floats(1, 1);
    pcclReduceInfo_t info;
    pcclAsyncReduceOp_t handle;
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    if (p->index == 2) {
        while (atomic_load(launched) < 2) {
            sched_yield();
        }
        EXPECT_EQ(pcclDestroyCommunicator(p->comm), pcclSuccess);
        p->comm = NULL;
        return;
    }
    EXPECT_EQ(pcclAllReduceAsync(&x, &y, &d, p->comm, &handle), pcclSuccess);
    atomic_fetch_add(launched, 1);
    EXPECT_EQ(pcclAwaitAsyncReduce(&handle, &info), pcclRankConnectionLost);
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    EXPECT_EQ(self.key, (uint32_t)(2 - p->index));
    EXPECT_EQ(self.rank, (uint32_t)(1 - p->index));
    EXPECT_EQ(reduce(p, 1, 2, 1 + 2), pcclSuccess);
}

TEST(with_the_rule_shrink_it_goes_on_and_ranks_close_up)
{
    struct cluster c;
    atomic_int launched = 0;
    cluster_master(&c);
    for (uint32_t i = 0; i < 3; i++) {
        world_create(&c, (int)i, 3, 2 - i, PCCL_LOSS_SHRINK, 0); /* who leaves is rank 0 */
    }
    cluster_run(&c, lose_and_reduce, &launched);
    cluster_stop(&c);
}

TEST(a_rank_of_somebody_else_is_refused_and_the_others_go_on)
{
    struct cluster c;
    struct given_up all[3];
    int refused = 0;
    cluster_master(&c);
    world_create(&c, 0, 2, 0, PCCL_LOSS_SHRINK, 0);
    world_create(&c, 1, 2, 1, PCCL_LOSS_SHRINK, 0);
    EXPECT_EQ(c.count, 2);
    cluster_run(&c, connect_and_fail, all);
    EXPECT(all[0].result == pcclSuccess && all[1].result == pcclSuccess);
    for (int i = 0; i < 3; i++) { /* two of the three have the same rank; who comes second is refused */
        c.peer[i].comm = i < 2 ? (pcclDestroyCommunicator(c.peer[i].comm), NULL) : NULL;
    }
    world_create(&c, 0, 3, 0, PCCL_LOSS_SHRINK, 1000);
    world_create(&c, 1, 3, 1, PCCL_LOSS_SHRINK, 1000);
    world_create(&c, 2, 3, 1, PCCL_LOSS_SHRINK, 1000);
    cluster_run(&c, connect_and_fail, all);
    for (int i = 0; i < 3; i++) {
        bool taken = all[i].result == pcclMasterConnectionFailed;
        refused += taken;
        EXPECT(!taken || strstr(all[i].error.text, "rank 1 of the world is claimed by peer ") != NULL);
        EXPECT(taken || (all[i].result == pcclRankConnectionLost && all[i].error.cause == pcclCauseDeadline));
    }
    EXPECT_EQ(refused, 1);
    cluster_stop(&c);
}

TEST(what_cannot_be_a_size_is_refused_with_the_reason)
{
    struct cluster c;
    cluster_master(&c);
    const struct {
        pcclCommCreateParamsEx_t params;
        const char *words;
    } rows[] = {
        {{.world = "w", .world_size = 16385}, "world_size 16385, rank 0: it is larger than 16384"},
        {{.world_size = 2}, "needs a name"},
        {{.world = "w", .world_size = 2, .rank = 2}, "the rank is not below it"},
        {{.world = "w", .world_size = 2, .peer_group = 1}, "no peer group but 0"},
        {{.world = "w", .world_size = 2, .loss_rule = (pcclLossRule_t)2}, "the loss rule is unknown"},
        {{.world = "w", .rank = 1}, "go with a world_size, which is 0"},
        {{.world = "w", .loss_rule = PCCL_LOSS_SHRINK}, "go with a world_size"},
        {{.world = "w", .formation_timeout_ms = 5}, "go with a world_size"},
        {{.world = "w", .once = true}, "go with a world_size"},
        {{.world = "w", .join = true}, "go with a world_size"},
        {{.world = "w", .world_size = 2, .rank = PCCL_ANY_RANK}, "the rank is not below it"},
        {{.world = "w", .world_size = 2, .rank = 2, .join = true}, "the rank is not below it"},
        {{.world = "w", .world_size = 2, .join = true, .once = true}, "with join they are as they were given then"},
        {{.world = "w", .world_size = 2, .join = true, .loss_rule = PCCL_LOSS_SHRINK}, "are for those who create it"},
        {{.world_size = 2, .join = true}, "needs a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pcclCommCreateParamsEx_t params = rows[i].params;
        pcclComm_t *comm = NULL;
        params.size = sizeof params;
        params.master_address = c.address;
        EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
        EXPECT(strstr(pcclGetLastError(), rows[i].words) != NULL);
    }
    cluster_stop(&c);
}

static void connect_only_once(struct cluster_peer *p, void *context)
{
    pcclErrorInfo_t error;
    (void)context;
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    EXPECT_EQ(reduce(p, 1, 2, 1 + 2), pcclSuccess);
    EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
    EXPECT_EQ(pcclConnect(p->comm), pcclMasterConnectionFailed); /* whoever asks first, and whether the other is still in it */
    EXPECT_EQ(pcclGetLastErrorInfo(&error), pcclSuccess);
    EXPECT(error.cause == pcclCauseNameUsed && error.error_class == pcclClassFix);
    EXPECT(strstr(error.text, "a world was created under that name to be the only one: create it under another name") != NULL);
}

TEST(a_world_that_is_created_once_is_the_only_one_of_its_name)
{
    struct cluster c;
    cluster_master(&c);
    for (uint32_t i = 0; i < 2; i++) {
        cluster_create_ex(&c, (int)i, (pcclCommCreateParamsEx_t){.world = "w", .world_size = 2, .rank = i,
                                                                 .loss_rule = PCCL_LOSS_SHRINK, .once = true});
    }
    cluster_run(&c, connect_only_once, NULL);
    cluster_stop(&c);
}

/* Rank 1 leaves and comes back as who joins; the others update until all are there again. */
static void leave_and_join(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t self;
    (void)context;
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    EXPECT_EQ(reduce(p, 1, 3, 1 + 2 + 3), pcclSuccess);
    for (int round = 0; round < 3; round++) {
        if (p->index == 1) {
            pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = p->cluster->address, .world = "w",
                                               .world_size = 3, .rank = round == 1 ? 1 : PCCL_ANY_RANK, .join = true};
            EXPECT_EQ(pcclDestroyCommunicator(p->comm), pcclSuccess);
            EXPECT_EQ(pcclCreateCommunicatorEx(&params, &p->comm), pcclSuccess);
            EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
        } else {
            pcclResult_t result;
            pcclErrorInfo_t error = {0};
            do { /* until the loss has been noticed */
                result = reduce(p, 2, 2, 1 + 3);
                (void)pcclGetLastErrorInfo(&error);
            } while (result == pcclRankConnectionLost && error.error_class == pcclClassRetry);
            EXPECT_EQ(result, pcclSuccess);
            do {
                EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
            } while (cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < 3);
        }
        EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
        EXPECT(self.rank == (uint32_t)p->index && self.key == self.rank);
        EXPECT_EQ(reduce(p, 3, 3, 1 + 2 + 3), pcclSuccess);
    }
}

TEST(who_joins_a_world_with_a_size_takes_the_rank_that_was_lost)
{
    struct cluster c;
    cluster_master(&c);
    for (uint32_t i = 0; i < 3; i++) {
        world_create(&c, (int)i, 3, i, PCCL_LOSS_SHRINK, 0);
    }
    cluster_run(&c, leave_and_join, NULL);
    cluster_stop(&c);
}

TEST(a_world_that_is_not_there_is_not_joined)
{
    struct cluster c;
    pcclErrorInfo_t error;
    cluster_master(&c);
    cluster_create_ex(&c, 0, (pcclCommCreateParamsEx_t){.world = "w", .world_size = 2, .join = true});
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT_EQ(pcclGetLastErrorInfo(&error), pcclSuccess);
    EXPECT(error.cause == pcclCauseNoWorld && error.error_class == pcclClassRejoin);
    EXPECT(strstr(error.text, "no world of that name has members: connect again when such a world has begun") != NULL);
    cluster_stop(&c);
}
