/* test_split.c - worlds out of a communicator, through the public interface: split, duplicate, create from a list.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"
#include "tests/spawn.h"

enum { COUNT = 1000 };

/* The parent: members in the order of their ids, which is that of no index; index[r] is the cluster's index of rank r. */
static void ranks_of(struct cluster_peer *p, int index[CLUSTER_MOST], uint64_t id[CLUSTER_MOST])
{
    int32_t own = p->index, all[CLUSTER_MOST];
    pcclPeerInfo_t members[CLUSTER_MOST];
    size_t count = 0;
    EXPECT_EQ(pcclAllGather(&own, all, 1, pcclInt32, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclGetMembers(p->comm, members, CLUSTER_MOST, &count), pcclSuccess);
    for (size_t r = 0; r < count; r++) {
        index[r] = all[r];
        id[r] = members[r].id;
    }
}

static uint32_t rank_in(pcclComm_t *comm)
{
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(comm, &self), pcclSuccess);
    return self.rank;
}

/* Sums up the numbers of all its members, and says whose they are: the ranks as 10 bits of a sum of powers. */
static double sum_of(pcclComm_t *comm, int index)
{
    double *x = malloc(COUNT * sizeof *x), *y = calloc(COUNT, sizeof *y);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (double)(1 << index) * (1 + i);
    }
    EXPECT_EQ(pcclAllReduceOrdered(x, y, COUNT, pcclDouble, pcclSum, comm, NULL), pcclSuccess);
    double first = y[0];
    for (int i = 0; i < COUNT; i++) {
        EXPECT(y[i] == first * (1 + i));
    }
    free(x);
    free(y);
    return first;
}

/* Even and odd ranks apart, the last one first; then each half again in two, and all of it goes on beside the parent. */
static void split_and_split_again(struct cluster_peer *p, void *context)
{
    int index[CLUSTER_MOST], world = p->cluster->count, half = world / 2;
    uint64_t id[CLUSTER_MOST];
    pcclComm_t *child = NULL, *grandchild = NULL;
    (void)context;
    ranks_of(p, index, id);
    int rank = (int)rank_in(p->comm);
    pcclDeriveParams_t params = {.size = sizeof params, .loss_rule = PCCL_LOSS_SHRINK, .formation_timeout_ms = 30000};
    EXPECT_EQ(pcclSplitCommunicator(p->comm, rank % 2, -rank, &params, &child), pcclSuccess);
    EXPECT_EQ(cluster_size(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), half);
    EXPECT_EQ(rank_in(child), (uint32_t)(half - 1 - rank / 2));
    double want = 0, part = 0;
    for (int r = rank % 2; r < world; r += 2) {
        want += 1 << index[r];
        part += (half - 1 - r / 2) / 2 == (half - 1 - rank / 2) / 2 ? 1 << index[r] : 0;
    }
    EXPECT(sum_of(child, p->index) == want);
    EXPECT_EQ(pcclSplitCommunicator(child, (half - 1 - rank / 2) / 2, 0, NULL, &grandchild), pcclSuccess);
    EXPECT_EQ(rank_in(grandchild), (uint32_t)((half - 1 - rank / 2) % 2));
    EXPECT(sum_of(grandchild, p->index) == part);
    EXPECT(sum_of(p->comm, p->index) == (double)((1 << world) - 1));
    EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess); /* what came of it lives on */
    EXPECT(sum_of(grandchild, p->index) == part);
    EXPECT_EQ(pcclDestroyCommunicator(grandchild), pcclSuccess);
}

TEST(a_split_makes_a_world_of_each_color_with_ranks_by_key)
{
    struct cluster c;
    cluster_start(&c, 8, NULL, 1);
    cluster_run(&c, split_and_split_again, NULL);
    cluster_stop(&c);
}

/* Rank 1 has no color; the others are one world with ties in their keys. */
static void split_without(struct cluster_peer *p, void *context)
{
    int rank = (int)rank_in(p->comm);
    pcclComm_t *child = (pcclComm_t *)context;
    pcclDeriveParams_t params = {.size = sizeof params, .p2p_connection_pool_size = 2};
    for (int round = 0; round < 3; round++) {
        EXPECT_EQ(pcclSplitCommunicator(p->comm, rank == 1 ? PCCL_NO_COLOR : 5, 7, &params, &child), pcclSuccess);
        EXPECT_EQ(child == NULL, rank == 1);
        if (child != NULL) {
            EXPECT_EQ(cluster_size(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), 2);
            EXPECT_EQ(rank_in(child), rank == 0 ? 0u : 1u);
            EXPECT(sum_of(child, p->index) > 0); /* both have looked before one goes */
            EXPECT_EQ(pcclConnect(child), pcclInvalidUsage);
            EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
        }
    }
}

