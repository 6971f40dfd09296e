/* test_cost.c - predicted times against published vectors.
 *
 * One idea: the vectors (1 GiB, 50 ms one way) were computed elsewhere; three digits must agree.
 * Invariant: vectors are the fluid model, chunk 0.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <math.h>

#include "topology/cost.h"
#include "topology/rates.h"
#include "topology/owner_shares.h"
#include "topology/tree_packing.h"

enum { PEERS = 32 };

static const double giga = 1e9, gib = 1024.0 * 1024 * 1024, mib = 1024.0 * 1024;

static bool near(double got, double want, double tolerance)
{
    double off = got > want ? got - want : want - got;
    if (!(off <= tolerance)) {
        fprintf(stderr, "got %.6f, wanted %.6f\n", got, want);
        return false;
    }
    return true;
}

struct world {
    double rate[PEERS], equal[PEERS], share[PEERS], s_per_bit, site_rate[PEERS];
    double delay[PEERS * PEERS], path[PEERS * PEERS];
    uint16_t order[PEERS], site[PEERS], parent[PEERS * TREE_SET_MOST];
    struct tree_set set;
    struct tree_forecast trees, hierarchical;
    struct network net;
};

static void world_plan(struct world *w)
{
    void *storage = malloc(tree_packing_room(PEERS, PEERS) + shares_room(PEERS, PEERS));
    w->set.parent = w->parent;
    EXPECT(shares_solve(&w->net, storage, w->share, &w->s_per_bit));
    EXPECT(tree_packing_solve(&w->net, TREE_SITES, storage, &w->set, &w->hierarchical));
    EXPECT(tree_packing_solve(&w->net, TREE_ANY, storage, &w->set, &w->trees));
    free(storage);
}

/* The first `slow` peers at slow_bps, the others at fast_bps, all pairs 50 ms apart. */
static void world_init(struct world *w, size_t n, size_t slow, double slow_bps, double fast_bps)
{
    *w = (struct world){.net = {.n = n, .up_bps = w->rate, .down_bps = w->rate, .delay_s = w->delay}};
    for (size_t i = 0; i < n; i++) {
        w->rate[i] = i < slow ? slow_bps : fast_bps;
        w->equal[i] = 1 / (double)n;
        w->order[i] = (uint16_t)i;
        for (size_t j = 0; j < n; j++) {
            w->delay[i * n + j] = i == j ? 0 : 0.05;
        }
    }
    world_plan(w);
}

/* Three sites of three peers at 10 Gb/s, no delay inside; between them paths of path_bps, shared links of site_bps. */
static void world_sites(struct world *w, double path_bps, double site_bps)
{
    world_init(w, 9, 0, 0, 10 * giga);
    for (size_t i = 0; i < 81; i++) {
        bool together = i / 9 / 3 == i % 9 / 3;
        w->path[i] = together ? __builtin_inf() : path_bps;
        w->delay[i] = together ? 0 : 0.05;
    }
    for (size_t i = 0; i < 9; i++) {
        w->site[i] = (uint16_t)(i / 3);
        w->site_rate[i / 3] = site_bps;
    }
    w->net.path_bps = w->path;
    w->net.sites = 3;
    w->net.site = w->site;
    w->net.site_up_bps = w->net.site_down_bps = w->site_rate;
    world_plan(w);
}

/* What a time is in units of the buffer at 1 Gb/s, with delays taken off. */
static double units(double s, double delay_s)
{
    return (s - delay_s) / (8 * gib) * giga;
}

TEST(eight_equal_peers_case_a)
{
    struct world w;
    world_init(&w, 8, 8, giga, 0);
    struct cost_job job = {gib, 0};
    EXPECT(near(w.s_per_bit * giga, 1.75, 5e-5));
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 15.08, 0.005));
    EXPECT(near(cost_ring_slices_s(&w.net, w.order, job), 15.73, 0.005));
    EXPECT(near(cost_direct_s(&w.net, w.share, job), 15.13, 0.005));
    EXPECT(near(w.trees.s_per_bit * giga, 1.75, 1e-4));
}

