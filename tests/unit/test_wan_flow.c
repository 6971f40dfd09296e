/* test_wan_flow.c - packets on their way through an emulated network, on virtual time: rates, queues, losses, delays, order.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <math.h>

#include "pccl/wan_clock.h"
#include "pccl/wan_flow.h"
#include "pccl/wan_frame.h"
#include "pccl/wan_loss.h"

enum { MTU = 1500, MOST = 200000 };

#define MS INT64_C(1000000)

/* ---- one link ---------------------------------------------------------------------------------------------------- */

TEST(a_link_sends_packets_one_after_the_other_at_its_rate) /* a rate that is off by the rounding of each packet */
{
    struct wan_clock c = {.rate_bps = 700000000, .queue_bytes = 1 << 30};
    int64_t leaves = 0;
    for (int i = 1; i <= 100000; i++) {
        EXPECT(wan_clock_pass(&c, 5, 1500, &leaves));
    }
    long double want = 5 + 100000.0L * 1518 * 8 / 0.7L;
    EXPECT(fabsl((long double)leaves - want) <= 2);
    EXPECT(wan_clock_pass(&c, leaves + 50, 982, &leaves)); /* it had come to rest */
    EXPECT(fabsl((long double)leaves - (want + 50 + 1000 * 8 / 0.7L)) <= 3);
}

TEST(a_link_without_a_rate_delays_nothing)
{
    struct wan_clock c = {.rate_bps = 0};
    int64_t leaves = 0;
    EXPECT(wan_clock_pass(&c, 77, 60000, &leaves) && leaves == 77);
    EXPECT(wan_clock_pass(&c, 77, 60000, &leaves) && leaves == 77);
    EXPECT_EQ(wan_clock_backlog(&c, 0), 0);
}

TEST(a_queue_drops_at_its_tail_what_it_has_no_room_for) /* a queue without an end, or one that is half as long */
{
    struct wan_clock c = {.rate_bps = 100000000, .queue_bytes = 10 * 1518};
    int64_t leaves = 0;
    int taken = 0;
    for (int i = 0; i < 50; i++) {
        taken += wan_clock_pass(&c, 0, 1500, &leaves);
    }
    EXPECT_EQ(taken, 11); /* ten wait behind the one that is sent */
    EXPECT_EQ(wan_clock_backlog(&c, 0), 11 * 1518);
    EXPECT_EQ(leaves, 11 * 121440);
    EXPECT(!wan_clock_pass(&c, 121000, 1500, &leaves));
    EXPECT(wan_clock_pass(&c, 121441, 1500, &leaves)); /* one has left */
    EXPECT_EQ(leaves, 12 * 121440);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

TEST(losses_are_counted_within_three_sigma_and_come_back_with_the_seed) /* another share than the one described; a run that cannot be repeated */
{
    static const double shares[] = {0, 0.0001, 0.001, 0.01, 0.2, 0.5, 1};
    static bool first[MOST];
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        struct wan_loss a = {.seed = wan_loss_seed(3, 0, 1), .share = shares[s], .burst = 1}, b = a;
        struct wan_loss other = {.seed = wan_loss_seed(3, 1, 0), .share = shares[s], .burst = 1};
        int lost = 0, same = 0;
        for (int i = 0; i < MOST; i++) {
            first[i] = wan_loss_next(&a);
            lost += first[i];
        }
        for (int i = 0; i < MOST; i++) {
            EXPECT_EQ(wan_loss_next(&b), first[i]);
            same += wan_loss_next(&other) == first[i];
        }
        double sigma = sqrt(MOST * shares[s] * (1 - shares[s]));
        EXPECT(fabs(lost - MOST * shares[s]) <= 3 * sigma);
        EXPECT(shares[s] <= 0 || shares[s] >= 1 || same < MOST); /* each direction has losses of its own */
    }
}

TEST(bursts_have_the_mean_length_and_the_share_that_are_given) /* bursts that lose more, or less, than the loss says */
{
    static const double bursts[] = {2, 5, 20};
    for (size_t i = 0; i < 3; i++) {
        struct wan_loss l = {.seed = wan_loss_seed(1, 2, 3), .share = 0.05, .burst = bursts[i]};
        int lost = 0, runs = 0;
        bool before = false;
        for (int n = 0; n < 20 * MOST; n++) {
            bool now = wan_loss_next(&l);
            lost += now;
            runs += now && !before;
            before = now;
        }
        EXPECT(fabs((double)lost / (20 * MOST) - 0.05) < 0.05 * 0.05);
        EXPECT(fabs((double)lost / runs - bursts[i]) < 0.05 * bursts[i]);
    }
}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

