/* test_exec_rules.c - one executor, event by event: what it refuses, grants, sends first and waits for.
 *
 * Rank 1 of 3 with 24 elements of i32 in frames of 4: two frames per shard, frames 2 and 3 are its own.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_wait.h"

#include <string.h>

#include "tests/testing.h"

struct single {
    struct plan plan;
    struct plan_segment segments[6];
    struct plan_step steps[15];
    struct plan_piece pieces[12];
    uint32_t partners[2];
    struct numeric numeric;
    struct room room;
    unsigned char slots[8 * 16];
    struct room_slot room_slots[8];
    int32_t in[24], out[24], scratch[16];
    struct exec exec;
    void *arena;
};

static struct single *single_at(uint32_t rank, enum plan_kind kind, enum plan_algorithm algorithm, size_t count, uint32_t window)
{
    struct single *s = calloc(1, sizeof(*s));
    struct plan_params params = {.kind = kind, .algorithm = algorithm, .world = 3, .rank = rank, .count = count, .align = 1,
                                 .frame_elements = 4, .lanes = 1};
    plan_make(&s->plan, &params, s->segments, s->steps, s->pieces, s->partners);
    EXPECT(numeric_init(&s->numeric, DTYPE_I32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    room_init(&s->room, s->slots, 16, 8, s->room_slots);
    EXPECT_EQ(room_reserve(&s->room, 2 * window), 2 * window);
    struct exec_config config = {.check_every = 1, .plan = &s->plan, .numeric = &s->numeric, .room = &s->room, .in = s->in,
                                 .out = s->out, .scratch = s->scratch, .lanes = 1, .window = window};
    s->arena = aligned_alloc(64, exec_arena_bytes(&config));
    exec_init(&s->exec, &config, s->arena);
    return s;
}

static struct single *single_of(enum plan_kind kind, enum plan_algorithm algorithm, size_t count, uint32_t window)
{
    return single_at(1, kind, algorithm, count, window);
}

static struct single *single_new(enum plan_algorithm algorithm, uint32_t window)
{
    return single_of(PLAN_ALL_REDUCE, algorithm, 24, window);
}

static void single_free(struct single *s)
{
    free(s->arena);
    free(s);
}

/* What a rank is called. */
static uint32_t of(const struct single *s, uint32_t rank)
{
    return plan_number(&s->plan, rank);
}

static struct exec_out single_step(struct single *s, struct exec_event event)
{
    struct exec_out out;
    exec_step(&s->exec, &event, &out);
    return out;
}

/* Grants told to a rank; 0 if nothing is. */
static uint32_t take_credit(struct single *s, uint32_t rank)
{
    struct exec_credit credit;
    return exec_take_credit(&s->exec, of(s, rank), &credit) ? credit.frames : 0;
}

static bool refused(struct single *s, uint32_t rank, uint32_t frame, uint32_t phase, uint32_t bytes)
{
    struct exec_event e = {.kind = EXEC_HEADER, .partner = of(s, rank), .frame = frame, .phase = phase, .bytes = bytes};
    struct exec_out out = single_step(s, e);
    EXPECT(out.refused ? out.dst == NULL : out.dst != NULL);
    return out.refused;
}

