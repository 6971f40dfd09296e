/* cost.c - the formulas.
 *
 * One idea: a resource with rate C and load L, in buffers, needs L S / C; the fullest one decides.  All links are full
 * duplex.
 * Invariant: chunks are never longer than what is sent in one piece.
 * SPDX-License-Identifier: MIT */
#include "topology/cost.h"

#include "topology/owner_shares.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double bits(struct cost_job job)
{
    return job.bytes * 8;
}

static size_t after(const struct network *net, const uint16_t *order, size_t k)
{
    return order[k + 1 == net->n ? 0 : k + 1];
}

/* How often the ring crosses the border of site g. */
static double crossings(const struct network *net, const uint16_t *order, size_t g)
{
    double count = 0;
    for (size_t k = 0; k < net->n; k++) {
        count += net->site[order[k]] == g && net->site[after(net, order, k)] != g;
    }
    return count;
}

struct ring_load cost_ring_load(const struct network *net, const uint16_t *order)
{
    struct ring_load r = {0, 0, 0};
    double load = 2 * ((double)net->n - 1) / (double)net->n;
    for (size_t k = 0; k < net->n; k++) {
        size_t from = order[k], to = after(net, order, k);
        double bps = network_least(network_path_bps(net, from, to),
                                   network_least(net->up_bps[from], net->down_bps[to]));
        bool leaves = network_leaf(net, from) && network_leaf(net, to);
        r.s_per_bit = larger(r.s_per_bit, load / (leaves ? 0 : bps));
        r.delay_s += network_delay_s(net, from, to);
        r.delay_most_s = larger(r.delay_most_s, network_delay_s(net, from, to));
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        double copies = load * crossings(net, order, g);
        r.s_per_bit = copies > 0 ? larger(r.s_per_bit, copies / network_site_bps(net, g)) : r.s_per_bit;
    }
    return r;
}

double cost_ring_slices_s(const struct network *net, const uint16_t *order, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    struct ring_load r = cost_ring_load(net, order);
    return r.s_per_bit * bits(job) + 2 * ((double)net->n - 1) * r.delay_s / (double)net->n;
}

double cost_ring_s(const struct network *net, const uint16_t *order, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    struct ring_load r = cost_ring_load(net, order);
    if (!(r.s_per_bit < __builtin_inf())) {
        return r.s_per_bit;
    }
    double hops = 2 * ((double)net->n - 1), slice_s = r.s_per_bit * bits(job) / hops;
    double edge_s_per_bit = r.s_per_bit * (double)net->n / hops;
    double chunk_s = network_least(job.chunk_bytes * 8 * edge_s_per_bit, slice_s);
    return larger(hops * slice_s + r.delay_most_s + chunk_s,
                  hops * (r.delay_s / (double)net->n + chunk_s) + slice_s);
}

/* The longest way between two members of which the first one owns something. */
static double delay_most_s(const struct network *net, const double *share)
{
    double most = 0;
    for (size_t i = 0; i < net->n; i++) {
        for (size_t j = 0; j < net->n; j++) {
            if (i != j && (share == NULL || share[i] > 0)) {
                most = larger(most, larger(network_delay_s(net, i, j), network_delay_s(net, j, i)));
            }
        }
    }
    return most;
}

double cost_direct_s(const struct network *net, const double *share, struct cost_job job)
{
    if (net->n < 2) {
        return 0;
    }
    struct shares_load f = shares_load(net, share);
    if (!(f.bps > 0)) {
        return __builtin_inf();
    }
    double largest = 0;
    for (size_t i = 0; i < net->n; i++) {
        largest = larger(largest, share[i]);
    }
    double chunk_bytes = network_least(job.chunk_bytes, largest * job.bytes);
    return f.s_per_bit * bits(job) + 2 * delay_most_s(net, share) + chunk_bytes * 8 / f.bps;
}

double cost_tiny_s(const struct network *net, struct cost_job job)
{
    double n = (double)net->n, s_per_bit = 0;
    if (net->n < 2) {
        return 0;
    }
    for (size_t i = 0; i < net->n; i++) {
        s_per_bit = larger(s_per_bit, (n - 1) / network_member_bps(net, i));
        for (size_t j = 0; j < i; j++) {
            s_per_bit = larger(s_per_bit, 1 / (network_linked(net, i, j) ? network_pair_bps(net, i, j) : 0));
        }
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        double members = (double)network_site_members(net, g);
        s_per_bit = larger(s_per_bit, members * (n - members) / network_site_bps(net, g));
    }
    return s_per_bit < __builtin_inf() ? s_per_bit * bits(job) + delay_most_s(net, NULL) : s_per_bit;
}

double cost_trees_s(const struct tree_forecast *forecast, struct cost_job job)
{
    if (!(forecast->s_per_bit < __builtin_inf())) {
        return forecast->s_per_bit;
    }
    double chunk_bytes = network_least(job.chunk_bytes, forecast->largest_share * job.bytes);
    return forecast->s_per_bit * bits(job) + 2 * forecast->radius_s +
           forecast->radius_hops * chunk_bytes * 8 / forecast->bps;
}

static double predict(const struct network *net, const struct cost_plans *plans, enum cost_algo algo,
                      struct cost_job job)
{
    const double none = __builtin_inf();
    switch (algo) {
    case COST_TINY:
        return cost_tiny_s(net, job);
    case COST_DIRECT:
        return plans->equal == NULL ? none : cost_direct_s(net, plans->equal, job);
    case COST_WEIGHTED:
        return plans->share == NULL ? none : cost_direct_s(net, plans->share, job);
    case COST_HIERARCHICAL:
        return plans->hierarchical == NULL ? none : cost_trees_s(plans->hierarchical, job);
    case COST_TREES:
        return plans->trees == NULL ? none : cost_trees_s(plans->trees, job);
    case COST_RING:
        return plans->order == NULL ? none : cost_ring_s(net, plans->order, job);
    case COST_ALGO_COUNT:
        break;
    }
    return none;
}

bool cost_choose(const struct network *net, const struct cost_plans *plans, unsigned allowed, struct cost_job job,
                 struct cost_choice *out)
{
    out->algo = COST_TINY;
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        bool may = (allowed >> a & 1) != 0;
        out->predicted_s[a] = may ? predict(net, plans, (enum cost_algo)a, job) : __builtin_inf();
        if (out->predicted_s[a] < out->predicted_s[out->algo]) {
            out->algo = (enum cost_algo)a;
        }
    }
    return out->predicted_s[out->algo] < __builtin_inf();
}

const char *cost_algo_name(enum cost_algo algo)
{
    static const char *const names[COST_ALGO_COUNT] = {"tiny",         "direct", "direct weighted",
                                                       "hierarchical", "trees",  "ring"};
    return (unsigned)algo < COST_ALGO_COUNT ? names[algo] : "?";
}
