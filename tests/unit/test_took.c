/* test_took.c - how many times as long as predicted operations take: which count, and what is told of them.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "engine/tables/took.h"
#include "core/clock.h"
#include "core/dtype.h"

enum { VIEW = 7, MIB = 1 << 20 };

static const struct op_params sum = {.count = MIB, .dtype = DTYPE_F32, .kind = PLAN_ALL_REDUCE};
/* 1 s on links, 200 ms of delays: the first 50 are READY's, the last 50 pass after the data are there. */
static const struct choose_answer forest = {
    .algorithm = PLAN_FOREST, .ns = 1200 * CLOCK_MS, .delay_ns = 200 * CLOCK_MS, .hold_ns = 50 * CLOCK_MS, .measured = true, .links = true};

static bool ended(struct took *t, uint64_t view, int64_t percent, struct msg_took *m)
{
    struct took_forecast f = took_predicted(&sum, &forest);
    return took_take(t, view, &f, 100 * CLOCK_MS + CLOCK_S / 100 * percent, m);
}

TEST(median_of_three_operations_is_told) /* one may be late because something was beside it */
{
    struct took t = {0};
    struct msg_took m = {0};
    EXPECT(!ended(&t, VIEW, 150, &m) && !ended(&t, VIEW, 900, &m));
    EXPECT(ended(&t, VIEW, 140, &m));
    EXPECT_EQ(m.kind, TOOK_FOREST);
    EXPECT_EQ(m.permille, 1500);
    EXPECT_EQ(m.bytes, 4 * MIB);
    EXPECT_EQ(m.took_us, 1500000); /* of the last one */
    EXPECT(!ended(&t, VIEW, 150, &m)); /* no news */
    EXPECT(!ended(&t, VIEW, 156, &m)); /* 156, 150, 140 */
    EXPECT(!ended(&t, VIEW, 157, &m)); /* 156 is not clearly something else */
    EXPECT(!ended(&t, VIEW, 170, &m)); /* nor is 157 */
    EXPECT(ended(&t, VIEW, 170, &m));
    EXPECT_EQ(m.permille, 1700);
}

TEST(operations_of_another_view_are_counted_anew) /* its plans are others, and their predictions, too */
{
    struct took t = {0};
    struct msg_took m;
    EXPECT(!ended(&t, VIEW, 150, &m) && !ended(&t, VIEW, 150, &m) && ended(&t, VIEW, 150, &m));
    EXPECT(!ended(&t, VIEW + 1, 150, &m) && !ended(&t, VIEW + 1, 150, &m) && ended(&t, VIEW + 1, 150, &m));
}

TEST(times_beyond_all_measure_are_cut) /* a division by a time that is not there, a clock that stood still */
{
    struct took t = {0};
    struct msg_took m;
    EXPECT(!ended(&t, VIEW, -20, &m) && !ended(&t, VIEW, -20, &m) && ended(&t, VIEW, -20, &m));
    EXPECT_EQ(m.permille, 100);
    EXPECT(!ended(&t, VIEW, 100000, &m) && ended(&t, VIEW, 100000, &m));
    EXPECT_EQ(m.permille, 10000);
}

TEST(later_operations_are_expected_to_take_as_long_as_earlier_ones) /* each view of a network with shared links had its edges measured again */
{
    struct took t = {0};
    struct msg_took m;
    struct took_forecast f = took_predicted(&sum, &forest);
    const int64_t predicted = forest.ns;
    EXPECT_EQ(took_expected(&t, VIEW, &f, predicted, CLOCK_S), 0); /* the first ones show how well the model fits */
    EXPECT_EQ(took_expected(&t, VIEW, &f, predicted, 100 * CLOCK_MS + 2 * CLOCK_S + 1), predicted); /* an edge may have fallen to a tenth */
    EXPECT(!ended(&t, VIEW, 150, &m) && !ended(&t, VIEW, 150, &m));
    EXPECT_EQ(took_expected(&t, VIEW, &f, predicted, CLOCK_S), 0);
    EXPECT(ended(&t, VIEW, 150, &m));
    EXPECT_EQ(took_expected(&t, VIEW, &f, predicted, CLOCK_S), 100 * CLOCK_MS + 1500 * CLOCK_MS);
    EXPECT_EQ(took_expected(&t, VIEW + 1, &f, predicted, CLOCK_S), 0);
    EXPECT(!ended(&t, VIEW, 300, &m) && ended(&t, VIEW, 300, &m));
    EXPECT_EQ(took_expected(&t, VIEW, &f, predicted, CLOCK_S), 100 * CLOCK_MS + 1500 * CLOCK_MS); /* an edge that changes is to be seen */
    EXPECT(!ended(&t, VIEW + 1, 450, &m) && !ended(&t, VIEW + 1, 450, &m) && ended(&t, VIEW + 1, 450, &m));
    EXPECT_EQ(took_expected(&t, VIEW + 1, &f, predicted, CLOCK_S), predicted); /* no model is so wrong: an edge has changed before */
    f.kind = TOOK_KINDS;
    EXPECT_EQ(took_expected(&t, VIEW, &f, predicted, CLOCK_S), predicted);
}

TEST(program_is_late_by_a_twentieth_of_the_time) /* what others have exchanged meanwhile would make links look fast */
{
    EXPECT_EQ(took_predicted(&sum, &forest).late_ns, 2 * 50 * CLOCK_MS + CLOCK_S / 20);
}

static uint8_t kind_of(struct op_params p, struct choose_answer a)
{
    return took_predicted(&p, &a).kind;
}

TEST(only_sums_that_wait_for_links_say_something_of_them)
{
    struct choose_answer a = forest;
    EXPECT_EQ(kind_of(sum, a), TOOK_FOREST);
    a.algorithm = PLAN_RING;
    EXPECT_EQ(kind_of(sum, a), TOOK_RING);
    a.algorithm = PLAN_DIRECT;
    EXPECT_EQ(kind_of(sum, a), TOOK_DIRECT);
    a.algorithm = PLAN_TREE; /* its prediction goes by the links of direct */
    EXPECT_EQ(kind_of(sum, a), TOOK_KINDS);
    a.algorithm = PLAN_DIRECT;
    a.links = false; /* processors do it */
    EXPECT_EQ(kind_of(sum, a), TOOK_KINDS);
    a.links = true;
    a.measured = false; /* a guess */
    EXPECT_EQ(kind_of(sum, a), TOOK_KINDS);
    a.measured = true;
    a.ns = a.delay_ns + 199 * CLOCK_MS; /* delays take longer */
    EXPECT_EQ(kind_of(sum, a), TOOK_KINDS);
    a = (struct choose_answer){.algorithm = PLAN_DIRECT, .ns = 49 * CLOCK_MS, .measured = true, .links = true}; /* too short */
    EXPECT_EQ(kind_of(sum, a), TOOK_KINDS);
    a.ns = UINT64_MAX; /* never */
    EXPECT_EQ(kind_of(sum, a), TOOK_KINDS);
    struct op_params gather = sum;
    gather.kind = PLAN_ALL_GATHER;
    EXPECT_EQ(kind_of(gather, forest), TOOK_KINDS);
    struct took t = {0};
    struct msg_took m;
    struct took_forecast none = took_predicted(&gather, &forest);
    for (int i = 0; i < 9; i++) {
        EXPECT(!took_take(&t, VIEW, &none, CLOCK_S, &m));
    }
}
