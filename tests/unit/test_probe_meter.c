/* test_probe_meter.c - what a probe makes of streams that begin slowly, settle, stall and lie low.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/clock.h"
#include "topology/probe_meter.h"

enum { MS = 1000000, LOOK = 5 * MS, MEASURE = 200 * MS };

struct link {
    uint64_t bps;
    int64_t rtt;
    bool estimates; /* its congestion control does */
    int64_t slow_from, slow_until; /* of the settled stream, at a tenth of its rate */
};

struct result {
    uint64_t bps;
    int64_t took;
};

/* A stream that sends 10 packets in its first round trip and twice as much in each later one, until the link is full. */
static struct result probe(const struct link *l)
{
    struct probe_meter m;
    double acked = 0, window = 10 * 1448, full = (double)l->bps / 8 * ((double)l->rtt / 1e9), best = 0;
    int64_t start = CLOCK_S, now = start, trip = start;
    probe_meter_init(&m, start, MEASURE);
    for (;;) {
        double rate = (window < full ? window : full) / ((double)l->rtt / 1e9);
        bool slow = now - start >= l->slow_from && now - start < l->slow_until;
        now += LOOK;
        acked += (slow ? rate / 10 : rate) * LOOK / 1e9;
        best = rate > best ? rate : best;
        if (now - trip >= l->rtt) {
            trip = now;
            window *= 2;
        }
        if (probe_meter_look(&m, now, (uint64_t)acked, l->rtt, l->estimates ? (uint64_t)(8 * best) : 0)) {
            return (struct result){probe_meter_bps(&m, now), now - start};
        }
    }
}

TEST(rate_of_a_link_is_found_whatever_its_length) /* a cold stream of 200 ms read 5 Mb/s of 1 Gb/s at 100 ms */
{
    static const uint64_t rates[] = {10000000, 100000000, 1000000000, 2500000000};
    static const int64_t rtts[] = {1 * MS, 10 * MS, 40 * MS, 100 * MS, 200 * MS};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 5; k++) {
            struct link l = {.bps = rates[i], .rtt = rtts[k]};
            struct result r = probe(&l);
            EXPECT(r.bps > rates[i] / 100 * 95 && r.bps < rates[i] / 100 * 105);
            EXPECT(r.took <= (rtts[k] < 200 * MS ? 3 : 4) * CLOCK_S + LOOK); /* longer only while it still grows */
            EXPECT(rtts[k] > 10 * MS || r.took < 450 * MS);
        }
    }
}

TEST(stream_that_pays_for_a_full_queue_is_known_by_what_went_before) /* BBR overruns a queue at first, and is slow for some round trips */
{
    struct link l = {.bps = 100000000, .rtt = 100 * MS, .slow_from = 900 * MS, .slow_until = INT64_C(2500) * MS, .estimates = true};
    struct result r = probe(&l);
    EXPECT(r.bps > 95000000 && r.bps < 105000000);
}

TEST(an_estimate_beyond_what_was_ever_seen_does_not_count) /* a kernel may be wrong, and a burst is no rate */
{
    struct probe_meter m;
    probe_meter_init(&m, CLOCK_S, MEASURE);
    int64_t now = CLOCK_S;
    for (int i = 0; !probe_meter_look(&m, now, (uint64_t)i * 6250, 10 * MS, UINT64_MAX); i++) {
        now += LOOK;
    }
    EXPECT(probe_meter_bps(&m, now) <= 11000000);
}

TEST(acknowledgements_that_come_together_are_no_rate) /* 12 Mb/s behind a full queue read 20: 20 ms hold a few packets only */
{
    struct probe_meter m;
    int64_t now = CLOCK_S;
    uint64_t delivered = 0;
    probe_meter_init(&m, now, MEASURE);
    for (int i = 0; !probe_meter_look(&m, now, delivered, MS / 5, 40000000); i++) { /* the estimate is that of two packets */
        now += LOOK;
        delivered += i % 24 < 4 ? 3 * 7500 : i % 24 < 12 ? 0 : 7500; /* bytes of three looks in each of four, after a hole of eight */
    }
    EXPECT(m.best_bps > 20000000);
    EXPECT(probe_meter_bps(&m, now) > 11000000 && probe_meter_bps(&m, now) < 15000000);
}

TEST(path_that_delivers_in_bursts_settles) /* one look in twelve moves all the bytes of 60 ms, as behind a tunnel in a program */
{
    struct probe_meter m;
    int64_t now = CLOCK_S;
    uint64_t delivered = 0;
    probe_meter_init(&m, now, MEASURE);
    for (int i = 1; !probe_meter_look(&m, now += LOOK, delivered, MS / 100, 0); i++) {
        delivered += i % 12 == 0 ? 3000000 : 0; /* 50 MB/s */
    }
    EXPECT(now - CLOCK_S < 800 * MS);
    EXPECT(probe_meter_bps(&m, now) > 300000000 && probe_meter_bps(&m, now) < 500000000);
}

