/* network_model.c - checks of a network, and the times that no plan can beat.
 *
 * One idea: a split A|B needs one copy of the buffer from A to B.  The capacity from A to B is the least over all ways
 * to cut each member of A at its uplink, each of B at its downlink, and to pay the paths between uncut members.
 * SPDX-License-Identifier: MIT */
#include "topology/network_model.h"

static bool rates_valid(const double *rates, size_t count, bool zero_too)
{
    for (size_t i = 0; i < count; i++) {
        if (!(rates[i] > 0 || (zero_too && rates[i] >= 0))) {
            return false;
        }
    }
    return true;
}

static bool paths_valid(const struct network *net)
{
    for (size_t i = 0; i < net->n; i++) {
        for (size_t j = 0; j < net->n; j++) {
            double delay_s = network_delay_s(net, i, j);
            if (i != j && !(network_path_bps(net, i, j) >= 0 && delay_s >= 0 && delay_s < __builtin_inf())) {
                return false;
            }
        }
    }
    return true;
}

bool network_valid(const struct network *net)
{
    if (net->n < 1 || net->n > UINT16_MAX || !rates_valid(net->up_bps, net->n, false) ||
        !rates_valid(net->down_bps, net->n, false) || !paths_valid(net)) {
        return false;
    }
    if (net->site == NULL) {
        return true;
    }
    for (size_t i = 0; i < net->n; i++) {
        if (net->site[i] >= net->sites) {
            return false;
        }
    }
    return rates_valid(net->site_up_bps, net->sites, false) && rates_valid(net->site_down_bps, net->sites, false);
}

size_t network_site_members(const struct network *net, size_t g)
{
    size_t count = 0;
    for (size_t i = 0; i < net->n; i++) {
        count += net->site != NULL && net->site[i] == g;
    }
    return count;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* 1 / rate of each of them, and copies / the sum of all rates. */
static double links_bound(const double *rates, size_t count, double copies)
{
    double bound = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        bound = larger(bound, 1 / rates[i]);
        sum += rates[i];
    }
    return larger(bound, copies / sum);
}

double network_link_bound_s_per_bit(const struct network *net)
{
    if (net->n < 2) {
        return 0;
    }
    double copies = 2 * ((double)net->n - 1);
    double bound = larger(links_bound(net->up_bps, net->n, copies), links_bound(net->down_bps, net->n, copies));
    size_t used = 0;
    double up = 0, down = 0, sites = 0;
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        if (network_site_members(net, g) > 0) {
            used++;
            up += net->site_up_bps[g];
            down += net->site_down_bps[g];
            sites = larger(sites, 1 / network_site_bps(net, g));
        }
    }
    if (used < 2) {
        return bound;
    }
    copies = 2 * ((double)used - 1);
    return larger(bound, larger(sites, larger(copies / up, copies / down)));
}

double network_path_bound_s_per_bit(const struct network *net)
{
    double sum = 0;
    for (size_t i = 0; i < net->n; i++) {
        for (size_t j = 0; j < i; j++) {
            sum += network_pair_bps(net, i, j);
        }
    }
    return net->n < 2 ? 0 : ((double)net->n - 1) / sum;
}

/* The labels of a member: which half it is in, and whether its link is cut. */
enum label { SENDS_CUT, SENDS_OPEN, TAKES_CUT, TAKES_OPEN, LABELS };

struct cut {
    const struct network *net;
    enum label label[NETWORK_CUT_MEMBERS];
    double least;
};

/* What member i adds to the capacity, given the labels of those before it. */
static double cut_adds(const struct cut *c, size_t i)
{
    double sum = 0;
    switch (c->label[i]) {
    case SENDS_CUT:
        return c->net->up_bps[i];
    case TAKES_CUT:
        return c->net->down_bps[i];
    case SENDS_OPEN:
        for (size_t j = 0; j < i; j++) {
            sum += c->label[j] == TAKES_OPEN ? network_path_bps(c->net, i, j) : 0;
        }
        return sum;
    case TAKES_OPEN:
        for (size_t j = 0; j < i; j++) {
            sum += c->label[j] == SENDS_OPEN ? network_path_bps(c->net, j, i) : 0;
        }
        return sum;
    case LABELS:
        break;
    }
    return 0;
}

static void cut_extend(struct cut *c, size_t i, double so_far, unsigned halves)
{
    if (so_far >= c->least) {
        return;
    }
    if (i == c->net->n) {
        if (halves == 3) { /* both halves have members */
            c->least = so_far;
        }
        return;
    }
    for (unsigned label = 0; label < LABELS; label++) {
        c->label[i] = (enum label)label;
        cut_extend(c, i + 1, so_far + cut_adds(c, i), halves | (label < TAKES_CUT ? 1u : 2u));
    }
}

double network_cut_s_per_bit(const struct network *net)
{
    if (net->n < 2 || net->n > NETWORK_CUT_MEMBERS) {
        return 0;
    }
    struct cut c = {.net = net, .least = __builtin_inf()};
    cut_extend(&c, 0, 0, 0);
    return 1 / c.least;
}
