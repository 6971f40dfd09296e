/* site_plan.c - representatives by the load that they would have.
 *
 * One idea: a representative carries its share of the buffer once for each neighbour; trees with large shares choose
 * first, and each takes the member of the site whose link is then the least full.
 * SPDX-License-Identifier: MIT */
#include "topology/site_plan.h"

#include <string.h>

#include "topology/tree_packing.h"

struct maker {
    const struct site_world *world;
    struct site_plan *plan;
    double *load;               /* [n], copies of the buffer */
    double *rate;               /* [sites], the sum of the members' links */
    double *least_full;         /* [sites] */
    uint32_t *members, *degree; /* [sites] */
    uint16_t *rows;             /* [TREE_SET_MOST][sites], trees over sites */
    struct tree_set set;
    struct network net; /* whose members are the sites */
};

static size_t eight(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

size_t site_plan_room(size_t n, size_t sites)
{
    size_t packing = tree_packing_room(sites, 0);
    return eight(4 * SITE_PLAN_TREES * sites) + eight(2 * SITE_PLAN_TREES * sites) + 8 * n + 16 * sites +
           2 * eight(4 * sites) + eight(2 * TREE_SET_MOST * sites) + packing;
}

static void *part(char **at, size_t bytes)
{
    char *here = *at;
    *at += eight(bytes);
    return here;
}

static void *maker_init(struct maker *m, const struct site_world *w, struct site_plan *plan, void *storage)
{
    size_t n = w->n, sites = w->sites;
    char *at = storage;
    *m = (struct maker){.world = w, .plan = plan};
    *plan = (struct site_plan){.n = n, .sites = sites, .site = w->site};
    plan->representative = part(&at, 4 * SITE_PLAN_TREES * sites);
    plan->parent_site = part(&at, 2 * SITE_PLAN_TREES * sites);
    m->load = part(&at, 8 * n);
    m->rate = part(&at, 8 * sites);
    m->least_full = part(&at, 8 * sites);
    m->members = part(&at, 4 * sites);
    m->degree = part(&at, 4 * sites);
    m->rows = part(&at, 2 * TREE_SET_MOST * sites);
    m->set.parent = m->rows;
    m->net = (struct network){.n = sites, .up_bps = m->rate, .down_bps = m->rate, .path_bps = w->path_bps,
                              .delay_s = w->delay_s};
    return at;
}

static double member_bps(const struct site_world *w, size_t i)
{
    return network_least(w->up_bps[i], w->down_bps[i]);
}

/* Counts members and sums up rates; false if a number is not valid or a site is empty. */
static bool sites_count(struct maker *m)
{
    const struct site_world *w = m->world;
    memset(m->rate, 0, w->sites * sizeof *m->rate);
    memset(m->members, 0, w->sites * sizeof *m->members);
    for (size_t i = 0; i < w->n; i++) {
        if (w->site[i] >= w->sites || !(w->up_bps[i] > 0) || !(w->down_bps[i] > 0)) {
            return false;
        }
        m->load[i] = 1; /* everybody sends and receives the buffer once */
        m->members[w->site[i]]++;
        m->rate[w->site[i]] += member_bps(w, i);
    }
    for (size_t g = 0; g < w->sites; g++) {
        if (m->members[g] == 0) {
            return false;
        }
    }
    return true;
}

/* Copies the trees over sites, largest first, and halves the largest until there are enough. */
static void trees_split(struct maker *m)
{
    struct site_plan *p = m->plan;
    size_t row = p->sites * sizeof *p->parent_site;
    p->count = m->set.count;
    memcpy(p->share, m->set.share, p->count * sizeof *p->share);
    memcpy(p->parent_site, m->rows, p->count * row);
    while (p->count < SITE_PLAN_TREES) {
        uint32_t largest = 0, last = p->count++;
        for (uint32_t t = 1; t < last; t++) {
            largest = p->share[t] > p->share[largest] ? t : largest;
        }
        p->share[last] = p->share[largest] / 2;
        p->share[largest] -= p->share[last];
        memcpy(p->parent_site + last * p->sites, p->parent_site + largest * p->sites, row);
    }
}

static void degrees_fill(struct maker *m, const uint16_t *parent)
{
    memset(m->degree, 0, m->plan->sites * sizeof *m->degree);
    for (size_t g = 0; g < m->plan->sites; g++) {
        if (parent[g] != g) {
            m->degree[g]++;
            m->degree[parent[g]]++;
        }
    }
}

/* The representatives of a tree: in each site the member whose link is the least full then. */
static void representatives_choose(struct maker *m, uint32_t tree)
{
    struct site_plan *p = m->plan;
    uint32_t *chosen = p->representative + tree * p->sites;
    double share = (double)p->share[tree] / TREE_SET_WHOLE;
    degrees_fill(m, p->parent_site + tree * p->sites);
    for (size_t g = 0; g < p->sites; g++) {
        m->least_full[g] = __builtin_inf();
        chosen[g] = UINT32_MAX;
    }
    for (size_t i = 0; i < p->n; i++) {
        size_t g = p->site[i];
        double more = share * ((double)m->members[g] - 2 + m->degree[g]);
        double full = (m->load[i] + more) / member_bps(m->world, i);
        if (chosen[g] == UINT32_MAX || full < m->least_full[g]) {
            m->least_full[g] = full;
            chosen[g] = (uint32_t)i;
        }
    }
    for (size_t g = 0; g < p->sites; g++) {
        m->load[chosen[g]] += share * ((double)m->members[g] - 2 + m->degree[g]);
    }
}

/* Trees with large shares first, so that small ones fill the gaps. */
static void all_choose(struct maker *m)
{
    bool done[SITE_PLAN_TREES] = {false};
    for (uint32_t k = 0; k < m->plan->count; k++) {
        uint32_t next = SITE_PLAN_TREES;
        for (uint32_t t = 0; t < m->plan->count; t++) {
            next = !done[t] && (next == SITE_PLAN_TREES || m->plan->share[t] > m->plan->share[next]) ? t : next;
        }
        done[next] = true;
        representatives_choose(m, next);
    }
}

/* The forecast of the trees over sites, with the members' links and the hops inside of sites. */
static void forecast_add(const struct maker *m, struct tree_forecast *f)
{
    const struct site_plan *p = m->plan;
    double largest = 0;
    for (size_t i = 0; i < p->n && p->n > 1; i++) {
        double bps = member_bps(m->world, i);
        if (m->load[i] / bps > f->s_per_bit) {
            f->s_per_bit = m->load[i] / bps;
            f->bps = bps;
        }
    }
    for (uint32_t t = 0; t < p->count; t++) {
        largest = p->share[t] > largest ? p->share[t] : largest;
    }
    f->largest_share = largest / TREE_SET_WHOLE;
    f->radius_hops += p->n > p->sites;
}

bool site_plan_make(const struct site_world *world, void *storage, struct site_plan *out,
                    struct tree_forecast *forecast)
{
    struct maker m;
    if (world->sites < 1 || world->sites > SITE_PLAN_SITES || world->n < world->sites || world->n > UINT32_MAX / 2) {
        return false;
    }
    void *rest = maker_init(&m, world, out, storage);
    *forecast = (struct tree_forecast){0};
    if (!sites_count(&m) || !tree_packing_solve(&m.net, TREE_ANY, rest, &m.set, forecast)) {
        return false;
    }
    trees_split(&m);
    all_choose(&m);
    forecast_add(&m, forecast);
    return true;
}

uint32_t site_plan_parent(const struct site_plan *plan, uint32_t tree, uint32_t member)
{
    const uint32_t *representative = plan->representative + tree * plan->sites;
    uint32_t site = plan->site[member];
    if (representative[site] != member) {
        return representative[site];
    }
    return representative[plan->parent_site[tree * plan->sites + site]];
}
