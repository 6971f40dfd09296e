/* test_stripe_pace.c - what a socket is bound to, on paths whose rate, queue and loss are given.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "net/stripe_pace.h"

enum { LOOKS_PER_S = 10 }; /* one round trip of 100 ms each */
#define MB UINT64_C(1000000)

/* A socket as BBR leaves it: it sends at 2.9 times the rate that it has seen, and its estimate is the best that has arrived in a look. */
struct path {
    double carries;        /* bytes per second */
    double random_loss;
    struct stripe_pace pace;
    struct stripe_look sum;
    double sent, lost;     /* bytes in all */
};

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* One look at a socket with so many bytes to send. */
static void look(struct path *p, double bytes)
{
    double estimate = (double)p->sum.estimate, wish = estimate > 0 ? 2.89 * estimate : 1e5;
    double rate = p->pace.rate > 0 ? least(wish, (double)p->pace.rate) : wish;
    double sends = least(bytes, rate / LOOKS_PER_S), carried = least(sends, p->carries / LOOKS_PER_S);
    double queue = p->carries / LOOKS_PER_S / 20; /* 5 ms of it */
    double flooded = sends - carried > queue ? sends - carried - queue : 0, lost = flooded + p->random_loss * (sends - flooded);
    p->sum.now += 1000000000 / LOOKS_PER_S;
    p->sent += sends;
    p->lost += lost;
    p->sum.acked += (uint64_t)(sends - lost);
    p->sum.retransmitted += (uint64_t)lost;
    double seen = least(sends - lost, carried) * LOOKS_PER_S;
    p->sum.estimate = seen > estimate ? (uint64_t)seen : p->sum.estimate;
    (void)stripe_pace_step(&p->pace, &p->sum);
}

static void looks(struct path *p, int count, double bytes)
{
    for (int i = 0; i < count; i++) {
        look(p, bytes);
    }
}

/* The path carries ten times as much from now on. */
static int looks_until_found(struct path *p)
{
    int count = 0;
    p->carries *= 10;
    for (; count < 500 && (double)p->sum.estimate < 0.9 * p->carries; count++) {
        look(p, 100e6);
    }
    return count;
}

TEST(a_socket_whose_rate_has_stopped_growing_no_longer_floods_its_path) /* each burst was sent at 2.9 times what the path carries */
{
    struct path p = {.carries = 15e6};
    looks(&p, 40, 8e6);
    EXPECT(p.pace.rate >= 15 * MB && p.pace.rate <= 19 * MB);
    p.sent = p.lost = 0;
    looks(&p, 400, 8e6);
    EXPECT(p.lost < 0.01 * p.sent);
    EXPECT(p.sent - p.lost >= 0.95 * 40 * p.carries);
}

TEST(a_rate_that_still_grows_is_not_bound) /* a link with loss begins, too */
{
    struct path p = {.carries = 100e6, .random_loss = 0.04};
    for (int i = 0; i < 100 && (double)p.sum.estimate < 0.3 * p.carries; i++) {
        look(&p, 1e9);
        EXPECT_EQ(p.pace.rate, 0);
    }
    EXPECT((double)p.sum.estimate >= 0.3 * p.carries);
}

TEST(a_path_that_carries_ten_times_as_much_as_before_is_found_out)
{
    struct path p = {.carries = 15e6};
    looks(&p, 60, 8e6);
    EXPECT(p.pace.rate > 0);
    EXPECT(looks_until_found(&p) <= 30 + 64); /* a trial is due after 64 calm looks at the latest */
    p = (struct path){.carries = 15e6};
    looks(&p, 15, 8e6);
    EXPECT(looks_until_found(&p) <= 30);
}

TEST(loss_that_goes_on_although_the_rate_is_bound_is_not_the_sockets_own) /* bound to less and less, it would come to a stop */
{
    struct path p = {.carries = 15e6, .random_loss = 0.1};
    looks(&p, 1, 1e6);
    p.sum.estimate = (uint64_t)p.carries;
    int bound = 0;
    for (int i = 0; i < 680; i++) {
        p.sum.acked += 1350000;
        p.sum.retransmitted += 150000;
        bound += stripe_pace_step(&p.pace, &p.sum) != 0;
    }
    EXPECT(bound >= 4 && bound <= 680 / 10);
}

TEST(a_bound_socket_on_a_link_with_loss_of_its_own_still_finds_out_that_more_is_carried) /* between the two limits no look was calm */
{
    struct path p = {.carries = 15e6, .random_loss = 0.03};
    looks(&p, 60, 8e6);
    EXPECT(p.pace.rate > 0);
    EXPECT(looks_until_found(&p) <= 30 + 64);
}

