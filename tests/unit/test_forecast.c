/* test_forecast.c - when predictions count as wrong, and which edge explains it.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "collectives/forecast.h"
#include "core/clock.h"

enum { VIEW = 7 };

static bool took(struct forecast *f, int64_t percent)
{
    return forecast_missed(f, VIEW, CLOCK_S, CLOCK_S / 100 * percent);
}

TEST(third_operation_in_a_row_that_takes_too_long_counts) /* one is late because a member was */
{
    struct forecast f = {0};
    EXPECT(!took(&f, 131) && !took(&f, 500) && took(&f, 131));
    EXPECT(f.slower);
}

TEST(operations_within_a_third_are_as_predicted) /* the log would name edges that are as they were */
{
    struct forecast f = {0};
    for (int i = 0; i < 20; i++) {
        EXPECT(!took(&f, 129) && !took(&f, 78));
    }
    EXPECT(!took(&f, 200) && !took(&f, 200) && !took(&f, 100) && !took(&f, 200) && !took(&f, 200));
    EXPECT(took(&f, 200));
}

TEST(operations_that_are_too_short_count_by_themselves) /* an edge that got faster would be sought among those that got slower */
{
    struct forecast f = {0};
    EXPECT(!took(&f, 200) && !took(&f, 200) && !took(&f, 50) && !took(&f, 50) && took(&f, 76));
    EXPECT(!f.slower);
}

TEST(an_edge_is_sought_once_in_a_view) /* each later operation would say the same again */
{
    struct forecast f = {0};
    EXPECT(!took(&f, 200) && !took(&f, 200) && took(&f, 200));
    for (int i = 0; i < 20; i++) {
        EXPECT(!took(&f, 200));
    }
    EXPECT(!forecast_missed(&f, VIEW + 1, CLOCK_S, 2 * CLOCK_S) && !forecast_missed(&f, VIEW + 1, CLOCK_S, 2 * CLOCK_S));
    EXPECT(forecast_missed(&f, VIEW + 1, CLOCK_S, 2 * CLOCK_S));
}

TEST(short_predictions_do_not_count) /* they are about processors, and other work takes these */
{
    struct forecast f = {0};
    for (int i = 0; i < 20; i++) {
        EXPECT(!forecast_missed(&f, VIEW, FORECAST_LEAST_NS - 1, CLOCK_S) && !forecast_missed(&f, VIEW, 0, CLOCK_S));
    }
    EXPECT(!forecast_missed(&f, VIEW, FORECAST_LEAST_NS, CLOCK_S));
    EXPECT_EQ(f.wrong, 1);
}

TEST(edge_that_misses_its_measurement_most_is_kept)
{
    static const struct forecast_edge edges[] = {{1, 100, 125}, {2, 100, 140}, {3, 20, 100}, {4, 30, 100}, {5, 0, 100}, {6, 900, 100}};
    struct forecast slower = {.slower = true}, faster = {.slower = false};
    struct forecast_edge worst = {0};
    forecast_edge(&slower, &worst, &edges[0]);
    EXPECT_EQ(worst.peer, 0);
    for (size_t i = 1; i < 6; i++) {
        forecast_edge(&slower, &worst, &edges[i]);
        EXPECT_EQ(worst.peer, i == 1 ? 2 : 3); /* 5: nothing was delivered of late, which says nothing */
    }
    worst = (struct forecast_edge){0};
    for (size_t i = 0; i < 6; i++) {
        forecast_edge(&faster, &worst, &edges[i]);
        EXPECT_EQ(worst.peer, i < 5 ? 0 : 6);
    }
}

TEST(news_of_an_edge_are_clearly_more_or_come_after_a_while) /* each operation would send the master a message */
{
    static const struct {
        uint64_t told, now;
        int64_t ago;
        bool worth;
    } rows[] = {{0, 0, FORECAST_TELL_NS, false}, {0, 1, 0, true}, {100, 110, 0, false}, {100, 111, 0, true}, {100, 111, FORECAST_TELL_NS - 1, true},
                {100, 90, FORECAST_TELL_NS - 1, false}, {100, 90, FORECAST_TELL_NS, true}, {100, 1, FORECAST_TELL_NS, true},
                {UINT64_MAX, UINT64_MAX, 0, false}, {1, UINT64_MAX, 0, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_EQ(forecast_worth_telling(rows[i].told, rows[i].now, rows[i].ago), rows[i].worth);
    }
}
