/* test_stripe_policy.c - how many sockets a stripe comes to use, on paths that behave as those of wide areas do.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "net/stripe_policy.h"

#define MS INT64_C(1000000)
#define MBIT INT64_C(125000) /* bytes per second */

enum { MOST = 64, RTT_MS = 100 };

/* A path: bytes per second of so many sockets. */
typedef double rate_of(uint32_t sockets);

struct trace {
    struct stripe_policy policy;
    struct rng rng;
    int64_t now;
    uint32_t trials; /* how often the number grew */
    uint32_t noise;  /* percent up or down */
    uint32_t absent; /* sockets that never come */
    uint32_t idle, longest; /* samples of the trial of fewer that is on, of the longest of all */
    bool bound;      /* one of them is bound to what the path carries */
};

static struct trace trace_begin(void)
{
    struct trace t = {.rng = {5}, .now = MS};
    stripe_policy_init(&t.policy, MOST);
    return t;
}

static void run(struct trace *t, rate_of *rate, int64_t seconds, bool limited)
{
    int64_t span = stripe_policy_span(RTT_MS * MS), until = t->now + seconds * 1000 * MS;
    uint32_t count = t->policy.count;
    while (t->now < until) {
        t->now += span;
        double swing = t->noise == 0 ? 0 : ((double)rng_below(&t->rng, 2 * t->noise + 1) - t->noise) / 100;
        uint32_t there = t->absent > 0 && count > t->absent ? t->absent : count;
        struct stripe_sample s = {.now = t->now, .span_ns = span, .present = there, .limited = limited, .full = t->bound};
        s.acked = (uint64_t)(rate(there) * (1 + swing) * (double)span / 1e9);
        uint32_t next = stripe_policy_step(&t->policy, &s);
        EXPECT(next >= 1 && next <= MOST);
        EXPECT(next == count || next == 2 * count || 2 * next == count);
        t->trials += next > count;
        count = next;
    }
}

static double full(uint32_t sockets) /* BBR fills 1 Gb/s alone */
{
    (void)sockets;
    return 930.0 * MBIT;
}

static double small_buffers(uint32_t sockets) /* 4 MiB of send buffer and 100 ms */
{
    return sockets * 400.0 * MBIT < 930.0 * MBIT ? sockets * 400.0 * MBIT : 930.0 * MBIT;
}

static double lossy(uint32_t sockets) /* CUBIC, one packet in a thousand */
{
    return sockets * 4.5 * MBIT;
}

static double lossy_and_narrow(uint32_t sockets)
{
    return sockets * 4.5 * MBIT < 100.0 * MBIT ? sockets * 4.5 * MBIT : 100.0 * MBIT;
}

TEST(path_that_one_socket_fills_keeps_one) /* more only add loss of their own */
{
    struct trace t = trace_begin();
    run(&t, full, 60, true);
    EXPECT_EQ(t.policy.count, 1);
    EXPECT(t.trials >= 1);
}

TEST(sockets_make_up_for_small_buffers)
{
    struct trace t = trace_begin();
    run(&t, small_buffers, 9, true);
    EXPECT_EQ(t.policy.count, 4); /* 400, 800, 930; eight gain nothing */
}

TEST(loss_is_answered_with_as_many_as_still_gain)
{
    struct trace t = trace_begin();
    run(&t, lossy, 12, true);
    EXPECT_EQ(t.policy.count, MOST);
    t = trace_begin();
    run(&t, lossy_and_narrow, 12, true);
    EXPECT_EQ(t.policy.count, 32);
}

TEST(rates_that_swing_do_not_hide_a_gain) /* a sample of four round trips is no average */
{
    struct trace t = trace_begin();
    t.noise = 20;
    run(&t, lossy, 60, true);
    EXPECT(t.policy.count >= 32);
}

TEST(path_that_is_known_to_be_full_is_not_tried_with_more) /* two BBR sockets flood a short queue */
{
    struct trace t = trace_begin();
    t.bound = true;
    run(&t, lossy, 60, true);
    EXPECT_EQ(t.trials, 0);
    t = trace_begin();
    while (t.policy.before == 0 && t.now < 60000 * MS) {
        run(&t, full, 1, true);
    }
    EXPECT_EQ(t.policy.count, 2);
    t.bound = true; /* in the middle of a trial */
    run(&t, full, 1, true);
    EXPECT_EQ(t.policy.count, 1);
}

