/* test_tour.c - rings: exact against all permutations, local search against exact, repair, cost matrices.
 *
 * Its one idea: a ring of at most 8 peers can be checked against every other ring.
 * Invariant: all matrices come from seeds printed by nobody and fixed here: a failure repeats.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/tour_exact.h"
#include "topology/tour_local.h"
#include "topology/tour_repair.h"

enum { SMALL = 9, BIG = 64 };

/* Random asymmetric costs; `values` small makes ties, one edge in `forbid` (0: none) cannot connect. */
static void draw_costs(struct rng *r, size_t n, uint64_t values, uint64_t forbid, uint64_t *cost)
{
    for (size_t i = 0; i < n * n; i++) {
        bool bad = forbid != 0 && rng_below(r, forbid) == 0;
        cost[i] = bad ? TOUR_FORBIDDEN : 1 + rng_below(r, values);
    }
}

/* An implementation of the objective that shares nothing with the library. */
static void score_plainly(const uint64_t *cost, size_t n, const uint16_t *order, uint64_t *max, uint64_t *sum)
{
    *max = *sum = 0;
    for (size_t i = 0; i + 1 <= n && n > 1; i++) {
        uint64_t c = cost[order[i] * n + order[(i + 1) % n]];
        *sum += c;
        if (c > *max) {
            *max = c;
        }
    }
}

struct best {
    uint16_t order[SMALL];
    uint64_t max, sum;
};

