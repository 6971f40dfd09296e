/* test_master_worlds.c - the memory of worlds, which grows between steps and is given back when they end.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

TEST(idle_world_of_four_costs_at_most_16_kib)
{
    struct cluster *c = cluster_new();
    EXPECT_EQ(master_world_bytes(c->master), 0); /* what nobody uses costs nothing */
    cluster_members(c, 4, 0);
    EXPECT_EQ(c->peers[0].member_count, 4);
    EXPECT(master_world_bytes(c->master) <= 16384);
    cluster_free(c);
}

TEST(tables_grow_with_members_groups_and_reports_up_to_their_limits)
{
    struct master_config config = cluster_config();
    config.max_members = 20;
    config.max_groups = 3;
    struct cluster *c = cluster_with(&config);
    for (uint32_t i = 0; i < 20; i++) {
        EXPECT(!cluster_closed(c, peer_join(c, i % 3)->conn));
    }
    EXPECT_STR(peer_join(c, 0)->fence.text, "the run is full");
    for (uint32_t i = 0; i < 20; i++) {
        peer_vote(c, &c->peers[i], VOTE_UPDATE);
    }
    struct peer *p = &c->peers[0];
    for (uint32_t i = 0; i < PEERS_OPS; i++) {
        peer_reports(p, 100 + i, 1, OP_RUNNING, CAUSE_NONE);
    }
    peer_crash(c, &c->peers[3]);
    EXPECT_EQ(p->decision_count, PEERS_OPS);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(without_memory_a_newcomer_is_refused_and_the_others_go_on)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    c->no_memory = true;
    EXPECT_STR(peer_join(c, 0)->fence.text, "the master has no memory for another peer");
    EXPECT_STR(peer_join(c, 1)->fence.text, "the master has no memory for another peer");
    c->no_memory = false;
    struct peer *late = peer_join(c, 0);
    for (uint32_t i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_UPDATE);
    }
    EXPECT_EQ(late->member_count, 5);
    cluster_free(c);
}

TEST(without_memory_for_its_report_a_member_goes_and_the_others_get_their_view)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    for (uint32_t i = 0; i < 20; i++) {
        peer_reports(&c->peers[1], 100 + i, 1, OP_RUNNING, CAUSE_NONE);
    }
    c->no_memory = true;
    peer_crash(c, &c->peers[3]);
    EXPECT_STR(c->peers[1].fence.text, "the master has no memory for its report");
    EXPECT_EQ(c->peers[0].member_count, 2);
    EXPECT_EQ(c->peers[2].member_count, 2);
    cluster_free(c);
}

TEST(rings_are_searched_without_memory_to_measure) /* what is not known stays so, and the vote ends */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    c->no_memory = true;
    peer_vote(c, &c->peers[0], VOTE_OPTIMISE);
    peer_vote(c, &c->peers[1], VOTE_OPTIMISE);
    EXPECT_EQ(c->peers[0].answer.result, ANSWER_OK);
    EXPECT_EQ(c->peers[0].answered, 2);
    cluster_free(c);
}
