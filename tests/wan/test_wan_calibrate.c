/* test_wan_calibrate.c - the emulated network is the one that was described: round trips, rates, losses, and the time that it takes to begin.
 *
 * These tests measure time, which is what they are for; the emulator says when the machine was too busy, and such a run is repeated.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <math.h>

#include "tests/wan/wan_lab.h"

static struct lab lab; /* large */

/* A stream from b to a for so many seconds; its rate in Mb/s from the fifth second on. */
static double stream(const char *network, char *seconds, char *congestion)
{
    char on[] = "--on", a[] = "a", b[] = "b", dashes[] = "--", take[] = "take", give[] = "give", first[] = "{first}";
    spawn_path("tests/wan/wan_stream_main", lab.stream);
    char *words[] = {on, a, dashes, lab.stream, take, on, b, dashes, lab.stream, give, first, seconds, congestion, NULL};
    EXPECT_EQ(lab_run(&lab, network, words), 0);
    return lab_said(&lab, " warm ");
}

/* The share of lost packets of b to a is the one described, within three sigma. */
static void expect_loss(double share)
{
    double lost = lab_count(&lab, "b", "a", "lost"), dropped = lab_count(&lab, "b", "a", "dropped");
    double all = lab_count(&lab, "b", "a", "packets") + lost + dropped, sigma = sqrt(all * share * (1 - share));
    EXPECT(all > 1000);
    EXPECT(fabs(lost - all * share) <= 3 * sigma);
}

TEST(a_round_trip_is_the_one_described_within_a_millisecond) /* every figure of a wide area rests on it */
{
    LAB_NEEDED();
    static const int delays_us[] = {500, 10000, 50000};
    for (size_t i = 0; i < sizeof delays_us / sizeof delays_us[0]; i++) {
        char network[128], on[] = "--on", a[] = "a", b[] = "b", dashes[] = "--";
        char pong[] = "pong", ping[] = "ping", first[] = "{first}", count[] = "40";
        spawn_path("tests/wan/wan_stream_main", lab.stream);
        snprintf(network, sizeof network, "[host a]\n[host b]\n[path a b]\nrate = 100mbit\ndelay = %dus\n", delays_us[i]);
        char *words[] = {on, b, dashes, lab.stream, ping, first, count, on, a, dashes, lab.stream, pong, NULL};
        int status = LAB_VOID;
        double least = 0, want = 2e-3 * delays_us[i];
        for (int t = 0; t < LAB_TRIES && (status == LAB_VOID || least > want + 1); t++) { /* other programs can only make it longer */
            EXPECT(lab_start(&lab, network, words));
            EXPECT(program_says(&lab.emulator, "rtt"));
            kill(lab.emulator.pid, SIGTERM); /* the answering side has no end of its own */
            (void)lab_end(&lab);
            status = strstr(lab.json, "\"void\": true") != NULL ? LAB_VOID : 0;
            least = lab_said(&lab, "rtt least ");
        }
        EXPECT_EQ(status, 0);
        EXPECT(least >= want && least <= want + 1);
        if (least < want || least > want + 1) {
            fprintf(stderr, "%.3f ms, expected %.3f to %.3f\n", least, want, want + 1);
        }
    }
}

static void expect_rate(double rate, double least, double most)
{
    EXPECT(rate >= least && rate <= most);
    if (rate < least || rate > most) {
        fprintf(stderr, "%.2f Mb/s, expected %.2f to %.2f\n", rate, least, most);
    }
}

/* A program may also read what waited for a lost segment when the measurement began: a round trip of 100 ms in 5 s. */
static void expect_payload(double rate, double payload)
{
    expect_rate(rate, 0.90 * payload, 1.02 * payload);
}

TEST(one_bbr_stream_fills_a_long_lossy_path) /* a queue, a rate or a loss that is not the one described */
{
    LAB_NEEDED();
    char seconds[] = "10", congestion[] = "bbr"; /* BBR slows down every ten seconds, to see the least round trip */
    double rate = stream("[defaults]\ntcp_wmem = 64MB\ntcp_rmem = 64MB\n[host a]\n[host b]\n"
                         "[path a b]\nrate = 100mbit\ndelay = 50ms\nloss = 0.1%\nqueue = 600kB\n", seconds, congestion);
    double payload = 100 * 1448.0 / 1518;
    expect_payload(rate, payload);
    expect_loss(0.001);
    EXPECT_EQ((int)lab_count(&lab, "b", "a", "dropped") > 0, lab_count(&lab, "b", "a", "highest_queue_bytes") >= 600000);
}

TEST(one_cubic_stream_gets_what_its_losses_allow) /* 1.22 MSS / (RTT sqrt(p)) is 4.5 Mb/s here: Mathis et al., 1997 */
{
    LAB_NEEDED();
    char seconds[] = "20", congestion[] = "cubic";
    double rate = stream("[defaults]\nseed = 1\n[host a]\n[host b]\n[path a b]\nrate = 100mbit\ndelay = 50ms\nloss = 0.1%\n", seconds, congestion);
    expect_rate(rate, 3, 10);
    expect_loss(0.001);
}

TEST(a_rate_of_gigabits_is_reached) /* an emulator that is itself the limit */
{
    LAB_NEEDED();
    char seconds[] = "8", congestion[] = "bbr";
    double rate = stream("[defaults]\ntcp_wmem = 64MB\ntcp_rmem = 64MB\n[host a]\n[host b]\n[path a b]\nrate = 2.5gbit\ndelay = 10ms\nqueue = 6MB\n",
                         seconds, congestion);
    double payload = 2500 * 1448.0 / 1518;
    expect_payload(rate, payload);
}

TEST(the_same_seed_loses_the_same_packets) /* a fault that cannot be shown a second time */
{
    LAB_NEEDED();
    double lost[3];
    for (int i = 0; i < 3; i++) {
        char network[160], on[] = "--on", b[] = "b", dashes[] = "--", burst[] = "burst", first[] = "{first}", count[] = "5000";
        spawn_path("tests/wan/wan_stream_main", lab.stream);
        snprintf(network, sizeof network, "[defaults]\nseed = %d\n[host a]\n[host b]\n[path a b]\nloss = 5%%\n", i / 2 + 7);
        char *words[] = {on, b, dashes, lab.stream, burst, first, count, NULL};
        EXPECT_EQ(lab_run(&lab, network, words), 0);
        lost[i] = lab_count(&lab, "b", "a", "lost");
        EXPECT_EQ((int)(lab_count(&lab, "b", "a", "packets") + lost[i]), 5000);
        EXPECT(fabs(lost[i] - 250) <= 3 * sqrt(5000 * 0.05 * 0.95));
    }
    EXPECT_EQ((int)lost[0], (int)lost[1]);
    EXPECT((int)lost[0] != (int)lost[2]);
}

TEST(sixty_four_hosts_are_up_in_ten_seconds)
{
    LAB_NEEDED();
    char *network = NULL, on_each[] = "true", dashes[] = "--";
    size_t size = 0;
    FILE *f = open_memstream(&network, &size);
    for (int i = 0; i < 64; i++) {
        fprintf(f, "[host h%d]\n", i);
    }
    fclose(f);
    char *words[] = {dashes, on_each, NULL};
    int64_t begin = spawn_now_ms();
    EXPECT_EQ(lab_run(&lab, network, words), 0);
    int64_t took = spawn_now_ms() - begin;
    EXPECT(took < 10000);
    if (took >= 10000) {
        fprintf(stderr, "%lld ms\n", (long long)took);
    }
    free(network);
}
