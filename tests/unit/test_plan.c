/* test_plan.c - every algorithm of every kind, whatever world, weights, ring, root and counts.
 * SPDX-License-Identifier: MIT */
#include "tests/draw_trees.h"
#include "tests/unit/plan_packed.h"
#include "tests/unit/plan_values.h"

static const size_t aligns[2] = {1, 256};

/* All sorts of counts in worlds of up to 16, and of 34, 68 ...; in the others a few, each with its turn. */
static void check_counts(struct plan_params params)
{
    const size_t counts[] = {0, 1, params.world - 1, params.world, params.world + 1, 1000, 10007, 64 * 256 * 2};
    enum { COUNTS = sizeof counts / sizeof counts[0] };
    bool all = params.world <= 16 || params.world % 34 == 0;
    for (size_t i = 0; i < 2 * COUNTS; i++) {
        if (all || i % COUNTS == params.world % COUNTS) {
            params.count = counts[i % COUNTS];
            params.align = aligns[i / COUNTS];
            params.frame_elements = params.align == 1 ? 77 : 512;
            check_world(params);
        }
    }
}

/* All worlds; some of them where sanitizers slow everything down. */
static uint32_t next_world(uint32_t world)
{
    return world + (world < 9 || test_scaled(10) == 10 ? 1 : 17);
}

TEST(direct_gives_every_rank_every_contribution_once) /* a rank folded twice, or in another order, changes gradients */
{
    struct rng rng = {1};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t weights[MAX_WORLD];
        struct plan_params params = {.algorithm = PLAN_DIRECT, .world = world};
        check_counts(params);
        params.weights = weights;
        for (uint32_t i = 0; i < world; i++) {
            weights[i] = (uint32_t)rng_below(&rng, 1000);
        }
        weights[rng_below(&rng, world)] = 1;
        check_counts(params);
        for (uint32_t i = 0; i < world; i++) { /* leaves: most own nothing; huge values must not overflow */
            weights[i] = rng_below(&rng, 3) == 0 ? UINT32_MAX : 0;
        }
        weights[rng_below(&rng, world)] = UINT32_MAX - 5;
        check_counts(params);
    }
}

static void shuffle(struct rng *rng, uint32_t *ring, uint32_t world)
{
    for (uint32_t i = 0; i < world; i++) {
        uint32_t j = (uint32_t)rng_below(rng, i + 1);
        ring[i] = ring[j];
        ring[j] = i;
    }
}

TEST(ring_gives_every_rank_every_contribution_once_in_any_order_of_the_ring)
{
    struct rng rng = {2};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t ring[MAX_WORLD] = {0};
        struct plan_params params = {.algorithm = PLAN_RING, .world = world};
        check_counts(params);
        shuffle(&rng, ring, world);
        params.ring = ring;
        check_counts(params);
        params.kind = PLAN_ALL_GATHER;
        check_counts(params);
    }
}

TEST(tiny_tree_and_halving_give_every_rank_every_contribution_once) /* halving in worlds that are no power of two as well */
{
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        check_counts((struct plan_params){.algorithm = PLAN_HALVING, .world = world});
        check_counts((struct plan_params){.algorithm = PLAN_TINY, .world = world});
        check_counts((struct plan_params){.algorithm = PLAN_TREE, .world = world, .root = world / 3});
    }
}

TEST(a_forest_gives_every_rank_every_contribution_once) /* a tree that crosses another, a slice of nothing, a rank that is leaf here and root there */
{
    struct rng rng = {9};
    uint16_t parent[TREE_SET_MOST * MAX_WORLD];
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        struct tree_set trees;
        for (uint32_t most = 1; most <= TREE_SET_MOST; most *= world > 33 ? 32 : 4) {
            draw_trees(&rng, world, most, &trees, parent);
            EXPECT(tree_set_valid(&trees));
            check_counts((struct plan_params){.algorithm = PLAN_FOREST, .world = world, .trees = &trees});
        }
    }
}