TEST(headers_outside_the_plan_are_refused) /* a hostile length or frame must not reach memory */
{
    struct single *s = single_new(PLAN_DIRECT, 1);
    EXPECT(refused(s, 1, 2, 0, 16));          /* own rank */
    EXPECT(refused(s, 3, 2, 0, 16));          /* no such rank */
    EXPECT(refused(s, UINT32_MAX, 2, 0, 16));
    EXPECT(refused(s, 2, 3, 0, 16));          /* not the next frame */
    EXPECT(refused(s, 2, 0, 0, 16));          /* a shard that is not reduced here */
    EXPECT(refused(s, 2, 6, 0, 16));          /* no such frame */
    EXPECT(refused(s, 2, UINT32_MAX, 0, 16));
    EXPECT(refused(s, 2, 2, 0, 17));          /* wrong length */
    EXPECT(refused(s, 2, 2, 0, 0));
    EXPECT(refused(s, 2, 2, 1, 16));          /* final data of a shard that is reduced here */
    EXPECT(refused(s, 2, 2, 2, 16));          /* no such phase */
    EXPECT(refused(s, 2, 5, 1, 16));          /* final data out of order */
    EXPECT(refused(s, 2, 0, 1, 16));          /* somebody else's shard */
    EXPECT(!refused(s, 2, 2, 0, 16));
    EXPECT(refused(s, 2, 4, 1, 16));          /* a second header before the bytes of the first */
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 2)});
    EXPECT(refused(s, 2, 2, 0, 16));          /* twice */
    EXPECT(refused(s, 2, 3, 0, 16));          /* beyond the credit: the window was one frame, rank 2 waits for rank 0 */
    EXPECT(!refused(s, 2, 4, 1, 16));
    EXPECT(!s->exec.failed);
    single_free(s);
}

/* A gather to rank 0, and a tree: who sends nothing is no partner, or one without a step that takes it. */
TEST(frames_of_who_has_nothing_to_send_here_are_refused) /* a rank without a number must not lead to memory of others */
{
    for (uint32_t i = 0; i < 2; i++) {
        struct single *s = single_of(i == 0 ? PLAN_GATHER : PLAN_REDUCE, i == 0 ? PLAN_PAIRWISE : PLAN_TREE, 8, 0);
        EXPECT_EQ(s->plan.partner_count, 1);
        EXPECT_EQ(of(s, 2), PLAN_NOBODY);
        for (uint32_t phase = 0; phase < 2; phase++) {
            struct exec_event e = {.kind = EXEC_HEADER, .partner = s->plan.partner_count, .phase = phase, .bytes = 16};
            EXPECT(refused(s, 0, 0, phase, 16)); /* the root */
            EXPECT(refused(s, 1, 0, phase, 16));
            EXPECT(refused(s, 2, 0, phase, 16));
            EXPECT(single_step(s, e).refused); /* beyond all numbers */
        }
        EXPECT(!s->exec.failed && s->exec.progress == 0);
        single_free(s);
    }
}

TEST(frames_of_a_pair_are_counted_between_the_two)
{
    struct single *s = single_of(PLAN_ALL_TO_ALL, PLAN_PAIRWISE, 8, 0);
    EXPECT(refused(s, 1, 0, 1, 16)); /* own rank */
    EXPECT(refused(s, 0, 2, 1, 16)); /* there are two */
    EXPECT(refused(s, 0, 1, 1, 16)); /* out of order */
    EXPECT(refused(s, 0, 0, 0, 16)); /* nothing is folded */
    EXPECT(refused(s, 3, 0, 1, 16));
    for (uint32_t frame = 0; frame < 2; frame++) {
        EXPECT(!refused(s, 2, frame, 1, 16)); /* each pair by itself */
        single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 2)});
    }
    EXPECT(refused(s, 2, 2, 1, 16));
    EXPECT(!refused(s, 0, 0, 1, 16));
    EXPECT(!exec_has_frame(&s->exec, of(s, 2))); /* it has not launched */
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2)});
    struct exec_out first = single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 2)});
    EXPECT(first.data == s->in + 16 && first.phase == 1 && first.frame == 0);
    EXPECT(s->exec.work);
    while (s->exec.work) {
        single_step(s, (struct exec_event){.kind = EXEC_WORK});
    }
    EXPECT(!s->exec.failed && !s->exec.done);
    single_free(s);
}

/* A message for rank 1 whose elements are all the same. */
static void arrive(struct single *s, uint32_t rank, uint32_t frame, int32_t value)
{
    struct exec_out out = single_step(s, (struct exec_event){.kind = EXEC_HEADER, .partner = of(s, rank), .frame = frame, .phase = 1, .bytes = 16});
    EXPECT(out.dst != NULL);
    for (int i = 0; i < 4 && out.dst != NULL; i++) {
        memcpy((unsigned char *)out.dst + 4 * i, &value, 4);
    }
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, rank)});
}