struct arrival {
    unsigned to;
    int64_t at_ns;
    uint16_t id; /* of the IP packet */
    size_t size;
};

static struct {
    struct wan_network *n;
    struct wan_flow *f;
    struct arrival arrivals[MOST];
    int count;
    int64_t now, late_ns;
    bool fails;
    uint8_t last[256];
} world;

static void world_new(unsigned hosts)
{
    memset(&world, 0, sizeof world);
    world.n = wan_network_new();
    world.n->host_count = hosts;
    for (unsigned i = 0; i < hosts; i++) {
        snprintf(world.n->hosts[i].name, WAN_NAME, "h%u", i);
    }
}

static struct wan_values *path(const char *from, const char *to)
{
    struct wan_path *p = &world.n->paths[world.n->path_count++];
    snprintf(p->from, WAN_NAME, "%s", from);
    snprintf(p->to, WAN_NAME, "%s", to);
    p->values.given = 1u << WAN_RATE | 1u << WAN_DELAY | 1u << WAN_LOSS;
    return &p->values;
}

static void world_begin(void)
{
    char error[WAN_ERROR] = "";
    int line = 0;
    EXPECT(wan_network_resolve(world.n, &line, error));
    EXPECT_STR(error, "");
    world.f = wan_flow_new(world.n, 64 << 20);
}

static void world_end(void)
{
    wan_flow_free(world.f);
    wan_network_free(world.n);
}

/* Super-packet of `segments` from one host to another. */
static void send_packet(unsigned from, unsigned to, unsigned segments, uint16_t id, int64_t at_ns)
{
    static uint8_t bytes[WAN_PACKET_MOST];
    uint32_t mss = MTU - 40, length = 40 + segments * mss;
    uint8_t *ip = bytes + WAN_VNET_BYTES;
    memset(bytes, 0, WAN_VNET_BYTES + 40);
    if (segments > 1) {
        bytes[0] = 1;
        bytes[1] = 1;
        bytes[4] = (uint8_t)mss;
        bytes[5] = (uint8_t)(mss >> 8);
    }
    ip[0] = 0x45;
    ip[2] = (uint8_t)(length >> 8);
    ip[3] = (uint8_t)length;
    ip[4] = (uint8_t)(id >> 8);
    ip[5] = (uint8_t)id;
    ip[6] = 0x40;
    ip[9] = 6;
    for (int i = 0; i < 4; i++) {
        ip[12 + i] = (uint8_t)(world.n->hosts[from].values.address >> (24 - 8 * i));
        ip[16 + i] = (uint8_t)(world.n->hosts[to].values.address >> (24 - 8 * i));
    }
    ip[20 + 12] = 5 << 4;
    wan_flow_take(world.f, from, bytes, WAN_VNET_BYTES + length, at_ns);
}

static bool arrive(void *user, unsigned to, const uint8_t *bytes, size_t size, int64_t *at_ns)
{
    (void)user;
    *at_ns = world.now + world.late_ns;
    if (world.count < MOST && !world.fails) {
        uint16_t id = (uint16_t)(bytes[WAN_VNET_BYTES + 4] << 8 | bytes[WAN_VNET_BYTES + 5]);
        world.arrivals[world.count++] = (struct arrival){.to = to, .at_ns = world.now, .id = id, .size = size - WAN_VNET_BYTES};
        memcpy(world.last, bytes, size < sizeof world.last ? size : sizeof world.last);
    }
    return !world.fails;
}

/* Until `end`, step by step. */
static void run_to(int64_t end_ns)
{
    const struct wan_output out = {.write = arrive};
    while (wan_flow_next(world.f) <= end_ns) {
        world.now = wan_flow_next(world.f);
        (void)wan_flow_run(world.f, world.now, 1, &out);
    }
    world.now = end_ns;
}

