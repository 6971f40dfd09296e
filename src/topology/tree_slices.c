/* tree_slices.c - prices from loads.
 * SPDX-License-Identifier: MIT */
#include "topology/tree_slices.h"

#include <string.h>

static const double step_power = 1.0117876835593316; /* exp(12 / TREE_SLICES_STEPS) */

size_t tree_slices_room(size_t n, size_t sites)
{
    return 8 * (2 * n * n + n + sites) + tree_grow_room(n, sites);
}

void tree_slices_init(struct tree_slices *s, const struct network *net, enum tree_shape shape, void *storage)
{
    size_t n = net->n;
    s->net = net;
    s->shape = shape;
    s->count = 0;
    s->fullest = 0;
    s->price = storage;
    s->pair_load = s->price + n * n;
    s->member_load = s->pair_load + n * n;
    s->site_load = s->member_load + n;
    s->grow = s->site_load + net->sites;
    memset(s->pair_load, 0, (n * n + n + net->sites) * sizeof *s->pair_load);
    s->power[0] = 1;
    for (size_t k = 0; k < TREE_SLICES_STEPS; k++) {
        s->power[k + 1] = s->power[k] * step_power;
    }
}

static double price_of(const struct tree_slices *s, double load, double bps)
{
    if (!(s->fullest > 0)) {
        return 1 / bps;
    }
    double at = load / bps / s->fullest * TREE_SLICES_STEPS;
    size_t k = at < TREE_SLICES_STEPS ? (size_t)at : TREE_SLICES_STEPS - 1;
    return (s->power[k] + (at - (double)k) * (s->power[k + 1] - s->power[k])) / bps;
}

static void prices_fill(struct tree_slices *s)
{
    const struct network *net = s->net;
    size_t n = net->n;
    for (size_t i = 0; i < n; i++) {
        /* Prices of members and sites stand on the diagonal while the pairs are made. */
        double own = price_of(s, s->member_load[i], network_member_bps(net, i));
        if (net->site != NULL) {
            size_t g = net->site[i];
            s->price[i * n + i] = price_of(s, s->site_load[g], network_site_bps(net, g));
        }
        for (size_t j = 0; j < i; j++) {
            double sum = own + price_of(s, s->member_load[j], network_member_bps(net, j)) +
                         price_of(s, s->pair_load[i * n + j], network_pair_bps(net, i, j));
            if (net->site != NULL && net->site[i] != net->site[j]) {
                sum += s->price[i * n + i] + s->price[j * n + j];
            }
            s->price[i * n + j] = s->price[j * n + i] = network_linked(net, i, j) ? sum : __builtin_inf();
        }
    }
}

static void load_raise(struct tree_slices *s, double *load, double bps)
{
    *load += 1;
    double full = *load / bps;
    s->fullest = full > s->fullest ? full : s->fullest;
}

bool tree_slices_next(struct tree_slices *s, uint16_t *parent_out)
{
    const struct network *net = s->net;
    size_t n = net->n;
    prices_fill(s);
    if (!(tree_grow(net, s->shape, s->price, parent_out, s->grow) < __builtin_inf())) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        size_t up = parent_out[i];
        if (up == i) {
            continue;
        }
        load_raise(s, &s->pair_load[i > up ? i * n + up : up * n + i], network_pair_bps(net, i, up));
        load_raise(s, &s->member_load[i], network_member_bps(net, i));
        load_raise(s, &s->member_load[up], network_member_bps(net, up));
        if (net->site != NULL && net->site[i] != net->site[up]) {
            load_raise(s, &s->site_load[net->site[i]], network_site_bps(net, net->site[i]));
            load_raise(s, &s->site_load[net->site[up]], network_site_bps(net, net->site[up]));
        }
    }
    s->count++;
    return true;
}

double tree_slices_s_per_bit(const struct tree_slices *s)
{
    return s->count == 0 ? 0 : s->fullest / s->count;
}
