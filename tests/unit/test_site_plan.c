/* test_site_plan.c - plans of large worlds by sites: every member reaches the root, and the time is that of the loads.
 *
 * One idea: loads are counted again member by member along the parents that the plan tells.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <math.h>

#include "core/random.h"
#include "topology/site_plan.h"

enum { MEMBERS = 10000, SITES = 64 };

static double up[MEMBERS], down[MEMBERS], load[MEMBERS];
static double path[SITES * SITES], delay[SITES * SITES], crossing[SITES * SITES];
static uint16_t site[MEMBERS];
static struct site_world world;
static struct site_plan plan;
static struct tree_forecast forecast;

static void world_draw(size_t n, size_t sites, uint64_t seed)
{
    struct rng r = {.state = seed};
    world = (struct site_world){n, sites, site, up, down, path, delay};
    for (size_t i = 0; i < n; i++) {
        site[i] = (uint16_t)(i < sites ? i : rng_below(&r, sites));
        up[i] = 1e8 * (double)(1 + rng_below(&r, 20));
        down[i] = up[i];
    }
    for (size_t k = 0; k < sites * sites; k++) {
        path[k] = 1e8 * (double)(1 + rng_below(&r, 50));
        delay[k] = k / sites == k % sites ? 0 : 0.001 * (double)(1 + rng_below(&r, 100));
    }
}

static bool make(void **storage)
{
    *storage = malloc(site_plan_room(world.n, world.sites));
    return *storage != NULL && site_plan_make(&world, *storage, &plan, &forecast);
}

/* The time of the fullest link or path. */
static double time_plainly(void)
{
    double most = 0, shares = 0;
    memset(load, 0, sizeof load);
    memset(crossing, 0, sizeof crossing);
    for (uint32_t t = 0; t < plan.count; t++) {
        double share = plan.share[t] / 65536.0;
        unsigned roots = 0;
        shares += share;
        for (uint32_t i = 0; i < world.n; i++) {
            uint32_t p = site_plan_parent(&plan, t, i), at = i, steps = 0;
            for (; site_plan_parent(&plan, t, at) != at && steps <= SITES + 1; steps++) {
                at = site_plan_parent(&plan, t, at);
            }
            EXPECT(steps <= SITES + 1);
            roots += p == i;
            if (p == i) {
                continue;
            }
            load[i] += share;
            load[p] += share;
            if (site[i] != site[p]) {
                crossing[site[i] * world.sites + site[p]] += share;
                crossing[site[p] * world.sites + site[i]] += share;
            }
        }
        EXPECT_EQ(roots, 1);
    }
    EXPECT(fabs(shares - 1) < 1e-12);
    for (size_t i = 0; i < world.n; i++) {
        most = fmax(most, load[i] / fmin(up[i], down[i]));
    }
    for (size_t k = 0; k < world.sites * world.sites; k++) {
        most = crossing[k] > 0 ? fmax(most, crossing[k] / path[k]) : most;
    }
    return most;
}

TEST(ten_thousand_members_get_trees_that_span_them) /* within a gibibyte, without a matrix of their pairs */
{
    void *storage;
    world_draw(MEMBERS, SITES, 1);
    EXPECT(site_plan_room(MEMBERS, SITES) < (size_t)64 << 20);
    EXPECT(make(&storage));
    double want = time_plainly();
    EXPECT(fabs(forecast.s_per_bit - want) < 1e-9 * want);
    EXPECT(forecast.radius_hops >= 2 && forecast.radius_s > 0);
    free(storage);
}

TEST(small_worlds_are_predicted_alike) /* one site, a member per site, and what is between */
{
    for (unsigned round = 0; round < 60; round++) {
        void *storage;
        size_t n = 1 + round, sites = 1 + (round * 7) % (n < SITES ? n : SITES);
        world_draw(n, sites, round);
        EXPECT(make(&storage));
        double want = time_plainly();
        EXPECT(fabs(forecast.s_per_bit - want) <= 1e-9 * want);
        free(storage);
    }
}

TEST(representatives_share_the_load) /* one for all trees would carry the buffer as often as the site has members */
{
    void *storage;
    world_draw(640, 4, 3);
    for (size_t i = 0; i < 640; i++) {
        up[i] = down[i] = 1e9;
    }
    for (size_t k = 0; k < 16; k++) {
        path[k] = 1e12;
    }
    EXPECT(make(&storage));
    EXPECT_EQ(plan.count, SITE_PLAN_TREES);
    EXPECT(forecast.s_per_bit * 1e9 < 6); /* 160 members and 64 trees: 1 + 160 / 64 and what comes from rounding */
    free(storage);
}

TEST(worlds_that_have_no_plan_are_refused)
{
    void *storage;
    world_draw(20, 4, 4);
    site[3] = 0; /* nobody in site 3, unless drawn there */
    for (size_t i = 4; i < 20; i++) {
        site[i] = 0;
    }
    EXPECT(!make(&storage));
    free(storage);
    world_draw(20, 4, 4);
    up[19] = NAN;
    EXPECT(!make(&storage));
    free(storage);
    world_draw(20, 4, 4);
    for (size_t g = 0; g < 4; g++) { /* site 2 has no path */
        path[2 * 4 + g] = 0;
    }
    EXPECT(!make(&storage));
    free(storage);
    world_draw(20, 4, 4);
    world.sites = SITE_PLAN_SITES + 1;
    EXPECT(!site_plan_make(&world, NULL, &plan, &forecast));
}
