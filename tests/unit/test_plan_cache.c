/* test_plan_cache.c - plans that calls share: the same one for the same call, never another's, and no more than a few.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <malloc.h>
#include <string.h>

#include "core/random.h"
#include "engine/tables/plan_cache.h"

enum { WORLD = 5, VIEW = 7 };

static const uint64_t ids[WORLD] = {10, 20, 30, 40, 50};

static struct plan_params of_count(size_t count)
{
    return (struct plan_params){.kind = PLAN_ALL_REDUCE, .algorithm = PLAN_RING, .world = WORLD, .rank = 2, .lanes = 4, .count = count,
                                .align = 1, .frame_elements = 64};
}

/* What was taken is what would have been made. */
static void expect_plan(const struct plan_made *made, const struct plan_params *p, const uint64_t *ranks)
{
    struct plan_segment segments[2 * WORLD];
    struct plan_step steps[8 * WORLD];
    uint32_t partners[WORLD];
    struct plan plan;
    plan_make(&plan, p, segments, steps, NULL, partners);
    EXPECT(made->plan.segment_count == plan.segment_count && made->plan.step_count == plan.step_count);
    EXPECT(memcmp(made->plan.segments, segments, plan.segment_count * sizeof *segments) == 0);
    EXPECT(memcmp(made->plan.steps, steps, plan.step_count * sizeof *steps) == 0);
    EXPECT(made->plan.partner_count == plan.partner_count && plan_made_partner(made, ranks[p->rank]) == PLAN_NOBODY);
    for (uint32_t r = 0; r < p->world; r++) {
        EXPECT_EQ(plan_made_partner(made, ranks[r]), plan_number(&plan, r));
        EXPECT_EQ(plan_made_partner(made, ranks[r] + 1), PLAN_NOBODY);
    }
}

TEST(the_same_call_of_the_same_view_runs_the_same_plan) /* else each pays for its steps again */
{
    struct plan_cache cache;
    struct plan_params p = of_count(1000), q = of_count(1001);
    plan_cache_init(&cache);
    struct plan_made *a = plan_cache_take(&cache, VIEW, &p, ids), *b = plan_cache_take(&cache, VIEW, &q, ids);
    struct plan_made *again = plan_cache_take(&cache, VIEW, &p, ids);
    EXPECT(a != b && again == a);
    expect_plan(a, &p, ids);
    expect_plan(b, &q, ids);
    plan_made_drop(a);
    plan_made_drop(again);
    EXPECT(plan_cache_take(&cache, VIEW, &p, ids) == a); /* nobody ran it, it was kept */
    plan_made_drop(a);
    plan_made_drop(b);
    plan_cache_clear(&cache);
    EXPECT_EQ(cache.count, 0);
}

TEST(whatever_differs_in_a_call_makes_another_plan)
{
    static const uint64_t others[WORLD] = {10, 20, 30, 40, 51};
    struct plan_params p = of_count(1000), list[10];
    struct plan_cache cache;
    for (int i = 0; i < 10; i++) {
        list[i] = p;
    }
    list[1].kind = PLAN_ALL_GATHER;
    list[2].algorithm = PLAN_DIRECT;
    list[3].world = 4;
    list[4].rank = 3;
    list[5].root = 1;
    list[6].lanes = 3;
    list[7].count = 999;
    list[8].align = 8;
    list[9].frame_elements = 128;
    plan_cache_init(&cache);
    for (int i = 0; i < 10; i++) {
        struct plan_made *first = plan_cache_take(&cache, VIEW, &p, ids), *made = plan_cache_take(&cache, VIEW, &list[i], ids);
        EXPECT((made == first) == (i == 0));
        expect_plan(made, &list[i], ids);
        plan_made_drop(made);
        plan_made_drop(first);
    }
    struct plan_made *first = plan_cache_take(&cache, VIEW, &p, ids), *made = plan_cache_take(&cache, VIEW, &p, others);
    EXPECT(made != first); /* a message to somebody else */
    expect_plan(made, &p, others);
    plan_made_drop(made);
    plan_made_drop(first);
    plan_cache_clear(&cache);
}

