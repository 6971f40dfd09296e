/* test_plan.c - runs the programs of all ranks over symbolic values: a value is the list of ranks folded into it.
 *
 * Whatever the algorithm, world, weights, ring and count: each rank ends with each contribution exactly once, in the
 * same order everywhere, and every SEND meets its FOLD or RECV in the right phase.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/random.h"
#include "tests/testing.h"

enum { MAX_WORLD = 64, GUARD = 0x5A5A5A5A };

struct value {
    uint8_t ranks[MAX_WORLD];
    uint32_t count;
    bool final;
};

/* One value in flight per pair is all that a segment's program can have. */
struct mailbox {
    struct value value[2]; /* by phase */
    bool full[2];
};

struct world {
    struct plan plans[MAX_WORLD];
    struct plan_segment *segments;
    struct plan_step *steps;
    uint32_t max_segments, max_steps;
};

static struct mailbox mail[MAX_WORLD][MAX_WORLD]; /* from, to */

static struct world world_make(struct plan_params params)
{
    struct world w = {.max_segments = plan_max_segments(params.algorithm, params.world),
                      .max_steps = plan_max_steps(params.algorithm, params.world)};
    w.segments = calloc((size_t)params.world * (w.max_segments + 1), sizeof(*w.segments));
    w.steps = calloc((size_t)params.world * (w.max_steps + 1), sizeof(*w.steps));
    for (uint32_t r = 0; r < params.world; r++) {
        struct plan_segment *segments = w.segments + (size_t)r * (w.max_segments + 1);
        struct plan_step *steps = w.steps + (size_t)r * (w.max_steps + 1);
        segments[w.max_segments].frame = GUARD;
        steps[w.max_steps].kind = GUARD;
        params.rank = r;
        plan_make(&w.plans[r], &params, segments, steps);
        EXPECT_EQ(segments[w.max_segments].frame, GUARD);
        EXPECT_EQ(steps[w.max_steps].kind, GUARD);
        EXPECT(w.plans[r].segment_count <= w.max_segments && w.plans[r].step_count <= w.max_steps);
        EXPECT(w.plans[r].params.ring == NULL && w.plans[r].params.weights == NULL);
    }
    return w;
}

static void world_free(struct world *w)
{
    free(w->segments);
    free(w->steps);
}

/* Segments tile the elements at multiples of align; frames tile the segments; all ranks agree. */
static void check_layout(const struct world *w, const struct plan_params *q)
{
    const struct plan *a = &w->plans[0];
    size_t next = 0;
    uint32_t frame = 0;
    for (uint32_t i = 0; i < a->segment_count; i++) {
        const struct plan_segment *s = &a->segments[i];
        EXPECT_EQ(s->first, next);
        EXPECT(s->first % q->align == 0 || s->count == 0);
        EXPECT_EQ(s->frame, frame);
        EXPECT_EQ(s->frames, (s->count + q->frame_elements - 1) / q->frame_elements);
        for (uint32_t f = 0; f < s->frames; f++) {
            size_t first, count;
            EXPECT(plan_frame(a, frame + f, &first, &count) == s);
            EXPECT_EQ(first, s->first + f * q->frame_elements);
            EXPECT(count > 0 && count <= q->frame_elements);
            EXPECT(f + 1 < s->frames ? count == q->frame_elements : first + count == s->first + s->count);
        }
        next += s->count;
        frame += s->frames;
    }
    EXPECT_EQ(next, q->count);
    EXPECT_EQ(frame, a->frame_count);
    for (uint32_t r = 1; r < q->world; r++) {
        const struct plan *b = &w->plans[r];
        EXPECT_EQ(b->segment_count, a->segment_count);
        EXPECT_EQ(b->frame_count, a->frame_count);
        for (uint32_t i = 0; i < a->segment_count; i++) {
            EXPECT(a->segments[i].first == b->segments[i].first && a->segments[i].count == b->segments[i].count &&
                   a->segments[i].frame == b->segments[i].frame && a->segments[i].frames == b->segments[i].frames);
        }
    }
}

