/* test_probe_order.c - which edges are measured at the same time, checked by playing probes of any length.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/probe_order.h"

enum { PEERS_MOST = 96, WORDS = (PEERS_MOST + 1) * 2 };

/* A run: how long the edge that a sender measures still takes, and how often each edge was measured. */
static uint64_t words[WORDS];
static const uint64_t everybody[(PEERS_MOST + 63) / 64] = {UINT64_MAX, UINT64_MAX};
static struct probe_place place[PEERS_MOST];
static uint32_t left[PEERS_MOST], times[PEERS_MOST][PEERS_MOST];

static void begin_some(struct probe_order *p, struct rng *r, uint32_t longest)
{
    struct probe_edge e;
    while (probe_order_next(p, everybody, &e)) {
        EXPECT(e.from < p->n && e.to < p->n && e.from != e.to);
        EXPECT_EQ(p->place[e.from].to, e.to);
        left[e.from] = 1 + (uint32_t)rng_below(r, longest);
        times[e.from][e.to]++;
    }
    uint32_t busy = 0;
    bool receives[PEERS_MOST] = {false};
    for (uint32_t i = 0; i < p->n; i++) {
        uint16_t to = p->place[i].to;
        if (to != PROBE_ORDER_NONE) {
            EXPECT(!receives[to]);
            EXPECT(p->place[to].to != i); /* no two measure each other */
            receives[to] = true;
            busy++;
        }
    }
    EXPECT_EQ(p->busy, busy);
}

/* Until nothing is under way any more; how long that took. */
static uint32_t play(struct probe_order *p, struct rng *r, uint32_t longest)
{
    uint32_t took = 0;
    for (begin_some(p, r, longest); p->busy > 0; took++) {
        for (uint32_t i = 0; i < p->n; i++) {
            if (p->place[i].to != PROBE_ORDER_NONE && --left[i] == 0) {
                probe_order_end(p, (uint16_t)i);
            }
        }
        begin_some(p, r, longest);
    }
    EXPECT_EQ(p->waiting, 0);
    return took;
}

TEST(every_edge_is_measured_once_and_nobody_waits_for_others) /* else it takes longer than twice what the busiest peer needs */
{
    struct rng r = {.state = 2};
    for (unsigned round = 0; round < 400; round++) {
        uint32_t n = 2 + (uint32_t)rng_below(&r, round % 10 == 0 ? PEERS_MOST - 1 : 14), count = 0, busiest = 0;
        uint32_t out[PEERS_MOST] = {0}, in[PEERS_MOST] = {0};
        uint64_t known_in_16 = round % 17; /* 0: nothing is known; 16: everything */
        bool wanted[PEERS_MOST][PEERS_MOST] = {{false}};
        struct probe_order p;
        memset(times, 0, sizeof times);
        probe_order_init(&p, n, words, place);
        for (uint16_t i = 0; i < n; i++) {
            for (uint16_t k = 0; k < n; k++) {
                if (i != k && rng_below(&r, 16) >= known_in_16) {
                    wanted[i][k] = true;
                    probe_order_add(&p, i, k);
                    probe_order_add(&p, i, k); /* waits once */
                    count++;
                    busiest = ++out[i] > busiest ? out[i] : busiest;
                    busiest = ++in[k] > busiest ? in[k] : busiest;
                }
            }
        }
        EXPECT_EQ(p.waiting, count);
        uint32_t longest = round % 3 == 0 ? 1 : 9, took = play(&p, &r, longest);
        EXPECT(longest > 1 || took <= 2 * busiest + 2); /* 2: a pair that measures each other takes turns */
        EXPECT(longest > 1 || known_in_16 != 0 || n % 2 == 0 || took == n - 1);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < n; k++) {
                EXPECT_EQ(times[i][k], wanted[i][k]);
            }
        }
    }
}

TEST(slow_edge_holds_up_its_two_ends_only) /* all others waited for the slowest of each round */
{
    struct probe_order p;
    struct probe_edge e;
    probe_order_init(&p, 4, words, place);
    for (uint16_t i = 0; i < 4; i++) {
        for (uint16_t k = 0; k < 4; k++) {
            if (i != k) {
                probe_order_add(&p, i, k);
            }
        }
    }
    uint32_t measured = 0;
    while (probe_order_next(&p, everybody, &e)) {
    }
    EXPECT_EQ(p.place[0].to, 1);
    for (bool any = true; any;) { /* 0 -> 1 takes for ever */
        any = false;
        for (uint16_t i = 1; i < 4; i++) {
            any = any || p.place[i].to != PROBE_ORDER_NONE;
            measured += p.place[i].to != PROBE_ORDER_NONE;
            probe_order_end(&p, i);
        }
        while (probe_order_next(&p, everybody, &e)) {
        }
    }
    EXPECT_EQ(measured, 6); /* of 1, 2, 3 to 0, 2, 3, but 1 -> 0, which would meet it */
    probe_order_end(&p, 0);
    EXPECT_EQ(p.busy, 0);
    EXPECT_EQ(p.waiting, 5);
}