TEST(another_view_makes_plans_anew_and_leaves_running_ones_alone) /* its ring, weights and ranks may be others */
{
    uint32_t ring[WORLD] = {0, 3, 2, 1, 4};
    struct plan_params p = of_count(1000), turned = p;
    struct plan_cache cache;
    plan_cache_init(&cache);
    struct plan_made *old = plan_cache_take(&cache, VIEW, &p, ids);
    turned.ring = ring;
    struct plan_made *young = plan_cache_take(&cache, VIEW + 1, &turned, ids);
    EXPECT(young != old && cache.count == 1);
    expect_plan(young, &turned, ids);
    expect_plan(old, &p, ids); /* an executor still has it */
    plan_made_drop(old);
    plan_cache_clear(&cache);
    EXPECT_EQ(cache.count, 0);
    expect_plan(young, &turned, ids);
    plan_made_drop(young);
}

TEST(lists_of_counts_are_not_taken_for_others) /* equal pointers say nothing of what is in them */
{
    size_t counts[WORLD] = {3, 1, 4, 1, 5}, places[WORLD] = {0, 3, 4, 8, 9};
    struct plan_params p = {.kind = PLAN_ALL_GATHER, .algorithm = PLAN_DIRECT, .world = WORLD, .lanes = 1, .align = 1, .frame_elements = 64,
                            .parts = {counts, places}};
    struct plan_cache cache;
    plan_cache_init(&cache);
    struct plan_made *a = plan_cache_take(&cache, VIEW, &p, ids);
    counts[0] = 2;
    struct plan_made *b = plan_cache_take(&cache, VIEW, &p, ids);
    EXPECT(a != b && cache.count == 0 && a->plan.segments[0].count == 3 && b->plan.segments[0].count == 2);
    plan_made_drop(a);
    plan_made_drop(b);
}

TEST(memory_is_flat_over_many_counts_and_the_ones_used_last_are_kept)
{
    struct plan_cache cache;
    size_t full = 0;
    plan_cache_init(&cache);
    for (size_t count = 1; count <= 20000; count++) {
        struct plan_params p = of_count(count), used = of_count(1);
        struct plan_made *made = plan_cache_take(&cache, VIEW, &p, ids), *often = plan_cache_take(&cache, VIEW, &used, ids);
        EXPECT(cache.count <= PLAN_CACHE_MOST);
        EXPECT(plan_cache_take(&cache, VIEW, &p, ids) == made);
        expect_plan(often, &used, ids);
        plan_made_drop(made);
        plan_made_drop(made);
        plan_made_drop(often);
        full = count == 2 * (size_t)PLAN_CACHE_MOST ? mallinfo2().uordblks : full;
    }
    EXPECT_EQ(mallinfo2().uordblks, full);
    struct plan_params used = of_count(1);
    struct plan_made *first = LIST_ENTRY(cache.recent.next->next, struct plan_made, recent);
    EXPECT(first->asked.count == 1 && plan_cache_take(&cache, VIEW, &used, ids) == first); /* never displaced */
    plan_made_drop(first);
    plan_cache_clear(&cache);
}

/* A plan dropped by the lanes while others take it: the last holder alone frees it. */
TEST(holders_may_go_in_any_order)
{
    struct plan_cache cache;
    struct plan_made *held[64] = {NULL};
    struct rng rng = {1};
    plan_cache_init(&cache);
    for (int i = 0; i < 20000; i++) {
        uint32_t k = (uint32_t)rng_below(&rng, 64);
        struct plan_params p = of_count(1 + rng_below(&rng, 12));
        plan_made_drop(held[k]);
        held[k] = plan_cache_take(&cache, VIEW + (uint64_t)i / 1000, &p, ids);
        expect_plan(held[k], &p, ids);
    }
    plan_cache_clear(&cache);
    for (int k = 0; k < 64; k++) {
        plan_made_drop(held[k]);
    }
}
