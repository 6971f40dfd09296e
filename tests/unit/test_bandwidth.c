/* test_bandwidth.c - the store of measured rates.
 *
 * Its one idea: the store is compared with a plain matrix through a long random run.
 * Invariant: all draws are seeded.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/bandwidth.h"

enum { PEERS = 12 };

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
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++) {
            EXPECT(bandwidth_set(&b, three[i], three[j], 5, 10) == (i != j));
        }
    }
    EXPECT(bandwidth_complete(&b, two, 2) && bandwidth_complete(&b, three, 3)); /* also when 2 has left */
    for (size_t i = 0; i < 2; i++) {
        EXPECT(bandwidth_remove(&b, 2, two[i]) && bandwidth_remove(&b, two[i], 2) && !bandwidth_remove(&b, 2, two[i]));
    }
    EXPECT(bandwidth_complete(&b, two, 2) && !bandwidth_complete(&b, three, 3));
    EXPECT(bandwidth_set(&b, 1, 2, 0, 20)); /* "cannot connect" is known too */
    EXPECT(!bandwidth_complete(&b, three, 3));
    EXPECT(bandwidth_set(&b, 3, 2, 5, 20) && bandwidth_complete(&b, three, 3)); /* one direction of a pair does */
    EXPECT(bandwidth_either(&b, 2, 3) == bandwidth_find(&b, 3, 2) && bandwidth_either(&b, 3, 2) == bandwidth_find(&b, 3, 2));
    EXPECT(bandwidth_doubt(&b, 3, 2) && !bandwidth_complete(&b, three, 3));
    EXPECT(bandwidth_set(&b, 2, 3, 7, 20) && bandwidth_complete(&b, three, 3) && bandwidth_either(&b, 2, 3)->rate_bps == 7);
    EXPECT(bandwidth_either(&b, 2, 9) == NULL);
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

TEST(doubted_measurement_counts_until_the_next_one_and_is_missing) /* a plan would forget an edge that it has to live with meanwhile */
{
    static const uint64_t ids[] = {11, 12};
    struct bandwidth_entry storage[64];
    struct bandwidth b;
    uint64_t bps = 0;
    bandwidth_init(&b, storage, 64);
    EXPECT(!bandwidth_doubt(&b, 11, 12) && !bandwidth_sure(&b, 11, 12));
    EXPECT(bandwidth_set(&b, 11, 12, 500, 1) && bandwidth_set(&b, 12, 11, 600, 1));
    EXPECT(bandwidth_sure(&b, 11, 12));
    EXPECT(bandwidth_complete(&b, ids, 2));
    EXPECT(bandwidth_doubt(&b, 11, 12) && !bandwidth_doubt(&b, 11, 12));
    EXPECT(!bandwidth_sure(&b, 11, 12) && bandwidth_sure(&b, 12, 11));
    EXPECT(bandwidth_get(&b, 11, 12, &bps, NULL));
    EXPECT_EQ(bps, 500);
    EXPECT(bandwidth_complete(&b, ids, 2)); /* the way back is sure */
    EXPECT(bandwidth_doubt(&b, 12, 11) && !bandwidth_complete(&b, ids, 2));
    EXPECT(bandwidth_set(&b, 12, 11, 600, 1));
    EXPECT(bandwidth_set(&b, 11, 12, 50, 2));
    EXPECT(bandwidth_sure(&b, 11, 12));
    EXPECT(bandwidth_complete(&b, ids, 2));
}

TEST(rate_of_a_probe_is_what_both_ends_have_seen) /* one that lies would draw everybody's data to itself */
{
    struct bandwidth_entry storage[16];
    struct bandwidth b;
    bandwidth_init(&b, storage, 16);
    static const uint64_t said[][3] = {/* sent, heard, rate */
                                       {1000, 1000, 1000}, {1000, 500, 1000}, {1000, 400, 800}, {UINT64_MAX, 800, 1600}, {0, 800, 0},
                                       {800, UINT64_MAX, 800}, {UINT64_MAX, UINT64_MAX, UINT64_MAX}, {1000, 0, 0}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        EXPECT(bandwidth_probed(&b, 1, 2, said[i][0], said[i][1], i));
        EXPECT_EQ(bandwidth_find(&b, 1, 2)->rate_bps, said[i][2]);
        EXPECT_EQ(bandwidth_find(&b, 1, 2)->seen_ns, i);
    }
}

