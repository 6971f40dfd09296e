/* test_cost.c - predicted times against published vectors, shard weights against their defining inequalities.
 *
 * Its one idea: the vectors (1 GiB, 50 ms one way) were computed elsewhere; three digits must agree.
 * Invariant: vectors are the fluid model, chunk 0.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/cost.h"
#include "topology/rates.h"
#include "topology/weights.h"

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
    double rate[PEERS], share[PEERS], s_per_bit;
    uint16_t order[PEERS];
    struct cost_net net;
};

/* The first `slow` peers at slow_bps, the others at fast_bps, all pairs 50 ms apart. */
static void world_init(struct world *w, size_t n, size_t slow, double slow_bps, double fast_bps)
{
    for (size_t i = 0; i < n; i++) {
        w->rate[i] = i < slow ? slow_bps : fast_bps;
        w->order[i] = (uint16_t)i;
    }
    EXPECT(weights_direct(n, w->rate, w->rate, NULL, w->share, &w->s_per_bit));
    w->net =
        (struct cost_net){.n = n, .up_bps = w->rate, .down_bps = w->rate, .delay_mean_s = 0.05, .delay_max_s = 0.05};
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
}

TEST(three_sites_with_slow_paths_case_c) /* path limits: one pair carries both ends' shares */
{
    struct world w;
    world_init(&w, 9, 0, 0, 10 * giga);
    double path[81];
    for (size_t i = 0; i < 81; i++) {
        path[i] = i / 9 / 3 == i % 9 / 3 ? __builtin_inf() : giga;
    }
    w.net.path_bps = path;
    struct cost_job job = {gib, 0};
    EXPECT(near(cost_direct_s(&w.net, w.share, job), 2.01, 0.005));
    EXPECT(near(cost_ring_s(&w.net, w.order, job), 15.32, 0.005));
    w.net.delay_mean_s = w.net.delay_max_s = 0;
    EXPECT(near(cost_direct_s(&w.net, w.share, job) / (8 * gib) * giga, 0.2222, 5e-5));
    EXPECT(near(cost_ring_s(&w.net, w.order, job) / (8 * gib) * giga, 1.7778, 5e-5));
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
}

TEST(weights_keep_their_inequalities) /* 1 + (n-2) x <= T m for all, and T meets the lower bound */
{
    struct rng r = {.state = 1};
    for (unsigned round = 0; round < 2000; round++) {
        size_t n = 1 + rng_below(&r, PEERS);
        double up[PEERS], down[PEERS], share[PEERS], t, sum = 0, least = 1e300, total = 0;
        bool leaf[PEERS];
        size_t owners = 0;
        for (size_t i = 0; i < n; i++) {
            up[i] = 1e6 * (double)(1 + rng_below(&r, 1000));
            down[i] = 1e6 * (double)(1 + rng_below(&r, 1000));
            leaf[i] = rng_below(&r, 4) == 0;
            double m = up[i] < down[i] ? up[i] : down[i];
            owners += !leaf[i];
            total += leaf[i] ? 0 : m;
            least = m < least ? m : least;
        }
        EXPECT(weights_direct(n, up, down, leaf, share, &t) == (owners > 0));
        if (owners == 0 || n == 1) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            double m = up[i] < down[i] ? up[i] : down[i];
            EXPECT(share[i] >= 0 && (!leaf[i] || share[i] <= 0));
            EXPECT(1 + ((double)n - 2) * share[i] <= t * m * (1 + 1e-9));
            sum += share[i];
        }
        EXPECT(near(sum, 1, 1e-9));
        double full = (double)(n - 2 + owners) / total, slow = 1 / least;
        EXPECT(near(t / (full > slow && n > 2 ? full : slow), 1, 1e-9));
    }
}

