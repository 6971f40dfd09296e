/* test_session_order.c - calls in the order of issue take their turn, whatever becomes of those before them (P12).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

static enum session_result ordered(struct bench *b, uint32_t slot, const float *x, float *y)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.space = SPACE_ORDERED, .known = info.known, .world = info.snapshot.group, .params = one_float, .in = x,
                               .out = y, .deadline = INT64_MAX};
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
    struct session_launch l = {.space = SPACE_ORDERED, .known = info.known, .world = PEERS + 1, .params = one_float, .in = &x, .out = &y,
                               .deadline = INT64_MAX};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    EXPECT(sent(b, FRAME_REFUSE) && !sent(b, FRAME_EAGER));
    bench_free(b);
}