TEST(who_gives_no_color_is_in_no_world_and_gets_none)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, split_without, NULL);
    cluster_stop(&c);
}

static void duplicate(struct cluster_peer *p, void *context)
{
    pcclComm_t *copy[4] = {NULL, NULL, NULL, NULL};
    uint32_t rank = rank_in(p->comm);
    (void)context;
    for (int i = 0; i < 4; i++) { /* a copy of a copy */
        EXPECT_EQ(pcclDuplicateCommunicator(i == 0 ? p->comm : copy[i - 1], NULL, &copy[i]), pcclSuccess);
        EXPECT_EQ(rank_in(copy[i]), rank);
    }
    EXPECT_EQ(pcclLeave(p->comm), pcclSuccess); /* the end of the parent is none of theirs */
    for (int i = 4; i-- > 0;) {
        EXPECT(sum_of(copy[i], p->index) == 7);
        EXPECT_EQ(pcclDestroyCommunicator(copy[i]), pcclSuccess);
    }
}

TEST(a_duplicate_has_the_same_ranks_and_outlives_its_parent)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, duplicate, NULL);
    cluster_stop(&c);
}

/* Ranks 3, 0, 2 of four; rank 1 does not call.  Twice the same, then with another tag. */
static void listed(struct cluster_peer *p, void *context)
{
    int index[CLUSTER_MOST];
    uint64_t id[CLUSTER_MOST];
    (void)context;
    ranks_of(p, index, id);
    const uint64_t peers[] = {id[3], id[0], id[2]};
    const uint32_t place[] = {1, 9, 2, 0};
    uint32_t rank = rank_in(p->comm);
    for (uint64_t round = 0; round < 3 && rank != 1; round++) {
        pcclComm_t *child = NULL;
        EXPECT_EQ(pcclCreateFromList(p->comm, peers, 3, round / 2, NULL, &child), pcclSuccess);
        EXPECT_EQ(rank_in(child), place[rank]);
        EXPECT(sum_of(child, p->index) == (double)((1 << index[0]) + (1 << index[2]) + (1 << index[3])));
        EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
    }
    EXPECT(sum_of(p->comm, p->index) == 15);
}

TEST(a_list_makes_a_world_of_those_who_stand_in_it_in_that_order)
{
    struct cluster c;
    cluster_start(&c, 4, NULL, 1);
    cluster_run(&c, listed, NULL);
    cluster_stop(&c);
}

/* Rank 2 gives a color that cannot be; rank 0 the rule `shrink` where the others say `end`; rank 1 comes never, or leaves. */
static void fail_alike(struct cluster_peer *p, void *context)
{
    int rank = (int)rank_in(p->comm);
    pcclComm_t *child = (pcclComm_t *)context;
    EXPECT_EQ(pcclSplitCommunicator(p->comm, rank == 2 ? -2 : rank, 0, NULL, &child), pcclInvalidArgument);
    EXPECT(rank != 2 || strstr(pcclGetLastError(), "color -2: 0 or more, or PCCL_NO_COLOR") != NULL);
    pcclDeriveParams_t params = {.size = sizeof params, .loss_rule = rank == 0 ? PCCL_LOSS_SHRINK : PCCL_LOSS_END};
    EXPECT_EQ(pcclSplitCommunicator(p->comm, rank == 1, 0, &params, &child), pcclInvalidArgument);
    EXPECT(child == NULL);
    EXPECT_EQ(pcclDuplicateCommunicator(p->comm, NULL, &child), pcclSuccess); /* the parent goes on */
    EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
}

TEST(what_differs_is_the_same_error_for_callers_of_all_colors)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, fail_alike, NULL);
    cluster_stop(&c);
}