/* All-to-all by Bruck: frames 0 and 2 go to ranks 2 and 0, 1 and 3 come from 0 and 2, 4 to 6 are the output. */
TEST(what_is_packed_waits_for_all_before_it_and_what_comes_for_nobody) /* a round would leave without what came in another */
{
    struct single *s = single_of(PLAN_ALL_TO_ALL, PLAN_BRUCK, 4, 0);
    for (int i = 0; i < 12; i++) {
        s->in[i] = 100 + i / 4;
    }
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2)});
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 0)});
    EXPECT(s->exec.work && !exec_has_frame(&s->exec, of(s, 2))); /* not packed */
    single_step(s, (struct exec_event){.kind = EXEC_WORK});
    EXPECT(!s->exec.work && exec_has_frame(&s->exec, of(s, 2)) && !exec_has_frame(&s->exec, of(s, 0)));
    struct exec_out first = single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 2)});
    EXPECT(first.data == s->scratch && s->scratch[0] == 102 && s->scratch[3] == 102);
    EXPECT(first.frame == 1 && first.phase == 1 && first.bytes == 16); /* by the name under which it comes */
    struct exec_wait w = exec_waits_for(&s->exec);
    EXPECT(w.kind == EXEC_WAIT_DATA && w.partner == of(s, 0));
    EXPECT(refused(s, 0, 0, 1, 16) && refused(s, 2, 2, 1, 16) && refused(s, 0, 3, 1, 16) && refused(s, 2, 4, 1, 16));
    EXPECT(refused(s, 0, 1, 0, 16)); /* nothing is folded */
    arrive(s, 2, 3, 12);             /* before its turn */
    EXPECT(!s->exec.work && !exec_has_frame(&s->exec, of(s, 0)));
    arrive(s, 0, 1, 10);
    EXPECT(s->exec.work);
    w = exec_waits_for(&s->exec);
    EXPECT(w.kind == EXEC_WAIT_NOBODY);
    single_step(s, (struct exec_event){.kind = EXEC_WORK});
    EXPECT(exec_has_frame(&s->exec, of(s, 0)) && !s->exec.done);
    for (int i = 0; i < 3; i++) {
        EXPECT(s->exec.work);
        single_step(s, (struct exec_event){.kind = EXEC_WORK});
    }
    EXPECT(s->exec.done && !s->exec.idle && !s->exec.work && !s->exec.failed);
    EXPECT(s->out[0] == 10 && s->out[3] == 10 && s->out[4] == 101 && s->out[7] == 101 && s->out[8] == 12 && s->out[11] == 12);
    single_free(s);
}

TEST(final_data_before_the_partial_sum_left_is_refused) /* it would overwrite what is still to be sent */
{
    struct single *s = single_new(PLAN_RING, 0);
    uint32_t frame = s->segments[2].frame; /* chain 0, 1, 2 */
    EXPECT(refused(s, 0, frame, 1, 16));
    EXPECT(!refused(s, 0, frame, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 0)});
    EXPECT(refused(s, 0, frame, 1, 16));
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2), .credit = 6});
    for (int i = 0; i < 3; i++) { /* two leading frames, then the partial sum */
        EXPECT(single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 2)}).data != NULL);
        single_step(s, (struct exec_event){.kind = EXEC_SENT, .partner = of(s, 2)});
    }
    EXPECT(!refused(s, 0, frame, 1, 16));
    single_free(s);
}

TEST(what_comes_straight_into_place_takes_no_room) /* a ring needs no staging: it cannot starve */
{
    struct single *s = single_new(PLAN_RING, 0);
    EXPECT_EQ(take_credit(s, 0), 4);
    EXPECT_EQ(take_credit(s, 2), 0);
    EXPECT_EQ(s->room.half_a, 4);
    single_free(s);
    s = single_new(PLAN_DIRECT, 2);
    EXPECT_EQ(take_credit(s, 0), 0); /* the window covers both frames */
    EXPECT_EQ(s->room.half_a, 2);                /* rank 0 comes first: only rank 2 is staged */
    single_step(s, (struct exec_event){.kind = EXEC_STOP});
    EXPECT_EQ(s->room.half_a, 4);
    single_free(s);
}

