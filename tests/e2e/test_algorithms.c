/* test_algorithms.c - PCCL_ALGO and pcclGetPlan through the public interface: each algorithm of each collective by value, a
 * disagreement among members, a mistake.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

enum { COUNT = 20011, MOST = 9 }; /* 80 KB: beyond what travels with its launch */

struct trial {
    pcclCollective_t collective;
    const char *function, *algorithm;
};

static const struct trial trials[] = {
    {pcclCollectiveAllReduce, "allreduce", "tiny"},     {pcclCollectiveAllReduce, "allreduce", "direct"},
    {pcclCollectiveAllReduce, "allreduce", "ring"},     {pcclCollectiveAllReduce, "allreduce", "tree"},
    {pcclCollectiveAllReduce, "allreduce", "halving"},  {pcclCollectiveAllGather, "allgather", "direct"},
    {pcclCollectiveAllGather, "allgather", "ring"},     {pcclCollectiveAllGather, "allgather", "bruck"},
    {pcclCollectiveBroadcast, "broadcast", "direct"},   {pcclCollectiveBroadcast, "broadcast", "tree"},
    {pcclCollectiveBroadcast, "broadcast", "chain"},    {pcclCollectiveAllToAll, "alltoall", "pairwise"},
    {pcclCollectiveAllToAll, "alltoall", "bruck"},
    {pcclCollectiveScatter, "scatter", "pairwise"},     {pcclCollectiveGather, "gather", "pairwise"},
    {pcclCollectiveReduceScatter, "reducescatter", "direct"}, {pcclCollectiveReduce, "reduce", "direct"},
    {pcclCollectiveReduce, "reduce", "tree"},           {pcclCollectiveReduce, "reduce", "chain"},
};

/* Whole numbers: all sums are exact. */
static float given(uint32_t rank, size_t i)
{
    return (float)((i * 7 + rank * 31) % 61);
}

static float summed(uint32_t world, size_t i)
{
    float sum = 0;
    for (uint32_t r = 0; r < world; r++) {
        sum += given(r, i);
    }
    return sum;
}

/* Element i of the output at `rank`, and how many there are. */
static float expected(pcclCollective_t kind, uint32_t world, uint32_t rank, uint32_t root, size_t i)
{
    switch ((int)kind) {
    case pcclCollectiveAllReduce:
    case pcclCollectiveReduce:
        return summed(world, i);
    case pcclCollectiveReduceScatter:
        return summed(world, rank * (size_t)COUNT + i);
    case pcclCollectiveBroadcast:
        return given(root, i);
    case pcclCollectiveScatter:
        return given(root, rank * (size_t)COUNT + i);
    case pcclCollectiveAllToAll:
        return given((uint32_t)(i / COUNT), rank * (size_t)COUNT + i % COUNT);
    default:
        return given((uint32_t)(i / COUNT), i % COUNT);
    }
}

static pcclResult_t call(pcclCollective_t kind, const float *in, float *out, uint32_t root, const pcclComm_t *comm)
{
    switch (kind) {
    case pcclCollectiveAllReduce:
        return pcclAllReduceOrdered(in, out, COUNT, pcclFloat, pcclSum, comm, NULL);
    case pcclCollectiveReduceScatter:
        return pcclReduceScatter(in, out, COUNT, pcclFloat, pcclSum, comm, NULL);
    case pcclCollectiveAllGather:
        return pcclAllGather(in, out, COUNT, pcclFloat, comm, NULL);
    case pcclCollectiveBroadcast:
        return pcclBroadcast(in, out, COUNT, pcclFloat, root, comm, NULL);
    case pcclCollectiveScatter:
        return pcclScatter(in, out, COUNT, pcclFloat, root, comm, NULL);
    case pcclCollectiveAllToAll:
        return pcclAllToAll(in, out, COUNT, pcclFloat, comm, NULL);
    case pcclCollectiveReduce:
        return pcclReduce(in, out, COUNT, pcclFloat, pcclSum, root, comm, NULL);
    case pcclCollectiveGather:
        break;
    }
    return pcclGather(in, out, COUNT, pcclFloat, root, comm, NULL);
}