TEST(a_packet_arrives_after_its_transmission_and_the_delay)
{
    world_new(2);
    struct wan_values *v = path("h0", "h1");
    v->rate_bps = 100000000;
    v->delay_ns = 50 * MS;
    world_begin();
    send_packet(0, 1, 1, 1, 1000);
    send_packet(0, 1, 1, 2, 1000);
    send_packet(1, 0, 1, 3, 1000); /* the other direction has a clock of its own */
    run_to(200 * MS);
    EXPECT_EQ(world.count, 3);
    EXPECT_EQ(world.arrivals[0].at_ns, 1000 + 121440 + 50 * MS);
    EXPECT_EQ(world.arrivals[2].at_ns, 1000 + 2 * 121440 + 50 * MS);
    EXPECT(world.arrivals[2].id == 2 && world.arrivals[2].to == 1);
    EXPECT_EQ(wan_flow_counts(world.f, 0, 1)->forwarded, 2);
    EXPECT_EQ(wan_flow_counts(world.f, 0, 1)->forwarded_bytes, 3000);
    EXPECT_EQ(wan_flow_counts(world.f, 1, 0)->forwarded, 1);
    world_end();
}

TEST(a_super_packet_takes_as_long_as_its_segments_by_themselves) /* each further link would add the whole packet's time */
{
    world_new(2);
    path("h0", "h1")->rate_bps = 100000000;
    world.n->hosts[1].values.downlink_bps = 100000000;
    world.n->hosts[1].values.given = 1u << WAN_DOWNLINK;
    world_begin();
    send_packet(0, 1, 40, 1, 0);
    run_to(200 * MS);
    EXPECT_EQ(world.count, 1);
    EXPECT_EQ(world.arrivals[0].at_ns, 41 * 121440); /* one segment more, for the second link */
    world_end();
}

TEST(every_segment_is_forwarded_or_lost_or_dropped_and_the_same_ones_each_time) /* segments that vanish, or a pattern that depends on how they are packed */
{
    uint64_t lost[2] = {0, 0};
    for (int packing = 0; packing < 2; packing++) {
        world_new(2);
        struct wan_values *v = path("h0", "h1");
        v->rate_bps = 100000000;
        v->loss = 0.02;
        v->queue_bytes = 60000;
        v->given |= 1u << WAN_QUEUE;
        world_begin();
        unsigned sent = 0;
        for (int i = 0; i < 4000; i++) {
            unsigned segments = packing == 0 ? 1 : 1 + (unsigned)i % 40;
            segments = sent + segments > 4000 ? 4000 - sent : segments;
            if (segments > 0) {
                send_packet(0, 1, segments, (uint16_t)i, i * MS);
            }
            sent += segments;
        }
        run_to(10000 * MS);
        const struct wan_counts *c = wan_flow_counts(world.f, 0, 1);
        EXPECT_EQ(c->forwarded + c->lost + c->dropped, sent);
        EXPECT_EQ(c->forwarded_bytes, c->forwarded * 1500);
        EXPECT_EQ(c->dropped > 0, packing == 1);
        EXPECT(c->highest_queue_bytes <= 60000 + 1518);
        lost[packing] = c->lost;
        world_end();
    }
    EXPECT_EQ(lost[0], lost[1]);
    EXPECT(lost[0] > 50 && lost[0] < 110);
}

TEST(sources_share_a_downlink_in_order_of_arrival) /* the first reader would keep it; a near host would wait for a far one */
{
    world_new(3);
    path("h0", "h2")->delay_ns = 80 * MS;
    path("h1", "h2")->delay_ns = 10 * MS;
    world.n->hosts[2].values.downlink_bps = 10000000;
    world.n->hosts[2].values.given = 1u << WAN_DOWNLINK;
    world_begin();
    send_packet(0, 2, 1, 1, 0);
    send_packet(1, 2, 1, 2, MS); /* sent later, there earlier */
    send_packet(1, 2, 1, 4, 70 * MS + 1);
    send_packet(1, 2, 1, 3, 79 * MS + MS / 2);
    run_to(500 * MS);
    static const uint16_t order[] = {2, 1, 4, 3};
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(world.arrivals[i].id, order[i]);
    }
    EXPECT_EQ(world.arrivals[0].at_ns, 11 * MS + 1214400);
    EXPECT_EQ(world.arrivals[1].at_ns, 80 * MS + 1214400);
    EXPECT_EQ(world.arrivals[2].at_ns, 80 * MS + 2 * 1214400); /* behind the far one */
    EXPECT_EQ(world.arrivals[3].at_ns, 89 * MS + MS / 2 + 1214400);
    world_end();
}