TEST(weights_refuse_what_has_no_answer) /* no owner, no rate, no peer */
{
    double one[2] = {1, 1}, none[2] = {1, 0}, nan[2] = {1, __builtin_nan("")}, share[2] = {5, 5}, t = 5;
    bool leaves[2] = {true, true}, first[2] = {true, false};
    EXPECT(!weights_direct(2, one, one, leaves, share, &t));
    EXPECT(!weights_direct(2, one, none, NULL, share, &t));
    EXPECT(!weights_direct(2, nan, one, NULL, share, &t) && !weights_direct(2, one, nan, NULL, share, &t));
    EXPECT(!weights_direct(0, one, one, NULL, share, &t));
    EXPECT(near(share[0], 5, 0) && near(t, 5, 0));
    EXPECT(weights_direct(2, one, one, NULL, share, &t) && near(share[0], 0.5, 0) && near(t, 1, 0));
    EXPECT(weights_direct(2, one, one, first, share, &t) && near(share[0], 0, 0) && near(share[1], 1, 0));
    EXPECT(weights_direct(1, one, one, NULL, share, &t) && near(share[0], 1, 0) && near(t, 0, 0));
}

static enum cost_algo choice_of(struct world *w, double bytes, unsigned allowed)
{
    struct cost_choice c;
    struct cost_job job = {bytes, 0};
    EXPECT(cost_choose(&w->net, w->order, w->share, allowed, job, &c));
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        EXPECT(c.predicted_s[c.algo] <= c.predicted_s[a]);
    }
    return c.algo;
}

TEST(choice_is_the_least_prediction) /* tiny below 1.2 MB in case A, ring for 1 GiB, direct when peers differ */
{
    struct world w;
    const unsigned all = 1u << COST_TINY | 1u << COST_DIRECT | 1u << COST_RING;
    world_init(&w, 8, 8, giga, 0);
    EXPECT_EQ(choice_of(&w, 4, all), COST_TINY);
    EXPECT_EQ(choice_of(&w, 1.18e6, all), COST_TINY);
    EXPECT_EQ(choice_of(&w, 1.20e6, all), COST_DIRECT);
    EXPECT_EQ(choice_of(&w, gib, all), COST_RING);
    EXPECT_EQ(choice_of(&w, gib, all & ~(1u << COST_RING)), COST_DIRECT);
    world_init(&w, 8, 4, giga, 10 * giga);
    EXPECT_EQ(choice_of(&w, gib, all), COST_DIRECT);
}

TEST(choice_leaves_out_what_cannot_run) /* a pair that cannot connect: tiny never, direct between owners not */
{
    struct world w;
    struct cost_choice c;
    const struct cost_job job = {mib, 0};
    double path[16];
    world_init(&w, 4, 4, giga, 0);
    for (size_t i = 0; i < 16; i++) {
        path[i] = __builtin_inf();
    }
    path[0 * 4 + 2] = 0;
    w.net.path_bps = path;
    EXPECT(cost_choose(&w.net, w.order, w.share, 7, job, &c) && c.algo == COST_RING);
    EXPECT(c.predicted_s[COST_TINY] > 1e300 && c.predicted_s[COST_DIRECT] > 1e300);
    bool leaf[4] = {true, false, true, false};
    EXPECT(weights_direct(4, w.rate, w.rate, leaf, w.share, &w.s_per_bit));
    EXPECT(cost_choose(&w.net, w.order, w.share, 7, job, &c) && c.algo == COST_DIRECT); /* both are leaves now */
    EXPECT(!cost_choose(&w.net, NULL, NULL, 7, job, &c));
    path[0 * 4 + 1] = 0;
    EXPECT(!cost_choose(&w.net, w.order, NULL, 7, job, &c));
}

TEST(one_peer_needs_no_time)
{
    struct world w;
    struct cost_choice c;
    world_init(&w, 1, 1, giga, 0);
    EXPECT(cost_choose(&w.net, w.order, w.share, 7, (struct cost_job){gib, mib}, &c) && c.algo == COST_TINY);
    EXPECT(near(c.predicted_s[COST_RING], 0, 0) && near(c.predicted_s[COST_DIRECT], 0, 0));
    EXPECT_STR(cost_algo_name(COST_RING), "ring");
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

TEST(rates_are_in_bits_per_second) /* of bytes, an edge would look eight times as slow as the plans take it for */
{
    EXPECT_EQ(rate_of(1250000, 1000000), INT64_C(10000000000)); /* 1.25 MB in a millisecond: 10 Gbit/s */
    EXPECT_EQ(rate_of(1, INT64_C(8000000000)), 1);
    EXPECT_EQ(rate_of(0, 5), 0);
    EXPECT_EQ(rate_of(2, 0), INT64_C(16000000000));
}
