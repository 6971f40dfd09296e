/* site_gateways.c - see site_gateways.h.
 * SPDX-License-Identifier: MIT */
#include "topology/site_gateways.h"

static bool has_limit(const struct network *net, size_t site)
{
    return network_site_bps(net, site) < __builtin_inf() && network_site_members(net, site) > 1;
}

/* Of members that are told apart: one that others can dial is better than one that they cannot. */
static bool is_better(const struct network *net, size_t i, size_t than)
{
    if (network_leaf(net, i) != network_leaf(net, than)) {
        return network_leaf(net, than);
    }
    return network_member_bps(net, i) > network_member_bps(net, than);
}

static size_t gateway_of(const struct network *net, size_t site)
{
    size_t best = net->n;
    for (size_t i = 0; i < net->n; i++) {
        if (net->site[i] == site && (best == net->n || is_better(net, i, best))) {
            best = i;
        }
    }
    return best;
}

/* Whether a member may have paths to other sites. */
static bool may_leave(const struct network *net, size_t i)
{
    return !has_limit(net, net->site[i]) || gateway_of(net, net->site[i]) == i;
}

bool site_gateways_paths(const struct network *net, double *path_bps)
{
    bool any = false;
    for (size_t i = 0; net->site != NULL && i < net->n; i++) {
        bool leaves = may_leave(net, i);
        any = any || !leaves;
        for (size_t k = 0; k < net->n; k++) {
            bool open = net->site[i] == net->site[k] || (leaves && may_leave(net, k));
            path_bps[i * net->n + k] = open ? network_path_bps(net, i, k) : 0;
        }
    }
    return any;
}
