/* test_session_stall.c - the stall time of a world at its members: asked for, told with the view, kept by.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

#include "core/clock.h"

/* So much later; the frames of that step are in the outbox. */
static void pass(struct bench *b, int64_t ns)
{
    b->now += ns;
    step(b, &(struct session_event){.kind = SESSION_TICK});
}

TEST(stall_time_is_asked_of_the_world) /* the master never hears of it */
{
    struct session_config c = bench_config();
    struct msg_register m;
    struct reader r;
    uint32_t at = 0;
    c.stall_ms = 400;
    struct bench *b = bench_idle(&c);
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    EXPECT(sent_next(b, ACT_MASTER, FRAME_REGISTER, &at, &r) != NULL && get_register(&r, &m));
    EXPECT_EQ(m.stall_ms, 400);
    bench_free(b);
}

TEST(the_smallest_stall_time_counts_at_all_members_and_heartbeats_come_in_a_fifth_of_it) /* those of ten seconds go on by theirs */
{
    struct bench *b = bench_new();
    EXPECT_EQ(session_stall_ns(b->s), 10 * CLOCK_S);
    pass(b, 900 * CLOCK_MS); /* nobody has said anything since */
    b->stall_ms = 400;
    install(b, 2, false);
    EXPECT_EQ(session_stall_ns(b->s), 400 * CLOCK_MS);
    int64_t beat = session_deadline(b->s) - b->now;
    EXPECT(beat <= 80 * CLOCK_MS);
    pass(b, 80 * CLOCK_MS);
    EXPECT(sent(b, FRAME_HEARTBEAT) && sent(b, FRAME_PING) && !sent(b, FRAME_SUSPECT));
    for (int i = 0; i < 3; i++) { /* one of both is silent */
        pass(b, 80 * CLOCK_MS);
        EXPECT(!sent(b, FRAME_SUSPECT));
        ping(b, 2, view_id(2));
    }
    pass(b, 90 * CLOCK_MS);
    EXPECT(sent(b, FRAME_SUSPECT));
    bench_free(b);
}

TEST(a_longer_stall_time_of_a_view_changes_nothing_and_a_later_view_may_end_a_shorter_one) /* what a member asked for outlives it */
{
    struct bench *b = bench_new();
    b->stall_ms = 60000;
    install(b, 2, false);
    EXPECT_EQ(session_stall_ns(b->s), 10 * CLOCK_S);
    b->stall_ms = 400;
    install(b, 3, false);
    EXPECT_EQ(session_stall_ns(b->s), 400 * CLOCK_MS);
    b->stall_ms = 0;
    install(b, 4, false);
    EXPECT_EQ(session_stall_ns(b->s), 10 * CLOCK_S);
    pass(b, 500 * CLOCK_MS);
    EXPECT(!sent(b, FRAME_SUSPECT));
    bench_free(b);
}

TEST(silence_from_before_a_shorter_stall_time_is_not_told) /* the view that brings it breaks all its links */
{
    struct bench *b = bench_new();
    pass(b, 900 * CLOCK_MS);
    b->stall_ms = 400;
    struct op_decision none = {.name.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST};
    decided(b, 2, CAUSE_NONE, &none, NULL);
    pass(b, 10 * CLOCK_MS);
    EXPECT(!sent(b, FRAME_SUSPECT));
    bool told = false;
    for (int i = 0; i < 5; i++) {
        pass(b, 100 * CLOCK_MS);
        told = told || sent(b, FRAME_SUSPECT);
    }
    EXPECT(told);
    bench_free(b);
}
