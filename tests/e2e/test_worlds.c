/* test_worlds.c - several worlds at one master, through the public interface.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdlib.h>

#include "tests/e2e/cluster.h"

enum { COUNT = 1000 };

static pcclCommCreateParamsEx_t params_of(const struct cluster *c, const char *world)
{
    return (pcclCommCreateParamsEx_t){.size = sizeof(pcclCommCreateParamsEx_t), .master_address = c->address, .world = world};
}

/* Peers 0 and 1 in one world, 2 to 4 in another: all sum up what they are. */
static void join_and_reduce(struct cluster_peer *p, void *context)
{
    int members = p->index < 2 ? 2 : 3;
    float *x = malloc(COUNT * sizeof *x), *y = calloc(COUNT, sizeof *y);
    (void)context;
    EXPECT_EQ(cluster_join(p->comm, members), pcclSuccess);
    EXPECT_EQ(cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), members);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(p->index + 1);
    }
    pcclReduceDescriptor_t d = cluster_floats(COUNT, 1);
    pcclReduceInfo_t info = {0};
    EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, &info), pcclSuccess);
    EXPECT_EQ(info.local_world_size, (uint32_t)members);
    EXPECT_EQ(y[0], members == 2 ? 1 + 2 : 3 + 4 + 5);
    free(x);
    free(y);
}

static void update_if_left(struct cluster_peer *p, void *context)
{
    (void)context;
    if (p->index < 2) {
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    }
}

TEST(worlds_of_one_master_have_their_own_sizes_operations_and_votes)
{
    struct cluster c;
    cluster_master(&c);
    for (int i = 0; i < 5; i++) {
        cluster_create_ex(&c, i, params_of(&c, i < 2 ? "left" : "right"));
    }
    cluster_run(&c, join_and_reduce, NULL);
    cluster_run(&c, update_if_left, NULL); /* nobody of the other world is asked */
    cluster_stop(&c);
}

TEST(a_world_without_a_name_is_the_default_one)
{
    struct cluster c;
    cluster_master(&c);
    cluster_create_ex(&c, 0, params_of(&c, NULL));
    EXPECT_EQ(cluster_join(c.peer[0].comm, 1), pcclSuccess);
    cluster_create_ex(&c, 1, params_of(&c, "elsewhere"));
    EXPECT_EQ(cluster_join(c.peer[1].comm, 1), pcclSuccess); /* at once: it is the first there */
    bool pending = true;
    EXPECT_EQ(pcclArePeersPending(c.peer[0].comm, &pending), pcclSuccess);
    EXPECT(!pending);
    cluster_stop(&c);
}

TEST(a_name_can_be_used_again_when_its_world_has_ended)
{
    struct cluster c;
    cluster_master(&c);
    for (int round = 0; round < 3; round++) {
        cluster_create_ex(&c, 0, params_of(&c, "again"));
        EXPECT_EQ(cluster_join(c.peer[0].comm, 1), pcclSuccess);
        EXPECT_EQ(pcclDestroyCommunicator(c.peer[0].comm), pcclSuccess);
        c.peer[0].comm = NULL;
    }
    cluster_stop(&c);
}

TEST(what_cannot_be_a_world_is_refused_with_the_reason)
{
    struct cluster c;
    pcclComm_t *comm = NULL;
    char name[65];
    cluster_master(&c);
    memset(name, 'x', sizeof name);
    name[64] = 0;
    pcclCommCreateParamsEx_t params = params_of(&c, name);
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "longer than 63 bytes") != NULL);
    name[63] = 0;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    name[3] = '\n';
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "control characters") != NULL);
    params = params_of(&c, "w");
    params.size = 8;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "sizeof(pcclCommCreateParamsEx_t)") != NULL);
    params.size = (size_t)1 << 40; /* never set: not a reason to read so far */
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    params.master_address.port = 0;
    params.size = sizeof params;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    cluster_stop(&c);
}

TEST(a_program_of_a_later_version_is_served_as_far_as_it_asks_nothing_unknown)
{
    struct cluster c;
    pcclComm_t *comm = NULL;
    cluster_master(&c);
    struct {
        pcclCommCreateParamsEx_t known;
        uint64_t later;
    } params = {.known = params_of(&c, "w")};
    params.known.size = sizeof params;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params.known, &comm), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    params.later = 1;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params.known, &comm), pcclInvalidArgument);
    cluster_stop(&c);
}