TEST(whoever_begins_to_arrive_first_is_first) /* a packet that arrives in the middle of a super-packet would overtake all of it */
{
    world_new(3);
    path("h0", "h2")->rate_bps = 100000000;
    world.n->hosts[2].values.downlink_bps = 1000000000;
    world.n->hosts[2].values.given = 1u << WAN_DOWNLINK;
    world_begin();
    send_packet(0, 2, 40, 1, 0); /* its first segment comes after 0.12 ms, its last one after 4.9 ms */
    send_packet(1, 2, 1, 2, MS);
    run_to(100 * MS);
    EXPECT(world.arrivals[0].id == 1 && world.arrivals[1].id == 2);
    EXPECT_EQ(world.arrivals[0].at_ns, 40 * 121440 + 12144);
    EXPECT_EQ(world.arrivals[1].at_ns, 40 * 121440 + 2 * 12144);
    world_end();
}

TEST(hosts_of_a_site_share_its_uplink_and_none_is_held_up_by_the_queue_of_another) /* a host with a full queue would block its neighbours */
{
    world_new(3);
    snprintf(world.n->sites[0].name, WAN_NAME, "s");
    world.n->site_count = 1;
    world.n->sites[0].values.uplink_bps = 100000000;
    world.n->sites[0].values.given = 1u << WAN_UPLINK;
    for (int i = 0; i < 2; i++) {
        struct wan_values *v = &world.n->hosts[i].values;
        snprintf(v->site, WAN_NAME, "s");
        v->given = 1u << WAN_SITE | (i == 0 ? 1u << WAN_UPLINK : 0);
        v->uplink_bps = i == 0 ? 1000000 : 0;
    }
    world_begin();
    for (uint16_t i = 0; i < 5; i++) {
        send_packet(0, 2, 1, i, 0); /* 12 ms each at its own uplink */
    }
    send_packet(1, 2, 1, 9, MS);
    send_packet(0, 1, 1, 8, MS); /* within the site: not over the uplink */
    run_to(500 * MS);
    EXPECT_EQ(world.arrivals[0].id, 9);
    EXPECT_EQ(world.arrivals[0].at_ns, MS + 121440);
    EXPECT_EQ(world.arrivals[1].id, 0);
    EXPECT_EQ(world.arrivals[1].at_ns, 12144000 + 121440);
    EXPECT_EQ(world.arrivals[6].id, 8);
    EXPECT_EQ(world.arrivals[6].at_ns, 6 * 12144000); /* behind the five in the own uplink */
    world_end();
}

TEST(jitter_adds_to_the_delay_and_keeps_the_order) /* reordering would look like loss to TCP */
{
    world_new(2);
    struct wan_values *v = path("h0", "h1");
    v->delay_ns = 10 * MS;
    v->jitter_ns = 5 * MS;
    v->given |= 1u << WAN_JITTER;
    world_begin();
    for (uint16_t i = 0; i < 1000; i++) {
        send_packet(0, 1, 1, i, i * 20 * MS);
        send_packet(0, 1, 1, (uint16_t)(i + 1000), i * 20 * MS + MS);
    }
    run_to(30000 * MS);
    int64_t least = INT64_MAX, most = 0;
    EXPECT_EQ(world.count, 2000);
    for (int i = 0; i < 2000; i++) {
        int64_t took = world.arrivals[i].at_ns - (i / 2 * 20 * MS + i % 2 * MS);
        EXPECT_EQ(world.arrivals[i].id, i / 2 + i % 2 * 1000);
        least = took < least ? took : least;
        most = took > most ? took : most;
    }
    EXPECT(least >= 10 * MS && least < 10 * MS + MS / 10);
    EXPECT(most <= 15 * MS && most > 15 * MS - MS / 10);
    world_end();
}

