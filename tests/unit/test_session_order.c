/* test_session_order.c - calls in the order of issue take their turn, whatever becomes of those before them (P12).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

static enum session_result ordered(struct bench *b, uint32_t slot, const float *x, float *y)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = info.snapshot.group,
                                        .params = one_float, .in = x, .out = y, .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    return b->outcome.result;
}

/* Its second call was refused and is decided so; its first was launched by nobody who is left. */
TEST(what_only_the_lost_one_had_launched_is_aborted_before_the_refusal_of_what_came_after_it)
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    freeze(b, 1);
    struct op_decision d = {.name = {.space = SPACE_ORDERED, .seq = 1}, .outcome = OUTCOME_REFUSED, .cause = CAUSE_INTERNAL,
                            .culprit = peer_id(1)};
    decided(b, 2, CAUSE_PEER_LOST, &d, NULL);
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, view_id(2));
    }
    EXPECT_EQ(ordered(b, 0, &x, &y), RESULT_PENDING);
    EXPECT(b->returned && !sent(b, FRAME_EAGER));
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT_EQ(b->outcome.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(b->outcome.culprit, peer_id(1));
    EXPECT_EQ(ordered(b, 0, &x, &y), RESULT_PENDING);
    EXPECT(b->returned && !sent(b, FRAME_EAGER));
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT_EQ(b->outcome.cause, CAUSE_INTERNAL);
    EXPECT_EQ(ordered(b, 0, &x, &y), RESULT_PENDING);
    EXPECT(!b->returned && sent(b, FRAME_EAGER));
    bench_free(b);
}

/* The program made it for one member more than there are. */
TEST(a_call_of_a_view_that_is_older_than_a_loss_is_refused_under_its_number)
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = PEERS + 1, .params = one_float,
                                        .in = &x, .out = &y, .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    EXPECT(sent(b, FRAME_REFUSE) && !sent(b, FRAME_EAGER));
    bench_free(b);
}

/* Others may have returned in the view before: they have learned its sizes, and not those of the next. */
TEST(a_call_that_was_refused_for_its_old_view_has_the_sizes_of_that_refusal_whenever_it_ends)
{
    for (int called = 0; called < 2; called++) {
        struct bench *b = bench_new();
        float x = 1, y = 0;
        struct session_info info;
        struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = view_id(1), .world = PEERS + 1, .params = one_float,
                                            .in = &x, .out = &y, .deadline = INT64_MAX}};
        if (called) {
            step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
        }
        freeze(b, 1);
        const struct op_decision d = {.name = {.space = SPACE_ORDERED}, .outcome = OUTCOME_REFUSED, .cause = CAUSE_OLD_VIEW, .culprit = peer_id(1)};
        b->largest = 9;
        decided(b, 2, CAUSE_LINK_LOST, &d, NULL);
        if (!called) {
            step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
        }
        EXPECT(b->returned && collect(b, 0) == RESULT_LOST && b->outcome.cause == CAUSE_OLD_VIEW);
        session_info(b->s, &info);
        EXPECT_EQ(info.known, view_id(1));
        EXPECT_EQ(info.snapshot.largest, PEERS);
        bench_free(b);
    }
}

/* The error of the later view has the sizes of the earlier one, and comes behind what that one owed. */
TEST(errors_are_owed_in_the_order_of_the_views_that_brought_them)
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = view_id(1), .world = PEERS, .params = one_float, .in = &x,
                                        .out = &y, .deadline = INT64_MAX}};
    const uint8_t causes[] = {CAUSE_ARGUMENT, CAUSE_OLD_VIEW};
    for (uint64_t view = 1; view <= 2; view++) {
        const struct op_decision d = {.name = {.space = SPACE_ORDERED}, .outcome = OUTCOME_REFUSED, .cause = causes[view - 1], .culprit = peer_id(1)};
        freeze(b, view);
        decided(b, view + 1, CAUSE_LINK_LOST, &d, NULL);
    }
    for (uint32_t i = 0; i < 2; i++) {
        step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = i, .launch = &l});
        EXPECT(b->returned);
        (void)collect(b, i);
        EXPECT_EQ(b->outcome.cause, causes[i]);
    }
    bench_free(b);
}

/* Whom it says that it is: the member that the view has lost, or this peer's own program. */
TEST(a_call_that_is_refused_at_once_names_the_culprit_of_its_cause)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct bench *b = bench_new();
        float x = 1, y = 0;
        uint32_t at = 0;
        struct reader r;
        struct msg_refuse m = {0};
        view_between(b, 1, 2, CAUSE_PEER_LOST, 1);
        struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = wrong ? view_id(2) : view_id(1), .world = PEERS - 1,
                                            .params = one_float, .in = &x, .out = &y, .bad_argument = wrong, .deadline = INT64_MAX}};
        step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
        EXPECT(sent_next(b, ACT_PEERS, FRAME_REFUSE, &at, &r) != NULL && get_refuse(&r, &m));
        EXPECT_EQ(m.cause, wrong ? CAUSE_ARGUMENT : CAUSE_OLD_VIEW);
        EXPECT_EQ(m.culprit, wrong ? self : peer_id(1));
        bench_free(b);
    }
}

