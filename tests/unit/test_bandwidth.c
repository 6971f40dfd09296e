/* test_bandwidth.c - the store of measured rates, and the rounds in which missing ones are probed.
 *
 * Its one idea: the store is compared with a plain matrix through a long random run; rounds are checked by counting.
 * Invariant: all draws are seeded.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/bandwidth.h"
#include "topology/probe_rounds.h"

enum { PEERS = 12, PEERS_MANY = 96 };

static uint64_t peer_id(size_t i)
{
    return (uint64_t)(i % 3) << 32 | i * 977; /* 0 among them */
}

TEST(store_agrees_with_a_matrix) /* set, replace, get and remove in any order */
{
    static struct bandwidth_entry slots[PEERS * PEERS + PEERS * PEERS / 7 + 8];
    struct bandwidth b;
    bandwidth_init(&b, slots, sizeof slots / sizeof slots[0]);
    static uint64_t rate[PEERS][PEERS], seen[PEERS][PEERS];
    static bool known[PEERS][PEERS];
    struct rng r = {.state = 1};
    for (unsigned round = 1; round <= 20000; round++) {
        size_t i = rng_below(&r, PEERS), j = rng_below(&r, PEERS);
        if (rng_below(&r, 3) == 0) {
            EXPECT(bandwidth_remove(&b, peer_id(i), peer_id(j)) == known[i][j]);
            known[i][j] = false;
        } else if (i != j) {
            rate[i][j] = rng_below(&r, 5) * 1000;
            seen[i][j] = round;
            known[i][j] = true;
            EXPECT(bandwidth_set(&b, peer_id(i), peer_id(j), rate[i][j], round));
        }
        i = rng_below(&r, PEERS);
        size_t count = 0;
        for (size_t k = 0; k < PEERS; k++) {
            uint64_t rate_bps = 99, seen_ns = 99;
            bool has = bandwidth_get(&b, peer_id(i), peer_id(k), &rate_bps, &seen_ns);
            EXPECT(has == known[i][k]);
            EXPECT(!has || (rate_bps == rate[i][k] && seen_ns == seen[i][k]));
            for (size_t l = 0; l < PEERS; l++) {
                count += known[k][l];
            }
        }
        EXPECT_EQ(b.count, count);
    }
}

TEST(store_keeps_rates_until_asked) /* a peer that leaves and returns is not probed again */
{
    struct bandwidth_entry slots[16];
    struct bandwidth b;
    bandwidth_init(&b, slots, 16);
    const uint64_t three[3] = {1, 2, 3}, two[2] = {1, 3};
    struct bandwidth_edge edges[6];
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++) {
            EXPECT(bandwidth_set(&b, three[i], three[j], 5, 10) == (i != j));
        }
    }
    EXPECT_EQ(bandwidth_missing(&b, two, 2, 0, edges, 6), 0); /* 2 has left */
    EXPECT_EQ(bandwidth_missing(&b, three, 3, 0, edges, 6), 0);
    for (size_t i = 0; i < 2; i++) {
        EXPECT(bandwidth_remove(&b, 2, two[i]) && bandwidth_remove(&b, two[i], 2) && !bandwidth_remove(&b, 2, two[i]));
    }
    EXPECT_EQ(bandwidth_missing(&b, three, 3, 0, edges, 6), 4);
    EXPECT(edges[0].from == 0 && edges[0].to == 1 && edges[3].from == 2 && edges[3].to == 1);
    EXPECT(bandwidth_set(&b, 1, 2, 0, 20)); /* "cannot connect" is known too */
    EXPECT_EQ(bandwidth_missing(&b, three, 3, 0, edges, 2), 3);
    EXPECT_EQ(bandwidth_missing(&b, three, 3, 10, edges, 2), 3);
    EXPECT_EQ(bandwidth_missing(&b, three, 3, 11, edges, 6), 5); /* older than 11 counts as missing */
}

TEST(store_that_is_full_says_so) /* and still replaces, finds and removes */
{
    for (size_t capacity = 0; capacity < 20; capacity++) {
        struct bandwidth_entry slots[20];
        struct bandwidth b;
        bandwidth_init(&b, slots, capacity);
        size_t stored = 0;
        for (uint64_t to = 1; to <= 40; to++) {
            stored += bandwidth_set(&b, 0, to, to, to);
        }
        EXPECT_EQ(stored, capacity - capacity / 8);
        EXPECT(!bandwidth_get(&b, 0, 41, NULL, NULL));
        if (capacity > 0) {
            EXPECT(bandwidth_set(&b, 0, 1, 77, 78));
            for (uint64_t to = 1; to <= 40; to++) {
                EXPECT(bandwidth_remove(&b, 0, to) == (to <= stored));
            }
            EXPECT_EQ(b.count, 0);
        }
    }
}

/* Counts each edge, and checks that a round is a matching and the two tables agree. */
static void check_rounds(const struct probe_rounds *p, const struct bandwidth_edge *edges, size_t edge_count)
{
    static uint8_t seen[PEERS_MANY][PEERS_MANY];
    memset(seen, 0, sizeof seen);
    size_t scheduled = 0;
    for (size_t round = 0; round < p->rounds; round++) {
        bool receives[PEERS_MANY] = {false};
        size_t in_round = 0;
        for (size_t from = 0; from < p->n; from++) {
            uint16_t to = probe_rounds_to(p, round, from);
            if (to == PROBE_ROUNDS_NONE) {
                continue;
            }
            EXPECT(to < p->n && to != from);
            EXPECT(!receives[to]);
            receives[to] = true;
            EXPECT_EQ(probe_rounds_from(p, round, to), from);
            seen[from][to]++;
            in_round++;
        }
        for (size_t to = 0; to < p->n; to++) {
            EXPECT((probe_rounds_from(p, round, to) != PROBE_ROUNDS_NONE) == receives[to]);
        }
        EXPECT(in_round > 0);
        scheduled += in_round;
    }
    EXPECT_EQ(scheduled, edge_count);
    for (size_t e = 0; e < edge_count; e++) {
        EXPECT_EQ(seen[edges[e].from][edges[e].to], 1);
    }
}