TEST(a_socket_that_loses_little_or_has_no_estimate_is_not_bound)
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = {.estimate = 15 * MB};
    for (int i = 0; i < 100; i++) { /* one byte of a hundred */
        at.acked += 10 * MB;
        at.retransmitted += MB / 10;
        EXPECT_EQ(stripe_pace_step(&pace, &at), 0);
    }
    for (int i = 0; i < 100; i++) { /* of short messages */
        at.acked += 10000;
        at.retransmitted += 10000;
        EXPECT_EQ(stripe_pace_step(&pace, &at), 0);
    }
    at.estimate = 0;
    for (int i = 0; i < 100; i++) { /* CUBIC */
        at.acked += 10 * MB;
        at.retransmitted += MB;
        EXPECT_EQ(stripe_pace_step(&pace, &at), 0);
    }
}

TEST(a_slow_path_that_carries_more_again_is_found_out_too) /* less than 256 KiB a round trip told nothing: 2 Mb/s grew by a twentieth each */
{
    struct path p = {.carries = 1.5e6};
    looks(&p, 60, 8e6);
    EXPECT(p.pace.rate > 0 && p.pace.rate < 2 * MB);
    p.pace.wait = 6;
    p.pace.calm = 0;
    EXPECT(looks_until_found(&p) <= 20); /* of a twentieth each it would take 46 */
}

TEST(a_trial_that_gains_nothing_ends) /* it went on until the next burst, which overran the queue */
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = {.estimate = 15 * MB};
    uint32_t trials = 0;
    for (int i = 0; i < 400; i++) { /* the path carries no more, and its queue takes the rest: nothing is lost */
        at.now += 1000000000 / LOOKS_PER_S;
        at.acked += 15 * MB / LOOKS_PER_S;
        at.retransmitted += i == 1 ? MB : 0;
        trials += stripe_pace_step(&pace, &at) > 16 * MB;
    }
    EXPECT(trials > 0 && trials <= 8 * 3); /* a look for each, and two in which nothing grows */
    EXPECT_EQ(pace.wait, 64);
    for (uint64_t rate = 0; rate < 16 * MB;) { /* the next trial begins */
        at.now += 1000000000 / LOOKS_PER_S;
        at.acked += 15 * MB / LOOKS_PER_S;
        rate = stripe_pace_step(&pace, &at);
    }
    for (int i = 0; i < 400; i++) { /* little is sent: that tells nothing */
        at.now += 1000000000 / LOOKS_PER_S;
        at.acked += 15 * MB / LOOKS_PER_S / 3;
        EXPECT(stripe_pace_step(&pace, &at) < 16 * MB);
    }
}

TEST(an_estimate_that_falls_bounds_nothing) /* BBR forgot what the path carries, and was bound to that */
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = {.estimate = 90 * MB};
    for (int i = 0; i < 20; i++) {
        at.now += 1000000000 / LOOKS_PER_S;
        at.acked += 9 * MB;
        at.retransmitted += i == 10 ? MB : 0;
        EXPECT_EQ(stripe_pace_step(&pace, &at) != 0, i >= 10);
        EXPECT_EQ(stripe_pace_full(&pace), i >= 10);
    }
    at.estimate = 20 * MB;
    for (int i = 0; i < 20; i++) {
        at.now += 1000000000 / LOOKS_PER_S;
        at.acked += 2 * MB;
        at.retransmitted += i < 8 || i == 12 ? MB / 5 : 0;
        EXPECT_EQ(stripe_pace_step(&pace, &at) != 0, i >= 12); /* it has had time to look for what the path carries */
        EXPECT_EQ(stripe_pace_full(&pace), i < 8 || i >= 12); /* no more sockets meanwhile */
    }
}

/* Twenty looks at a path of 90 MB/s, which the socket floods in the eleventh if it is to be bound. */
static struct stripe_look fills(struct stripe_pace *pace, bool floods)
{
    struct stripe_look at = {.estimate = 90 * MB};
    for (int i = 0; i < 20; i++) {
        at.now += 1000000000 / LOOKS_PER_S;
        at.acked += 9 * MB;
        at.retransmitted += floods && i == 10 ? MB : 0;
        (void)stripe_pace_step(pace, &at);
        EXPECT(!pace->restart);
    }
    EXPECT_EQ(pace->rate != 0, floods);
    return at;
}

static uint64_t next_look(struct stripe_pace *pace, struct stripe_look *at, uint64_t estimate)
{
    at->now += 1000000000 / LOOKS_PER_S;
    at->estimate = estimate;
    at->acked += estimate / LOOKS_PER_S + 1;
    return stripe_pace_step(pace, at);
}