static void lose_one_of_a_child(struct cluster_peer *p, void *context)
{
    uint32_t rank = rank_in(p->comm);
    pcclComm_t *child = NULL;
    pcclErrorInfo_t error;
    (void)context;
    EXPECT_EQ(pcclSplitCommunicator(p->comm, 0, 0, NULL, &child), pcclSuccess);
    if (rank == 1) {
        EXPECT_EQ(pcclLeave(child), pcclSuccess);
    } else {
        for (int again = 0; again < 2; again++) { /* the call that is lost with the world, and one that comes later */
            EXPECT_EQ(pcclBarrier(child, NULL), pcclRankConnectionLost);
            EXPECT_EQ(pcclGetLastErrorInfo(&error), pcclSuccess);
            EXPECT(error.error_class == pcclClassRejoin && error.rank == 1 && strncmp(error.address, "127.0.0.1:", 10) == 0);
            EXPECT(strstr(error.text, "rank 1 (peer ") != NULL);
            EXPECT(strstr(error.text, ": call pcclSplitCommunicator (or the call that created this world) again on the parent") != NULL);
        }
    }
    EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
}

TEST(the_end_of_a_split_world_names_the_lost_rank_and_the_call_that_makes_it_again) /* "create it again": pcclConnect refuses there */
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, lose_one_of_a_child, NULL);
    cluster_stop(&c);
}

static void wait_for_one(struct cluster_peer *p, void *context)
{
    int index[CLUSTER_MOST];
    uint64_t id[CLUSTER_MOST];
    pcclComm_t *child = (pcclComm_t *)context;
    pcclErrorInfo_t error;
    ranks_of(p, index, id);
    uint32_t rank = rank_in(p->comm);
    pcclDeriveParams_t params = {.size = sizeof params, .formation_timeout_ms = 300};
    if (rank == 0) {
        EXPECT_EQ(pcclCreateFromList(p->comm, id, 2, 1, &params, &child), pcclRankConnectionLost); /* rank 1 does not call */
        EXPECT_EQ(pcclGetLastErrorInfo(&error), pcclSuccess);
        EXPECT(error.cause == pcclCauseDeadline && error.error_class == pcclClassRejoin);
        EXPECT(strstr(pcclGetLastError(), "1 of its 2 callers have not come in time, peer ") != NULL);
        EXPECT_EQ(pcclCreateFromList(p->comm, id + 1, 1, 1, NULL, &child), pcclInvalidArgument);
        EXPECT_EQ(pcclCreateFromList(p->comm, (uint64_t[]){id[0], id[1], id[1]}, 3, 1, NULL, &child), pcclInvalidArgument);
        EXPECT_EQ(pcclCreateFromList(p->comm, id, 0, 1, NULL, &child), pcclInvalidArgument);
        EXPECT_EQ(pcclCreateFromList(p->comm, NULL, 1, 1, NULL, &child), pcclInvalidArgument);
        EXPECT_EQ(pcclCreateFromList(p->comm, id, 1, 1, &(pcclDeriveParams_t){.size = 4}, &child), pcclInvalidArgument);
        EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
        EXPECT_EQ(pcclCreateFromList(p->comm, id, 2, 2, NULL, &child), pcclRankConnectionLost); /* until it leaves */
        EXPECT(strstr(pcclGetLastError(), "has left the world whose members create it, and has not come") != NULL);
    } else {
        EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
        EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
    }
}

TEST(a_listed_peer_that_does_not_call_is_waited_for_until_the_deadline_or_until_it_leaves)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, wait_for_one, NULL);
    cluster_stop(&c);
}

/* A group is open when it splits, and holds a message of every member to the next; one of the splits is refused. */
static void split_in_a_group(struct cluster_peer *p, void *context)
{
    int world = p->cluster->count, rank = (int)rank_in(p->comm);
    int32_t out = 100 + rank, in = -1;
    pcclComm_t *child = NULL, *none = NULL;
    (void)context;
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclSend(&out, 1, pcclInt32, (uint32_t)((rank + 1) % world), 9, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclSplitCommunicator(p->comm, rank % 2, -rank, NULL, &child), pcclSuccess);
    EXPECT(child != NULL);
    if (child != NULL) {
        EXPECT_EQ(cluster_size(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), world / 2);
        EXPECT_EQ(rank_in(child), (uint32_t)(world / 2 - 1 - rank / 2));
    }
    EXPECT_EQ(pcclReceive(&in, 1, pcclInt32, (uint32_t)((rank + world - 1) % world), 9, NULL, p->comm, NULL), pcclSuccess);
    EXPECT_EQ(pcclGroupEnd(), pcclSuccess);
    EXPECT_EQ(in, 100 + (rank + world - 1) % world);
    EXPECT_EQ(pcclGroupStart(), pcclSuccess);
    EXPECT_EQ(pcclSplitCommunicator(p->comm, -7, 0, NULL, &none), pcclInvalidArgument);
    EXPECT_EQ(pcclGroupEnd(), pcclSuccess); /* what was refused was no call of the group */
    if (child != NULL) {
        EXPECT(sum_of(child, p->index) > 0);
        EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
    }
}

