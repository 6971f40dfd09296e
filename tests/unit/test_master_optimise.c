/* test_master_optimise.c - probes of missing edges, a better ring, and a member lost in between.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

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

static uint64_t slow_from, slow_to;

static uint64_t all_but_one(const struct cluster *c, uint64_t from, uint64_t to)
{
    (void)c;
    return from == slow_from && to == slow_to ? 1000000 : 100000000;
}

/* Every edge has 100 Mbit/s but for the one named, and every member that much together. */
static uint32_t measure_all(struct cluster *c, uint64_t from, uint64_t to)
{
    slow_from = from;
    slow_to = to;
    return cluster_measure(c, all_but_one, true);
}

TEST(every_edge_is_measured_once_and_the_ring_is_applied) /* R18 */
{
    struct cluster *c = cluster_voted(4);
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    EXPECT_EQ(measure_all(c, p[0].id, p[1].id), 2 * 12);
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

static void doubt(struct cluster *c, struct peer *p, uint64_t to)
{
    peer_measured(c, p, &(struct msg_probe){.round = MEASURED_DOUBT, .to = to}, 1000000);
}

/* All vote; how many probes come of it. */
static uint32_t measure_again(struct cluster *c)
{
    const uint32_t same[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    uint32_t measured = measure_all(c, c->peers[0].id, c->peers[1].id);
    cluster_solved(c, c->solve, same, 4);
    for (int i = 0; i < 4; i++) {
        EXPECT(!c->peers[i].voting);
    }
    return measured;
}

TEST(an_edge_that_its_member_doubts_is_measured_again_and_all_at_once) /* plans would stand on what was measured at first, for ever */
{
    struct cluster *c = cluster_voted(4);
    struct peer *p = c->peers;
    const uint32_t same[4] = {0, 1, 2, 3};
    measure_all(c, 0, 0);
    cluster_solved(c, c->solve, same, 4);
    doubt(c, &p[0], p[1].id); /* was measured a moment ago */
    EXPECT_EQ(measure_again(c), 0);
    cluster_pass(c, 30000);
    doubt(c, &p[0], p[0].id);
    doubt(c, &p[0], p[3].id + 1);
    EXPECT_EQ(measure_again(c), 0);
    doubt(c, &p[0], p[1].id);
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT(p[0].probes == 1 && p[1].probes + p[2].probes + p[3].probes == 0); /* its old rate would bound what all carry at once */
    EXPECT_EQ(measure_all(c, 0, 0), 1 + 12);
    cluster_solved(c, c->solve, same, 4);
    EXPECT_EQ(measure_again(c), 0);
    EXPECT(p[0].open && !master_poisoned(c->master));
    cluster_free(c);
}

TEST(ring_survives_a_leave) /* repair, not reset */
{
    struct cluster *c = cluster_voted(4);
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

/* One member has 20 Mb/s, and one of the others' edges is bad alone. */
static uint64_t one_slow_one_bad(const struct cluster *c, uint64_t from, uint64_t to)
{
    bool slow = from == c->peers[3].id || to == c->peers[3].id, bad = from == c->peers[0].id && to == c->peers[1].id;
    return slow ? 20000000 : bad ? 1000000 : 500000000;
}

static uint64_t one_gigabit(const struct cluster *c, uint64_t from, uint64_t to)
{
    return 10 * peer_rate_alike(c, from, to);
}

TEST(byte_costs_what_it_takes_where_equal_shares_wait_longest) /* or 64 MiB go to each of the others over a slow link */
{
    struct cluster *c = cluster_new();
    c->delay_ns = 50000000;
    cluster_members(c, 4, 0);
    struct peer *p = c->peers;
    EXPECT_EQ(p[0].last_view.plan.link_ps, 80000); /* far away, not measured: as at 100 Mb/s */
    for (uint32_t i = 0; i < 4; i++) {
        p[i].probes = 0;
    }
    for (uint32_t i = 0; i < 4; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    cluster_measure(c, one_slow_one_bad, true);
    const uint32_t better[4] = {0, 2, 1, 3};
    cluster_solved(c, c->solve, better, 4);
    /* Half of the buffer goes over that edge, where each member sends three halves of it.  Four members, far apart, count with 1.1 times that. */
    EXPECT(p[0].last_view.plan.link_ps > 2933000 && p[0].last_view.plan.link_ps < 2934000);
    EXPECT_EQ(p[0].last_view.plan.costs.delay_ns, 50000000); /* no round trip is known: as they say of their way to the master */
    EXPECT_EQ(p[0].last_view.plan.ring_ps, 440000); /* the ring goes round that edge, and the slow member decides */
    EXPECT_EQ(p[0].last_view.plan.ring_delay_us, 4 * 50000);
    peer_crash(c, &p[3]);
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT(p[0].last_view.plan.link_ps > 4199000 && p[0].last_view.plan.link_ps < 4201000);
    EXPECT_EQ(p[0].last_view.plan.ring_ps, 16800); /* it goes the other way over that edge, which is good */
    cluster_free(c);
}

TEST(pair_counts_with_what_was_measured) /* a pair 100 ms apart expected 64 MiB to take seven times as long as it did */
{
    struct cluster *c = cluster_new();
    c->delay_ns = 50000000;
    c->rtt_us = 100000;
    cluster_members(c, 2, 0);
    struct peer *p = c->peers;
    EXPECT_EQ(p[0].last_view.plan.link_ps, 80000); /* as at 100 Mb/s */
    for (uint32_t i = 0; i < 2; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(cluster_measure(c, one_gigabit, false), 2);
    EXPECT(!p[0].voting && p[0].last_view.answers == VOTE_OPTIMISE);
    EXPECT_EQ(p[0].last_view.plan.link_ps, 8000);
    EXPECT_EQ(p[0].last_view.plan.ring_ps, 0); /* of two there is none */
    EXPECT_EQ(p[0].ring[0] + p[0].ring[1], 1);
    uint64_t view = p[0].view;
    for (uint32_t i = 0; i < 2; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT(!p[0].voting && p[0].view == view); /* nothing is new */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(members_are_as_far_apart_as_was_measured_wherever_the_master_is) /* one across an ocean made neighbours look far */
{
    struct cluster *c = cluster_new();
    c->delay_ns = 50000000;
    c->rtt_us = 400;
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    for (uint32_t i = 0; i < 3; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(measure_all(c, 0, 0), 2 * 6);
    const uint32_t better[3] = {0, 2, 1};
    cluster_solved(c, c->solve, better, 3);
    EXPECT_EQ(p[0].last_view.plan.costs.delay_ns, 200000);
    EXPECT_EQ(p[0].last_view.plan.ring_delay_us, 3 * 200);
    cluster_free(c);
}

TEST(links_within_a_site_cost_what_the_members_have_measured) /* they are not what takes time */
{
    struct cluster *c = cluster_new();
    c->delay_ns = 100000;
    cluster_members(c, 3, 0);
    EXPECT_EQ(c->peers[0].last_view.plan.link_ps, 0);
    cluster_free(c);
}

TEST(newcomers_wait_until_a_ring_that_all_have_left_is_durable) /* their view was published in its place, before anybody had linked */
{
    struct cluster *c = cluster_voted(4);
    struct peer *p = c->peers;
    measure_all(c, p[0].id, p[1].id);
    struct peer *a = peer_join(c, 0), *b = peer_join(c, 0);
    const uint32_t better[4] = {0, 2, 1, 3};
    c->hold_persist = true;
    cluster_solved(c, c->solve, better, 4);
    for (int i = 0; i < 4; i++) {
        peer_leave(c, &p[i]);
    }
    EXPECT(!peer_saw(a, "ADMIT") && !peer_saw(a, "VIEW"));
    c->hold_persist = false;
    cluster_persisted(c);
    EXPECT(peer_saw(a, "ADMIT VIEW ") && peer_saw(b, "ADMIT VIEW "));
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(a->ring[0] + a->ring[1], 1);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(member_lost_between_probes_releases_the_others) /* R9 */
{
    struct cluster *c = cluster_voted(4);
    struct peer *p = c->peers;
    EXPECT(peer_saw(&p[0], "PROBE"));
    peer_crash(c, &p[3]);
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT(p[0].voting); /* goes on with those who are left */
    measure_all(c, 0, 0);
    const uint32_t same[3] = {0, 1, 2};
    cluster_solved(c, c->solve, same, 3);
    cluster_pass(c, 5000); /* heartbeats say that they know the view of three, and it gets trees now */
    EXPECT(!p[0].voting && !p[1].voting && !p[2].voting);
    cluster_free(c);
}

/* Edges from or to the last one have a tenth. */
static uint64_t slow_last(const struct cluster *c, uint64_t from, uint64_t to)
{
    return from == c->peers[3].id || to == c->peers[3].id ? 10000000 : 100000000;
}

TEST(a_view_gets_trees_of_what_was_measured) /* else slices go over links that nobody knows, or equal ones over unequal links */
{
    struct cluster *c = cluster_voted(4);
    struct peer *p = c->peers;
    EXPECT_EQ(p[0].trees.count, 0);
    cluster_measure(c, slow_last, true);
    const uint32_t same[4] = {0, 1, 2, 3};
    cluster_solved(c, c->solve, same, 4);
    EXPECT(!p[0].voting);
    EXPECT_EQ(p[0].last_view.answers, VOTE_OPTIMISE); /* the same ring, but trees */
    for (int i = 0; i < 4; i++) {
        EXPECT(tree_set_valid(&p[i].trees) && p[i].trees.members == 4);
        EXPECT(p[i].last_view.plan.tree_mib_ns > 830000000 && p[i].last_view.plan.tree_mib_ns < 840000000); /* 1 MiB once over 10 Mb/s */
    }
    for (uint32_t t = 0; t < p[0].trees.count; t++) {
        for (uint32_t r = 0; r < 4; r++) {
            EXPECT(p[0].trees.parent[t * 4 + r] != 3); /* the slowest is nobody's parent */
        }
    }
    peer_crash(c, &p[3]); /* the others are alike now */
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT(tree_set_valid(&p[0].trees) && p[0].trees.members == 3 && p[0].trees.count == 3);
    EXPECT(p[0].last_view.plan.tree_mib_ns > 111840000 && p[0].last_view.plan.tree_mib_ns < 111860000); /* 4/3 of the buffer at 100 Mb/s */
    struct peer *late = peer_join(c, 0);
    for (int i = 0; i < 3; i++) {
        peer_vote(c, &p[i], VOTE_UPDATE);
    }
    EXPECT_EQ(late->member_count, 4);
    EXPECT_EQ(late->trees.count, 0); /* nothing is known of its links */
    EXPECT_EQ(late->last_view.plan.tree_mib_ns, 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* ns that a MiB takes along the trees of three members, all of whose edges are alike. */
static uint32_t trees_of_three(bool shared)
{
    struct cluster *c = cluster_voted(3);
    const uint32_t same[3] = {0, 1, 2};
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, shared), 2 * 6);
    cluster_solved(c, c->solve, same, 3);
    uint32_t ns = c->peers[0].last_view.plan.tree_mib_ns;
    cluster_free(c);
    return ns;
}

TEST(paths_that_carry_their_rates_at_once_are_told_from_a_link_that_they_share) /* one by one they look alike */
{
    uint32_t shared = trees_of_three(true), apart = trees_of_three(false);
    EXPECT(shared > 111840000 && shared < 111860000); /* each member's link carries 4/3 of the buffer, at 100 Mb/s */
    EXPECT(apart > 55920000 && apart < 55930000);     /* each path carries 2/3 of it */
}

/* ns that a MiB takes along the trees of two sites of two members each, 1 Gb/s within a site; between them each edge carries 100 Mb/s alone, and
 * `together_bps` beside all others, which are measured at once when each pair is known. */
static uint32_t trees_of_two_sites(uint64_t together_bps)
{
    struct cluster *c = cluster_voted(4);
    const uint32_t same[4] = {0, 1, 2, 3};
    for (bool any = true; any;) {
        any = false;
        uint32_t asked[4];
        for (uint32_t i = 0; i < 4; i++) {
            asked[i] = c->peers[i].probes;
        }
        for (uint32_t i = 0; i < 4; i++) {
            struct msg_probe probe;
            for (uint32_t k = 0; k < asked[i] && peer_asked(&c->peers[i], &probe); k++) {
                bool far = i / 2 != (probe.to - c->peers[0].id) / 2;
                c->rtt_us = far ? 40000 : 500;
                peer_measured(c, &c->peers[i], &probe, !far ? 1000000000 : asked[i] > 1 ? together_bps : 100000000);
                any = true;
            }
        }
    }
    cluster_solved(c, c->solve, same, 4);
    uint32_t ns = c->peers[0].last_view.plan.tree_mib_ns;
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
    return ns;
}

TEST(trees_know_that_members_of_a_site_share_its_uplink) /* each inner node would be as fast as if it were there alone */
{
    uint32_t apart = trees_of_two_sites(100000000), shared = trees_of_two_sites(25000000);
    EXPECT(apart > 0 && shared > apart + apart / 4);
}

TEST(round_of_all_edges_at_once_that_is_not_answered_is_not_waited_for)
{
    struct cluster *c = cluster_voted(3);
    struct peer *p = c->peers;
    struct msg_probe probe;
    while (p[0].probes + p[1].probes + p[2].probes < 6) { /* until that round comes */
        for (int i = 0; i < 3; i++) {
            if (p[i].probes == 1 && peer_asked(&p[i], &probe)) {
                peer_measured(c, &p[i], &probe, 100000000);
            }
        }
    }
    for (int i = 0; i < 2; i++) { /* the third says nothing */
        while (peer_asked(&p[i], &probe)) {
            peer_measured(c, &p[i], &probe, 100000000);
            peer_measured(c, &p[i], &probe, 100000000); /* counts once */
        }
    }
    EXPECT_EQ(c->solves, 0);
    cluster_pass(c, 30000);
    EXPECT_EQ(c->solves, 1);
    const uint32_t same[3] = {0, 1, 2};
    cluster_solved(c, c->solve, same, 3);
    cluster_pass(c, 5000);
    EXPECT(!p[0].voting && !p[1].voting);
    EXPECT(p[0].last_view.plan.tree_mib_ns > 111840000); /* as if it had not been */
    for (int i = 0; i < 3; i++) {
        while (peer_asked(&p[i], &probe)) { /* too late for an answer */
        }
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, false), 6 + 3); /* the next vote begins with that round; there had been no time for all directions */
    cluster_solved(c, c->solve, same, 3);
    EXPECT(p[0].last_view.plan.tree_mib_ns < 55930000);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(group_that_ends_between_probes_releases_the_other_groups)
{
    struct cluster *c = two_pairs();
    for (int i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    EXPECT(peer_saw(&c->peers[2], "PROBE"));
    for (int i = 0; i < 2; i++) { /* one whole group ends in one step: nobody is left to freeze */
        peer_cut(c, &c->peers[i]);
    }
    cluster_pass(c, 60000);
    EXPECT_EQ(measure_all(c, 0, 0), 3); /* one is of the vote that was broken off, and both ways have been given up */
    EXPECT(!c->peers[2].voting && !c->peers[3].voting);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(member_lost_while_the_ring_is_searched)
{
    struct cluster *c = cluster_voted(4);
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
    struct cluster *c = cluster_voted(2);
    struct peer *p = c->peers;
    peer_measured(c, &p[0], &p[0].probe[0], 5000000);
    EXPECT(p[0].voting);
    cluster_pass(c, 12000); /* a probe takes 6 s at most, and its answer 5 */
    EXPECT(!p[0].voting && !p[1].voting); /* two peers: one ring, nothing to search */
    cluster_free(c);
}

TEST(probe_that_takes_long_holds_up_nobody_else) /* all waited for the slowest of each round */
{
    struct cluster *c = cluster_voted(4);
    struct peer *p = c->peers;
    struct msg_probe slow, probe;
    EXPECT(peer_asked(&p[0], &slow) && slow.to == p[1].id);
    uint32_t measured = 0;
    for (bool any = true; any;) {
        any = false;
        for (int i = 1; i < 4; i++) {
            while (peer_asked(&p[i], &probe)) {
                peer_measured(c, &p[i], &probe, 100000000);
                any = true;
                measured++;
            }
        }
    }
    EXPECT_EQ(measured, 3); /* of the six pairs, but for those of which 0 is to send, or 1 to hear */
    peer_measured(c, &p[0], &slow, 100000000);
    peer_measured(c, &p[0], &slow, 100000000); /* counts once */
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, true), 8 + 12);
    EXPECT_EQ(c->solves, 1);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(optimise_alone_is_answered_at_once)
{
    struct cluster *c = cluster_voted(1);
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
    for (int i = 0; i < 4; i += 2) { /* both pairs at once; the ways back come when the ways there have been measured */
        struct peer *p = &c->peers[i];
        EXPECT_STR(p[0].log, "PROBE ");
        EXPECT_STR(p[1].log, "");
        struct msg_probe probe;
        EXPECT(peer_asked(&p[0], &probe) && probe.to == p[1].id);
        peer_measured(c, p, &probe, 100000000);
    }
    for (int i = 0; i < 4; i += 2) {
        struct peer *p = &c->peers[i];
        EXPECT_STR(p[1].log, "PROBE ");
        EXPECT(p[1].probes == 1 && p[1].probe[0].to == p[0].id);
    }
    EXPECT_EQ(measure_all(c, 0, 0), 2);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(c->peers[i].answer.result, ANSWER_OK);
        EXPECT(!c->peers[i].voting);
    }
    cluster_free(c);
}