TEST(eight_equal_peers_one_mebibyte)
{
    struct world w;
    world_init(&w, 8, 8, giga, 0);
    struct cost_job job = {mib, 0};
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 0.701, 0.0005));
    EXPECT(near(cost_ring_slices_s(&w.net, w.order, job), 0.715, 0.0005));
    EXPECT(near(cost_direct_s(&w.net, w.share, job), 0.115, 0.0005));
    EXPECT(near(cost_tiny_s(&w.net, job), 0.109, 0.0005));
}

TEST(four_slow_and_four_fast_peers_case_b) /* the slow ones become leaves */
{
    struct world w;
    world_init(&w, 8, 4, giga, 10 * giga);
    struct cost_job job = {gib, 0};
    EXPECT(near(w.s_per_bit * giga, 1.0, 5e-5));
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 15.08, 0.005));
    EXPECT(near(cost_direct_s(&w.net, w.share, job), 8.69, 0.005));
    EXPECT(near(cost_direct_s(&w.net, w.equal, job), 15.13, 0.005));
    EXPECT(near(w.trees.s_per_bit * giga, 1.0, 1e-4) && near(cost_trees_s(&w.trees, job), 8.69, 0.005));
    for (size_t i = 0; i < 8; i++) {
        EXPECT(near(w.share[i], i < 4 ? 0 : 0.25, 1e-12));
    }
}

TEST(eighteen_fast_peers_case_e)
{
    struct world w;
    world_init(&w, 18, 0, 0, 10 * giga);
    struct cost_job job = {gib, 0};
    EXPECT(near(w.s_per_bit * giga, 0.1889, 5e-5));
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 1.75, 0.005));
    EXPECT(near(cost_ring_slices_s(&w.net, w.order, job), 3.32, 0.005));
    EXPECT(near(cost_direct_s(&w.net, w.share, job), 1.72, 0.005));
    EXPECT(near(w.trees.s_per_bit * giga, 0.1889, 5e-5));
}

TEST(three_sites_with_slow_paths_case_c) /* path limits: one pair carries both ends' shares */
{
    struct world w;
    struct cost_job job = {gib, 0};
    world_sites(&w, giga, __builtin_inf());
    EXPECT(near(units(cost_ring_s(&w.net, w.order, job), 0.05), 1.7778, 5e-5));
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 15.32, 0.005));
    EXPECT(near(w.s_per_bit * giga, 0.2222, 5e-5) && near(cost_direct_s(&w.net, w.share, job), 2.01, 0.005));
    EXPECT(near(w.hierarchical.s_per_bit * giga, 0.1778, 5e-5)); /* lanes over all pairs */
    EXPECT(near(cost_trees_s(&w.hierarchical, job), 1.63, 0.005));
    EXPECT(near(w.trees.s_per_bit * giga, 0.1778, 5e-5));
    w.set.count = 9; /* aligned lanes: member k of a site only to members k */
    for (size_t t = 0; t < 9; t++) {
        w.set.share[t] = TREE_SET_WHOLE / 9 + (t < TREE_SET_WHOLE % 9);
        for (size_t i = 0; i < 9; i++) {
            w.parent[t * 9 + i] = (uint16_t)(i % 3 == t % 3 ? t : i / 3 * 3 + t % 3);
        }
    }
    double scratch[1024];
    EXPECT(tree_set_valid(&w.set) && tree_load_room(9, 3) <= 1024);
    tree_load(&w.net, &w.set, &w.hierarchical, scratch);
    EXPECT(near(w.hierarchical.s_per_bit * giga, 0.2222, 1e-4));
    EXPECT(near(cost_trees_s(&w.hierarchical, job), 2.01, 0.005));
}