TEST(a_forest_gives_each_tree_its_share_in_every_round) /* slices one behind the other would leave all trees but one idle */
{
    uint16_t parent[3 * 4] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 2, 2};
    struct tree_set trees = {.members = 4, .count = 3, .share = {32768, 16384, 16384}, .parent = parent};
    struct plan_params params = {.algorithm = PLAN_FOREST, .world = 4, .trees = &trees, .count = 1 << 20, .align = 1, .frame_elements = 1 << 12};
    uint32_t segments = plan_max_segments(&params), rounds = segments / 3;
    EXPECT_EQ(rounds, (1 << 20) / (1 << 12) / 6);
    struct world w = world_make(params, NULL, NULL);
    for (uint32_t i = 0; i < segments; i++) {
        size_t part = (size_t)(1 << 20) / rounds * trees.share[i % 3] / TREE_SET_WHOLE, got = w.plans[0].segments[i].count;
        EXPECT(got + 1 >= part && got <= part + 2);
    }
    world_free(&w);
    params.count = SIZE_MAX / 8; /* the number of segments is bounded, whatever the count */
    params.frame_elements = 1 << 20;
    EXPECT(plan_max_segments(&params) <= 1024 && plan_max_segments(&params) > 1000);
}

/* Uneven parts, some of them empty; anywhere, in any order, if `places`. */
static void draw_parts(struct rng *rng, uint32_t world, size_t *counts, size_t *places)
{
    uint32_t order[MAX_WORLD] = {0};
    size_t next = 0;
    shuffle(rng, order, world);
    for (uint32_t r = 0; r < world; r++) {
        counts[r] = rng_below(rng, 3) == 0 ? 0 : rng_below(rng, 400);
    }
    for (uint32_t i = 0; i < world; i++) {
        places[order[i]] = next + 5;
        next += counts[order[i]] + rng_below(rng, 3);
    }
}

static void check_parts(struct rng *rng, struct plan_params params)
{
    size_t counts[MAX_WORLD], places[MAX_WORLD];
    params.align = 1;
    params.frame_elements = 77;
    for (int i = 0; i < 4; i++) {
        const size_t even[2] = {0, 100};
        params.count = even[i % 2];
        params.parts.counts = i < 2 ? NULL : counts;
        params.parts.places = i < 3 ? NULL : places;
        params.lanes = 1 + (uint32_t)i;
        draw_parts(rng, params.world, counts, places);
        check_world(params);
    }
}

TEST(parts_of_any_size_are_gathered_and_scattered_and_reduced)
{
    static const struct {
        enum plan_kind kind;
        enum plan_algorithm algorithm;
    } plans[] = {{PLAN_REDUCE_SCATTER, PLAN_DIRECT}, {PLAN_ALL_GATHER, PLAN_DIRECT}, {PLAN_ALL_GATHER, PLAN_RING},
                 {PLAN_ALL_GATHER, PLAN_BRUCK}, {PLAN_SCATTER, PLAN_PAIRWISE}, {PLAN_GATHER, PLAN_PAIRWISE},
                 {PLAN_SCATTER, PLAN_DIRECT}, {PLAN_GATHER, PLAN_DIRECT}};
    struct rng rng = {5};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
            check_parts(&rng, (struct plan_params){.kind = plans[i].kind, .algorithm = plans[i].algorithm, .world = world,
                                                   .root = (uint32_t)rng_below(&rng, world)});
        }
    }
}

/* Members that are not linked with each other, from one to all but one; and weights that differ. */
static void draw_weights(struct rng *rng, uint32_t *weights, uint32_t world)
{
    uint64_t lack = 1 + rng_below(rng, 6);
    for (uint32_t r = 0; r < world; r++) {
        weights[r] = rng_below(rng, 6) < lack ? 0 : 1 + (uint32_t)rng_below(rng, 9);
    }
    weights[rng_below(rng, world)] = 1;
}

TEST(where_pairs_have_no_link_others_stand_in) /* every step between two of which one is linked with all: plan_values.h */
{
    static const enum plan_kind kinds[6] = {PLAN_ALL_GATHER, PLAN_BROADCAST, PLAN_REDUCE, PLAN_REDUCE_SCATTER, PLAN_SCATTER, PLAN_GATHER};
    struct rng rng = {8};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        for (size_t i = world <= 16 ? 0 : world % 6; i < (world <= 16 ? 6 : world % 6 + 1); i++) { /* in larger ones in turn */
            uint32_t weights[MAX_WORLD];
            struct plan_params params = {.kind = kinds[i], .algorithm = PLAN_DIRECT, .world = world, .weights = weights};
            for (int round = 0; round < (world <= 9 ? 8 : 1); round++) {
                draw_weights(&rng, weights, world);
                params.root = (uint32_t)rng_below(&rng, world);
                if (params.kind == PLAN_BROADCAST || params.kind == PLAN_REDUCE) {
                    check_counts(params);
                } else {
                    check_parts(&rng, params);
                }
            }
        }
    }
}