static void run_trial(struct cluster_peer *p, void *context)
{
    const struct trial *t = context;
    pcclPeerInfo_t self;
    pcclPlan_t plan;
    uint32_t world = (uint32_t)p->cluster->count, root = world / 2;
    size_t room = (size_t)COUNT * world;
    float *in = malloc(room * sizeof *in), *out = calloc(room, sizeof *out);
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    EXPECT_EQ(pcclGetPlan(p->comm, t->collective, COUNT, pcclFloat, pcclSum, &plan), pcclSuccess);
    bool never = world < 3 && strcmp(t->algorithm, "ring") == 0; /* of two it is no other plan than direct */
    EXPECT(never || strcmp(plan.algorithm, t->algorithm) == 0);
    EXPECT(plan.predicted_us > 0);
    for (size_t i = 0; i < room; i++) {
        in[i] = given(self.rank, i);
    }
    EXPECT_EQ(call(t->collective, in, out, root, p->comm), pcclSuccess);
    bool rooted = t->collective == pcclCollectiveReduce || t->collective == pcclCollectiveGather;
    bool parts = t->collective == pcclCollectiveAllGather || t->collective == pcclCollectiveAllToAll || t->collective == pcclCollectiveGather;
    size_t wrong = 0, count = rooted && self.rank != root ? 0 : parts ? room : COUNT;
    for (size_t i = 0; i < count; i++) {
        wrong += out[i] != expected(t->collective, world, self.rank, root, i);
    }
    EXPECT_EQ(wrong, 0);
    free(in);
    free(out);
}

static void try_in(int world, struct trial t)
{
    struct cluster c = {0};
    char text[64];
    snprintf(text, sizeof text, "%s:%s", t.function, t.algorithm);
    setenv("PCCL_ALGO", text, 1);
    cluster_start(&c, world, NULL, 2);
    unsetenv("PCCL_ALGO");
    cluster_run(&c, run_trial, &t);
    cluster_stop(&c);
}

TEST(each_algorithm_is_taken_when_asked_for_and_gives_the_right_values)
{
    static const int worlds[] = {2, 3, 4, 7};
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
            try_in(worlds[w], trials[i]);
        }
    }
}

TEST(bruck_exchanges_all_parts_in_worlds_of_any_size) /* whose last rounds have all, or one, of the blocks they could have */
{
    static const int worlds[] = {5, 6, 8, MOST};
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        try_in(worlds[w], (struct trial){pcclCollectiveAllToAll, "alltoall", "bruck"});
    }
}