TEST(three_sites_that_share_their_links_case_d) /* every copy that crosses a border counts */
{
    struct world w;
    struct cost_job job = {gib, 0};
    world_sites(&w, __builtin_inf(), 3 * giga);
    EXPECT(near(units(cost_ring_s(&w.net, w.order, job), 0.05), 0.5926, 5e-5));
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 5.14, 0.005));
    EXPECT(near(w.s_per_bit * giga, 1.3333, 5e-5) && near(cost_direct_s(&w.net, w.share, job), 11.55, 0.005));
    EXPECT(near(w.hierarchical.s_per_bit * giga, 0.4444, 5e-5));
    EXPECT(near(cost_trees_s(&w.hierarchical, job), 3.92, 0.005));
    EXPECT(near(w.trees.s_per_bit * giga, 0.4444, 5e-5));
    EXPECT(near(units(cost_tiny_s(&w.net, job), 0.05), 6, 5e-5)); /* 3 x 6 copies leave a site at 3 Gb/s */
}

TEST(chunks_cost_what_the_formulas_say) /* 1 MiB at 1 Gb/s is 8.388608 ms */
{
    struct world w;
    world_init(&w, 8, 8, giga, 0);
    struct cost_job fluid = {gib, 0}, chunked = {gib, mib}, huge = {gib, 2 * gib};
    double chunk_s = mib * 8 / giga;
    EXPECT(near(cost_direct_s(&w.net, w.share, chunked) - cost_direct_s(&w.net, w.share, fluid), chunk_s, 1e-9));
    EXPECT(near(cost_ring_s(&w.net, w.order, chunked) - cost_ring_s(&w.net, w.order, fluid), chunk_s, 1e-9));
    /* A chunk longer than a slice is the slice: store and forward, 14 (l + slice) + slice. */
    double slice_s = gib / giga;
    EXPECT(near(cost_ring_s(&w.net, w.order, huge), 15 * slice_s + 14 * 0.05, 1e-9));
    struct tree_forecast trees = {
        .s_per_bit = 2 / giga, .bps = giga, .largest_share = 0.5, .radius_s = 0.1, .radius_hops = 3};
    EXPECT(near(cost_trees_s(&trees, chunked), 16 * gib / giga + 0.2 + 3 * chunk_s, 1e-9));
    EXPECT(near(cost_trees_s(&trees, huge), 16 * gib / giga + 0.2 + 3 * 0.5 * gib * 8 / giga, 1e-9));
}

static enum cost_algo choice_of(struct world *w, double bytes, unsigned allowed)
{
    struct cost_choice c;
    struct cost_plans plans = {w->order, w->equal, w->share, &w->hierarchical, &w->trees};
    EXPECT(cost_choose(&w->net, &plans, allowed, (struct cost_job){bytes, 0}, &c));
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        EXPECT(c.predicted_s[c.algo] <= c.predicted_s[a]);
        EXPECT((allowed >> a & 1) != 0 || c.predicted_s[a] > 1e300);
    }
    return c.algo;
}

TEST(choice_is_the_least_prediction) /* tiny below 1.2 MB in case A, ring for 1 GiB, others where peers differ */
{
    struct world w;
    const unsigned all = (1u << COST_ALGO_COUNT) - 1;
    world_init(&w, 8, 8, giga, 0);
    EXPECT_EQ(choice_of(&w, 4, all), COST_TINY);
    EXPECT_EQ(choice_of(&w, 1.18e6, all), COST_TINY);
    EXPECT_EQ(choice_of(&w, 1.20e6, all), COST_DIRECT);
    EXPECT_EQ(choice_of(&w, gib, all), COST_RING);
    EXPECT_EQ(choice_of(&w, gib, all & ~(1u << COST_RING)), COST_DIRECT);
    world_init(&w, 8, 4, giga, 10 * giga);
    EXPECT_EQ(choice_of(&w, gib, all), COST_WEIGHTED);
    world_sites(&w, __builtin_inf(), 3 * giga);
    EXPECT_EQ(choice_of(&w, gib, all), COST_HIERARCHICAL);
    EXPECT_EQ(choice_of(&w, gib, all & ~(1u << COST_HIERARCHICAL)), COST_TREES);
}