TEST(stream_that_never_moves_ends_without_a_rate)
{
    struct probe_meter m;
    int64_t now = CLOCK_S;
    probe_meter_init(&m, now, MEASURE);
    while (!probe_meter_look(&m, now, 0, 0, 0)) {
        now += LOOK;
    }
    EXPECT_EQ(probe_meter_bps(&m, now), 0);
    EXPECT(now - CLOCK_S <= (int64_t)PROBE_METER_LIMIT * MEASURE + LOOK);
}

/* Packets are lost: a stream grows by 0.6 in each round trip of 200 ms, and fills 1 Gb/s after 4 s. */
TEST(stream_that_grows_slowly_has_twice_the_time) /* 1 Gb/s at 200 ms read 150 Mb/s */
{
    struct probe_meter m;
    int64_t now = CLOCK_S;
    double rate = 100e3 / 8, delivered = 0;
    probe_meter_init(&m, now, MEASURE);
    for (int i = 1; !probe_meter_look(&m, now, (uint64_t)delivered, 200 * MS, 0); i++) {
        now += LOOK;
        delivered += rate * LOOK / 1e9;
        rate = i % 40 == 0 ? rate * 1.6 : rate;
        rate = rate > 1e9 / 8 ? 1e9 / 8 : rate;
    }
    EXPECT(now - CLOCK_S > 4 * CLOCK_S && now - CLOCK_S <= 6 * CLOCK_S + LOOK);
    EXPECT(probe_meter_bps(&m, now) > 950000000 && probe_meter_bps(&m, now) <= 1000000000);
}

TEST(stream_that_shares_a_link_counts_from_when_all_have_settled) /* what it had before, alone, is not its share */
{
    struct probe_meter m;
    uint64_t delivered = 0;
    int64_t now = CLOCK_S;
    probe_meter_init(&m, now, MEASURE);
    for (int i = 0; i < 100; i++) { /* alone: 1 Gb/s */
        now += LOOK;
        delivered += 125000000 / 1000 * 5;
        (void)probe_meter_look(&m, now, delivered, 10 * MS, 1000000000);
    }
    EXPECT(m.settled_at != 0 && !probe_meter_late(&m, now));
    probe_meter_share(&m, now);
    EXPECT_EQ(probe_meter_bps(&m, now), 0);
    int64_t from = now;
    for (bool over = false; !over;) { /* with seven others */
        now += LOOK;
        delivered += 125000000 / 1000 * 5 / 8;
        over = probe_meter_look(&m, now, delivered, 10 * MS, 1000000000);
    }
    EXPECT_EQ(now - from, MEASURE);
    EXPECT(probe_meter_bps(&m, now) > 124000000 && probe_meter_bps(&m, now) < 126000000);
}

TEST(stream_among_others_is_waited_for_until_it_had_time_to_begin) /* one that lost much held a whole round up for 8 s */
{
    struct probe_meter m;
    probe_meter_init(&m, CLOCK_S, MEASURE);
    EXPECT(!probe_meter_warm(&m, CLOCK_S + 1499 * MS) && probe_meter_warm(&m, CLOCK_S + 1500 * MS));
    (void)probe_meter_look(&m, CLOCK_S + 200 * MS, 1448, 200 * MS, 0);
    (void)probe_meter_look(&m, CLOCK_S + 900 * MS, 2896, 600 * MS, 0); /* with what queues */
    EXPECT(!probe_meter_warm(&m, CLOCK_S + INT64_C(3199) * MS) && probe_meter_warm(&m, CLOCK_S + INT64_C(3200) * MS));
    struct probe_meter settled = {.settled_at = CLOCK_S};
    EXPECT(probe_meter_warm(&settled, CLOCK_S));
}

TEST(stream_that_shares_a_link_ends_though_others_never_settle)
{
    struct probe_meter m;
    int64_t now = CLOCK_S;
    probe_meter_init(&m, now, MEASURE);
    now += INT64_C(1) * PROBE_METER_LIMIT * MEASURE - 1;
    EXPECT(!probe_meter_late(&m, now));
    EXPECT(probe_meter_late(&m, now + 1) && probe_meter_look(&m, now + 1, 1, MS, 0));
}

TEST(receiver_knows_the_most_that_came_in_a_while) /* its word would be the burst behind a loss, or the silence before it */
{
    struct probe_peak p = {.at = 0};
    uint64_t bytes = 0;
    for (int64_t now = 1; now < 3000; now += 7) { /* ms: 100 Mb/s for a second, silence for one, 50 Mb/s */
        bytes += now < 1000 ? 7 * 12500 : now < 2000 ? 0 : 7 * 6250;
        probe_peak_look(&p, now * 1000000, bytes, 0);
        EXPECT(p.best_bps <= 100000000);
        EXPECT(now < 250 || p.best_bps >= 99000000);
    }
    struct probe_peak short_one = {.at = 0};
    probe_peak_look(&short_one, 1000000, 500, 0);
    probe_peak_look(&short_one, PROBE_PEAK_NS, 100000, 0);
    EXPECT_EQ(short_one.best_bps, 0);
}
