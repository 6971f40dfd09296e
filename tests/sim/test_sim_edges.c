/* test_sim_edges.c - pairs without a link: many of them, links that come back, the relay that goes.
 * SPDX-License-Identifier: MIT */
#include "scene.h"

/* Every pair of the first `peers` processes, but for those with process 0. */
static void cut_all_but_hub(struct cluster *cl, uint16_t peers, bool cut)
{
    for (uint16_t i = 1; i < peers; i++) {
        for (uint16_t k = 1; k < peers; k++) {
            if (i != k) {
                cl->apart[i][k] = cut; /* not healed with the other faults */
                cluster_cut(cl, i, k, cut);
            }
        }
    }
}

static void run_until(struct cluster *cl, int64_t at)
{
    while (cl->now < at && cluster_step(cl)) {
    }
}

static uint32_t excluded(const struct cluster *cl)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cl->oracle.id_count; i++) {
        count += cl->oracle.ids[i].excluded;
    }
    return count;
}

TEST(view_with_hundreds_of_missing_edges_is_one_like_any_other) /* one more than sessions had room for made all of them leave */
{
    enum { PEERS = 26 };
    struct cluster *cl = scene_new(PEERS, 3);
    cut_all_but_hub(cl, PEERS, true);
    EXPECT(scene_until(cl, 0, PHASE_VOTING, PEERS));
    run_until(cl, cl->now + CLOCK_S);
    EXPECT_EQ(excluded(cl), 0);
    EXPECT(cl->stats.successes > 0);
    cut_all_but_hub(cl, PEERS, false);
    scene_end(cl);
}

static void cut_pair(struct cluster *cl, uint16_t a, uint16_t b, bool cut)
{
    cl->apart[a][b] = cl->apart[b][a] = cut;
    cluster_cut(cl, a, b, cut);
    cluster_cut(cl, b, a, cut);
}

/* Three peers with a state in common; 1 and 2 cannot talk, 0 relays.  Programs go on for so many steps. */
static struct cluster *relayed_pair(uint32_t steps)
{
    struct cluster *cl = scene_new(3, steps);
    while (cl->stats.successes < 60 && cluster_step(cl)) {
    }
    cut_pair(cl, 1, 2, true);
    while ((cl->nodes[1].edges == 0 || cl->nodes[2].edges == 0) && cluster_step(cl)) {
    }
    EXPECT_EQ(cl->nodes[1].relay, cl->nodes[0].id);
    return cl;
}

TEST(a_pair_that_heals_is_linked_again_with_the_next_update) /* small operations would stay slow for as long as both live */
{
    struct cluster *cl = relayed_pair(400);
    uint64_t aborts = cl->stats.aborts;
    run_until(cl, cl->now + 4 * CLOCK_S);
    EXPECT_EQ(cl->nodes[1].edges, 1);
    cut_pair(cl, 1, 2, false);
    run_until(cl, cl->now + 10 * CLOCK_S);
    EXPECT_EQ(cl->nodes[0].edges + cl->nodes[1].edges + cl->nodes[2].edges, 0);
    EXPECT(cl->stats.aborts <= aborts + 3); /* of the cut itself: healing aborts nothing */
    EXPECT_EQ(excluded(cl), 0);
    scene_end(cl);
}

TEST(a_relay_that_dies_after_a_cut_has_healed_costs_nobody_its_place) /* the pair was relayed no more, and torn apart */
{
    for (int64_t after = 0; after < 3; after++) { /* before the pair has tried again, while it tries, behind that */
        struct cluster *cl = relayed_pair(400);
        cut_pair(cl, 1, 2, false);
        run_until(cl, cl->now + after * CLOCK_S / 4);
        node_kill(cl, &cl->nodes[0], false);
        run_until(cl, cl->now + 12 * CLOCK_S);
        EXPECT_EQ(excluded(cl), 1); /* the one that died */
        EXPECT_EQ(cl->nodes[1].edges, 0);
        scene_end(cl);
    }
}

TEST(a_relay_that_dies_with_the_cut_costs_one_of_the_pair_its_place_and_no_more)
{
    struct cluster *cl = relayed_pair(400);
    node_kill(cl, &cl->nodes[0], false);
    run_until(cl, cl->now + 15 * CLOCK_S);
    EXPECT_EQ(excluded(cl), 2);
    cut_pair(cl, 1, 2, false);
    scene_end(cl);
}

TEST(a_receiver_that_reaches_no_holder_gets_the_state_all_the_same) /* it lost its place after three elections */
{
    struct cluster *cl = scene_new(4, 6);
    cl->opt.sync_percent = 100;
    cut_pair(cl, 1, 3, true);
    cut_pair(cl, 2, 3, true);
    EXPECT(scene_until(cl, 3, PHASE_VOTING, 4));
    EXPECT_EQ(cl->nodes[3].edges, 2);
    run_until(cl, cl->now + 2 * CLOCK_S);
    EXPECT_EQ(excluded(cl), 0);
    cut_pair(cl, 1, 3, false);
    cut_pair(cl, 2, 3, false);
    scene_end(cl);
}

/* Clusters as they are drawn, with their faults, that make such calls: messages, or collectives in the order of issue.  A pair of the first
 * is torn apart for good. */
enum makes { MAKE_COLLECTIVES = 83, MAKE_MESSAGES = 89 };
static struct stats tear_a_pair(enum makes makes, int clusters)
{
    struct stats sum = {0};
    for (uint64_t seed = 1; clusters > 0; seed++) {
        struct options o;
        options_draw(&o, seed);
        if (mix64(seed, makes) % 2 != 0 || o.peers < 3 || o.peers > 6 || o.groups > 1 || o.worlds > 1 || o.bulk || o.burst != 0) {
            continue;
        }
        struct cluster *cl = calloc(1, sizeof *cl);
        cluster_init(cl, &o, false);
        cl->tail = calloc(CLUSTER_TAIL, CLUSTER_LINE);
        while (cl->stats.successes < 3 && cluster_step(cl)) {
        }
        scene_fault(cl, FAULT_APART, 1, 2, 0);
        cluster_run(cl);
        sum.parts += cl->stats.parts;
        sum.call_parts += cl->stats.call_parts;
        sum.paths_lost += cl->stats.paths_lost;
        scene_end(cl);
        clusters--;
    }
    printf("# %" PRIu64 " parts of messages, %" PRIu64 " of calls, their relay lost one of the two %" PRIu64 " times\n", sum.parts, sum.call_parts,
           sum.paths_lost);
    return sum;
}

TEST(messages_go_round_a_pair_whatever_else_is_lost) /* every oracle holds, and it was about messages by a relay */
{
    struct stats sum = tear_a_pair(MAKE_MESSAGES, 120);
    EXPECT(sum.parts > 50 && sum.paths_lost > 0);
}

TEST(parts_that_only_two_know_the_size_of_go_round_a_pair_whatever_else_is_lost) /* such calls were refused there */
{
    struct stats sum = tear_a_pair(MAKE_COLLECTIVES, 500);
    EXPECT(sum.call_parts > 50 && sum.paths_lost > 0);
}