TEST(choice_leaves_out_what_cannot_run) /* a pair that cannot connect: tiny never, direct between owners not */
{
    struct world w;
    struct cost_choice c;
    const struct cost_job job = {mib, 0};
    world_init(&w, 4, 4, giga, 0);
    for (size_t i = 0; i < 16; i++) {
        w.path[i] = __builtin_inf();
    }
    w.path[0 * 4 + 2] = 0;
    w.net.path_bps = w.path;
    struct cost_plans plans = {.order = w.order, .equal = w.equal, .share = w.equal};
    EXPECT(cost_choose(&w.net, &plans, 63, job, &c) && c.algo == COST_RING);
    EXPECT(c.predicted_s[COST_TINY] > 1e300 && c.predicted_s[COST_DIRECT] > 1e300);
    EXPECT(c.predicted_s[COST_TREES] > 1e300 && c.predicted_s[COST_HIERARCHICAL] > 1e300);
    world_plan(&w); /* neither end of the pair owns anything now */
    plans.share = w.share;
    EXPECT(cost_choose(&w.net, &plans, 63, job, &c) && c.algo == COST_WEIGHTED);
    plans = (struct cost_plans){0};
    EXPECT(!cost_choose(&w.net, &plans, 63, job, &c));
    plans.order = w.order;
    w.path[0 * 4 + 1] = 0;
    EXPECT(!cost_choose(&w.net, &plans, 63, job, &c));
}

TEST(one_peer_needs_no_time)
{
    struct world w;
    world_init(&w, 1, 1, giga, 0);
    EXPECT_EQ(choice_of(&w, gib, 63), COST_TINY);
    EXPECT(near(cost_ring_s(&w.net, w.order, (struct cost_job){gib, mib}), 0, 0));
    EXPECT(near(cost_direct_s(&w.net, w.share, (struct cost_job){gib, mib}), 0, 0));
    EXPECT_STR(cost_algo_name(COST_RING), "ring");
    EXPECT_STR(cost_algo_name(COST_ALGO_COUNT), "?");
}

TEST(rates_are_what_was_seen) /* a link never counts for more than its best edge, an unknown peer for the least */
{
    struct bandwidth_entry slots[32];
    struct bandwidth b;
    const uint64_t ids[4] = {40, 10, 30, 20};
    double up[4] = {0}, down[4] = {0}, path[16];
    bandwidth_init(&b, slots, 32);
    EXPECT(bandwidth_set(&b, 99, 40, 1000, 0) && bandwidth_set(&b, 40, 10, 0, 0));
    EXPECT(!rates_fill(&b, ids, 4, up, down, path)); /* no rate among these four */
    EXPECT(bandwidth_set(&b, 40, 30, 300, 0) && bandwidth_set(&b, 10, 40, 200, 0));
    EXPECT(bandwidth_set(&b, 10, 30, 500, 0) && bandwidth_set(&b, 30, 10, 700, 0));
    EXPECT(rates_fill(&b, ids, 4, up, down, path));
    const double want_up[4] = {300, 500, 700, 200}, want_down[4] = {200, 700, 500, 200};
    for (size_t i = 0; i < 4; i++) {
        EXPECT(near(up[i], want_up[i], 0) && near(down[i], want_down[i], 0));
    }
    EXPECT(near(path[0 * 4 + 1], 0, 0) && near(path[0 * 4 + 2], 300, 0) && path[3 * 4 + 0] > 1e300);
}