/* Each part of two hops goes by one that is linked with both; small worlds of many shapes, larger ones of a few. */
TEST(all_to_all_goes_round_pairs_without_a_link)
{
    struct rng rng = {10};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t weights[MAX_WORLD];
        struct plan_params params = {.kind = PLAN_ALL_TO_ALL, .algorithm = PLAN_DIRECT, .world = world, .align = 1, .frame_elements = 77};
        for (uint32_t round = 0; round < (world <= 9 ? 24 : 1); round++) {
            const size_t counts[3] = {0, 77, 77 * (1 + rng_below(&rng, 9)) - 3};
            draw_weights(&rng, weights, world);
            if (world > 64) { /* else as many parts are handed on as there are pairs */
                for (uint32_t r = 0; r < world; r++) {
                    weights[r] = r % 20 < 3 ? 0 : 1;
                }
            }
            params.weights = round % 8 == 7 ? NULL : weights;
            params.lanes = 1 + round % 5 + world % 3;
            params.count = counts[round % 8 == 0 ? rng_below(&rng, 2) : 2];
            check_world(params);
        }
    }
}

TEST(a_reduce_gives_the_root_every_contribution_once)
{
    struct rng rng = {9};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t ring[MAX_WORLD] = {0};
        shuffle(&rng, ring, world);
        check_counts((struct plan_params){.kind = PLAN_REDUCE, .algorithm = PLAN_DIRECT, .world = world, .root = world / 3});
        check_counts((struct plan_params){.kind = PLAN_REDUCE, .algorithm = PLAN_TREE, .world = world, .root = world / 3});
        check_counts((struct plan_params){.kind = PLAN_REDUCE, .algorithm = PLAN_CHAIN, .world = world, .root = world / 3});
        check_counts((struct plan_params){.kind = PLAN_REDUCE, .algorithm = PLAN_CHAIN, .world = world, .root = world - 1, .ring = ring});
    }
}

TEST(broadcast_reaches_everybody_once_from_any_root)
{
    static const enum plan_algorithm algorithms[] = {PLAN_DIRECT, PLAN_CHAIN, PLAN_TREE};
    struct rng rng = {6};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t ring[MAX_WORLD] = {0};
        shuffle(&rng, ring, world);
        for (int i = world == 1; i < 3; i++) { /* one alone hands nothing on */
            for (uint32_t k = 0; k < (world <= 9 ? world : 2); k++) {
                struct plan_params params = {.kind = PLAN_BROADCAST, .algorithm = algorithms[i], .world = world, .count = 1001, .align = 1,
                                             .frame_elements = 77, .root = world <= 9 ? k : (uint32_t)rng_below(&rng, world)};
                check_world(params);
                params.ring = ring;
                params.count = k;
                check_world(params);
            }
        }
    }
}

/* [from][to]: elements; each rank knows its row and its column. */
struct exchange {
    size_t counts[MAX_WORLD][MAX_WORLD], to[MAX_WORLD], from[MAX_WORLD];
    size_t places[MAX_WORLD];
};

static void exchange_of(struct plan_params *params, const void *user)
{
    static size_t row[MAX_WORLD], column[MAX_WORLD];
    const struct exchange *x = user;
    for (uint32_t r = 0; r < params->world; r++) {
        row[r] = x->counts[params->rank][r];
        column[r] = x->counts[r][params->rank];
    }
    params->parts.counts = row;
    params->out_parts.counts = column;
}

/* The segment of what goes from one rank to another, at one of the two; null: there is none. */
static const struct plan_segment *part_of(const struct world *w, uint32_t at, uint32_t from, uint32_t to)
{
    const struct plan *p = &w->plans[at];
    const struct plan_segment *found = NULL;
    uint32_t kind = from == to ? STEP_COPY : at == to ? STEP_RECV : STEP_SEND, other = at == to ? from : to;
    for (uint32_t i = 0; i < p->segment_count; i++) {
        const struct plan_segment *s = &p->segments[i];
        if (p->steps[s->step].kind == kind && p->steps[s->step].rank == other) {
            EXPECT(found == NULL && s->steps == 1);
            found = s;
        }
    }
    return found;
}

