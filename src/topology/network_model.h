/* network_model.h - what limits transfers among members: links of members, paths of pairs, links of sites.
 *
 * One idea: each limit is a resource with a rate, used by some ordered pairs.  A plan's time per bit is the greatest
 * load / rate, so rates that differ between directions count as the smaller one wherever both carry the same load.
 * Invariant of a valid network: links have rates > 0, paths and delays are >= 0, no value is NaN.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_NETWORK_MODEL_H
#define PCCL_TOPOLOGY_NETWORK_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NETWORK_CUT_MEMBERS = 9 }; /* most members that network_cut_s_per_bit takes */

/* All arrays are borrowed.  Rates are in bits per second; infinity stands for a limit that nobody knows. */
struct network {
    size_t n;
    const double *up_bps, *down_bps; /* [n] */
    const double *path_bps;          /* [n][n], row: from; 0: the pair cannot connect; null: no path has a limit */
    const double *delay_s;           /* [n][n], one way; null: no delay */
    const bool *leaf;                /* [n], members that cannot be dialled, so they own nothing; null: none */
    size_t sites;
    const uint16_t *site;                      /* [n], < sites; null: no sites */
    const double *site_up_bps, *site_down_bps; /* [sites]; null with `site` null */
};

static inline double network_least(double a, double b)
{
    return a < b ? a : b;
}

/* The slower direction of a member's link, of a site's link, of a pair's path. */
static inline double network_member_bps(const struct network *net, size_t i)
{
    return network_least(net->up_bps[i], net->down_bps[i]);
}

static inline double network_site_bps(const struct network *net, size_t g)
{
    return network_least(net->site_up_bps[g], net->site_down_bps[g]);
}

static inline double network_path_bps(const struct network *net, size_t from, size_t to)
{
    return net->path_bps == NULL ? __builtin_inf() : net->path_bps[from * net->n + to];
}

static inline double network_pair_bps(const struct network *net, size_t i, size_t j)
{
    return network_least(network_path_bps(net, i, j), network_path_bps(net, j, i));
}

static inline double network_delay_s(const struct network *net, size_t from, size_t to)
{
    return net->delay_s == NULL ? 0 : net->delay_s[from * net->n + to];
}

static inline bool network_leaf(const struct network *net, size_t i)
{
    return net->leaf != NULL && net->leaf[i];
}

/* Members without a site are sites of their own. */
static inline bool network_together(const struct network *net, size_t i, size_t j)
{
    return net->site == NULL ? i == j : net->site[i] == net->site[j];
}

/* Two members that cannot be dialled have no connection. */
static inline bool network_linked(const struct network *net, size_t i, size_t j)
{
    return network_pair_bps(net, i, j) > 0 && !(network_leaf(net, i) && network_leaf(net, j));
}

/* Whether the invariant holds for 1 <= n < 65,536. */
bool network_valid(const struct network *net);

/* Members of site g. */
size_t network_site_members(const struct network *net, size_t g);

/* A time per bit of the buffer that no plan can beat: each link carries the buffer once; all links together, and all
 * sites' links together, carry 2 (n - 1) copies. */
double network_link_bound_s_per_bit(const struct network *net);

/* The bound for trees that use both directions of a path alike: n - 1 copies over all pairs' paths.  0 if one of them
 * has no limit. */
double network_path_bound_s_per_bit(const struct network *net);

/* The bound by cuts: each split of the members carries the buffer once in both directions.  It tries 4^n labellings;
 * 2 <= n <= NETWORK_CUT_MEMBERS, else 0.  Sites are not looked at. */
double network_cut_s_per_bit(const struct network *net);

#endif