TEST(a_sender_holds_as_many_grants_as_its_window_says) /* a long link would stay empty for most of each round trip */
{
    struct single *s = single_of(PLAN_ALL_REDUCE, PLAN_DIRECT, 96, 0);
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2)});
    EXPECT_EQ(take_credit(s, 2), 2);
    single_step(s, (struct exec_event){.kind = EXEC_WINDOW, .partner = of(s, 2), .credit = 3});
    EXPECT_EQ(take_credit(s, 2), 1);
    EXPECT(!s->exec.starved && exec_starving(&s->exec, 0) == PLAN_NOBODY);
    EXPECT_EQ(s->room.half_a, 1);
    single_step(s, (struct exec_event){.kind = EXEC_WINDOW, .partner = of(s, 2), .credit = 6});
    struct exec_grants grants = exec_grants(&s->exec, of(s, 2));
    EXPECT(exec_starving(&s->exec, 0) == of(s, 2) && exec_starving(&s->exec, of(s, 2) + 1) == PLAN_NOBODY);
    EXPECT(grants.held == 3 && grants.window == 6);
    EXPECT(s->exec.starved && take_credit(s, 2) == 0); /* the rest of half A is for launches, half B for what is folded on arrival */
    single_step(s, (struct exec_event){.kind = EXEC_WINDOW, .partner = of(s, 2), .credit = 0});
    EXPECT(!s->exec.starved && take_credit(s, 2) == 0); /* what was granted stays granted */
    single_step(s, (struct exec_event){.kind = EXEC_STOP});
    EXPECT(room_whole(&s->room));
    single_free(s);
}

TEST(half_b_serves_only_what_is_folded_on_arrival) /* or a late program would hold it for ever */
{
    struct single *s = single_new(PLAN_DIRECT, 0);
    EXPECT_EQ(room_reserve(&s->room, 8), 4); /* half A is gone */
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2)});
    EXPECT(s->exec.starved && take_credit(s, 2) == 0); /* rank 0 comes before it */
    EXPECT_EQ(s->room.half_b, 4);
    EXPECT(!refused(s, 0, 2, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 0)});
    EXPECT_EQ(take_credit(s, 2), 1); /* frame 2 only */
    EXPECT(s->exec.starved);
    EXPECT_EQ(s->room.half_b, 3);
    EXPECT(!refused(s, 2, 2, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 2)});
    EXPECT_EQ(s->room.half_b, 4);
    room_unreserve(&s->room, 4);
    EXPECT(single_step(s, (struct exec_event){.kind = EXEC_ROOM}).granted);  /* the lane has to tell: its turn may be over */
    EXPECT(!single_step(s, (struct exec_event){.kind = EXEC_ROOM}).granted); /* once: a link that is full lets nobody spin */
    EXPECT(!s->exec.starved && take_credit(s, 2) == 1);
    EXPECT_EQ(s->room.half_a, 3);
    single_free(s);
}

/* The root of a tree of 3: it folds rank 1 in place, then rank 2, which may have to wait for others. */
TEST(half_b_serves_a_sum_of_others_when_its_sender_has_it) /* or it waits for what may wait for this room */
{
    struct single *s = single_at(0, PLAN_ALL_REDUCE, PLAN_TREE, 8, 0);
    EXPECT_EQ(take_credit(s, 1), 2); /* comes straight into place */
    EXPECT_EQ(room_reserve(&s->room, 8), 4); /* half A is gone */
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2)});
    EXPECT(!refused(s, 1, 0, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 1)});
    EXPECT(s->exec.starved && take_credit(s, 2) == 0);
    EXPECT(!single_step(s, (struct exec_event){.kind = EXEC_ROOM}).granted);
    struct exec_wait w = exec_waits_for(&s->exec);
    EXPECT(w.kind == EXEC_WAIT_DATA && w.partner == of(s, 2)); /* its sum is missing, not our room */
    single_step(s, (struct exec_event){.kind = EXEC_CREDIT, .partner = of(s, 2), .sums = 2});
    EXPECT_EQ(take_credit(s, 2), 1); /* the second frame is not next */
    EXPECT_EQ(s->room.half_b, 3);
    single_free(s);
}

