/* test_sim_edges.c - pairs without a link: many of them, links that come back, the relay that goes.
 * SPDX-License-Identifier: MIT */
#include "scene.h"

/* Every pair of the first `peers` processes, but for those with process 0. */
static void cut_all_but_hub(struct world *w, uint16_t peers, bool cut)
{
    for (uint16_t i = 1; i < peers; i++) {
        for (uint16_t k = 1; k < peers; k++) {
            if (i != k) {
                w->apart[i][k] = cut; /* not healed with the other faults */
                world_cut(w, i, k, cut);
            }
        }
    }
}

static void run_until(struct world *w, int64_t at)
{
    while (w->now < at && world_step(w)) {
    }
}

static uint32_t excluded(const struct world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->oracle.id_count; i++) {
        count += w->oracle.ids[i].excluded;
    }
    return count;
}

TEST(view_with_hundreds_of_missing_edges_is_one_like_any_other) /* one more than sessions had room for made all of them leave */
{
    enum { PEERS = 26 };
    struct world *w = scene_new(PEERS, 3);
    cut_all_but_hub(w, PEERS, true);
    EXPECT(scene_until(w, 0, PHASE_VOTING, PEERS));
    run_until(w, w->now + CLOCK_S);
    EXPECT_EQ(excluded(w), 0);
    EXPECT(w->stats.successes > 0);
    cut_all_but_hub(w, PEERS, false);
    scene_end(w);
}

static void cut_pair(struct world *w, uint16_t a, uint16_t b, bool cut)
{
    w->apart[a][b] = w->apart[b][a] = cut;
    world_cut(w, a, b, cut);
    world_cut(w, b, a, cut);
}

/* Three peers with a state in common; 1 and 2 cannot talk, 0 relays.  Programs go on for so many steps. */
static struct world *relayed_pair(uint32_t steps)
{
    struct world *w = scene_new(3, steps);
    while (w->stats.successes < 60 && world_step(w)) {
    }
    cut_pair(w, 1, 2, true);
    while ((w->nodes[1].edges == 0 || w->nodes[2].edges == 0) && world_step(w)) {
    }
    EXPECT_EQ(w->nodes[1].relay, w->nodes[0].id);
    return w;
}

TEST(a_pair_that_heals_is_linked_again_with_the_next_update) /* small operations would stay slow for as long as both live */
{
    struct world *w = relayed_pair(400);
    uint64_t aborts = w->stats.aborts;
    run_until(w, w->now + 4 * CLOCK_S);
    EXPECT_EQ(w->nodes[1].edges, 1);
    cut_pair(w, 1, 2, false);
    run_until(w, w->now + 10 * CLOCK_S);
    EXPECT_EQ(w->nodes[0].edges + w->nodes[1].edges + w->nodes[2].edges, 0);
    EXPECT(w->stats.aborts <= aborts + 3); /* of the cut itself: healing aborts nothing */
    EXPECT_EQ(excluded(w), 0);
    scene_end(w);
}

TEST(a_relay_that_dies_after_a_cut_has_healed_costs_nobody_its_place) /* the pair was relayed no more, and torn apart */
{
    for (int64_t after = 0; after < 3; after++) { /* before the pair has tried again, while it tries, behind that */
        struct world *w = relayed_pair(400);
        cut_pair(w, 1, 2, false);
        run_until(w, w->now + after * CLOCK_S / 4);
        node_kill(w, &w->nodes[0], false);
        run_until(w, w->now + 12 * CLOCK_S);
        EXPECT_EQ(excluded(w), 1); /* the one that died */
        EXPECT_EQ(w->nodes[1].edges, 0);
        scene_end(w);
    }
}

TEST(a_relay_that_dies_with_the_cut_costs_one_of_the_pair_its_place_and_no_more)
{
    struct world *w = relayed_pair(400);
    node_kill(w, &w->nodes[0], false);
    run_until(w, w->now + 15 * CLOCK_S);
    EXPECT_EQ(excluded(w), 2);
    cut_pair(w, 1, 2, false);
    scene_end(w);
}

TEST(a_receiver_that_reaches_no_holder_gets_the_state_all_the_same) /* it lost its place after three elections */
{
    struct world *w = scene_new(4, 6);
    w->opt.sync_percent = 100;
    cut_pair(w, 1, 3, true);
    cut_pair(w, 2, 3, true);
    EXPECT(scene_until(w, 3, PHASE_VOTING, 4));
    EXPECT_EQ(w->nodes[3].edges, 2);
    run_until(w, w->now + 2 * CLOCK_S);
    EXPECT_EQ(excluded(w), 0);
    cut_pair(w, 1, 3, false);
    cut_pair(w, 2, 3, false);
    scene_end(w);
}