/* Does one step if it can; false if it must wait. */
static bool run_step(uint32_t rank, const struct plan_step *step, struct value *v)
{
    if (step->kind == STEP_FOLD) {
        struct mailbox *m = &mail[step->rank][rank];
        EXPECT(!v->final);
        if (step->rank == rank) {
            EXPECT(v->count < MAX_WORLD);
            v->ranks[v->count++ % MAX_WORLD] = (uint8_t)rank;
            return true;
        }
        if (!m->full[0]) {
            return false;
        }
        EXPECT(v->count + m->value[0].count <= MAX_WORLD);
        for (uint32_t i = 0; i < m->value[0].count && v->count < MAX_WORLD; i++) {
            v->ranks[v->count++] = m->value[0].ranks[i];
        }
        m->full[0] = false;
    } else if (step->kind == STEP_FINISH) {
        EXPECT(!v->final);
        v->final = true;
    } else if (step->kind == STEP_SEND) {
        struct mailbox *m = &mail[rank][step->rank];
        EXPECT(step->rank != rank);
        EXPECT(!m->full[v->final]);
        m->value[v->final] = *v;
        if (v->count == 0) { /* a leading SEND passes on the own input */
            m->value[v->final].ranks[0] = (uint8_t)rank;
            m->value[v->final].count = 1;
        }
        m->full[v->final] = true;
    } else {
        struct mailbox *m = &mail[step->rank][rank];
        EXPECT(!v->final);
        if (!m->full[1]) {
            return false;
        }
        *v = m->value[1];
        m->full[1] = false;
    }
    return true;
}

static void check_segment(const struct world *w, uint32_t world, uint32_t segment)
{
    static struct value values[MAX_WORLD];
    uint32_t at[MAX_WORLD] = {0};
    bool moved = true;
    memset(values, 0, sizeof(values));
    while (moved) {
        moved = false;
        for (uint32_t r = 0; r < world; r++) {
            const struct plan_segment *s = &w->plans[r].segments[segment];
            while (at[r] < s->steps && run_step(r, &w->plans[r].steps[s->step + at[r]], &values[r])) {
                at[r]++;
                moved = true;
            }
        }
    }
    for (uint32_t r = 0; r < world; r++) {
        uint64_t seen = 0;
        EXPECT_EQ(at[r], w->plans[r].segments[segment].steps);
        EXPECT(values[r].final);
        EXPECT_EQ(values[r].count, world);
        for (uint32_t i = 0; i < values[r].count; i++) {
            seen |= UINT64_C(1) << values[r].ranks[i];
        }
        EXPECT(seen == (world == 64 ? UINT64_MAX : (UINT64_C(1) << world) - 1));
        EXPECT(memcmp(values[r].ranks, values[0].ranks, world) == 0);
        for (uint32_t t = 0; t < world; t++) {
            EXPECT(!mail[r][t].full[0] && !mail[r][t].full[1]);
            mail[r][t].full[0] = mail[r][t].full[1] = false;
        }
    }
}

static void check_world(struct plan_params params)
{
    struct world w = world_make(params);
    size_t sent = 0, received = 0;
    check_layout(&w, &params);
    for (uint32_t i = 0; i < w.plans[0].segment_count; i++) {
        check_segment(&w, params.world, i);
    }
    for (uint32_t r = 0; r < params.world; r++) {
        size_t s, g;
        plan_traffic(&w.plans[r], &s, &g);
        sent += s;
        received += g;
        if (params.algorithm != PLAN_TINY && params.weights == NULL && params.count % (params.world * params.align) == 0) {
            EXPECT_EQ(s, 2 * (params.world - 1) * (params.count / params.world));
            EXPECT_EQ(g, s);
        }
    }
    EXPECT_EQ(sent, received);
    world_free(&w);
}