TEST(operations_raise_a_rate_that_both_ends_have_seen_and_never_lower_it) /* they share their links with others */
{
    struct bandwidth_entry storage[16];
    struct bandwidth b;
    bandwidth_init(&b, storage, 16);
    EXPECT(!bandwidth_observe(&b, 1, 2, true, 1000, 1) && b.count == 0); /* never probed */
    EXPECT(bandwidth_probed(&b, 1, 2, 1000, 1000, 1));
    const struct bandwidth_entry *e = bandwidth_find(&b, 1, 2);
    EXPECT(bandwidth_observe(&b, 1, 2, true, 10, 2));
    EXPECT(e->rate_bps == 1000 && e->seen_ns == 1 && !e->observed);
    EXPECT(bandwidth_observe(&b, 1, 2, false, 900, 3));
    EXPECT(e->rate_bps == 1000 && e->seen_ns == 1 && !e->observed);
    EXPECT(bandwidth_observe(&b, 1, 2, true, 2000, 4)); /* the other end has not seen that */
    EXPECT(e->rate_bps == 1000 && !e->observed);
    EXPECT(bandwidth_observe(&b, 1, 2, false, 2000, 5));
    EXPECT(e->rate_bps == 2000 && e->seen_ns == 5 && e->probed_ns == 1 && e->observed);
    EXPECT(bandwidth_doubt(&b, 1, 2) && bandwidth_observe(&b, 1, 2, true, 3000, 6) && e->doubted);
    EXPECT(bandwidth_probed(&b, 1, 2, 500, 500, 7));
    EXPECT(e->rate_bps == 500 && !e->observed && !e->doubted);
}

TEST(assumed_edge_counts_until_it_is_measured) /* it was never measured, or made a group look unknown */
{
    struct bandwidth_entry slots[64];
    const uint64_t ids[3] = {1, 2, 3};
    struct bandwidth b;
    bandwidth_init(&b, slots, 64);
    EXPECT(bandwidth_set(&b, 1, 2, 100, 5) && bandwidth_set_way(&b, 1, 2, 40000, 7) && bandwidth_set(&b, 2, 3, 900, 6));
    EXPECT(!bandwidth_complete(&b, ids, 3));
    const struct bandwidth_entry like = *bandwidth_find(&b, 1, 2);
    EXPECT(bandwidth_assume(&b, 1, 3, &like));
    const struct bandwidth_entry *e = bandwidth_find(&b, 1, 3);
    EXPECT(e->assumed && e->rate_bps == 100 && e->rtt_us == 40000 && e->loss_ppm == 7 && e->probed_ns == 5);
    EXPECT(!bandwidth_sure(&b, 1, 3) && bandwidth_covers(&b, ids, 3) && bandwidth_complete(&b, ids, 3));
    EXPECT(bandwidth_doubt(&b, 1, 3) && bandwidth_find(&b, 1, 3)->assumed); /* the next vote measures it */
    EXPECT(!bandwidth_complete(&b, ids, 3) && !bandwidth_doubt(&b, 1, 3));
    EXPECT(bandwidth_assume(&b, 1, 3, &like) && bandwidth_find(&b, 1, 3)->doubted); /* until it is */
    EXPECT(bandwidth_observe(&b, 1, 2, true, 300, 6)); /* one end alone */
    EXPECT(bandwidth_assume(&b, 3, 1, bandwidth_find(&b, 1, 2)) && bandwidth_observe(&b, 3, 1, false, 300, 6));
    EXPECT(bandwidth_find(&b, 3, 1)->rate_bps == 100 && !bandwidth_find(&b, 3, 1)->observed);
    EXPECT(bandwidth_set_way(&b, 1, 2, 1900, 7));
    struct bandwidth_entry near = *bandwidth_find(&b, 1, 2);
    EXPECT(bandwidth_assume(&b, 1, 3, &near) && bandwidth_find(&b, 1, 3)->rtt_us == BANDWIDTH_APART_US); /* of another site */
    near.rtt_us = 0;
    EXPECT(bandwidth_assume(&b, 1, 3, &near) && bandwidth_find(&b, 1, 3)->rtt_us == 0);
    EXPECT(bandwidth_doubt(&b, 1, 2) && !bandwidth_complete(&b, ids, 3)); /* that one was measured */
    EXPECT(bandwidth_set(&b, 1, 3, 70, 9) && !bandwidth_find(&b, 1, 3)->assumed && bandwidth_sure(&b, 1, 3));
    EXPECT(!bandwidth_assume(&b, 4, 4, &like));
}
