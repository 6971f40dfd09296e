/* trees_make.c - trees packed over the links of a view, as they were measured.
 *
 * A member's link is known from below only: the best rate that was seen over it (topology/rates.h).  Rates that differ by no more than probes
 * err are moved towards equal, so that trees do not follow noise.
 * SPDX-License-Identifier: MIT */
#include "world/trees_make.h"

#include <string.h>

#include "topology/rates.h"
#include "topology/shrink.h"
#include "topology/site_gateways.h"

_Static_assert((int)TREES_MEMBERS <= (int)RATES_SITE_MEMBERS, "sites of all of them are looked for");

#define PROBE_ERROR 0.05 /* of a rate */
#define GATEWAYS_COST 1.1 /* times as long as without them, at most: more paths share links less well than the model says */

size_t trees_room(uint32_t members)
{
    size_t room = 0;
    for (uint32_t n = 1; n <= members && n <= TREES_MEMBERS; n++) { /* fewer members may need more: more trees are tried for them */
        size_t one = tree_packing_room(n, n);
        room = one > room ? one : room;
    }
    return room;
}

/* Everything is known: what is not could be anything.  Delays are, if each pair's round trip is. */
static bool all_measured(const struct trees_job *j, bool *delays)
{
    uint32_t n = j->members;
    *delays = true;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            const struct bandwidth_entry *e = i != k ? bandwidth_either(j->bandwidth, j->ids[i], j->ids[k]) : NULL;
            j->delay_s[(size_t)i * n + k] = e != NULL ? (double)e->rtt_us * 0.5e-6 : 0;
            bool never = i == k || (j->leaf[i] && j->leaf[k]); /* linked */
            if (!never && e == NULL) {
                return false;
            }
            *delays = *delays && (never || e->rtt_us > 0);
        }
    }
    return true;
}

/* With one gateway at each site, unless that is much slower. */
static bool pack(const struct network *net, void *storage, struct tree_set *out, struct tree_forecast *forecast)
{
    double path_bps[TREES_MEMBERS * TREES_MEMBERS];
    uint16_t parent[TREE_SET_MOST * TREES_MEMBERS];
    struct network few = *net;
    few.path_bps = path_bps;
    if (!site_gateways_paths(net, path_bps) || !tree_packing_solve(&few, TREE_ANY, storage, out, forecast)) {
        return tree_packing_solve(net, TREE_ANY, storage, out, forecast);
    }
    double bound = network_link_bound_s_per_bit(net);
    if (forecast->s_per_bit > GATEWAYS_COST * bound) {
        const struct tree_set through = *out;
        const struct tree_forecast slower = *forecast;
        memcpy(parent, out->parent, sizeof *parent * through.count * net->n);
        bool all = tree_packing_solve(net, TREE_ANY, storage, out, forecast);
        if (all && slower.s_per_bit > GATEWAYS_COST * forecast->s_per_bit) {
            return true;
        }
        bound = all ? forecast->bound_s_per_bit : bound;
        *out = through;
        *forecast = slower;
        memcpy(out->parent, parent, sizeof *parent * through.count * net->n);
    }
    forecast->bound_s_per_bit = bound; /* of all paths */
    return true;
}

bool trees_make(const struct trees_job *j, struct tree_set *out, struct tree_forecast *forecast)
{
    size_t n = j->members;
    bool delays;
    if (n > TREES_MEMBERS || !all_measured(j, &delays) || !rates_fill(j->bandwidth, j->ids, n, j->up_bps, j->down_bps, j->path_bps)) {
        return false;
    }
    shrink_rates(j->up_bps, n, PROBE_ERROR);
    shrink_rates(j->down_bps, n, PROBE_ERROR);
    shrink_rates(j->path_bps, n * n, PROBE_ERROR);
    struct rates_sites sites;
    struct network net = {.n = n, .up_bps = j->up_bps, .down_bps = j->down_bps, .path_bps = j->path_bps, .leaf = j->leaf,
                          .delay_s = delays ? j->delay_s : NULL};
    rates_add_sites(j->bandwidth, j->ids, &sites, &net);
    return pack(&net, j->storage, out, forecast);
}