TEST(sender_that_is_not_held_back_tries_nothing) /* the program has little to send, or the receiver is slow */
{
    struct trace t = trace_begin();
    run(&t, lossy, 3600, false);
    EXPECT_EQ(t.policy.count, 1);
    EXPECT_EQ(t.trials, 0);
}

static double now_ms;

static double starting(uint32_t sockets) /* slow start: twice as much with each round trip */
{
    (void)sockets;
    now_ms += RTT_MS * 4;
    return now_ms * now_ms * MBIT / 1e5;
}

TEST(connection_that_still_grows_is_given_time)
{
    struct trace t = trace_begin();
    now_ms = 0;
    run(&t, starting, 4, true);
    EXPECT_EQ(t.trials, 0);
}

TEST(trial_that_gains_nothing_is_repeated_ever_more_rarely) /* each costs the others on the path */
{
    struct trace t = trace_begin();
    run(&t, full, 3600, true);
    EXPECT(t.trials >= 8 && t.trials <= 20);
    EXPECT_EQ(t.policy.count, 1);
}

TEST(sockets_that_do_not_come_end_a_trial) /* the other end has no descriptors left */
{
    struct trace t = trace_begin();
    t.absent = 1;
    run(&t, lossy, 9, true);
    EXPECT_EQ(t.policy.count, 1);
    EXPECT_EQ(t.trials, 1);
}

TEST(most_is_kept_although_more_would_gain) /* descriptors of the process are bounded */
{
    struct trace t = trace_begin();
    stripe_policy_init(&t.policy, 8);
    run(&t, lossy, 60, true);
    EXPECT_EQ(t.policy.count, 8);
    stripe_policy_init(&t.policy, 1);
    run(&t, lossy, 60, true);
    EXPECT_EQ(t.policy.count, 1);
}

/* ---- Fewer again -------------------------------------------------------------------------------------------------------- */

/* A path with sockets whose windows grow by 3 % per sample while they lose nothing, and lose in turn once the path is full. */
struct elastic {
    double window; /* bytes per second of each socket */
    double link;   /* bytes per second */
    double loss;   /* part of all bytes that is lost at random: holds each socket at 4.5 Mb/s */
    double lost;   /* bytes, not yet a packet */
    bool buffered; /* a socket's buffer ends at 400 Mb/s */
};

/* What so many sockets deliver in the next sample. */
static struct stripe_sample elastic_sample(struct elastic *e, struct trace *t, uint32_t count)
{
    int64_t span = stripe_policy_span(RTT_MS * MS);
    double most = e->loss > 0 ? 4.5 * MBIT : e->buffered ? 400.0 * MBIT : 1e30;
    t->now += span;
    e->window = e->window * 1.03 > most ? most : e->window * 1.03;
    bool flooded = e->window * count > e->link;
    double rate = flooded ? e->link : e->window * count;
    e->window = flooded ? e->link / count : e->window;
    e->lost += (flooded ? rate / 100 : rate * e->loss) * (double)span / 1e9;
    uint64_t packets = (uint64_t)(e->lost / 1448);
    e->lost -= (double)packets * 1448;
    double swing = t->noise == 0 ? 1 : 1 + ((double)rng_below(&t->rng, 2 * t->noise + 1) - t->noise) / 100;
    return (struct stripe_sample){
        .now = t->now, .span_ns = span, .present = stripe_policy_keep(&t->policy), .limited = true,
        .buffered = e->buffered && e->window >= most, .acked = (uint64_t)(rate * swing * (double)span / 1e9), .lost = packets * 1448,
    };
}

/* Returns the bytes that arrived. */
static uint64_t run_elastic(struct trace *t, struct elastic *e, int64_t seconds)
{
    int64_t until = t->now + seconds * 1000 * MS;
    uint64_t acked = 0;
    while (t->now < until) {
        struct stripe_sample s = elastic_sample(e, t, t->policy.count);
        uint32_t before = t->policy.count, next = stripe_policy_step(&t->policy, &s);
        EXPECT(next == before || next == 2 * before || 2 * next == before);
        EXPECT(stripe_policy_keep(&t->policy) >= next && stripe_policy_settled(&t->policy).count <= stripe_policy_keep(&t->policy));
        t->trials += next < before;
        t->idle = stripe_policy_keep(&t->policy) > next ? t->idle + 1 : 0;
        t->longest = t->idle > t->longest ? t->idle : t->longest;
        acked += s.acked;
    }
    return acked;
}