TEST(edges_that_carried_more_at_once_than_the_best_alone_make_a_faster_link) /* eight paths, or one uplink: one by one they look alike */
{
    struct bandwidth_entry slots[32];
    struct bandwidth b;
    const uint64_t ids[3] = {10, 20, 30};
    double up[3], down[3], path[9];
    bandwidth_init(&b, slots, 32);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            EXPECT(i == k || bandwidth_set(&b, ids[i], ids[k], 100, 0));
        }
    }
    EXPECT(bandwidth_set(&b, 10, RATES_ALL, 190, 0) && bandwidth_set(&b, RATES_ALL, 10, 60, 0) && bandwidth_set(&b, RATES_ALL, 30, 150, 0));
    EXPECT(rates_fill(&b, ids, 3, up, down, path));
    const double want_up[3] = {190, 100, 100}, want_down[3] = {100, 100, 150}; /* less than the best alone: it was seen to carry that */
    for (size_t i = 0; i < 3; i++) {
        EXPECT(near(up[i], want_up[i], 0) && near(down[i], want_down[i], 0));
    }
    EXPECT(bandwidth_remove(&b, 10, RATES_ALL) && !bandwidth_remove(&b, 10, RATES_ALL));
    EXPECT(rates_fill(&b, ids, 3, up, down, path) && near(up[0], 100, 0));
}

TEST(rates_are_in_bits_per_second) /* of bytes, an edge would look eight times as slow as the plans take it for */
{
    EXPECT_EQ(rate_of(1250000, 1000000), INT64_C(10000000000)); /* 1.25 MB in a millisecond: 10 Gbit/s */
    EXPECT_EQ(rate_of(1, INT64_C(8000000000)), 1);
    EXPECT_EQ(rate_of(0, 5), 0);
    EXPECT_EQ(rate_of(2, 0), INT64_C(16000000000));
}

/* Members 0, 1 at one site, 2, 3 at another, 4 alone; 60 Mb/s from site to site, one after the other. */
static void know_sites(struct bandwidth *b, const uint64_t *ids)
{
    for (size_t i = 0; i < 25; i++) {
        size_t from = i / 5, to = i % 5;
        bool near = from / 2 == to / 2;
        if (from != to) {
            EXPECT(bandwidth_set(b, ids[from], ids[to], near ? 200 : 60, 0));
            EXPECT(bandwidth_set_way(b, ids[from], ids[to], near ? 300 : 40000, 0));
        }
    }
    for (size_t i = 0; i < 5; i++) { /* what they have sent to other sites at once */
        EXPECT(bandwidth_set(b, ids[i], RATES_FAR, 32, 0) && bandwidth_set(b, RATES_FAR, ids[i], 10, 0));
    }
}

TEST(members_of_a_site_share_what_leaves_it) /* each path looks as if it had the uplink for itself */
{
    static struct bandwidth_entry slots[BANDWIDTH_CAPACITY(5)];
    const uint64_t ids[5] = {10, 20, 30, 40, 50};
    struct bandwidth b;
    struct rates_sites s;
    struct network net = {.n = 5};
    bandwidth_init(&b, slots, sizeof slots / sizeof *slots);
    EXPECT(!rates_sites(&b, ids, 5, &s));
    know_sites(&b, ids);
    EXPECT(rates_sites(&b, ids, 5, &s));
    EXPECT_EQ(s.count, 3);
    EXPECT(s.site[0] == s.site[1] && s.site[2] == s.site[3] && s.site[4] != s.site[0] && s.site[4] != s.site[2]);
    EXPECT(s.up_bps[s.site[0]] == 64 && s.down_bps[s.site[0]] == 60); /* all at once; the best edge */
    EXPECT(isinf(s.up_bps[s.site[4]]) && isinf(s.down_bps[s.site[4]])); /* its own link */
    rates_add_sites(&b, ids, &s, &net);
    EXPECT(net.sites == 3 && net.site == s.site && net.site_up_bps == s.up_bps);
    EXPECT(bandwidth_remove(&b, 20, RATES_FAR) && rates_sites(&b, ids, 5, &s));
    EXPECT(isinf(s.up_bps[s.site[0]]) && s.down_bps[s.site[0]] == 60 && s.up_bps[s.site[2]] == 64); /* not all of it was seen */
    EXPECT(bandwidth_remove(&b, 10, 20) && rates_sites(&b, ids, 5, &s)); /* the way back says how far it is */
    EXPECT(bandwidth_remove(&b, 20, 10) && rates_sites(&b, ids, 5, &s) && s.count == 4 && s.site[0] != s.site[1]);
    EXPECT(bandwidth_remove(&b, 40, 30) && bandwidth_remove(&b, 30, 40) && !rates_sites(&b, ids, 5, &s));
    net = (struct network){.n = 5};
    rates_add_sites(&b, ids, &s, &net);
    EXPECT(net.sites == 0 && net.site == NULL);
}

