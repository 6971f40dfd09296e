/* tree_load.c - loads, depths and centres of trees.
 *
 * One idea: the farthest member of any member of a tree is one of the two ends of a longest path.
 * SPDX-License-Identifier: MIT */
#include "topology/tree_load.h"

#include <string.h>

#include "topology/tree_grow.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

size_t tree_load_room(size_t n, size_t sites)
{
    size_t loads = n * n + n + sites;
    return loads > 7 * n ? loads : 7 * n;
}

/* Half of the way there and back: sums go one way, results the other. */
static double edge_length(const struct network *net, size_t i, size_t j, bool hops)
{
    return hops ? 1 : (network_delay_s(net, i, j) + network_delay_s(net, j, i)) / 2;
}

/* From the root to member i. */
static double depth_of(const struct network *net, const uint16_t *parent, size_t i, bool hops)
{
    double sum = 0;
    for (; parent[i] != i; i = parent[i]) {
        sum += edge_length(net, i, parent[i], hops);
    }
    return sum;
}

/* Fills far[i] with the distance from `from` if that is larger; returns the member farthest from `from`. */
static size_t far_raise(const struct network *net, uint16_t *turned, size_t from, bool hops, double *far)
{
    size_t farthest = from;
    double most = 0;
    tree_turn(turned, from);
    for (size_t i = 0; i < net->n; i++) {
        double depth = depth_of(net, turned, i, hops);
        far[i] = larger(far[i], depth);
        if (depth > most) {
            most = depth;
            farthest = i;
        }
    }
    return farthest;
}

/* The distance of the farthest member, for each member; `scratch` has 2 n doubles. */
static void farthest_fill(const struct network *net, const uint16_t *parent, bool hops, double *far, double *scratch)
{
    double *unused = scratch;
    uint16_t *turned = (uint16_t *)(void *)(scratch + net->n);
    memcpy(turned, parent, net->n * sizeof *turned);
    memset(unused, 0, net->n * sizeof *unused);
    memset(far, 0, net->n * sizeof *far);
    size_t one_end = far_raise(net, turned, 0, hops, unused);
    size_t other_end = far_raise(net, turned, one_end, hops, far);
    (void)far_raise(net, turned, other_end, hops, far);
}

size_t tree_centre(const struct network *net, const uint16_t *parent, double *scratch)
{
    double *far = scratch, *far_hops = scratch + net->n;
    farthest_fill(net, parent, false, far, scratch + 2 * net->n);
    farthest_fill(net, parent, true, far_hops, scratch + 2 * net->n);
    size_t best = net->n;
    for (size_t i = 0; i < net->n; i++) {
        if (network_leaf(net, i)) {
            continue;
        }
        if (best == net->n || far[i] < far[best] || (far[i] <= far[best] && far_hops[i] < far_hops[best])) {
            best = i;
        }
    }
    return best == net->n ? 0 : best;
}

static void loads_add(const struct network *net, const uint16_t *parent, double share, double *pair, double *member,
                      double *site)
{
    for (size_t i = 0; i < net->n; i++) {
        size_t up = parent[i];
        if (up == i) {
            continue;
        }
        pair[i > up ? i * net->n + up : up * net->n + i] += share;
        member[i] += share;
        member[up] += share;
        if (net->site != NULL && net->site[i] != net->site[up]) {
            site[net->site[i]] += share;
            site[net->site[up]] += share;
        }
    }
}

static void fullest_add(struct tree_forecast *f, double load, double bps)
{
    if (load > 0 && !(load / bps <= f->s_per_bit)) {
        f->s_per_bit = load / bps;
        f->bps = bps;
    }
}

void tree_load(const struct network *net, const struct tree_set *set, struct tree_forecast *out, double *scratch)
{
    size_t n = net->n;
    double *pair = scratch, *member = pair + n * n, *site = member + n;
    memset(scratch, 0, (n * n + n + net->sites) * sizeof *scratch);
    *out = (struct tree_forecast){.bps = __builtin_inf(), .bound_s_per_bit = out->bound_s_per_bit};
    for (uint32_t t = 0; t < set->count; t++) {
        const uint16_t *parent = set->parent + t * n;
        double share = (double)set->share[t] / TREE_SET_WHOLE;
        loads_add(net, parent, share, pair, member, site);
        out->largest_share = larger(out->largest_share, share);
        for (size_t i = 0; i < n; i++) {
            out->radius_s = larger(out->radius_s, depth_of(net, parent, i, false));
            uint32_t hops = (uint32_t)depth_of(net, parent, i, true);
            out->radius_hops = hops > out->radius_hops ? hops : out->radius_hops;
        }
    }
    for (size_t i = 0; i < n; i++) {
        fullest_add(out, member[i], network_member_bps(net, i));
        for (size_t j = 0; j < i; j++) {
            fullest_add(out, pair[i * n + j], network_linked(net, i, j) ? network_pair_bps(net, i, j) : 0);
        }
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        fullest_add(out, site[g], network_site_bps(net, g));
    }
}