TEST(path_that_got_better_is_left_with_as_many_as_it_needs) /* 64 sockets would flood it for ever, in all later links too */
{
    struct trace t = trace_begin();
    struct elastic e = {.link = 930.0 * MBIT, .loss = 0.001, .window = 4.5 * MBIT};
    run_elastic(&t, &e, 30);
    EXPECT_EQ(t.policy.count, MOST);
    e.loss = 0;
    run_elastic(&t, &e, 1800);
    EXPECT_EQ(t.policy.count, 1);
    EXPECT_EQ(stripe_policy_settled(&t.policy).count, 1);
    e.loss = 0.001; /* and back */
    run_elastic(&t, &e, 60);
    EXPECT_EQ(t.policy.count, MOST);
}

TEST(path_that_got_narrower_is_left_with_as_many_as_it_needs)
{
    struct trace t = trace_begin();
    struct elastic e = {.link = 930.0 * MBIT, .loss = 0.001, .window = 4.5 * MBIT};
    run_elastic(&t, &e, 30);
    e.link = 17.0 * MBIT;
    run_elastic(&t, &e, 1800);
    EXPECT_EQ(t.policy.count, 4);
}

TEST(trials_of_fewer_cost_a_path_that_needs_all_of_them_little) /* each takes half of the rate while it lasts */
{
    for (uint32_t noise = 0; noise <= 20; noise += 20) {
        struct trace t = trace_begin();
        struct elastic e = {.link = 930.0 * MBIT, .loss = 0.001, .window = 4.5 * MBIT};
        t.noise = noise;
        run_elastic(&t, &e, 60);
        t.trials = 0;
        uint64_t acked = run_elastic(&t, &e, 3600);
        EXPECT_EQ(stripe_policy_settled(&t.policy).count, MOST);
        EXPECT(t.trials >= 3 && t.trials <= 12);
        EXPECT((double)acked > 0.99 * 3600 * MOST * 4.5 * MBIT);
    }
}

TEST(number_stays_where_each_half_gains) /* rates that swing must not talk it down, nor the other trials up */
{
    struct trace t = trace_begin();
    struct elastic e = {.link = 100.0 * MBIT, .loss = 0.001, .window = 4.5 * MBIT};
    t.noise = 20;
    run_elastic(&t, &e, 60);
    uint64_t acked = run_elastic(&t, &e, 3600);
    EXPECT_EQ(stripe_policy_settled(&t.policy).count, 32);
    EXPECT((double)acked > 0.95 * 3600 * 100.0 * MBIT);
}

TEST(trial_of_fewer_does_not_wait_for_buffers_to_grow) /* without loss, but held all the same */
{
    struct trace t = trace_begin();
    struct elastic e = {.link = 930.0 * MBIT, .buffered = true, .window = 400.0 * MBIT};
    run_elastic(&t, &e, 60);
    EXPECT_EQ(t.policy.count, 4);
    uint64_t acked = run_elastic(&t, &e, 3600);
    EXPECT_EQ(stripe_policy_settled(&t.policy).count, 4);
    EXPECT((double)acked > 0.97 * 3600 * 930.0 * MBIT);
    EXPECT(t.longest < 24); /* they grow to 400 Mb/s each, and no further */
}

TEST(trial_of_fewer_keeps_the_sockets_that_it_leaves_idle)
{
    struct trace t = trace_begin();
    struct elastic e = {.link = 930.0 * MBIT, .loss = 0.001, .window = 4.5 * MBIT};
    run_elastic(&t, &e, 30);
    while (t.policy.count == MOST && t.now < 600000 * MS) {
        run_elastic(&t, &e, 1);
    }
    EXPECT_EQ(t.policy.count, MOST / 2);
    EXPECT_EQ(stripe_policy_keep(&t.policy), MOST);
    EXPECT_EQ(stripe_policy_settled(&t.policy).count, MOST);
    run_elastic(&t, &e, 30);
    EXPECT_EQ(t.policy.count, MOST);
}

/* ---- Links that are made again ------------------------------------------------------------------------------------------ */

