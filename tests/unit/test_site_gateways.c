/* test_site_gateways.c - trees of sites whose members share a link, or have links of their own.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "tests/testing.h"

#include "topology/rates.h"
#include "topology/site_gateways.h"
#include "world/trees_make.h"

enum { SITES = 3, HOSTS = 3, COUNT = SITES * HOSTS };

static struct bandwidth_entry slots[BANDWIDTH_CAPACITY(COUNT)];
static const uint64_t ids[COUNT] = {10, 11, 12, 13, 14, 15, 16, 17, 18};

/* Three sites of three hosts with links of 200 Mb/s: the paths within, 60 for one edge between two; what a host sends to other sites at once with
 * all others. */
static void know(struct bandwidth *b, uint64_t near_bps, uint64_t far_bps)
{
    bandwidth_init(b, slots, sizeof slots / sizeof *slots);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < COUNT; k++) {
            bool near = i / HOSTS == k / HOSTS;
            if (i != k) {
                EXPECT(bandwidth_set(b, ids[i], ids[k], near ? near_bps : 60000000, 0));
                EXPECT(bandwidth_set_way(b, ids[i], ids[k], near ? 300 : 100000, 0));
            }
        }
        EXPECT(bandwidth_set(b, ids[i], RATES_ALL, 200000000, 0) && bandwidth_set(b, RATES_ALL, ids[i], 200000000, 0));
        EXPECT(bandwidth_set(b, ids[i], RATES_FAR, far_bps, 0) && bandwidth_set(b, RATES_FAR, ids[i], far_bps, 0));
    }
}

static struct tree_set set;
static uint16_t parent[TREE_SET_MOST * COUNT];

/* Bits per second of the trees. */
static double make(const struct bandwidth *b)
{
    static double up[COUNT], down[COUNT], path[COUNT * COUNT], delay[COUNT * COUNT];
    static const bool leaf[COUNT];
    struct tree_forecast forecast;
    const struct trees_job job = {.bandwidth = b, .ids = ids, .members = COUNT, .leaf = leaf, .up_bps = up, .down_bps = down, .path_bps = path,
                                  .delay_s = delay, .storage = malloc(trees_room(COUNT))};
    set = (struct tree_set){.parent = parent};
    EXPECT(job.storage != NULL && trees_make(&job, &set, &forecast));
    EXPECT(tree_set_valid(&set));
    EXPECT(forecast.bound_s_per_bit <= forecast.s_per_bit * (1 + 1e-9));
    free(job.storage);
    return 1 / forecast.s_per_bit;
}

/* Members of a site that have edges to other sites, at most. */
static uint32_t leave_at_most(void)
{
    bool leaves[COUNT] = {false};
    uint32_t most = 0, here[SITES] = {0};
    for (uint32_t e = 0; e < set.count * COUNT; e++) {
        uint32_t one = e % COUNT, other = parent[e];
        bool far = one / HOSTS != other / HOSTS;
        leaves[one] = leaves[one] || far;
        leaves[other] = leaves[other] || far;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        here[i / HOSTS] += leaves[i];
        most = here[i / HOSTS] > most ? here[i / HOSTS] : most;
    }
    return most;
}

TEST(what_leaves_a_site_over_one_link_goes_through_one_member) /* five streams got unequal parts of it, and a sum took twice as long */
{
    struct bandwidth b;
    know(&b, 200000000, 20000000);
    double bps = make(&b);
    EXPECT_EQ(leave_at_most(), 1);
    EXPECT(bps > 40e6 && bps <= 45e6 * 1.001); /* 4 copies of the buffer cross 3 links of 60 Mb/s in each direction */
}

TEST(gateways_are_kept_where_other_limits_make_all_paths_no_faster) /* the bound by links alone said that they were slow */
{
    struct bandwidth b;
    know(&b, 25000000, 20000000);
    double bps = make(&b);
    EXPECT_EQ(leave_at_most(), 1);
    EXPECT(bps > 36e6 && bps < 39e6); /* two of three paths within a site carry each part: 37.5, with rates moved towards equal */
}

TEST(members_with_uplinks_of_their_own_all_use_them)
{
    struct bandwidth b;
    know(&b, 200000000, 60000000);
    double bps = make(&b);
    EXPECT(leave_at_most() > 1);
    EXPECT(bps > 45e6 * 1.15); /* more than a gateway with 60 Mb/s could carry */
}

TEST(gateway_is_the_member_with_the_fastest_link_that_others_can_dial)
{
    const double up[5] = {10, 30, 20, 5, 5}, down[5] = {30, 30, 30, 5, 5}, limit[3] = {8, 8, INFINITY};
    const uint16_t site[5] = {0, 0, 0, 1, 2};
    bool leaf[5] = {false};
    double path[25];
    struct network net = {.n = 5, .up_bps = up, .down_bps = down, .sites = 3, .site = site, .site_up_bps = limit, .site_down_bps = limit};
    for (uint32_t gateway = 1; gateway < 3; gateway++) {
        EXPECT(site_gateways_paths(&net, path));
        for (uint32_t i = 0; i < 3; i++) {
            EXPECT_EQ(path[i * 5 + 3] > 0, i == gateway);
            EXPECT_EQ(path[4 * 5 + i] > 0, i == gateway);
            EXPECT(path[i * 5 + (i + 1) % 3] > 0);
        }
        EXPECT(path[3 * 5 + 4] > 0); /* of one member each */
        leaf[1] = true;
        net.leaf = leaf;
    }
    const double none[3] = {INFINITY, 8, 8};
    net.site_up_bps = net.site_down_bps = none;
    EXPECT(!site_gateways_paths(&net, path));
    net.site = NULL;
    net.sites = 0;
    EXPECT(!site_gateways_paths(&net, path));
}