/* All orders in lexicographic order; the first of the best is kept. */
static void try_all(const uint64_t *cost, size_t n, uint16_t *order, size_t fixed, unsigned used, struct best *b)
{
    if (fixed == n) {
        uint64_t max, sum;
        score_plainly(cost, n, order, &max, &sum);
        if (max < b->max || (max == b->max && sum < b->sum)) {
            b->max = max;
            b->sum = sum;
            memcpy(b->order, order, n * sizeof *order);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if ((used >> i & 1) == 0) {
            order[fixed] = (uint16_t)i;
            try_all(cost, n, order, fixed + 1, used | 1u << i, b);
        }
    }
}

static struct best best_of_all(const uint64_t *cost, size_t n)
{
    struct best b = {.max = UINT64_MAX, .sum = UINT64_MAX};
    uint16_t order[SMALL] = {0};
    try_all(cost, n, order, 1, 1, &b);
    return b;
}

static bool is_ring(const uint16_t *order, size_t n)
{
    bool seen[TOUR_PEERS_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        if (order[i] >= n || seen[order[i]]) {
            return false;
        }
        seen[order[i]] = true;
    }
    return order[0] == 0;
}

TEST(exact_equals_the_best_of_all_permutations) /* value, tie-break and report of forbidden edges alike */
{
    struct rng r = {.state = 1};
    unsigned impossible = 0, tied = 0;
    for (unsigned round = 0; round < 600; round++) {
        size_t n = 1 + round % 8;
        uint64_t cost[SMALL * SMALL], values = round % 3 == 0 ? 3 : 1000000, forbid = (round / 8) % 4 + 1;
        draw_costs(&r, n, values, forbid == 1 ? 0 : forbid, cost);
        struct best want = best_of_all(cost, n);
        uint16_t order[SMALL];
        struct tour_score s;
        EXPECT(tour_exact_solve(cost, n, order, &s));
        EXPECT_EQ(s.max, want.max);
        EXPECT_EQ(s.sum, want.sum);
        EXPECT(memcmp(order, want.order, n * sizeof *order) == 0);
        EXPECT(tour_score_possible(s) == (want.max < TOUR_FORBIDDEN));
        impossible += !tour_score_possible(s);
        tied += values == 3;
    }
    EXPECT(impossible > 20 && impossible < 500); /* both answers were really asked for */
    EXPECT(tied > 100);
}

TEST(exact_avoids_a_bad_pair_whenever_a_ring_can) /* an unreachable pair must not drop a peer */
{
    for (size_t n = 4; n <= TOUR_EXACT_MAX; n++) {
        for (size_t bad = 1; bad < n; bad++) {
            uint64_t cost[TOUR_EXACT_MAX * TOUR_EXACT_MAX];
            for (size_t i = 0; i < n * n; i++) {
                cost[i] = 10;
            }
            cost[0 * n + bad] = cost[bad * n + 0] = TOUR_FORBIDDEN;
            uint16_t order[TOUR_EXACT_MAX];
            struct tour_score s;
            EXPECT(tour_exact_solve(cost, n, order, &s));
            EXPECT(is_ring(order, n) && tour_score_possible(s));
            EXPECT_EQ(s.sum, 10 * n);
        }
    }
}

TEST(exact_takes_a_faster_slowest_edge_over_a_smaller_sum) /* the objective is not the sum */
{
    /* 0>1>2>3 costs 1+1+1+10; the ring 0>2>1>3 costs 5 four times: larger sum, faster. */
    uint64_t cost[16] = {0, 1, 5, 9, 9, 0, 1, 5, 9, 5, 0, 1, 10, 9, 9, 0};
    cost[3 * 4 + 0] = 10;
    cost[1 * 4 + 0] = 10;
    cost[2 * 4 + 0] = 5;
    cost[3 * 4 + 2] = 5;
    uint16_t order[4];
    struct tour_score s;
    EXPECT(tour_exact_solve(cost, 4, order, &s));
    EXPECT_EQ(s.max, 5);
    struct best want = best_of_all(cost, 4);
    EXPECT_EQ(s.sum, want.sum);
    EXPECT(s.sum > 4);
}

TEST(exact_refuses_other_sizes) /* a table for 12 must not be overrun */
{
    uint64_t cost[169] = {0};
    uint16_t order[13];
    struct tour_score s;
    EXPECT(!tour_exact_solve(cost, 0, order, &s));
    EXPECT(!tour_exact_solve(cost, 13, order, &s));
}

static void start_in_order(size_t n, uint16_t *start)
{
    for (size_t i = 0; i < n; i++) {
        start[i] = (uint16_t)i;
    }
}

TEST(local_finds_the_exact_ring_of_nine) /* stated bound: slowest edge equal always, sum equal in 95 of 100 */
{
    struct rng r = {.state = 2};
    unsigned equal = 0, rounds = 200;
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t cost[SMALL * SMALL];
        draw_costs(&r, SMALL, round % 2 == 0 ? 1000000 : 20, round % 4 < 2 ? 0 : 4, cost);
        uint16_t start[SMALL], order[SMALL], storage[TOUR_LOCAL_ROOM(SMALL)];
        struct tour_score want, got;
        EXPECT(tour_exact_solve(cost, SMALL, order, &want));
        start_in_order(SMALL, start);
        struct tour_local t;
        EXPECT(tour_local_init(&t, cost, SMALL, start, 4, 50000, round, storage));
        EXPECT(tour_local_step(&t, UINT64_MAX));
        got = tour_local_best(&t, order);
        EXPECT(is_ring(order, SMALL));
        EXPECT_EQ(got.max, want.max);
        EXPECT(got.sum >= want.sum || got.max > want.max);
        equal += got.max == want.max && got.sum == want.sum;
    }
    EXPECT(equal * 100 >= rounds * 95);
}

TEST(exact_rings_of_twelve_are_never_beaten) /* by a search that shares no line with it */
{
    struct rng r = {.state = 12};
    for (unsigned round = 0; round < 60; round++) {
        uint64_t cost[TOUR_EXACT_MAX * TOUR_EXACT_MAX];
        uint16_t start[TOUR_EXACT_MAX], order[TOUR_EXACT_MAX], storage[TOUR_LOCAL_ROOM(TOUR_EXACT_MAX)];
        struct tour_score exact, local;
        struct tour_local t;
        uint64_t max, sum;
        draw_costs(&r, TOUR_EXACT_MAX, round % 2 == 0 ? 1000000 : 20, round % 4 < 2 ? 0 : 4, cost);
        EXPECT(tour_exact_solve(cost, TOUR_EXACT_MAX, order, &exact));
        score_plainly(cost, TOUR_EXACT_MAX, order, &max, &sum);
        EXPECT(is_ring(order, TOUR_EXACT_MAX) && exact.max == max && exact.sum == sum);
        start_in_order(TOUR_EXACT_MAX, start);
        EXPECT(tour_local_init(&t, cost, TOUR_EXACT_MAX, start, 2, 20000, round, storage));
        EXPECT(tour_local_step(&t, UINT64_MAX));
        local = tour_local_best(&t, order);
        EXPECT(!tour_score_less(local, exact));
    }
}