TEST(rounds_cover_each_missing_edge_once_in_disjoint_pairs) /* in as many rounds as the busiest peer has probes */
{
    static struct bandwidth_edge edges[PEERS_MANY * PEERS_MANY];
    static uint16_t storage[PROBE_ROUNDS_ROOM(PEERS_MANY)];
    struct rng r = {.state = 2};
    for (unsigned round = 0; round < 400; round++) {
        size_t n = 2 + rng_below(&r, round % 10 == 0 ? PEERS_MANY - 1 : 14), count = 0, busiest = 0;
        size_t out[PEERS_MANY] = {0}, in[PEERS_MANY] = {0};
        uint64_t known_in_16 = round % 17; /* 0: nothing is known; 16: everything */
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) {
                if (i != j && rng_below(&r, 16) >= known_in_16) {
                    edges[count++] = (struct bandwidth_edge){.from = (uint16_t)i, .to = (uint16_t)j};
                    out[i]++;
                    in[j]++;
                    busiest = out[i] > busiest ? out[i] : busiest;
                    busiest = in[j] > busiest ? in[j] : busiest;
                }
            }
        }
        for (size_t i = count; i > 1 && round % 2 == 0; i--) { /* any order of edges */
            size_t j = rng_below(&r, i);
            struct bandwidth_edge swap = edges[i - 1];
            edges[i - 1] = edges[j];
            edges[j] = swap;
        }
        struct probe_rounds p;
        EXPECT(probe_rounds_init(&p, n, edges, count, storage));
        EXPECT_EQ(p.rounds, busiest);
        EXPECT(known_in_16 != 0 || p.rounds == n - 1);
        check_rounds(&p, edges, count);
    }
}

TEST(round_trip_and_losses_belong_to_an_edge_that_was_measured) /* they would be another's, or of an edge that is none */
{
    struct bandwidth_entry storage[16];
    struct bandwidth b;
    bandwidth_init(&b, storage, 16);
    EXPECT(!bandwidth_set_way(&b, 1, 2, 100, 5));
    EXPECT(bandwidth_set(&b, 1, 2, 1000, 0) && bandwidth_set(&b, 2, 1, 2000, 0));
    EXPECT(bandwidth_set_way(&b, 1, 2, 100, 5));
    EXPECT_EQ(bandwidth_find(&b, 1, 2)->rtt_us, 100);
    EXPECT_EQ(bandwidth_find(&b, 1, 2)->loss_ppm, 5);
    EXPECT_EQ(bandwidth_find(&b, 2, 1)->rtt_us, 0);
    EXPECT(bandwidth_find(&b, 1, 1) == NULL && bandwidth_find(&b, 1, 3) == NULL);
    EXPECT(bandwidth_set(&b, 1, 2, 500, 1)); /* measured again */
    EXPECT_EQ(bandwidth_find(&b, 1, 2)->rtt_us, 0);
}

TEST(rounds_refuse_bad_edges) /* nothing is written outside the tables */
{
    uint16_t storage[PROBE_ROUNDS_ROOM(3)];
    struct probe_rounds p;
    const struct bandwidth_edge loop = {1, 1}, over = {0, 3};
    const struct bandwidth_edge many[3] = {{0, 1}, {0, 2}, {0, 1}};
    EXPECT(!probe_rounds_init(&p, 3, &loop, 1, storage));
    EXPECT(!probe_rounds_init(&p, 3, &over, 1, storage));
    EXPECT(!probe_rounds_init(&p, 3, many, 3, storage));
    EXPECT(!probe_rounds_init(&p, PROBE_ROUNDS_PEERS_MAX + 1, many, 1, storage));
    EXPECT(probe_rounds_init(&p, 3, many, 0, storage) && p.rounds == 0);
}

TEST(doubted_measurement_counts_until_the_next_one_and_is_missing) /* a plan would forget an edge that it has to live with meanwhile */
{
    static const uint64_t ids[] = {11, 12};
    struct bandwidth_entry storage[64];
    struct bandwidth b;
    struct bandwidth_edge missing[2];
    uint64_t bps = 0;
    bandwidth_init(&b, storage, 64);
    EXPECT(!bandwidth_doubt(&b, 11, 12) && !bandwidth_sure(&b, 11, 12));
    EXPECT(bandwidth_set(&b, 11, 12, 500, 1) && bandwidth_set(&b, 12, 11, 600, 1));
    EXPECT(bandwidth_sure(&b, 11, 12));
    EXPECT_EQ(bandwidth_missing(&b, ids, 2, 0, missing, 2), 0);
    EXPECT(bandwidth_doubt(&b, 11, 12) && !bandwidth_doubt(&b, 11, 12));
    EXPECT(!bandwidth_sure(&b, 11, 12) && bandwidth_sure(&b, 12, 11));
    EXPECT(bandwidth_get(&b, 11, 12, &bps, NULL));
    EXPECT_EQ(bps, 500);
    EXPECT_EQ(bandwidth_missing(&b, ids, 2, 0, missing, 2), 1);
    EXPECT(missing[0].from == 0 && missing[0].to == 1);
    EXPECT(bandwidth_set(&b, 11, 12, 50, 2));
    EXPECT(bandwidth_sure(&b, 11, 12));
    EXPECT_EQ(bandwidth_missing(&b, ids, 2, 0, missing, 2), 0);
}