TEST(a_split_is_over_when_it_returns_also_where_a_group_is_open)
{
    struct cluster c;
    cluster_start(&c, 4, NULL, 1);
    cluster_run(&c, split_in_a_group, NULL);
    cluster_stop(&c);
}

/* Each in a world of its own, again and again; what is allocated in this process, of master and all peers, after 100 and after all. */
static void split_often(struct cluster_peer *p, void *context)
{
    enum { ROUNDS = 1000, FIRST = 100 };
    size_t *allocated = context;
    for (int round = 0; round < ROUNDS; round++) {
        pcclComm_t *child = NULL;
        EXPECT_EQ(pcclSplitCommunicator(p->comm, p->index, 0, NULL, &child), pcclSuccess);
        EXPECT_EQ(pcclDestroyCommunicator(child), pcclSuccess);
        if (round == FIRST || round == ROUNDS - 1) {
            EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
            if (p->index == 0) {
                allocated[round > FIRST] = mallinfo2().uordblks; /* 0 under a sanitizer, which finds leaks by itself */
            }
        }
    }
}

TEST(nothing_of_a_split_is_kept_when_its_worlds_have_been_left)
{
    struct cluster c;
    size_t allocated[2] = {0, 0};
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, split_often, allocated);
    printf("# %zu bytes allocated after 100 splits, %zu after 1000\n", allocated[0], allocated[1]);
    EXPECT(allocated[1] <= allocated[0] + (256 << 10));
    cluster_stop(&c);
}

/* ---- The parent is left meanwhile ---------------------------------------------------------------------------------------- */

struct waiting {
    pcclComm_t *comm;
    uint64_t id[2];
    pcclResult_t result;
    pcclErrorInfo_t error;
};

/* The other one never calls. */
static void *create_in_vain(void *argument)
{
    struct waiting *w = argument;
    pcclComm_t *child = NULL;
    w->result = pcclCreateFromList(w->comm, w->id, 2, 1, NULL, &child);
    EXPECT_EQ(pcclGetLastErrorInfo(&w->error), pcclSuccess);
    EXPECT(child == NULL);
    return NULL;
}

/* The master knows of a world that somebody waits for. */
static bool forming(const struct cluster *c)
{
    struct program asked;
    char path[PATH_MAX], name[] = "ccoip_master", option[] = "--status", master[32];
    char *args[] = {name, option, master, NULL};
    snprintf(master, sizeof master, "127.0.0.1:%u", c->address.port);
    spawn_path("bin/ccoip_master", path);
    EXPECT(program_start(&asked, path, args) && program_wait(&asked) == 0);
    return strstr(asked.out_text, " forming ") != NULL;
}

TEST(who_leaves_a_world_ends_what_its_calls_create_of_it) /* the call, and the thread, would wait for the other one for ever */
{
    for (int way = 0; way < 3; way++) {
        struct cluster c;
        struct waiting w = {.result = pcclSuccess};
        pcclPeerInfo_t member[2];
        size_t count = 0;
        pthread_t thread;
        cluster_start(&c, 2, NULL, 1);
        w.comm = c.peer[0].comm;
        EXPECT_EQ(pcclGetMembers(w.comm, member, 2, &count), pcclSuccess);
        w.id[0] = member[0].id;
        w.id[1] = member[1].id;
        EXPECT_EQ(pthread_create(&thread, NULL, create_in_vain, &w), 0);
        while (!forming(&c)) {
        }
        EXPECT_EQ(way == 0 ? pcclLeave(w.comm) : way == 1 ? pcclRevoke(w.comm) : pcclDestroyCommunicator(w.comm), pcclSuccess);
        pthread_join(thread, NULL);
        EXPECT_EQ(w.result, pcclMasterConnectionFailed);
        EXPECT_EQ(w.error.cause, pcclCauseLeft);
        EXPECT_EQ(w.error.error_class, pcclClassRejoin);
        EXPECT(strstr(w.error.text, "the program left the world that was to create it") != NULL);
        c.peer[0].comm = way == 2 ? NULL : c.peer[0].comm;
        cluster_stop(&c);
    }
}