static struct trace trace_resume(const struct trace *last, uint32_t most, int64_t pause_ms)
{
    const struct stripe_settled found = stripe_policy_settled(&last->policy);
    struct trace t = {.rng = {6}, .now = last->now + pause_ms * MS};
    stripe_policy_resume(&t.policy, most, &found, t.now);
    return t;
}

TEST(policy_that_resumes_begins_where_the_last_one_had_settled) /* every new link would find it out again, by doubling */
{
    struct trace first = trace_begin();
    run(&first, lossy_and_narrow, 15, true);
    struct trace t = trace_resume(&first, MOST, 1000);
    EXPECT_EQ(t.policy.count, 32);
    run(&t, lossy_and_narrow, 2, true);
    EXPECT_EQ(t.trials, 0); /* that 64 gain nothing is known */
    EXPECT_EQ(t.policy.count, 32);
    run(&first, lossy_and_narrow, 600, true);
    t = trace_resume(&first, MOST, 1000);
    EXPECT(first.policy.not_before - t.now > 30000 * MS);
    run(&t, lossy_and_narrow, 9, true);
    EXPECT_EQ(t.trials, 0);
    run(&t, lossy_and_narrow, 4, true);
    EXPECT(t.trials > 0); /* for a while only: the path may be another one by now */
    t = trace_resume(&first, 8, 1000);
    EXPECT_EQ(t.policy.count, 8);
    t = trace_begin();
    stripe_policy_resume(&t.policy, MOST, &(struct stripe_settled){.count = 0}, t.now);
    EXPECT_EQ(t.policy.count, 1);
}

static uint32_t begins_with(bool answers_loss, uint32_t rtt_us, uint32_t lanes, uint32_t stripes)
{
    return stripe_policy_first(&(struct stripe_first){.answers_loss = answers_loss, .rtt_us = rtt_us, .lanes = lanes, .stripes = stripes});
}

TEST(long_path_begins_with_few_where_losses_are_not_answered) /* a first call took a half longer with losses */
{
    EXPECT_EQ(begins_with(false, 100000, 1, 0), 4);
    EXPECT_EQ(begins_with(false, 100000, 1, 1), 4);
    EXPECT_EQ(begins_with(false, 100000, 1, 2), 4);
    EXPECT_EQ(begins_with(false, 100000, 1, 3), 1); /* 12 in all overran the queue */
    EXPECT_EQ(begins_with(false, 100000, 64, 63), 1);
    EXPECT_EQ(begins_with(false, 4999, 1, 1), 1);
}

TEST(number_that_nothing_was_tried_with_is_not_found) /* every later path to that host would begin with as many */
{
    struct trace t = trace_begin();
    stripe_policy_begin(&t.policy, MOST, &(struct stripe_first){.rtt_us = 100000, .stripes = 1}, t.now);
    run(&t, full, 5, true);
    EXPECT_EQ(t.policy.count, 4); /* no trial at once: the first calls would share the line with twice as many */
    EXPECT_EQ(stripe_policy_settled(&t.policy).count, 0);
    run(&t, full, 60, true);
    EXPECT(stripe_policy_settled(&t.policy).count > 0);
}

TEST(long_path_begins_with_many_where_each_loss_is_answered) /* doubling from one takes longer than most calls */
{
    EXPECT(stripe_policy_answers_loss("cubic") && stripe_policy_answers_loss("reno"));
    EXPECT(!stripe_policy_answers_loss("bbr") && !stripe_policy_answers_loss("bbr2") && !stripe_policy_answers_loss(""));
    EXPECT_EQ(begins_with(true, 100000, 1, 1), 16);
    EXPECT_EQ(begins_with(true, 5000, 1, 1), 16);
    EXPECT_EQ(begins_with(true, 100000, 3, 1), 6); /* of each lane */
    EXPECT_EQ(begins_with(true, 100000, 64, 1), 1);
    EXPECT_EQ(begins_with(true, 4999, 1, 1), 1);
    EXPECT_EQ(begins_with(true, 100000, 0, 100), 16); /* whatever the peers */
    struct trace t = trace_begin();
    stripe_policy_begin(&t.policy, 8, &(struct stripe_first){.answers_loss = true, .rtt_us = 100000}, t.now);
    EXPECT_EQ(t.policy.count, 8); /* all there may be */
    stripe_policy_begin(&t.policy, MOST, &(struct stripe_first){.answers_loss = true, .rtt_us = 100000}, t.now);
    run(&t, lossy_and_narrow, 15, true);
    EXPECT_EQ(t.policy.count, 32); /* and more that gain are tried at once */
}

