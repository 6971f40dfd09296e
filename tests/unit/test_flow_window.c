/* test_flow_window.c - how the window of a sender follows its link.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "collectives/flow_window.h"
#include "core/clock.h"

enum { MS = 1000000 };

/* A sender that sends its whole window each round trip, as fast as the link goes: after so many round trips. */
static uint32_t after(uint32_t trips, uint32_t link_frames, int64_t rtt)
{
    struct flow_window w;
    int64_t now = CLOCK_S;
    flow_window_init(&w, FLOW_BASE);
    for (uint32_t i = 0; i < trips; i++) {
        uint32_t frames = w.frames < link_frames ? w.frames : link_frames;
        for (uint32_t f = 0; f < frames; f++) {
            (void)flow_window_arrived(&w, now + rtt * f / link_frames, rtt);
        }
        now += rtt;
    }
    return w.frames;
}

TEST(first_windows_of_all_peers_have_a_part) /* the first two took all, and a call ends with its last member */
{
    EXPECT_EQ(flow_window_part(256, 1, 0), 256);
    for (uint32_t peers = 2; peers < 40; peers++) {
        uint32_t used = 0;
        for (uint32_t i = 0; i < peers; i++) {
            uint32_t part = flow_window_part(256, peers, used);
            EXPECT_EQ(part, 256 / peers);
            used += part;
        }
    }
    EXPECT_EQ(flow_window_part(256, 12, 256), 21); /* one that comes later */
    EXPECT_EQ(flow_window_part(256, 12, 500), 12);
    EXPECT_EQ(flow_window_part(256, 12, 512), 0);
    EXPECT_EQ(flow_window_part(256, 12, UINT32_MAX), 0);
    EXPECT_EQ(flow_window_part(0, 1, 0), 0);
    EXPECT_EQ(flow_window_part(256, 0, 0), 256);
    EXPECT_EQ(flow_window_part(1 << 30, 1, 1 << 30), 1 << 30);
}

TEST(first_window_follows_the_round_trip_within_a_bound) /* the first call over a long link would wait for grants */
{
    enum { FRAME = 128 << 10, MOST = 1 << 20 };
    EXPECT_EQ(flow_window_first(0, FRAME, MOST), FLOW_BASE); /* not known */
    EXPECT_EQ(flow_window_first(1 * MS, FRAME, MOST), FLOW_BASE);
    EXPECT_EQ(flow_window_first(2 * MS, FRAME, MOST), FLOW_BASE);
    EXPECT_EQ(flow_window_first(100 * MS, FRAME, MOST), 190); /* 1 Gb/s x 100 ms x 2 */
    EXPECT_EQ(flow_window_first(100 * MS, FRAME / 2, MOST), 381);
    EXPECT_EQ(flow_window_first(100 * MS, FRAME, 10), FLOW_BASE + 10);
    EXPECT_EQ(flow_window_first(100 * MS, FRAME, 0), FLOW_BASE);
    EXPECT_EQ(flow_window_first(INT64_MAX, FRAME, UINT32_MAX), 1 << 14);
}

TEST(window_of_a_sender_that_uses_all_of_it_doubles_each_round_trip) /* a long link would stay at 8 frames a round trip */
{
    uint32_t ten = after(10, 1000, 100 * MS);
    EXPECT(after(4, 1000, 100 * MS) >= 32);
    EXPECT(ten == 2048);
}

TEST(window_settles_at_two_to_four_times_what_the_link_carries) /* less: a lost packet empties the link; more: promised for nothing */
{
    for (uint32_t frames = 10; frames < 2000; frames += 7) {
        uint32_t w = after(100, frames, 100 * MS);
        EXPECT(w >= 2 * frames && w <= 4 * frames + 8);
    }
}

TEST(round_trip_that_swings_hides_nothing) /* its parts were numbered anew with each look, and what had arrived was forgotten */
{
    const uint32_t link = 400;
    struct flow_window w;
    int64_t now = 4000 * CLOCK_S, rtt = 100 * MS;
    flow_window_init(&w, FLOW_BASE);
    for (uint32_t i = 0; i < 40 * link; i++) {
        uint32_t swing = i / 32 % 7; /* tenths of a per cent */
        (void)flow_window_arrived(&w, now + rtt * i / link, rtt + rtt / 1000 * swing);
    }
    EXPECT(w.frames >= 2 * link && w.frames <= 4 * link);
}

TEST(what_a_lost_packet_held_up_does_not_make_a_window_grow) /* each would double it, and promise the memory of all others */
{
    const uint32_t link = 100;
    struct flow_window w;
    int64_t now = CLOCK_S, rtt = 100 * MS;
    flow_window_init(&w, FLOW_BASE);
    for (uint32_t trip = 0; trip < 400; trip++, now += rtt) {
        bool held = trip % 8 >= 5, freed = trip % 8 == 0 && trip > 0; /* for three round trips; then all of it comes at once */
        uint32_t waits = w.frames < 4 * link ? w.frames : 4 * link;
        for (uint32_t f = 0; freed && f < waits; f++) {
            (void)flow_window_arrived(&w, now, rtt);
        }
        for (uint32_t f = 0; !held && f < link; f++) {
            (void)flow_window_arrived(&w, now + rtt * f / link, rtt);
        }
    }
    EXPECT(w.frames >= 2 * link && w.frames <= 8 * link);
}

TEST(window_within_a_site_stays_as_it_is) /* home would pay for links that are far away */
{
    EXPECT_EQ(after(100, 1000, MS / 10), FLOW_BASE);
}

TEST(pause_of_the_program_neither_shrinks_nor_grows_a_window)
{
    struct flow_window w;
    int64_t now = CLOCK_S, rtt = 100 * MS;
    flow_window_init(&w, FLOW_BASE);
    w.frames = 64;
    for (int i = 0; i < 100; i++) {
        now += 10 * CLOCK_S;
        EXPECT(!flow_window_arrived(&w, now, rtt));
    }
    EXPECT_EQ(w.frames, 64);
}

TEST(frames_that_came_long_ago_do_not_count) /* a link that is slow would look like a fast one */
{
    struct flow_window w;
    int64_t rtt = 100 * MS;
    flow_window_init(&w, FLOW_BASE);
    for (int i = 0; i < 1000; i++) { /* three in each round trip */
        (void)flow_window_arrived(&w, CLOCK_S + i * rtt / 3, rtt);
    }
    EXPECT_EQ(w.frames, FLOW_BASE);
}

TEST(round_trip_may_change_at_any_time) /* its parts are numbered anew */
{
    struct flow_window w;
    flow_window_init(&w, FLOW_BASE);
    for (int i = 0; i < 1000; i++) {
        (void)flow_window_arrived(&w, CLOCK_S + (int64_t)i * 50 * MS, (10 + i % 200) * (int64_t)MS);
    }
    EXPECT(w.frames <= 4 * FLOW_BASE);
}

TEST(window_is_cut_where_what_was_granted_is_too_little_for_it_to_grow) /* the link would be blamed for a bound, or the bound for a link */
{
    for (uint32_t frames = FLOW_BASE; frames <= 4096; frames *= 2) {
        for (uint32_t granted = 1; granted <= frames; granted++) {
            struct flow_window w;
            flow_window_init(&w, frames);
            for (uint32_t i = 0; i < granted; i++) {
                (void)flow_window_arrived(&w, CLOCK_S + i, 100 * MS);
            }
            EXPECT_EQ(flow_window_cut(frames, granted), w.frames == frames);
        }
    }
}