TEST(a_sum_that_may_not_be_sent_is_told_once) /* else no room would ever come for it; and never to one who has not launched */
{
    struct single *s = single_at(2, PLAN_ALL_REDUCE, PLAN_TREE, 8, 0); /* a leaf: its sums are its input */
    struct exec_credit credit;
    EXPECT(!exec_has_credit(&s->exec, of(s, 0)));
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 0)});
    EXPECT(exec_has_credit(&s->exec, of(s, 0)) && exec_take_credit(&s->exec, of(s, 0), &credit));
    EXPECT(credit.frames == 0 && credit.sums == 2);
    EXPECT(!exec_take_credit(&s->exec, of(s, 0), &credit));
    single_step(s, (struct exec_event){.kind = EXEC_CREDIT, .partner = of(s, 0), .credit = 1});
    EXPECT(single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 0)}).data != NULL);
    EXPECT(!exec_take_credit(&s->exec, of(s, 0), &credit)); /* it knows of the other one */
    single_free(s);
}

TEST(who_is_waited_for_is_named)
{
    struct single *s = single_new(PLAN_DIRECT, 2);
    EXPECT_EQ(exec_waits_for(&s->exec).partner, of(s, 0)); /* its final shard comes first */
    for (uint32_t f = 0; f < 2; f++) {
        EXPECT(!refused(s, 0, f, 1, 16));
        single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 0)});
    }
    EXPECT_EQ(exec_waits_for(&s->exec).partner, of(s, 0)); /* its contribution */
    EXPECT(!refused(s, 0, 2, 0, 16));
    single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, 0)});
    EXPECT_EQ(exec_waits_for(&s->exec).partner, of(s, 2));
    EXPECT_EQ(s->exec.progress, 3);
    single_free(s);
}

TEST(finals_go_before_contributions) /* they end other ranks' waiting */
{
    struct single *s = single_new(PLAN_DIRECT, 2);
    single_step(s, (struct exec_event){.kind = EXEC_READY, .partner = of(s, 2), .credit = 2});
    struct exec_out first = single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 2)});
    EXPECT(first.data == s->in + 16 && first.phase == 0 && first.frame == 4);
    EXPECT(single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 2)}).data == NULL); /* one at a time */
    single_step(s, (struct exec_event){.kind = EXEC_SENT, .partner = of(s, 2)});
    for (uint32_t r = 0; r < 3; r += 2) {
        EXPECT(!refused(s, r, 2, 0, 16));
        single_step(s, (struct exec_event){.kind = EXEC_ARRIVED, .partner = of(s, r)});
    }
    struct exec_out final = single_step(s, (struct exec_event){.kind = EXEC_PULL, .partner = of(s, 2)});
    EXPECT(final.data == s->out + 8 && final.phase == 1 && final.frame == 2);
    EXPECT(!exec_has_frame(&s->exec, of(s, 0))); /* its READY is not in */
    single_free(s);
}

/* 1 GiB among 256: a buffer for each member's frame would be 68 MB for each operation, in flight or not; a list of the final frames for
 * each member 8 MB, where few own all (a view with missing edges). */