TEST(members_that_are_all_near_or_all_far_share_no_site_link)
{
    static struct bandwidth_entry slots[BANDWIDTH_CAPACITY(RATES_SITE_MEMBERS + 1)];
    uint64_t ids[RATES_SITE_MEMBERS + 1];
    struct bandwidth b;
    struct rates_sites s;
    for (uint32_t rtt = 300; rtt <= 40000; rtt = rtt == 300 ? 40000 : rtt + 1) {
        bandwidth_init(&b, slots, sizeof slots / sizeof *slots);
        for (size_t i = 0; i <= RATES_SITE_MEMBERS; i++) {
            ids[i] = i + 1;
            for (size_t k = 0; k < i; k++) {
                EXPECT(bandwidth_set(&b, ids[i], ids[k], 5, 0) && bandwidth_set_way(&b, ids[i], ids[k], rtt, 0));
            }
            EXPECT(bandwidth_set(&b, ids[i], RATES_FAR, 5, 0) && bandwidth_set(&b, RATES_FAR, ids[i], 5, 0));
        }
        EXPECT(!rates_sites(&b, ids, RATES_SITE_MEMBERS, &s) && !rates_sites(&b, ids, RATES_SITE_MEMBERS + 1, &s));
    }
}

TEST(assumed_edge_bounds_a_path_and_makes_no_link_faster) /* a plan over capacity that nobody has seen */
{
    struct bandwidth_entry slots[64];
    const uint64_t ids[3] = {10, 20, 30};
    struct bandwidth b;
    double up[3], down[3], path[9];
    bandwidth_init(&b, slots, sizeof slots / sizeof *slots);
    EXPECT(bandwidth_set(&b, 10, 30, 60, 0) && bandwidth_set(&b, 10, 20, 40, 0) && bandwidth_set(&b, 20, 10, 40, 0));
    const struct bandwidth_entry like = *bandwidth_find(&b, 10, 30);
    EXPECT(bandwidth_assume(&b, 20, 30, &like) && bandwidth_assume(&b, 30, 20, &like));
    EXPECT(rates_fill(&b, ids, 3, up, down, path));
    EXPECT(path[1 * 3 + 2] == 60 && path[2 * 3 + 1] == 60);
    EXPECT(up[1] == 40 && down[1] == 40); /* 20 was seen to send and to receive no more */
    EXPECT(up[0] == 60 && down[2] == 60);
    EXPECT_EQ(up[2], 40); /* nothing of it was measured: the least of the others */
    EXPECT(bandwidth_observe(&b, 20, 30, true, 80, 1) && bandwidth_observe(&b, 20, 30, false, 80, 1));
    EXPECT(rates_fill(&b, ids, 3, up, down, path) && up[1] == 80 && down[2] == 80); /* operations have moved that much */
}

TEST(path_that_was_not_measured_is_as_fast_as_the_way_back)
{
    struct bandwidth_entry slots[64];
    const uint64_t ids[3] = {10, 20, 30};
    struct bandwidth b;
    double up[3], down[3], path[9];
    bandwidth_init(&b, slots, 64);
    EXPECT(bandwidth_set(&b, 10, 20, 100, 0) && bandwidth_set(&b, 30, 10, 40, 0));
    EXPECT(rates_fill(&b, ids, 3, up, down, path));
    EXPECT(path[0 * 3 + 1] == 100 && path[1 * 3 + 0] == 100 && path[2 * 3 + 0] == 40 && path[0 * 3 + 2] == 40);
    EXPECT(isinf(path[1 * 3 + 2]) && isinf(path[2 * 3 + 1]));
    EXPECT(up[0] == 100 && up[2] == 40 && up[1] == 40 && down[1] == 100 && down[0] == 40 && down[2] == 40); /* guesses raise no link */
}