TEST(an_estimate_that_is_lost_has_the_congestion_control_begin_anew) /* it grew by a quarter each round trip: one call of 2 s took 4 to 10 */
{
    static const uint64_t rises[] = {1, 0, 1, 2, 4, 8, 16, 32, 64, 80}; /* MB/s; begun anew it has no idea at first */
    for (int floods = 0; floods < 2; floods++) {
        struct stripe_pace pace = {.rate = 0};
        struct stripe_look at = fills(&pace, floods);
        for (size_t i = 0; i < 30; i++) {
            uint64_t rate = next_look(&pace, &at, i < 10 ? rises[i] * MB : 80 * MB);
            EXPECT_EQ(pace.restart, i == 0); /* once */
            EXPECT_EQ(stripe_pace_full(&pace), i < 16 || floods);
            if (!floods) {
                EXPECT_EQ(rate, 0); /* it has never been seen to overrun its queue */
            } else {
                EXPECT(i < 16 ? rate == 94500000 : rate > 80 * MB && rate <= 90 * MB); /* what the path carried need not overrun it again */
            }
        }
        (void)next_look(&pace, &at, 9 * MB); /* and when it is lost again */
        EXPECT(pace.restart);
    }
}

TEST(an_estimate_that_is_lost_in_steps_is_lost) /* each was no more than a half */
{
    static const uint64_t falls[] = {40, 19, 12, 5};
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    for (int i = 0; i < 4; i++) {
        uint64_t rate = next_look(&pace, &at, falls[i] * MB);
        EXPECT_EQ(pace.restart, i == 3);
        EXPECT_EQ(rate, i == 3 ? 94500000 : 0);
    }
}

TEST(a_path_that_stays_slow_is_not_bound_to_what_it_carried) /* nor to the little that was sent while it was looked for */
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    for (int i = 0; i < 40; i++) {
        uint64_t rate = next_look(&pace, &at, 5 * MB);
        EXPECT_EQ(rate, i < 16 ? 94500000 : 0);
        EXPECT_EQ(pace.restart, i == 0);
    }
}

TEST(trials_after_a_fall_are_as_rare_as_at_first) /* what the socket had found out before says nothing of them */
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    pace.wait = 64;
    pace.gains = true;
    for (int i = 0; i < 17; i++) {
        (void)next_look(&pace, &at, i == 0 ? 5 * MB : 80 * MB);
    }
    EXPECT(pace.wait == 6 && pace.calm <= 1 && !pace.gains);
}

TEST(loss_that_goes_on_in_a_fall_ends_the_bound) /* it is not the socket's own */
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    (void)next_look(&pace, &at, 5 * MB);
    EXPECT(pace.restart);
    for (int i = 0; i < 40; i++) {
        at.retransmitted += MB / 2;
        uint64_t rate = next_look(&pace, &at, 60 * MB);
        EXPECT_EQ(rate, i < 3 ? 94500000 : 0);
        EXPECT_EQ(stripe_pace_full(&pace), i < 3);
    }
}

TEST(looks_at_which_nothing_arrives_do_not_use_up_the_rise)
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    (void)next_look(&pace, &at, 5 * MB);
    for (int i = 0; i < 100; i++) {
        at.now += 1000000000 / LOOKS_PER_S;
        EXPECT_EQ(stripe_pace_step(&pace, &at), 94500000);
    }
    for (int i = 0; i < 15; i++) {
        EXPECT_EQ(next_look(&pace, &at, 80 * MB), 94500000);
    }
    EXPECT(next_look(&pace, &at, 80 * MB) < 94500000);
}

TEST(other_sockets_on_the_path_are_no_fall) /* each carries less then, and BBR knows for ten round trips what one carried alone */
{
    for (int fallen = 0; fallen < 2; fallen++) {
        struct stripe_pace pace = {.rate = 0};
        struct stripe_look at = fills(&pace, true);
        if (fallen) {
            (void)next_look(&pace, &at, 5 * MB);
        }
        stripe_pace_anew(&pace);
        for (int i = 0; i < 30; i++) {
            EXPECT_EQ(next_look(&pace, &at, i < 10 ? 90 * MB : 10 * MB), 0);
            EXPECT(!pace.restart && !stripe_pace_full(&pace));
        }
    }
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    (void)next_look(&pace, &at, 5 * MB);
    stripe_pace_anew(&pace);
    for (int i = 0; i < 15; i++) { /* the repair goes on, and what it carries is not what the path does */
        at.retransmitted += MB;
        EXPECT_EQ(next_look(&pace, &at, 5 * MB), 0);
    }
}

TEST(another_congestion_control_has_no_estimate_to_lose)
{
    struct stripe_pace pace = {.rate = 0};
    struct stripe_look at = fills(&pace, true);
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(next_look(&pace, &at, 0), 0);
        EXPECT(!pace.restart);
    }
}