TEST(arena_does_not_grow_with_members_times_frames)
{
    enum { WORLD = 256 };
    struct plan_params all = {.algorithm = PLAN_DIRECT, .world = WORLD};
    struct plan_segment *segments = calloc(plan_max_segments(&all), sizeof *segments);
    struct plan_step *steps = calloc(plan_max_steps(&all), sizeof *steps);
    uint32_t *partners = calloc(plan_max_partners(&all), sizeof *partners);
    struct room_slot *room_slots = calloc(128, sizeof *room_slots);
    unsigned char slots[1];
    struct room room;
    struct frame_pool pool = {0};
    room_init(&room, slots, 128 << 10, 128, room_slots);
    for (int i = 0; i < 6; i++) {
        bool quantised = i % 2 != 0;
        const uint32_t owners[] = {WORLD, 4, 1};
        uint32_t weights[WORLD] = {0};
        struct plan plan;
        struct numeric n;
        EXPECT(numeric_init(&n, DTYPE_F32, REDOP_SUM, quantised ? QUANT_MINMAX : QUANT_NONE, DTYPE_U8, kernels_get()));
        for (uint32_t r = 0; r < owners[i / 2]; r++) {
            weights[r] = 1;
        }
        struct plan_params params = {.algorithm = PLAN_DIRECT, .world = WORLD, .rank = 0, .count = (size_t)1 << 28,
                                     .align = NUMERIC_BLOCK, .frame_elements = 16384, .weights = weights};
        plan_make(&plan, &params, segments, steps, NULL, partners);
        struct exec_config config = {.plan = &plan, .numeric = &n, .room = &room, .pool = &pool, .lanes = 1, .verify = true};
        EXPECT(exec_arena_bytes(&config) < (1 << 20));
    }
    free(segments);
    free(steps);
    free(partners);
    free(room_slots);
}

/* Bytes of the executor of a rank that has to do with one other, or two, and of its plan; all that it looks through is in these. */
static size_t bytes_among(uint32_t world, const struct plan_params *what, uint32_t partners)
{
    struct plan_params p = *what;
    p.world = world;
    p.align = p.lanes = 1;
    p.count = 100;
    p.frame_elements = 16;
    size_t segments = plan_max_segments(&p), steps = plan_max_steps(&p), most = plan_max_partners(&p);
    struct plan_segment *segment = calloc(segments, sizeof *segment);
    struct plan_step *step = calloc(steps, sizeof *step);
    uint32_t *partner = calloc(most, sizeof *partner);
    struct room_slot room_slots[8];
    unsigned char slots[8 * 64];
    struct room room;
    struct plan plan;
    struct numeric n;
    room_init(&room, slots, 64, 8, room_slots);
    EXPECT(numeric_init(&n, DTYPE_I32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    plan_make(&plan, &p, segment, step, NULL, partner);
    EXPECT_EQ(plan.partner_count, partners);
    struct exec_config config = {.plan = &plan, .numeric = &n, .room = &room, .lanes = 1};
    size_t bytes = exec_arena_bytes(&config) + plan.segment_count * sizeof *segment + plan.step_count * sizeof *step;
    free(segment);
    free(step);
    free(partner);
    return bytes;
}

TEST(who_has_to_do_with_few_has_nothing_of_all_others) /* 1.8 MB for each lane in a view of 10,000, cleared by each call */
{
    static const struct {
        struct plan_params what;
        uint32_t partners;
    } cases[] = {
        {{.kind = PLAN_ALL_REDUCE, .algorithm = PLAN_TREE, .rank = 1}, 1},
        {{.kind = PLAN_ALL_REDUCE, .algorithm = PLAN_TREE, .rank = 2}, 2},
        {{.kind = PLAN_BROADCAST, .algorithm = PLAN_TREE, .rank = 2}, 2},
        {{.kind = PLAN_BROADCAST, .algorithm = PLAN_CHAIN, .rank = 0}, 1},
        {{.kind = PLAN_BROADCAST, .algorithm = PLAN_CHAIN, .rank = 1}, 2},
        {{.kind = PLAN_REDUCE, .algorithm = PLAN_TREE, .rank = 3}, 1},
        {{.kind = PLAN_REDUCE, .algorithm = PLAN_CHAIN, .rank = 2}, 2},
        {{.kind = PLAN_REDUCE, .algorithm = PLAN_DIRECT, .rank = 1}, 1},
        {{.kind = PLAN_SCATTER, .algorithm = PLAN_PAIRWISE, .rank = 1}, 1},
        {{.kind = PLAN_GATHER, .algorithm = PLAN_PAIRWISE, .rank = 1}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT_EQ(bytes_among(64, &cases[i].what, cases[i].partners), bytes_among(8192, &cases[i].what, cases[i].partners));
    }
}