static const size_t aligns[2] = {1, 256};

static void check_counts(struct plan_params params)
{
    const size_t counts[] = {0, 1, params.world - 1, params.world, params.world + 1, 1000, 10007, 64 * 256 * 2};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t j = 0; j < 2; j++) {
            params.count = counts[i];
            params.align = aligns[j];
            params.frame_elements = aligns[j] == 1 ? 77 : 512;
            check_world(params);
        }
    }
}

/* All worlds; up to 9, 20, 31, ... 64 where sanitizers slow everything down. */
static uint32_t next_world(uint32_t world)
{
    return world + (world < 9 || test_scaled(10) == 10 ? 1 : 11);
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

TEST(ring_gives_every_rank_every_contribution_once_in_any_order_of_the_ring)
{
    struct rng rng = {2};
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        uint32_t ring[MAX_WORLD];
        struct plan_params params = {.algorithm = PLAN_RING, .world = world};
        check_counts(params);
        for (uint32_t i = 0; i < world; i++) {
            ring[i] = i;
        }
        for (uint32_t i = world - 1; i > 0; i--) {
            uint32_t j = (uint32_t)rng_below(&rng, i + 1), t = ring[i];
            ring[i] = ring[j];
            ring[j] = t;
        }
        params.ring = ring;
        check_counts(params);
    }
}

TEST(tiny_gives_every_rank_every_contribution_once)
{
    for (uint32_t world = 1; world <= MAX_WORLD; world = next_world(world)) {
        check_counts((struct plan_params){.algorithm = PLAN_TINY, .world = world});
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
                                                         .count = count, .align = align, .frame_elements = 1 << 16});
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
    struct plan plan;
    plan_make(&plan, &params, segments, steps);
    EXPECT_EQ(segments[0].count + segments[1].count + segments[2].count, SIZE_MAX / 8);
    EXPECT(segments[0].count > SIZE_MAX / 17 && segments[2].count > SIZE_MAX / 17);
    EXPECT(segments[1].count < SIZE_MAX / 8 / UINT32_MAX);
}

TEST(frames_keep_a_pipeline_busy_and_fit_their_limit)
{
    struct rng rng = {4};
    for (int round = 0; round < 20000; round++) {
        uint32_t world = 2 + (uint32_t)rng_below(&rng, 63);
        enum plan_algorithm algorithm = (enum plan_algorithm)rng_below(&rng, 3);
        size_t align = aligns[round & 1], count = rng_below(&rng, UINT64_C(1) << (1 + rng_below(&rng, 34)));
        size_t wire = 1024 * (1 + rng_below(&rng, 8)) + (align > 1 ? 4 * rng_below(&rng, 16) : 0), max = 128 << 10;
        size_t got = plan_frame_elements(algorithm, world, count, wire, align, max);
        size_t segment = (count + (algorithm == PLAN_TINY ? 1 : world) - 1) / (algorithm == PLAN_TINY ? 1 : world);
        EXPECT(got > 0 && got % align == 0);
        EXPECT(got * wire / 1024 <= max);
        /* Fewer than 8 frames only where they would be small; smaller than the limit only where there are 8. */
        EXPECT((segment + got - 1) / got >= 8 || got * wire / 1024 <= 32768 + (align + 1) * wire / 1024);
        EXPECT(got + align > max * 1024 / wire || 8 * (got + align + 1) > segment);
    }
    EXPECT_EQ(plan_frame_elements(PLAN_DIRECT, 2, 1 << 24, 4096, 1, 128 << 10), 32768);
    EXPECT_EQ(plan_frame_elements(PLAN_DIRECT, 2, 0, 4096, 256, 128 << 10), 8192);
    EXPECT_EQ(plan_frame_elements(PLAN_TINY, 8, 100, 4096, 256, 16), 256);
}