/* P12: or it would go on with the sizes of before, and be refused again. */
TEST(a_call_that_is_refused_for_its_old_view_brings_the_sizes_of_the_new_one)
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    struct session_info info;
    session_info(b->s, &info);
    EXPECT_EQ(info.snapshot.group, PEERS);
    view_between(b, 1, 2, CAUSE_PEER_LOST, 1);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = view_id(1), .world = PEERS, .params = one_float, .in = &x,
                                        .out = &y, .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    session_info(b->s, &info);
    EXPECT(!b->returned && info.snapshot.group == PEERS); /* the other one has not agreed yet */
    unsigned char raw[256];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_refuse(&w, &(struct msg_refuse){.name = {.space = SPACE_ORDERED}, .origin = peer_id(2), .cause = CAUSE_OLD_VIEW, .culprit = peer_id(1)});
    from_peer(b, 2, FRAME_REFUSE, view_id(2), &w);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST && b->outcome.cause == CAUSE_OLD_VIEW);
    session_info(b->s, &info);
    EXPECT(info.known == view_id(2) && info.snapshot.group == PEERS - 1);
    bench_free(b);
}

/* ---- Uneven parts that travel with the launch --------------------------------------------------------------------- */

static const size_t counts[PEERS] = {1, 2, 3}, places[PEERS] = {0, 1, 3};
static const struct op_params uneven = {.kind = PLAN_ALL_GATHER, .layout = 0x1232, .count = 3, .dtype = DTYPE_F32};

static void gather(struct bench *b, uint32_t slot, const float *x, float *y)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = PEERS, .params = uneven, .in = x,
                                        .out = y, .parts = {counts, places}, .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

/* Its call has the same parameters, a hash of the counts among them, and so many floats. */
static void part_of(struct bench *b, uint32_t peer, uint32_t seq, uint32_t floats)
{
    unsigned char raw[256];
    float part[3] = {(float)peer, (float)peer, (float)peer};
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = {.space = SPACE_ORDERED, .seq = seq}, .params = uneven,
                                      .bytes = floats * (uint32_t)sizeof *part});
    put_bytes(&w, part, floats * sizeof *part);
    from_peer(b, peer, FRAME_EAGER, view_id(1), &w);
}

static void expect_disagreement(struct bench *b, uint32_t culprit)
{
    uint32_t at = 0;
    struct reader r;
    struct msg_refuse m;
    EXPECT(sent_next(b, ACT_PEERS, FRAME_REFUSE, &at, &r) != NULL && get_refuse(&r, &m) && m.cause == CAUSE_MISMATCH);
    EXPECT_EQ(m.culprit, peer_id(culprit));
}

TEST(a_part_of_another_size_than_this_call_says_is_a_disagreement_and_touches_nothing_more) /* it would be copied over what lies behind */
{
    for (uint32_t early = 0; early < 2; early++) {
        struct bench *b = bench_new();
        float x = 7, y[6] = {0};
        if (early) {
            part_of(b, 1, 0, 3); /* parked: nothing is known of it yet */
            EXPECT(!sent(b, FRAME_REFUSE));
        }
        gather(b, 0, &x, y);
        if (!early) {
            part_of(b, 1, 0, 3);
        }
        expect_disagreement(b, 1);
        EXPECT(y[0] == 7 && y[1] == 0 && y[3] == 0);
        part_of(b, 2, 0, 3); /* a right one: of a call that has been refused here it is nothing any more */
        EXPECT(!sent(b, FRAME_REFUSE) && y[3] == 0);
        bench_free(b);
    }
}

TEST(parts_of_the_right_sizes_come_to_their_places_in_any_order)
{
    struct bench *b = bench_new();
    float x = 7, y[6] = {0};
    part_of(b, 2, 0, 3);
    gather(b, 0, &x, y);
    EXPECT(!sent(b, FRAME_HOLD));
    part_of(b, 1, 0, 2);
    EXPECT(sent(b, FRAME_HOLD));
    EXPECT(y[0] == 7 && y[1] == 1 && y[2] == 1 && y[3] == 2 && y[5] == 2);
    bench_free(b);
}

/* ---- Another root --------------------------------------------------------------------------------------------------- */

TEST(another_root_or_kind_at_a_number_is_refused_at_once) /* B6: each would wait for data of whom it takes for the root */
{
    static const struct op_params theirs[] = {{.kind = PLAN_BROADCAST, .count = 1, .dtype = DTYPE_F32},
                                              {.kind = PLAN_GATHER, .count = 1, .dtype = DTYPE_F32}};
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct bench *b = bench_new();
        struct session_info info;
        unsigned char raw[128];
        struct writer w;
        float x = 1, y[PEERS] = {0};
        session_info(b->s, &info);
        struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = PEERS, .params = theirs[0],
                                            .root_rank = 2, .in = &x, .out = y, .deadline = INT64_MAX}};
        step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
        EXPECT_EQ(b->outcome.result, RESULT_PENDING);
        struct msg_eager m = {.name = {.space = SPACE_ORDERED}, .params = theirs[kind], .bytes = kind == 0 ? 4 : 0};
        m.params.root = peer_id(1);
        writer_init(&w, raw, sizeof raw);
        put_eager(&w, &m);
        put_bytes(&w, &x, m.bytes);
        from_peer(b, 1, FRAME_EAGER, view_id(1), &w);
        expect_disagreement(b, 1);
        bench_free(b);
    }
}
