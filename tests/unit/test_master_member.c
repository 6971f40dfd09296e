/* test_master_member.c - getting in, staying in, getting lost.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

TEST(first_peer_is_admitted_at_once) /* nobody is there to vote it in: it would wait for ever */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 3);
    EXPECT_STR(a->log, "WELCOME ADMIT VIEW ");
    EXPECT_EQ(a->member_count, 1);
    EXPECT_EQ(a->last_view.parent, 0);
    EXPECT_EQ(a->last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(a->last_view.sizes.global, 1);
    EXPECT_EQ(a->last_view.sizes.group, 1);
    EXPECT_EQ(a->last_view.sizes.groups, 1);
    EXPECT_EQ(a->last_view.sizes.largest, 1);
    cluster_free(c);
}

TEST(second_peer_waits_for_an_update) /* a newcomer must not change the world under running operations */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *b = peer_join(c, 0);
    EXPECT_STR(b->log, "WELCOME ");
    EXPECT_EQ(master_pending_count(c->master), 1);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_STR(b->log, "WELCOME ADMIT VIEW ");
    EXPECT_STR(a->log, "WELCOME ADMIT VIEW ADMIT VIEW ");
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(b->member_count, 2);
    EXPECT_EQ(a->answered, b->answered);
    EXPECT_EQ(a->last_view.sizes.global, 2);
    EXPECT_EQ(a->last_view.plan.lanes, 2); /* the smallest of the members and the master's */
    EXPECT_EQ(a->view, b->view);
    cluster_free(c);
}
