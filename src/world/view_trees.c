/* view_trees.c - which trees a view gets: new ones for each view, from the rates that are known when it is made.
 *
 * Its one idea: trees name ranks, so those of another view mean nothing here, and making them costs less than asking what is left of them.
 * A view of which too little is known has none, and its members take other algorithms.
 * Invariant: all members are in each tree; the prediction stands in the plan only beside trees.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/check.h"
#include "world/member_rates.h"
#include "world/trees_make.h"
#include "world/view_read.h"
#include "world/view_trees.h"

_Static_assert((uint32_t)BOUNDS_TREES == (uint32_t)TREE_SET_MOST && (uint32_t)BOUNDS_TREE_MEMBERS == (uint32_t)TREE_SET_MEMBERS,
               "what is made is what travels");

enum { TREES_LEAST = 3 }; /* of two members all trees are the same */
#define TREES_MIB_BITS 8388608.0

static void clear(struct world *w, const struct view_record *from, struct view_record *v)
{
    (void)calibration_apply(w, from, v, TOOK_FOREST, false, 0);
    v->trees.count = 0;
    v->trees.members = v->members;
    v->plan.tree_mib_ns = v->plan.tree_delay_us = 0;
}

/* Where no round trips are known: up to the root and down again, as many steps as the deepest member has before it, each as long as the
 * longest one-way delay. */
static uint32_t delay_us(const struct view_record *v)
{
    uint64_t deepest = 0;
    for (uint32_t t = 0; t < v->trees.count; t++) {
        const uint16_t *parent = v->trees.parent + (size_t)t * v->members;
        for (uint32_t r = 0; r < v->members; r++) {
            uint64_t depth = 0;
            for (uint32_t at = r; parent[at] != at; at = parent[at]) {
                depth++;
            }
            deepest = depth > deepest ? depth : deepest;
        }
    }
    uint64_t us = 2 * deepest * v->plan.costs.delay_ns / 1000;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* Of views with as many members. */
static bool same_trees(const struct view_record *one, const struct view_record *other)
{
    const struct tree_set *a = &one->trees, *b = &other->trees;
    size_t ranks = (size_t)a->count * one->members;
    return one->members == other->members && a->count == b->count && memcmp(a->share, b->share, a->count * sizeof *a->share) == 0 &&
           memcmp(a->parent, b->parent, ranks * sizeof *a->parent) == 0;
}

void view_trees(struct world *w, const struct view_record *from, struct view_record *v)
{
    struct common *c = w->common;
    bool leaf[TREES_MEMBERS] = {0};
    struct tree_forecast forecast = {.s_per_bit = 0};
    clear(w, from, v);
    if (v->members < TREES_LEAST || v->members > TREES_MEMBERS) {
        return;
    }
    for (uint32_t i = 0; i < v->edges; i++) {
        leaf[view_place(v, v->edge[i].a)] = leaf[view_place(v, v->edge[i].b)] = true;
    }
    uint32_t n = v->members;
    struct trees_job job = {.bandwidth = &w->bandwidth, .ids = member_rates_keys(w, v->ids, n), .members = n, .leaf = leaf,
                            .up_bps = c->scratch_rates, .down_bps = c->scratch_rates + n, .path_bps = c->scratch_path, .delay_s = c->scratch_delay,
                            .storage = c->scratch_trees};
    if (!trees_make(&job, &v->trees, &forecast)) {
        clear(w, from, v);
        return;
    }
    PCCL_ASSERT(tree_set_valid(&v->trees) && v->trees.members == n);
    double us = 2e6 * forecast.radius_s;
    v->plan.tree_mib_ns = member_rates_whole(calibration_apply(w, from, v, TOOK_FOREST, same_trees(from, v), forecast.s_per_bit) * TREES_MIB_BITS * 1e9);
    v->plan.tree_delay_us = us > 0 ? member_rates_whole(us) : delay_us(v);
}

/* They are made in the record of the next view, which nobody uses while the group is at rest. */
bool view_trees_differ(struct world *w, struct group *g)
{
    const struct view_record *v = view_current(g);
    struct view_record *next = view_next(g);
    PCCL_ASSERT(g->phase == GROUP_NORMAL);
    next->members = v->members;
    next->edges = v->edges;
    next->plan = v->plan;
    memcpy(next->ids, v->ids, v->members * sizeof *v->ids);
    memcpy(next->edge, v->edge, v->edges * sizeof *v->edge);
    view_trees(w, v, next);
    return !same_trees(v, next);
}
