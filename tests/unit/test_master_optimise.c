/* test_master_optimise.c - probes of missing edges, a better ring, and a member lost in between.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

static struct cluster *voted(uint32_t count)
{
    struct cluster *c = cluster_new();
    cluster_members(c, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        peer_forget(&c->peers[i]);
        c->peers[i].probe.to = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    return c;
}

/* Members 0 and 1 of one group, 2 and 3 of another. */
static struct cluster *two_pairs(void)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1);
    peer_join(c, 1);
    peer_join(c, 2);
    peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    return c;
}

/* Answers all probes until none comes any more; every edge has 100 Mbit/s but for the one named. Returns how many. */
static uint32_t measure_all(struct cluster *c, uint64_t slow_from, uint64_t slow_to)
{
    uint32_t measured = 0;
    for (bool any = true; any;) {
        any = false;
        struct msg_probe probes[PEERS_MOST];
        for (uint32_t i = 0; i < c->count; i++) {
            probes[i] = c->peers[i].probe;
            c->peers[i].probe.to = 0;
        }
        for (uint32_t i = 0; i < c->count; i++) {
            struct peer *p = &c->peers[i];
            if (probes[i].to != 0 && p->open) {
                bool slow = p->id == slow_from && probes[i].to == slow_to;
                peer_measured(c, p, &probes[i], slow ? 1000000 : 100000000); /* the last one begins the next round */
                measured++;
                any = true;
            }
        }
    }
    return measured;
}

TEST(every_edge_is_measured_once_and_the_ring_is_applied) /* R18 */
{
    struct cluster *c = voted(4);
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    EXPECT_EQ(measure_all(c, p[0].id, p[1].id), 12);
    EXPECT_EQ(c->solves, 1);
    double cost[16];
    uint32_t ring[4];
    EXPECT_EQ(master_matrix(c->master, c->solve, cost, ring, 4), 4);
    EXPECT(cost[1] > 900 && cost[1] < 1100);      /* 1 Mbit/s: 1000 s per gigabit */
    EXPECT(cost[4] > 9 && cost[4] < 11);
    const uint32_t better[4] = {0, 2, 1, 3};
    EXPECT(p[0].voting);
    cluster_solved(c, c->solve, better, 4);
    for (int i = 0; i < 4; i++) {
        EXPECT(!p[i].voting);
        EXPECT_EQ(p[i].last_view.answers, VOTE_OPTIMISE);
        EXPECT_EQ(p[i].last_view.parent, view);
        EXPECT_EQ(p[i].ring[1], 2);
        EXPECT_EQ(p[i].member_count, 4);
    }
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(c->solves, 2); /* nothing is missing: no probes */
    const uint32_t turned[4] = {2, 1, 3, 0}; /* the same ring from another start */
    peer_forget(&p[0]);
    cluster_solved(c, c->solve, turned, 4);
    EXPECT_STR(p[0].log, "ANSWER ");
    EXPECT_EQ(p[0].answer.kind, VOTE_OPTIMISE);
    cluster_free(c);
}

TEST(ring_survives_a_leave) /* repair, not reset */
{
    struct cluster *c = voted(4);
    struct peer *p = c->peers;
    measure_all(c, p[0].id, p[1].id);
    const uint32_t better[4] = {0, 2, 1, 3};
    cluster_solved(c, c->solve, better, 4);
    peer_crash(c, &p[3]);
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT_EQ(p[0].ring[0], 0);
    EXPECT_EQ(p[0].ring[1], 2);
    EXPECT_EQ(p[0].ring[2], 1);
    cluster_free(c);
}

TEST(member_lost_between_probes_releases_the_others) /* R9 */
{
    struct cluster *c = voted(4);
    struct peer *p = c->peers;
    EXPECT(peer_saw(&p[0], "PROBE"));
    peer_crash(c, &p[3]);
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT(p[0].voting); /* goes on with those who are left */
    measure_all(c, 0, 0);
    const uint32_t same[3] = {0, 1, 2};
    cluster_solved(c, c->solve, same, 3);
    EXPECT(!p[0].voting && !p[1].voting && !p[2].voting);
    cluster_free(c);
}

TEST(group_that_ends_between_probes_releases_the_other_groups)
{
    struct cluster *c = two_pairs();
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    EXPECT(peer_saw(&c->peers[3], "PROBE"));
    for (int i = 0; i < 2; i++) { /* one whole group ends in one step: nobody is left to freeze */
        peer_cut(c, &c->peers[i]);
    }
    cluster_pass(c, 60000);
    EXPECT_EQ(measure_all(c, 0, 0), 2);
    EXPECT(!c->peers[2].voting && !c->peers[3].voting);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(member_lost_while_the_ring_is_searched)
{
    struct cluster *c = voted(4);
    struct peer *p = c->peers;
    measure_all(c, 0, 0);
    uint64_t old = c->solve;
    peer_crash(c, &p[3]);
    const uint32_t stale[4] = {0, 2, 1, 3};
    cluster_solved(c, old, stale, 4); /* of a search that nobody waits for */
    EXPECT(p[0].voting);
    EXPECT(!master_poisoned(c->master));
    const uint32_t same[3] = {0, 1, 2};
    cluster_solved(c, c->solve, same, 3);
    EXPECT(!p[0].voting);
    cluster_free(c);
}

TEST(probe_that_does_not_come_back_is_not_waited_for)
{
    struct cluster *c = voted(2);
    struct peer *p = c->peers;
    peer_measured(c, &p[0], &p[0].probe, 5000000);
    EXPECT(p[0].voting);
    cluster_pass(c, 6000);
    EXPECT(!p[0].voting && !p[1].voting); /* two peers: one ring, nothing to search */
    cluster_free(c);
}

TEST(optimise_alone_is_answered_at_once)
{
    struct cluster *c = voted(1);
    EXPECT_STR(c->peers[0].log, "ANSWER ");
    EXPECT_EQ(c->peers[0].answer.sizes.global, 1);
    cluster_free(c);
}

TEST(optimise_covers_all_groups_in_one_schedule)
{
    struct cluster *c = two_pairs();
    for (int i = 0; i < 4; i++) {
        peer_forget(&c->peers[i]);
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_STR(c->peers[i].log, "PROBE "); /* all four in one round */
        EXPECT_EQ(c->peers[i].probe.to, c->peers[i ^ 1].id);
    }
    EXPECT_EQ(measure_all(c, 0, 0), 4);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(c->peers[i].answer.result, ANSWER_OK);
        EXPECT(!c->peers[i].voting);
    }
    cluster_free(c);
}