TEST(local_is_never_worse_than_its_start) /* also with no budget, ties everywhere or nothing allowed */
{
    struct rng r = {.state = 3};
    static uint64_t cost[BIG * BIG];
    static uint16_t start[BIG], order[BIG], storage[TOUR_LOCAL_ROOM(BIG)];
    for (unsigned round = 0; round < 300; round++) {
        size_t n = 1 + rng_below(&r, BIG);
        draw_costs(&r, n, round % 5 == 0 ? 1 : 1000, round % 7, cost);
        start_in_order(n, start);
        for (size_t i = n - 1; i > 0; i--) {
            size_t j = rng_below(&r, i + 1);
            uint16_t swap = start[i];
            start[i] = start[j];
            start[j] = swap;
        }
        struct tour_local t;
        EXPECT(tour_local_init(&t, cost, n, start, round % 3, rng_below(&r, 20000), round, storage));
        uint64_t max, sum, start_max, start_sum;
        score_plainly(cost, n, start, &start_max, &start_sum);
        bool done = false;
        while (!done) { /* at any time, not only at the end */
            done = tour_local_step(&t, 500);
            struct tour_score s = tour_local_best(&t, order);
            score_plainly(cost, n, order, &max, &sum);
            EXPECT(is_ring(order, n));
            EXPECT(s.max == max && s.sum == sum);
            EXPECT(max < start_max || (max == start_max && sum <= start_sum));
        }
    }
}

TEST(local_slices_find_what_one_go_finds) /* else the ring would depend on how busy the master is */
{
    struct rng r = {.state = 4};
    static uint64_t cost[BIG * BIG];
    static uint16_t start[BIG], whole[BIG], sliced[BIG], storage[TOUR_LOCAL_ROOM(BIG)];
    for (unsigned round = 0; round < 40; round++) {
        size_t n = 10 + rng_below(&r, BIG - 9);
        draw_costs(&r, n, 100000, round % 3 * 5, cost);
        start_in_order(n, start);
        struct tour_local t;
        EXPECT(tour_local_init(&t, cost, n, start, 2, 60000, round, storage));
        EXPECT(tour_local_step(&t, UINT64_MAX));
        struct tour_score a = tour_local_best(&t, whole);
        EXPECT(tour_local_init(&t, cost, n, start, 2, 60000, round, storage));
        unsigned slices = 0;
        while (!tour_local_step(&t, 1 + rng_below(&r, 900))) {
            slices++;
        }
        struct tour_score b = tour_local_best(&t, sliced);
        EXPECT(a.max == b.max && a.sum == b.sum);
        EXPECT(memcmp(whole, sliced, n * sizeof *whole) == 0);
        EXPECT(slices > 50);
    }
}

TEST(local_ends_near_its_limit) /* bounded by counts: a slice may not run away */
{
    struct rng r = {.state = 5};
    static uint64_t cost[BIG * BIG];
    static uint16_t start[BIG], storage[TOUR_LOCAL_ROOM(BIG)];
    draw_costs(&r, BIG, 1000, 0, cost);
    start_in_order(BIG, start);
    struct tour_local t;
    EXPECT(tour_local_init(&t, cost, BIG, start, 1, 100000, 1, storage));
    uint64_t before = 0;
    while (!tour_local_step(&t, 1000)) {
        EXPECT(t.moves_used - before <= 1000 + 5 * BIG);
        before = t.moves_used;
    }
    EXPECT(t.moves_used <= 100000 + 5 * BIG);
}

