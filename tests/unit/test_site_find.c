/* test_site_find.c - sites by round trips and addresses.
 *
 * One idea: members that really share a link must end in one site, those of two cities never.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/site_find.h"

enum { N = 40 };

static uint64_t rtt[N * N];
static struct site_address address[N];
static uint16_t site[N];

static void unknown_all(size_t n)
{
    for (size_t i = 0; i < n * n; i++) {
        rtt[i] = SITE_FIND_UNKNOWN;
    }
    memset(address, 0, sizeof address);
}

static void ipv4(size_t i, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    const uint8_t bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a, b, c, d};
    memcpy(address[i].bytes, bytes, 16);
}

static void ipv6(size_t i, uint8_t first, uint8_t second, uint8_t sixth, uint8_t seventh)
{
    memset(address[i].bytes, 0, 16);
    address[i].bytes[0] = first;
    address[i].bytes[1] = second;
    address[i].bytes[5] = sixth;
    address[i].bytes[6] = seventh;
}

static bool near(size_t i, size_t j)
{
    EXPECT(site_address_near(&address[i], &address[j]) == site_address_near(&address[j], &address[i]));
    return site_address_near(&address[i], &address[j]);
}

TEST(public_prefixes_are_compared) /* 24 bits of IPv4, 48 of IPv6 */
{
    ipv4(0, 203, 0, 113, 5);
    ipv4(1, 203, 0, 113, 200);
    ipv4(2, 203, 0, 112, 5);
    EXPECT(near(0, 1) && !near(0, 2));
    ipv6(3, 0x20, 0x01, 7, 1);
    ipv6(4, 0x20, 0x01, 7, 2);
    ipv6(5, 0x20, 0x01, 8, 1);
    EXPECT(near(3, 4) && !near(3, 5) && !near(0, 3));
}

TEST(private_prefixes_say_nothing) /* every home has 192.168.1.0 */
{
    const uint8_t private4[8][2] = {{10, 1}, {172, 16}, {172, 31}, {192, 168}, {169, 254}, {127, 0}, {100, 64}, {0, 0}};
    for (size_t k = 0; k < 8; k++) {
        ipv4(0, private4[k][0], private4[k][1], 1, 5);
        ipv4(1, private4[k][0], private4[k][1], 1, 6);
        EXPECT(!near(0, 1));
    }
    const uint8_t public4[4][2] = {{172, 32}, {192, 169}, {100, 128}, {11, 0}};
    for (size_t k = 0; k < 4; k++) {
        ipv4(0, public4[k][0], public4[k][1], 1, 5);
        ipv4(1, public4[k][0], public4[k][1], 1, 6);
        EXPECT(near(0, 1));
    }
    ipv6(0, 0xFD, 1, 2, 3);
    EXPECT(!near(0, 0));
    ipv6(0, 0xFE, 0x80, 2, 3);
    EXPECT(!near(0, 0));
}

TEST(round_trips_group_members) /* two cities 30 ms apart, 0.3 ms inside, in any order, some pairs known one way only */
{
    struct rng r = {.state = 1};
    unknown_all(N);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            uint64_t here = i % 3 == j % 3 ? 300000 + rng_below(&r, 100000) : 30000000;
            rtt[i * N + j] = i < j || rng_below(&r, 2) == 0 ? here : SITE_FIND_UNKNOWN;
        }
    }
    EXPECT_EQ(site_find(rtt, address, N, site), 3);
    for (size_t i = 0; i < N; i++) {
        EXPECT_EQ(site[i], i % 3);
    }
}

TEST(a_measured_distance_is_believed_before_the_address) /* one prefix may span a continent */
{
    unknown_all(4);
    for (size_t i = 0; i < 4; i++) {
        ipv4(i, 203, 0, 113, (uint8_t)i);
    }
    EXPECT_EQ(site_find(rtt, address, 4, site), 1); /* nothing measured: the addresses speak */
    for (size_t i = 0; i < 4; i++) {
        rtt[3 * 4 + i] = 2000000; /* not under 2 ms */
    }
    EXPECT_EQ(site_find(rtt, address, 4, site), 2);
    EXPECT(site[0] == 0 && site[1] == 0 && site[2] == 0 && site[3] == 1);
    rtt[3 * 4 + 0] = rtt[3 * 4 + 1] = rtt[3 * 4 + 2] = 1999999;
    EXPECT_EQ(site_find(rtt, address, 4, site), 1);
    EXPECT_EQ(site_find(rtt, address, 0, site), 0);
}

TEST(a_chain_is_not_one_site) /* each is near the next, the ends are far apart */
{
    unknown_all(N);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            rtt[i * N + j] = 900000 * (i > j ? i - j : j - i);
        }
    }
    size_t count = site_find(rtt, address, N, site);
    EXPECT(count >= N / 3 && count <= N);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            EXPECT(site[i] != site[j] || rtt[i * N + j] < SITE_FIND_RTT_NS);
        }
    }
}