TEST(sender_is_held_back_by_full_sockets_or_by_windows_that_are_used_up) /* a call of a few MB fills no socket of sixteen */
{
    const struct stripe_hold full = {.span_ns = 400 * MS, .full_ns = 200 * MS, .used = 1, .idle = 1};
    const struct stripe_hold windows = {.span_ns = 400 * MS, .acked = 500, .windows = 1000, .used = 16, .idle = 7, .answers_loss = true};
    struct stripe_hold h = full;
    EXPECT(stripe_policy_held(&h));
    h.full_ns -= 1;
    EXPECT(!stripe_policy_held(&h));
    h = windows;
    EXPECT(stripe_policy_held(&h));
    h.acked = 499; /* half of what they let through */
    EXPECT(!stripe_policy_held(&h));
    h = windows;
    h.idle = 8; /* the windows of sockets that send little are little */
    EXPECT(!stripe_policy_held(&h));
    h = windows;
    h.windows = 0; /* a system that does not tell */
    EXPECT(!stripe_policy_held(&h));
    h = windows;
    h.answers_loss = false; /* BBR: its window is twice what it sends */
    EXPECT(!stripe_policy_held(&h));
}

TEST(trial_that_is_not_over_is_not_resumed) /* of its number nothing is known */
{
    struct trace first = trace_begin();
    run(&first, small_buffers, 9, true);
    EXPECT_EQ(first.policy.count, 4);
    while (first.policy.count == 4 && first.now < 600000 * MS) {
        run(&first, small_buffers, 1, true);
    }
    EXPECT_EQ(first.policy.count, 8);
    EXPECT_EQ(stripe_policy_settled(&first.policy).count, 4);
    struct trace t = trace_resume(&first, MOST, 0);
    EXPECT_EQ(t.policy.count, 4);
    first = trace_begin(); /* it has gained, and the one after it is on */
    while (first.policy.count < 16 && first.now < 600000 * MS) {
        run(&first, lossy, 1, true);
    }
    EXPECT_EQ(stripe_policy_settled(&first.policy).count, 8);
    t = trace_resume(&first, MOST, 0);
    EXPECT_EQ(t.policy.count, 8);
    run(&t, lossy, 9, true);
    EXPECT_EQ(t.policy.count, MOST); /* goes on growing at once */
}

TEST(path_that_got_better_while_no_link_was_there_is_found_out_by_the_next) /* however short each of them lives */
{
    struct elastic e = {.link = 930.0 * MBIT, .loss = 0.001, .window = 4.5 * MBIT};
    struct trace t = trace_begin();
    run_elastic(&t, &e, 30);
    e.loss = 0;
    for (int link = 0; link < 60; link++) {
        t = trace_resume(&t, MOST, 1000);
        run_elastic(&t, &e, 50);
    }
    EXPECT(t.policy.count <= 4);
}

TEST(sockets_that_are_not_there_any_more_are_not_waited_for) /* the other end has lost its descriptors meanwhile */
{
    struct trace first = trace_begin();
    run(&first, lossy, 12, true);
    struct trace t = trace_resume(&first, MOST, 1000);
    EXPECT_EQ(t.policy.count, MOST);
    for (uint32_t i = 0; i < 20; i++) {
        struct stripe_sample s = {.now = t.now += 400 * MS, .span_ns = 400 * MS, .present = 3, .limited = true, .acked = 1000000};
        uint32_t count = stripe_policy_step(&t.policy, &s);
        EXPECT_EQ(count, i < 9 ? MOST : i == 9 ? 3 : count);
        EXPECT(count == MOST || count <= 6);
        EXPECT_EQ(stripe_policy_settled(&t.policy).count, i < 9 ? MOST : 0); /* the next link is not to begin with so few */
    }
}

TEST(samples_last_four_round_trips_within_bounds)
{
    EXPECT_EQ(stripe_policy_span(0), 250 * MS);
    EXPECT_EQ(stripe_policy_span(100 * MS), 400 * MS);
    EXPECT_EQ(stripe_policy_span(INT64_MAX), 2000 * MS);
}