TEST(local_finds_a_hidden_ring_of_64) /* one good ring in a bad graph: the slowest edge is what must fall */
{
    static uint64_t cost[BIG * BIG];
    static uint16_t start[BIG], order[BIG], storage[TOUR_LOCAL_ROOM(BIG)];
    for (unsigned seed = 0; seed < 5; seed++) {
        struct rng r = {.state = seed};
        for (size_t i = 0; i < BIG * BIG; i++) {
            cost[i] = 1000 + rng_below(&r, 1000);
        }
        for (size_t i = 0; i < BIG; i++) { /* 29 is prime to 64 */
            cost[(i * 29 % BIG) * BIG + (i + 1) * 29 % BIG] = 100 + rng_below(&r, 10);
        }
        start_in_order(BIG, start);
        struct tour_local t;
        EXPECT(tour_local_init(&t, cost, BIG, start, 3, 2000000, seed, storage));
        EXPECT(tour_local_step(&t, UINT64_MAX));
        EXPECT(tour_local_best(&t, order).max < 110);
    }
}

TEST(local_lowers_the_sum_where_the_slowest_edge_is_given) /* the second half of the objective is searched for too */
{
    static uint64_t cost[BIG * BIG];
    static uint16_t start[BIG], order[BIG], storage[TOUR_LOCAL_ROOM(BIG)];
    for (unsigned seed = 0; seed < 5; seed++) {
        struct rng r = {.state = 100 + seed};
        draw_costs(&r, BIG, 1000, 0, cost);
        for (size_t to = 0; to < BIG; to++) {
            cost[to] = 5000; /* whoever follows peer 0 */
        }
        start_in_order(BIG, start);
        struct tour_local t;
        EXPECT(tour_local_init(&t, cost, BIG, start, 0, 1000000, seed, storage));
        EXPECT(tour_local_step(&t, UINT64_MAX));
        struct tour_score s = tour_local_best(&t, order);
        EXPECT_EQ(s.max, 5000);
        EXPECT(s.sum < 5000 + 2000); /* a random ring has 31,500 on top; the expected best assignment is 1,640 */
    }
}

TEST(local_refuses_what_is_no_ring) /* an order from outside is checked before it is believed */
{
    uint64_t cost[16] = {0};
    uint16_t storage[TOUR_LOCAL_ROOM(4)], twice[4] = {0, 1, 1, 3}, over[4] = {0, 1, 2, 4};
    struct tour_local t;
    EXPECT(!tour_local_init(&t, cost, 4, twice, 1, 100, 1, storage));
    EXPECT(!tour_local_init(&t, cost, 4, over, 1, 100, 1, storage));
    EXPECT(!tour_local_init(&t, cost, 0, twice, 1, 100, 1, storage));
    EXPECT(!tour_local_init(&t, cost, TOUR_PEERS_MAX + 1, twice, 1, 100, 1, storage));
}

TEST(repair_keeps_the_cyclic_order_of_survivors) /* a join or a leave must not reset an optimised ring */
{
    struct rng r = {.state = 6};
    for (unsigned round = 0; round < 400; round++) {
        uint64_t old[20], members[20], cost[400];
        size_t old_count = rng_below(&r, 12), n = 0;
        for (size_t i = 0; i < old_count; i++) {
            old[i] = 100 + i * 7 % 13; /* distinct, not sorted */
        }
        for (uint64_t id = 99; id < 117; id++) { /* some survive, some are new */
            if (rng_below(&r, 2) == 0) {
                members[n++] = id;
            }
        }
        if (n == 0) {
            continue;
        }
        draw_costs(&r, n, 50, 0, cost);
        uint16_t order[20];
        struct tour_score s;
        EXPECT(tour_repair_order(old, old_count, members, n, cost, order, &s));
        EXPECT(is_ring(order, n));
        uint64_t max, sum;
        score_plainly(cost, n, order, &max, &sum);
        EXPECT(s.max == max && s.sum == sum);
        uint64_t kept[20], found[20];
        size_t kept_count = 0, found_count = 0;
        for (size_t k = 0; k < old_count; k++) {
            for (size_t i = 0; i < n; i++) {
                if (members[i] == old[k]) {
                    kept[kept_count++] = old[k];
                }
            }
        }
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < kept_count; k++) {
                if (members[order[i]] == kept[k]) {
                    found[found_count++] = kept[k];
                }
            }
        }
        EXPECT_EQ(found_count, kept_count);
        size_t turn = 0;
        while (kept_count > 0 && turn + 1 < kept_count && kept[turn] != found[0]) {
            turn++;
        }
        for (size_t i = 0; i < kept_count; i++) {
            EXPECT_EQ(found[i], kept[(turn + i) % kept_count]);
        }
    }
}

