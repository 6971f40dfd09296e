/* test_revoke.c - one member ends the world for all, through the public interface.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdlib.h>

#include "tests/e2e/cluster.h"

enum { COUNT = 300000 };

/* What a peer reads in the end. */
struct end {
    uint64_t own_id;
    pcclResult_t result, later;
    pcclErrorInfo_t error;
};

/* All reduce one tag after the other; the one that revokes does so after its third, while the others' calls wait for its fourth. */
static void reduce_until_it_is_over(struct cluster_peer *p, void *context)
{
    struct end *end = &((struct end *)context)[p->index];
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    end->own_id = self.id;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(p->index + 1);
    }
    for (uint64_t tag = 1; end->result == pcclSuccess; tag++) {
        pcclReduceDescriptor_t d = cluster_floats(COUNT, tag);
        if (p->index == 1 && tag == 4) {
            pcclAsyncReduceOp_t open;
            EXPECT_EQ(pcclAllReduceAsync(x, y, &d, p->comm, &open), pcclSuccess);
            EXPECT_EQ(pcclRevoke(p->comm), pcclSuccess);
            EXPECT_EQ(pcclRevoke(p->comm), pcclSuccess);
            end->result = pcclAwaitAsyncReduce(&open, NULL);
            break;
        }
        if (p->index == 2 && tag == 4) { /* in another call than the rest */
            end->result = pcclUpdateTopology(p->comm);
            break;
        }
        end->result = pcclAllReduce(x, y, &d, p->comm, NULL);
        EXPECT(end->result != pcclSuccess || y[COUNT - 1] == 1 + 2 + 3);
        EXPECT_EQ(x[7], p->index + 1);
    }
    EXPECT_EQ(pcclGetLastErrorInfo(&end->error), pcclSuccess);
    while ((end->later = pcclUpdateTopology(p->comm)) == pcclSuccess) {
    }
    free(x);
    free(y);
}

static void expect_ends(const struct end *end)
{
    EXPECT_EQ(end[1].result, pcclMasterConnectionFailed); /* as by leaving */
    EXPECT_EQ(end[1].error.cause, pcclCauseLeft);
    EXPECT_EQ(end[1].later, pcclMasterConnectionFailed);
    for (int i = 0; i < 3; i += 2) {
        EXPECT_EQ(end[i].result, pcclRankConnectionLost);
        EXPECT_EQ(end[i].error.cause, pcclCauseRevoked);
        EXPECT_EQ(end[i].error.error_class, pcclClassRejoin);
        EXPECT_EQ(end[i].error.peer, end[1].own_id);
        bool said = strstr(end[i].error.text, "it revoked the world") != NULL && strstr(end[i].error.text, ": connect again on all members") != NULL;
        EXPECT(said);
        if (!said) {
            printf("# peer %d: %s\n", i, end[i].error.text);
        }
        EXPECT_EQ(end[i].later, pcclRankConnectionLost);
    }
}

static void connect_to_three(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(cluster_join(p->comm, 3), pcclSuccess);
}

TEST(who_revokes_the_default_world_ends_it_for_all_and_they_begin_it_anew)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    for (int round = 0; round < 3; round++) {
        struct end end[3] = {{0}};
        cluster_run(&c, reduce_until_it_is_over, end);
        expect_ends(end);
        cluster_run(&c, connect_to_three, NULL);
    }
    cluster_stop(&c);
}

static void connect_alone(struct cluster_peer *p, void *context)
{
    (void)context;
    EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
}

TEST(a_world_with_a_size_ends_too_whatever_its_rule_and_can_be_created_again)
{
    struct cluster c;
    cluster_master(&c);
    for (int i = 0; i < 3; i++) {
        cluster_create_ex(&c, i, (pcclCommCreateParamsEx_t){.world = "w", .world_size = 3, .rank = (uint32_t)i,
                                                            .loss_rule = PCCL_LOSS_SHRINK});
        EXPECT_EQ(pcclRevoke(c.peer[i].comm), pcclInvalidUsage); /* there is nothing to end yet */
    }
    for (int round = 0; round < 3; round++) {
        struct end end[3] = {{0}};
        cluster_run(&c, connect_alone, NULL);
        cluster_run(&c, reduce_until_it_is_over, end);
        expect_ends(end);
    }
    cluster_stop(&c);
}

/* Rank 1 never comes: rank 0 waits for it, until another thread of its own gives that up. */
static void connect_or_revoke(struct cluster_peer *p, void *context)
{
    struct end *end = context;
    size_t count = 0;
    uint32_t missing[2];
    if (p->index == 0) {
        end->result = pcclConnect(p->comm);
        EXPECT_EQ(pcclGetLastErrorInfo(&end->error), pcclSuccess);
        return;
    }
    while (count == 0) {
        EXPECT_EQ(pcclGetMissingRanks(p->cluster->peer[0].comm, missing, 2, &count), pcclSuccess);
    }
    EXPECT_EQ(pcclRevoke(p->cluster->peer[0].comm), pcclSuccess);
}

TEST(a_connect_that_waits_for_others_returns_when_its_program_revokes)
{
    struct cluster c;
    struct end end = {0};
    cluster_master(&c);
    for (int i = 0; i < 2; i++) {
        cluster_create_ex(&c, i, (pcclCommCreateParamsEx_t){.world = "w", .world_size = 2});
    }
    cluster_run(&c, connect_or_revoke, &end);
    EXPECT_EQ(end.result, pcclMasterConnectionFailed);
    EXPECT_EQ(end.error.cause, pcclCauseLeft);
    EXPECT(strstr(end.error.text, "the program revoked the world") != NULL);
    cluster_stop(&c);
}