TEST(order_goes_on_in_other_storage)
{
    struct probe_order p, moved;
    struct probe_edge e;
    static uint64_t more[WORDS];
    static struct probe_place more_places[PEERS_MOST];
    probe_order_init(&p, 3, words, place);
    probe_order_add(&p, 0, 1);
    probe_order_add(&p, 0, 2);
    EXPECT(probe_order_next(&p, everybody, &e) && e.to == 1);
    probe_order_move(&moved, &p, more, more_places);
    memset(words, 0xA5, sizeof words);
    memset(place, 0xA5, sizeof place);
    EXPECT(!probe_order_next(&moved, everybody, &e));
    probe_order_end(&moved, 0);
    probe_order_end(&moved, 0); /* has none any more */
    EXPECT(probe_order_next(&moved, everybody, &e) && e.from == 0 && e.to == 2);
    EXPECT_EQ(moved.waiting, 0);
    EXPECT_EQ(moved.busy, 1);
}

TEST(orders_of_nobody_and_of_one_are_empty)
{
    struct probe_order p, moved;
    struct probe_edge e;
    for (uint32_t n = 0; n < 2; n++) {
        probe_order_init(&p, n, words, place);
        EXPECT(!probe_order_next(&p, everybody, &e) && p.busy == 0);
        probe_order_move(&moved, &p, words, place);
        EXPECT(!probe_order_next(&moved, everybody, &e));
    }
}

TEST(peers_that_are_away_keep_their_edges_and_those_that_have_gone_lose_them)
{
    struct probe_order p;
    struct probe_edge e;
    const uint64_t present = 5; /* 0 and 2 */
    probe_order_init(&p, 3, words, place);
    for (uint16_t i = 0; i < 3; i++) {
        for (uint16_t k = 0; k < 3; k++) {
            if (i != k) {
                probe_order_add(&p, i, k);
            }
        }
    }
    EXPECT(probe_order_next(&p, &present, &e) && e.from == 0 && e.to == 2);
    EXPECT(!probe_order_next(&p, &present, &e));
    EXPECT_EQ(p.waiting, 5);
    probe_order_drop(&p, 1);
    probe_order_drop(&p, 1);
    EXPECT_EQ(p.waiting, 1);
    probe_order_end(&p, 0);
    EXPECT(probe_order_next(&p, everybody, &e) && e.from == 2 && e.to == 0);
    EXPECT(!probe_order_next(&p, everybody, &e));
}

/* What a link between two sites carries at once. */
static void expect_one_probe_for_each_site(const struct probe_order *p, const uint16_t *site)
{
    uint16_t out[PEERS_MOST], in[PEERS_MOST];
    memset(out, 0xFF, sizeof out);
    memset(in, 0xFF, sizeof in);
    for (uint32_t i = 0; i < p->n; i++) {
        uint16_t to = p->place[i].to;
        if (to != PROBE_ORDER_NONE && site[to] != site[i]) {
            EXPECT(out[site[i]] == 0xFFFF && in[site[to]] == 0xFFFF);
            out[site[i]] = site[to];
            in[site[to]] = site[i];
        }
    }
    for (uint32_t g = 0; g < p->n; g++) {
        EXPECT(out[g] == 0xFFFF || out[out[g]] != g); /* no two measure each other */
    }
}

TEST(site_sends_one_probe_to_others_and_receives_one) /* three hosts behind one link read a third of it each */
{
    struct rng r = {.state = 3};
    for (unsigned round = 0; round < 200; round++) {
        uint32_t n = 2 + (uint32_t)rng_below(&r, 20);
        uint16_t site[PEERS_MOST];
        struct probe_order p;
        memset(times, 0, sizeof times);
        probe_order_init(&p, n, words, place);
        for (uint16_t i = 0; i < n; i++) {
            uint16_t other = (uint16_t)rng_below(&r, i + 1u);
            site[i] = rng_below(&r, 3) > 0 && other < i ? site[other] : i;
            probe_order_at_site(&p, i, site[i]);
        }
        for (uint16_t i = 0; i < n; i++) {
            for (uint16_t k = 0; k < n; k++) {
                if (i != k) {
                    probe_order_add(&p, i, k);
                }
            }
        }
        for (begin_some(&p, &r, 5); p.busy > 0; begin_some(&p, &r, 5)) {
            expect_one_probe_for_each_site(&p, site);
            for (uint32_t i = 0; i < n; i++) {
                if (p.place[i].to != PROBE_ORDER_NONE && --left[i] == 0) {
                    probe_order_end(&p, (uint16_t)i);
                }
            }
        }
        EXPECT_EQ(p.waiting, 0);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; k < n; k++) {
                EXPECT_EQ(times[i][k], i != k);
            }
        }
    }
}
