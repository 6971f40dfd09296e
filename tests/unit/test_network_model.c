/* test_network_model.c - bounds of plans, and networks that are refused.
 *
 * One idea: a bound that is too high would call good plans impossible; so known plans are compared with it.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/drawn_network.h"

static struct drawn d;

static bool near(double got, double want)
{
    double off = got > want ? got - want : want - got;
    if (!(off <= 1e-9 * want)) {
        fprintf(stderr, "got %.9f, wanted %.9f\n", got, want);
        return false;
    }
    return true;
}

/* The least capacity between two halves, over all splits and all cuts of members, written down without recursion. */
static double cut_plainly(const struct network *net)
{
    double least = INFINITY;
    for (unsigned half = 1; half + 1 < 1u << net->n; half++) {
        for (unsigned cut = 0; cut < 1u << net->n; cut++) {
            double sum = 0;
            for (size_t i = 0; i < net->n; i++) {
                bool sends = (half >> i & 1) != 0;
                if ((cut >> i & 1) != 0) {
                    sum += sends ? net->up_bps[i] : net->down_bps[i];
                }
                for (size_t j = 0; j < net->n; j++) {
                    bool crosses = sends && (half >> j & 1) == 0 && (cut >> i & 1) == 0 && (cut >> j & 1) == 0;
                    sum += crosses ? network_path_bps(net, i, j) : 0;
                }
            }
            least = sum < least ? sum : least;
        }
    }
    return 1 / least;
}

TEST(cuts_are_the_least_of_all_splits) /* a split that is left out makes the bound too low, a wrong sum too high */
{
    for (unsigned round = 0; round < 60; round++) {
        drawn_network(&d, (enum drawn_kind)(round % DRAWN_KINDS), 2 + round % 5, round);
        EXPECT(near(network_cut_s_per_bit(&d.net), cut_plainly(&d.net)));
    }
    drawn_four_cities(&d); /* the two continents: 100 + 150 + 120 + 140 and 100 + 110 + 140 + 130 Mb/s */
    EXPECT(near(network_cut_s_per_bit(&d.net), 1.0 / 480));
    EXPECT(near(network_path_bound_s_per_bit(&d.net), 3.0 / (750 + 100 + 140 + 110 + 130 + 450)));
    d.net.n = 10;
    EXPECT(network_cut_s_per_bit(&d.net) <= 0);
}

TEST(links_bound_what_they_carry) /* once the buffer each, 2 (n - 1) times all together */
{
    drawn_network(&d, DRAWN_HALF, 8, 1);
    for (size_t i = 0; i < 8; i++) {
        d.up[i] = d.down[i] = i < 4 ? 1 : 10;
    }
    EXPECT(near(network_link_bound_s_per_bit(&d.net), 1));
    for (size_t i = 0; i < 8; i++) {
        d.up[i] = 1;
    }
    EXPECT(near(network_link_bound_s_per_bit(&d.net), 1.75));
    drawn_network(&d, DRAWN_SHARED_3, 9, 1);
    d.site_up[0] = d.site_up[1] = d.site_up[2] = d.site_down[0] = d.site_down[1] = d.site_down[2] = 3;
    EXPECT(near(network_link_bound_s_per_bit(&d.net), 4.0 / 9));
    d.site_down[1] = 0.5;
    EXPECT(near(network_link_bound_s_per_bit(&d.net), 2));
    d.net.n = 1;
    EXPECT(network_link_bound_s_per_bit(&d.net) <= 0);
}

TEST(networks_that_cannot_be_are_refused) /* rates come from measurements of others */
{
    drawn_network(&d, DRAWN_SHARED_3, 9, 2);
    EXPECT(network_valid(&d.net));
    double *rates[] = {&d.up[8], &d.down[0], &d.site_up[2], &d.site_down[0]};
    for (size_t k = 0; k < 4; k++) {
        const double wrong[3] = {0, -1, NAN};
        for (size_t w = 0; w < 3; w++) {
            double keep = *rates[k];
            *rates[k] = wrong[w];
            EXPECT(!network_valid(&d.net));
            *rates[k] = keep;
        }
    }
    d.path[1] = NAN;
    EXPECT(!network_valid(&d.net));
    d.path[1] = 0; /* not linked */
    EXPECT(network_valid(&d.net) && !network_linked(&d.net, 0, 1));
    d.delay[1] = INFINITY;
    EXPECT(!network_valid(&d.net));
    d.delay[1] = 0;
    d.site[3] = DRAWN_SITES;
    EXPECT(!network_valid(&d.net));
    d.site[3] = 0;
    d.net.n = 0;
    EXPECT(!network_valid(&d.net));
}

TEST(two_that_cannot_be_dialled_are_not_linked)
{
    drawn_network(&d, DRAWN_UNIFORM, 4, 3);
    d.leaf[1] = d.leaf[2] = true;
    d.net.leaf = d.leaf;
    EXPECT(!network_linked(&d.net, 1, 2) && network_linked(&d.net, 1, 0) && network_linked(&d.net, 3, 2));
}
