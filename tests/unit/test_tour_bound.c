/* test_tour_bound.c - the bound on the slowest edge beside the best ring of all, and where it must be equal to it.
 *
 * One idea: the best ring of up to 9 members is known; a bound above it would call it impossible.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/drawn_network.h"
#include "topology/tour_bound.h"
#include "topology/tour_exact.h"

enum { FEW = 9 };

static uint64_t cost[64 * 64], storage[8192];

static void costs_draw(struct rng *r, size_t n, uint64_t values, uint64_t forbid)
{
    for (size_t i = 0; i < n * n; i++) {
        cost[i] = forbid != 0 && rng_below(r, forbid) == 0 ? TOUR_FORBIDDEN : 1 + rng_below(r, values);
    }
}

static uint64_t bound(size_t n, uint64_t known)
{
    EXPECT(tour_bound_room(n) <= sizeof storage);
    return tour_bound(cost, n, known, storage);
}

TEST(bound_is_never_above_the_best_ring) /* and is equal to it nearly always, with ties and edges that cannot connect */
{
    struct rng r = {.state = 1};
    unsigned equal = 0, rounds = 3000;
    for (unsigned round = 0; round < rounds; round++) {
        size_t n = 2 + round % (FEW - 1);
        uint16_t order[FEW];
        struct tour_score best;
        costs_draw(&r, n, round % 3 == 0 ? 5 : 1000000, round % 5);
        EXPECT(tour_exact_solve(cost, n, order, &best));
        uint64_t b = bound(n, best.max);
        EXPECT(b <= best.max && b > 0);
        EXPECT_EQ(bound(n, best.max + 1000), b); /* what is known changes the work, not the bound */
        equal += b == best.max;
    }
    EXPECT(equal * 10 >= rounds * 9);
}

TEST(each_condition_is_needed) /* graphs that satisfy the other two */
{
    /* Two pairs, and the way from one to the other, but none back. */
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            cost[i * 4 + j] = i / 2 <= j / 2 ? 1 : 9;
        }
    }
    EXPECT_EQ(bound(4, 100), 9);
    /* Two middles with three around them: of the three each needs a middle as its successor. */
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            cost[i * 5 + j] = i < 2 || j < 2 ? 1 : 9;
        }
    }
    EXPECT_EQ(bound(5, 100), 9);
    /* Two triangles that share member 0: without it the others do not lie on a path. */
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            cost[i * 5 + j] = i == 0 || j == 0 || (i <= 2) == (j <= 2) ? 1 : 9;
        }
    }
    EXPECT_EQ(bound(5, 100), 9);
}

TEST(four_cities_have_a_ring_of_120) /* a published network whose text says 130 and forgets the way back */
{
    static struct drawn d;
    uint16_t order[4];
    struct tour_score best;
    drawn_four_cities(&d);
    for (size_t i = 0; i < 16; i++) {
        cost[i] = i / 4 == i % 4 ? 0 : tour_edge_cost((uint64_t)(d.path[i] * 1e6));
    }
    EXPECT(tour_exact_solve(cost, 4, order, &best));
    EXPECT_EQ(best.max, tour_edge_cost(120000000));
    EXPECT_EQ(bound(4, best.max), best.max);
    EXPECT(order[1] == 1 && order[2] == 2 && order[3] == 3); /* Tokyo, Seoul, London, New York */
}

TEST(bound_of_a_hidden_ring_is_its_slowest_edge) /* 64 members, all other edges slow */
{
    struct rng r = {.state = 2};
    for (size_t i = 0; i < 64 * 64; i++) {
        cost[i] = 1000 + rng_below(&r, 1000);
    }
    for (size_t i = 0; i < 64; i++) {
        cost[(i * 29 % 64) * 64 + (i + 1) * 29 % 64] = 100 + i;
    }
    EXPECT_EQ(bound(64, 1999), 163);
    EXPECT_EQ(bound(64, 163), 163);
    EXPECT_EQ(bound(1, 5), 0);
}