/* What r gets from i lies behind what it gets from those before i, and is what i has for r. */
static void check_exchange(const struct world *w, const struct exchange *x)
{
    for (uint32_t r = 0; r < w->params.world; r++) {
        size_t out = 0;
        for (uint32_t i = 0; i < w->params.world; i++) {
            const struct plan_segment *s = part_of(w, r, i, r), *t = part_of(w, i, i, r);
            size_t in = 0;
            EXPECT(s != NULL && t != NULL);
            if (s == NULL || t == NULL) {
                continue;
            }
            for (uint32_t k = 0; k < r; k++) {
                in += x->counts[i][k];
            }
            EXPECT(s->count == x->counts[i][r] && s->out == out);
            EXPECT(t->count == s->count && (t->in == in));
            out += s->count;
        }
    }
}

TEST(all_to_all_moves_each_pairs_part_whatever_the_others_move)
{
    static struct exchange x;
    struct rng rng = {7};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        struct plan_params params = {.kind = PLAN_ALL_TO_ALL, .algorithm = PLAN_PAIRWISE, .world = world, .count = 100, .align = 1,
                                     .frame_elements = 77, .lanes = 1 + world % 4};
        check_world(params);
        params.count = 0;
        check_world(params);
        params.count = 100;
        for (uint32_t r = 0; r < world; r++) {
            for (uint32_t t = 0; t < world; t++) {
                x.counts[r][t] = rng_below(&rng, 3) == 0 ? 0 : rng_below(&rng, 400);
            }
        }
        struct world w = world_make(params, exchange_of, &x);
        check_exchange(&w, &x);
        w.params.parts.counts = &x.counts[0][0]; /* uneven */
        check_made(&w);
    }
}

/* Each rank has no link with the one that its bits tell apart in the last of them. */
static void exchange_apart(struct plan_params *params, const void *user)
{
    static uint64_t apart[MAX_WORLD / 64];
    exchange_of(params, user);
    memset(apart, 0, sizeof apart);
    if ((params->rank ^ 1) < params->world) {
        apart[(params->rank ^ 1) / 64] = UINT64_C(1) << (params->rank ^ 1) % 64;
    }
    params->apart = apart;
}

TEST(all_to_all_leaves_out_what_goes_between_two_without_a_link_and_nothing_else)
{
    static struct exchange x;
    for (uint32_t world = 2; world <= 9; world++) {
        for (uint32_t r = 0; r < world; r++) {
            for (uint32_t t = 0; t < world; t++) {
                x.counts[r][t] = 10 + r + t;
            }
        }
        struct world w = world_make((struct plan_params){.kind = PLAN_ALL_TO_ALL, .algorithm = PLAN_PAIRWISE, .world = world, .align = 1,
                                                         .frame_elements = 7, .lanes = 2},
                                    exchange_apart, &x);
        for (uint32_t r = 0; r < world; r++) {
            for (uint32_t t = 0; t < world; t++) {
                const struct plan_segment *comes = part_of(&w, r, t, r), *goes = part_of(&w, r, r, t);
                bool none = (r ^ 1) == t;
                EXPECT(none ? comes == NULL : comes != NULL && comes->count == x.counts[t][r]);
                EXPECT(none ? goes == NULL : goes != NULL && goes->count == x.counts[r][t]);
            }
        }
        world_free(&w);
    }
}

TEST(bruck_brings_each_part_of_an_all_to_all_where_it_belongs) /* worlds that are no power of two have rounds that end early */
{
    static const size_t counts[] = {1, 0, 3, 5};
    struct rng rng = {10};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t shown[MAX_WORLD] = {0};
        struct plan_params params = {.kind = PLAN_ALL_TO_ALL, .algorithm = PLAN_BRUCK, .world = world, .align = 1, .lanes = 1};
        shuffle(&rng, shown, world);
        for (size_t i = 0; i < (world <= 16 ? 4 : 2); i++) {
            params.count = counts[(i + world) % 4];
            params.frame_elements = 1 + rng_below(&rng, 77);
            params.shown = i % 2 == 0 ? NULL : shown;
            check_packing(params);
        }
    }
}