TEST(a_cut_drops_what_is_under_way_too_and_a_heal_lets_pass_again)
{
    world_new(2);
    path("h0", "h1")->delay_ns = 10 * MS;
    world_begin();
    send_packet(0, 1, 2, 1, 0);
    wan_flow_cut(world.f, 0, 1, true);
    send_packet(0, 1, 3, 2, 0);
    send_packet(1, 0, 1, 3, 0); /* one direction only */
    run_to(20 * MS);
    EXPECT_EQ(world.count, 1);
    EXPECT_EQ(wan_flow_counts(world.f, 0, 1)->cut, 5);
    wan_flow_cut(world.f, 0, 1, false);
    send_packet(0, 1, 1, 4, 20 * MS);
    run_to(40 * MS);
    EXPECT_EQ(world.arrivals[1].id, 4);
    world_end();
}

TEST(a_packet_larger_than_the_path_is_answered_with_its_size)
{
    world_new(2);
    struct wan_values *v = path("h0", "h1");
    v->mtu = 1400;
    v->given |= 1u << WAN_MTU;
    world_begin();
    send_packet(0, 1, 4, 1, 0);
    run_to(MS);
    EXPECT_EQ(world.count, 1);
    EXPECT_EQ(world.arrivals[0].to, 0);
    EXPECT(world.last[WAN_VNET_BYTES + 20] == 3 && world.last[WAN_VNET_BYTES + 21] == 4);
    EXPECT_EQ(wan_flow_counts(world.f, 0, 1)->too_big, 4);
    EXPECT_EQ(wan_flow_counts(world.f, 0, 1)->forwarded + wan_flow_counts(world.f, 1, 0)->forwarded, 0);
    world_end();
}

TEST(a_change_counts_for_the_next_packet_and_never_reorders)
{
    world_new(2);
    path("h0", "h1")->delay_ns = 100 * MS;
    world_begin();
    struct wan_values change = {.given = 1u << WAN_DELAY | 1u << WAN_RATE, .delay_ns = MS, .rate_bps = 1000000};
    send_packet(0, 1, 1, 1, 0);
    wan_flow_set(world.f, 0, 1, &change);
    send_packet(0, 1, 1, 2, MS);
    send_packet(0, 1, 1, 3, 200 * MS);
    run_to(500 * MS);
    EXPECT_EQ(world.arrivals[0].id, 1);
    EXPECT_EQ(world.arrivals[1].id, 2);
    EXPECT_EQ(world.arrivals[1].at_ns, 100 * MS); /* not before the one in front */
    EXPECT_EQ(world.arrivals[2].at_ns, 200 * MS + 12144000 + MS);
    world_end();
}

TEST(lateness_and_failed_writes_are_counted) /* a run on a busy machine would pass for a good one */
{
    world_new(2);
    path("h0", "h1")->delay_ns = MS;
    world_begin();
    send_packet(0, 1, 1, 1, 0);
    run_to(5 * MS);
    world.late_ns = 3 * MS;
    send_packet(0, 1, 1, 2, 5 * MS);
    run_to(10 * MS);
    world.fails = true;
    send_packet(0, 1, 1, 3, 10 * MS);
    run_to(20 * MS);
    const struct wan_counts *c = wan_flow_counts(world.f, 0, 1);
    EXPECT_EQ(c->writes, 2);
    EXPECT_EQ(c->late, 1);
    EXPECT_EQ(c->latest_ns, 3 * MS);
    EXPECT_EQ(c->forwarded, 2);
    EXPECT_EQ(wan_flow_strays(world.f), 1);
    uint8_t other[WAN_VNET_BYTES + 20] = {0};
    wan_flow_take(world.f, 0, other, sizeof other, 0);
    EXPECT_EQ(wan_flow_strays(world.f), 2);
    world_end();
}

TEST(memory_has_a_bound_and_comes_back) /* an emulator that eats the machine's */
{
    world_new(2);
    path("h0", "h1")->delay_ns = 50 * MS;
    world_begin();
    for (uint16_t i = 0; i < 2000; i++) {
        send_packet(0, 1, 44, i, 0); /* 64 KiB each, 64 MiB in all */
    }
    EXPECT(wan_flow_overflow(world.f) > 0);
    run_to(60 * MS);
    int arrived = world.count;
    EXPECT(arrived > 900 && arrived < 1024);
    send_packet(0, 1, 44, 1, 60 * MS);
    run_to(200 * MS);
    EXPECT_EQ(world.count, arrived + 1);
    world_end();
}
