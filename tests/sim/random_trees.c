/* random_trees.c - the trees of simulated views: any valid set, whatever was measured, so that plans of all shapes meet all faults.
 *
 * Its one idea: the linker puts this in place of the maker; what it draws follows from the seed and the members alone, as if the maker were
 * asked again.  Trees do not look at who is linked with whom in half of the views, so that members have to.
 * Invariant: what comes out is a valid set.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "sim_cluster.h"
#include "tests/draw_trees.h"
#include "world/trees_make.h"

static uint64_t of_seed;

bool __real_trees_make(const struct trees_job *job, struct tree_set *out, struct tree_forecast *forecast);
bool __wrap_trees_make(const struct trees_job *job, struct tree_set *out, struct tree_forecast *forecast);

void random_trees_begin(const struct options *o)
{
    of_seed = o->scripted ? 0 : o->seed;
}

/* Stars around members that are linked with all; false: there is none. */
static bool draw_stars(const struct trees_job *job, struct tree_set *out)
{
    for (uint32_t t = 0; t < out->count; t++) {
        uint32_t root = out->parent[(size_t)t * job->members], tries = 0;
        for (; job->leaf[root] && tries < job->members; tries++) {
            root = (root + 1) % job->members;
        }
        if (job->leaf[root]) {
            return false;
        }
        for (uint32_t r = 0; r < job->members; r++) {
            out->parent[(size_t)t * job->members + r] = (uint16_t)root;
        }
    }
    return true;
}

bool __wrap_trees_make(const struct trees_job *job, struct tree_set *out, struct tree_forecast *forecast)
{
    struct rng rng = {of_seed};
    bool apart = false;
    for (uint32_t i = 0; i < job->members; i++) {
        rng.state = mix64(rng.state, job->ids[i]);
        apart = apart || job->leaf[i];
    }
    uint64_t what = rng_below(&rng, 8);
    if (of_seed == 0 || what == 0) {
        return __real_trees_make(job, out, forecast);
    }
    draw_trees(&rng, job->members, what == 7 ? TREE_SET_MOST : 5, out, out->parent);
    *forecast = (struct tree_forecast){.s_per_bit = (double)rng_below(&rng, 1000) * 1e-12};
    return what > 1 && (!apart || what > 4 || draw_stars(job, out));
}