TEST(shards_follow_the_weights_within_two_blocks) /* a slow peer must not own more than its share */
{
    struct rng rng = {3};
    for (int round = 0; round < 300; round++) {
        uint32_t world = 2 + (uint32_t)rng_below(&rng, 63), weights[MAX_WORLD];
        size_t align = aligns[round & 1], count = rng_below(&rng, 1 << 24);
        double sum = 0;
        for (uint32_t i = 0; i < world; i++) {
            weights[i] = rng_below(&rng, 4) == 0 ? 0 : (uint32_t)rng_below(&rng, round % 3 == 0 ? UINT32_MAX : 100);
        }
        weights[0] = 7;
        for (uint32_t i = 0; i < world; i++) {
            sum += weights[i];
        }
        struct world w = world_make((struct plan_params){.algorithm = PLAN_DIRECT, .world = world, .weights = weights,
                                                         .count = count, .align = align, .frame_elements = 1 << 16},
                                    NULL, NULL);
        for (uint32_t i = 0; i < world; i++) {
            double share = (double)count * weights[i] / sum, slack = 2 * (double)align + (double)count * 1e-6;
            double got = (double)w.plans[0].segments[i].count;
            EXPECT(got <= share + slack && got >= share - slack);
            EXPECT(weights[i] != 0 || got == 0);
        }
        world_free(&w);
    }
}

TEST(shards_of_the_largest_counts_do_not_overflow)
{
    uint32_t weights[3] = {UINT32_MAX, 1, UINT32_MAX};
    struct plan_params params = {.algorithm = PLAN_DIRECT, .world = 3, .weights = weights, .count = SIZE_MAX / 8,
                                 .align = 1, .frame_elements = (size_t)1 << 40};
    struct plan_segment segments[3];
    struct plan_step steps[12];
    uint32_t partners[2];
    struct plan plan;
    plan_make(&plan, &params, segments, steps, NULL, partners);
    EXPECT_EQ(segments[0].count + segments[1].count + segments[2].count, SIZE_MAX / 8);
    EXPECT(segments[0].count > SIZE_MAX / 17 && segments[2].count > SIZE_MAX / 17);
    EXPECT(segments[1].count < SIZE_MAX / 8 / UINT32_MAX);
}

TEST(partners_come_one_by_one_and_each_once) /* one is told twice, or never: it is waited for */
{
    for (uint32_t a = 0; a < PLAN_ALGORITHMS; a++) {
        for (uint32_t world = 1; world <= MAX_WORLD; world++) {
            uint32_t root = world / 3, count = plan_partner_count((enum plan_algorithm)a, world);
            for (uint32_t rank = 0; rank < world; rank++) {
                uint32_t times[MAX_WORLD] = {0};
                for (uint32_t i = 0; i < count; i++) {
                    times[plan_partner((enum plan_algorithm)a, world, root, rank, i)]++;
                }
                for (uint32_t other = 0; other < world; other++) {
                    bool is = plan_partners((enum plan_algorithm)a, world, root, rank, other);
                    EXPECT(other == rank || times[other] == is);
                }
            }
        }
    }
}

TEST(frames_keep_a_pipeline_busy_and_fit_their_limit)
{
    struct rng rng = {4};
    for (int round = 0; round < 20000; round++) {
        uint32_t world = 2 + (uint32_t)rng_below(&rng, 63);
        enum plan_algorithm algorithm = (enum plan_algorithm)rng_below(&rng, 3);
        size_t align = aligns[round & 1], count = rng_below(&rng, UINT64_C(1) << (1 + rng_below(&rng, 34)));
        size_t wire = 1024 * (1 + rng_below(&rng, 8)) + (align > 1 ? 4 * rng_below(&rng, 16) : 0), max = 128 << 10;
        size_t segment = plan_largest(&(struct plan_params){.algorithm = algorithm, .world = world, .count = count});
        EXPECT_EQ(segment, (count + (algorithm == PLAN_TINY ? 1 : world) - 1) / (algorithm == PLAN_TINY ? 1 : world));
        size_t got = plan_frame_elements(segment, wire, align, max);
        EXPECT(got > 0 && got % align == 0);
        EXPECT(got * wire / 1024 <= max);
        /* Fewer than 4 frames only where they would be small; smaller than the limit only where there are 4. */
        EXPECT((segment + got - 1) / got >= 4 || got * wire / 1024 <= 32768 + (align + 1) * wire / 1024);
        EXPECT(got + align > max * 1024 / wire || 4 * (got + align + 1) > segment);
    }
    EXPECT_EQ(plan_frame_elements(1 << 23, 4096, 1, 128 << 10), 32768);
    EXPECT_EQ(plan_frame_elements(SIZE_MAX, 4096, 1, 128 << 10), 32768); /* each pair has its own size */
    EXPECT_EQ(plan_frame_elements(0, 4096, 256, 128 << 10), 8192);
    EXPECT_EQ(plan_frame_elements(100, 4096, 256, 16), 256);
}