static void run_differing(struct cluster_peer *p, void *context)
{
    static float in[MOST][COUNT], out[MOST][COUNT];
    pcclErrorInfo_t why;
    (void)context;
    EXPECT_EQ(pcclAllReduceOrdered(in[p->index], out[p->index], COUNT, pcclFloat, pcclSum, p->comm, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT(strstr(why.text, "by ring") != NULL && strstr(why.text, "by tree") != NULL && strstr(why.text, "PCCL_ALGO") != NULL);
    EXPECT_EQ(pcclBroadcast(in[p->index], out[p->index], COUNT, pcclFloat, 0, p->comm, NULL), pcclSuccess); /* these they have alike */
    EXPECT_EQ(pcclAllReduceOrdered(in[p->index], out[p->index], COUNT, pcclBFloat16, pcclSum, p->comm, NULL), pcclSuccess);
}

TEST(members_that_ask_for_different_algorithms_are_told_so) /* one waits for its ring, the others for a tree: for ever */
{
    for (int odd = 0; odd < 5; odd += 2) {
        struct cluster c = {0};
        cluster_master(&c);
        for (int i = 0; i < 5; i++) {
            setenv("PCCL_ALGO", i == odd ? "allreduce:ring" : "allreduce:tree", 1);
            cluster_create(&c, i, 0, 1, 0);
        }
        unsetenv("PCCL_ALGO");
        cluster_connect(&c);
        cluster_run(&c, run_differing, NULL);
        cluster_stop(&c);
    }
}

TEST(a_mistake_in_pccl_algo_is_told_when_a_communicator_is_made)
{
    struct cluster c = {0};
    cluster_master(&c);
    const pcclCommCreateParams_t params = {.master_address = c.address};
    pcclComm_t *comm = NULL;
    pcclErrorInfo_t why;
    setenv("PCCL_ALGO", "allreduce:rings", 1);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclInvalidArgument);
    unsetenv("PCCL_ALGO");
    EXPECT(comm == NULL);
    EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
    EXPECT_EQ(why.error_class, pcclClassFix);
    EXPECT(strstr(why.text, "PCCL_ALGO \"allreduce:rings\"") != NULL && strstr(why.text, "expected tiny, direct, ring") != NULL);
    cluster_stop(&c);
}

static void run_asking(struct cluster_peer *p, void *context)
{
    pcclPlan_t *plans = context;
    EXPECT_EQ(pcclGetPlan(p->comm, pcclCollectiveAllReduce, 1 << 18, pcclFloat, pcclSum, &plans[p->index]), pcclSuccess);
    EXPECT_EQ(pcclGetPlan(p->comm, (pcclCollective_t)8, 1, pcclFloat, pcclSum, &plans[p->index]), pcclInvalidArgument);
    EXPECT_EQ(pcclGetPlan(p->comm, pcclCollectiveReduce, 1, pcclFloat, (pcclRedOp_t)99, &plans[p->index]), pcclInvalidArgument);
    EXPECT_EQ(pcclGetPlan(p->comm, pcclCollectiveReduce, SIZE_MAX, pcclFloat, pcclSum, &plans[p->index]), pcclInvalidArgument);
    EXPECT_EQ(pcclGetPlan(p->comm, pcclCollectiveReduce, 1, pcclFloat, pcclSum, NULL), pcclInvalidArgument);
}

/* The plan that is taken comes first, then all others that could do it, each once and with a time. */
static void run_explaining(struct cluster_peer *p, void *context)
{
    pcclPlan_t plans[8], taken, few[2] = {{NULL, 0}, {NULL, 0}};
    size_t count = 0, told = 0;
    bool tree = false, pairwise = false;
    (void)context;
    EXPECT_EQ(pcclGetPlan(p->comm, pcclCollectiveAllReduce, 1 << 18, pcclFloat, pcclSum, &taken), pcclSuccess);
    EXPECT_EQ(pcclExplainPlan(p->comm, pcclCollectiveAllReduce, 1 << 18, pcclFloat, pcclSum, plans, 8, &count), pcclSuccess);
    EXPECT(count >= 4 && count <= 8);
    EXPECT_EQ(strcmp(plans[0].algorithm, taken.algorithm), 0);
    EXPECT(plans[0].predicted_us == taken.predicted_us);
    for (size_t i = 0; i < count && i < 8; i++) {
        tree |= strcmp(plans[i].algorithm, "tree") == 0;
        pairwise |= strcmp(plans[i].algorithm, "pairwise") == 0;
        EXPECT(plans[i].predicted_us > 0);
        for (size_t k = 0; k < i; k++) {
            EXPECT(strcmp(plans[i].algorithm, plans[k].algorithm) != 0);
        }
    }
    EXPECT(tree && !pairwise); /* whether it may be taken or not; what cannot do it */
    EXPECT_EQ(pcclExplainPlan(p->comm, pcclCollectiveAllReduce, 1 << 18, pcclFloat, pcclSum, few, 1, &told), pcclSuccess);
    EXPECT(told == count && few[0].algorithm == plans[0].algorithm && few[1].algorithm == NULL);
    EXPECT_EQ(pcclExplainPlan(p->comm, pcclCollectiveAllReduce, 1, pcclFloat, pcclSum, plans, 8, NULL), pcclInvalidArgument);
    EXPECT_EQ(pcclExplainPlan(p->comm, pcclCollectiveAllReduce, 1, pcclFloat, pcclSum, NULL, 1, &told), pcclInvalidArgument);
    EXPECT_EQ(pcclExplainPlan(p->comm, (pcclCollective_t)256, 1, pcclFloat, pcclSum, plans, 8, &told), pcclInvalidArgument);
    EXPECT_EQ(pcclExplainPlan(p->comm, pcclCollectiveAllReduce, 1, (pcclDataType_t)256, pcclSum, plans, 8, &told), pcclInvalidArgument);
}

TEST(a_plan_is_explained_by_all_that_could_do_it)
{
    struct cluster c = {0};
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, run_explaining, NULL);
    cluster_stop(&c);
}

TEST(all_members_choose_and_predict_alike)
{
    struct cluster c = {0};
    pcclPlan_t plans[MOST] = {{0}};
    cluster_start(&c, 5, NULL, 1);
    cluster_run(&c, run_asking, plans);
    for (int i = 0; i < 5; i++) {
        EXPECT(plans[i].algorithm == plans[0].algorithm && plans[i].predicted_us == plans[0].predicted_us && plans[0].predicted_us > 0);
    }
    cluster_stop(&c);
}