TEST(repair_puts_one_newcomer_at_the_best_place) /* compared with every place */
{
    struct rng r = {.state = 7};
    for (unsigned round = 0; round < 300; round++) {
        size_t n = 2 + rng_below(&r, 10);
        uint64_t members[12], cost[144], old[12];
        for (size_t i = 0; i < n; i++) {
            members[i] = old[i] = 10 + i;
        }
        draw_costs(&r, n, round % 2 == 0 ? 4 : 10000, round % 3 * 4, cost);
        uint16_t order[12], tried[12];
        struct tour_score s, best = {UINT64_MAX, UINT64_MAX};
        EXPECT(tour_repair_order(old, n - 1, members, n, cost, order, &s)); /* the last one is new */
        for (size_t place = 1; place < n; place++) {
            for (size_t i = 0, from = 0; i < n; i++) {
                tried[i] = i == place ? (uint16_t)(n - 1) : (uint16_t)from++;
            }
            struct tour_score one;
            score_plainly(cost, n, tried, &one.max, &one.sum);
            best = tour_score_less(one, best) ? one : best;
        }
        EXPECT(s.max == best.max && s.sum == best.sum);
    }
}

TEST(repair_takes_nothing_from_a_bad_old_order) /* doubles in it, none of the members in it, no members */
{
    uint64_t old[4] = {5, 5, 9, 5}, members[2] = {5, 6}, cost[4] = {0, 3, 4, 0};
    uint16_t order[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    struct tour_score s;
    EXPECT(tour_repair_order(old, 4, members, 2, cost, order, &s));
    EXPECT(is_ring(order, 2) && s.max == 4 && s.sum == 7);
    EXPECT_EQ(order[2], 9); /* nothing behind the ring is touched */
    EXPECT(tour_repair_order(old + 2, 1, members, 2, cost, order, &s));
    EXPECT(is_ring(order, 2));
    EXPECT(!tour_repair_order(old, 4, members, 0, cost, order, &s));
}

TEST(costs_of_unknown_edges_are_the_median) /* an unmeasured edge is neither sought nor avoided */
{
    struct bandwidth_entry slots[32];
    struct bandwidth b;
    bandwidth_init(&b, slots, 32);
    const uint64_t ids[4] = {7, 1, 1000, 3}, mega = 1000000;
    uint64_t cost[16];
    EXPECT_EQ(tour_costs_fill(&b, ids, 4, cost), 12);
    EXPECT_EQ(cost[1], 1);
    EXPECT(bandwidth_set(&b, 7, 1, 100 * mega, 0) && bandwidth_set(&b, 1, 7, 900 * mega, 0));
    EXPECT(bandwidth_set(&b, 3, 1000, 300 * mega, 0) && bandwidth_set(&b, 7, 3, 0, 0));
    EXPECT_EQ(tour_costs_fill(&b, ids, 4, cost), 6);
    EXPECT_EQ(cost[0 * 4 + 1], TOUR_FORBIDDEN / (100 * mega));
    EXPECT_EQ(cost[1 * 4 + 0], TOUR_FORBIDDEN / (900 * mega));
    EXPECT_EQ(cost[0 * 4 + 3], TOUR_FORBIDDEN);
    EXPECT_EQ(cost[3 * 4 + 2], TOUR_FORBIDDEN / (300 * mega));
    EXPECT_EQ(cost[3 * 4 + 0], TOUR_FORBIDDEN);                 /* as the way back */
    EXPECT_EQ(cost[2 * 4 + 3], TOUR_FORBIDDEN / (300 * mega));
    EXPECT_EQ(cost[1 * 4 + 2], TOUR_FORBIDDEN / (300 * mega)); /* the median of 100, 300, 300, 900 */
    EXPECT_EQ(tour_edge_cost(UINT64_MAX), 1);
    EXPECT(tour_edge_cost(1) < TOUR_FORBIDDEN);
}
