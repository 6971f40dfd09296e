/* topo_solve.c - see topo_solve.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/topo_solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bounds.h"
#include "topology/owner_shares.h"
#include "topology/rates.h"
#include "topology/tour_bound.h"
#include "topology/tour_exact.h"
#include "topology/tour_local.h"
#include "topology/tree_packing.h"
#include "world/trees_make.h"

enum { SOLVE_STARTS = 4, SOLVE_SEED = 1 };

/* The matrix as solvers take it. */
struct model {
    const struct topo_matrix *m;
    struct bandwidth known;
    uint64_t *ids;    /* owned, as all here: the rank, and 1 */
    double *up, *down, *path, *delay, *site_up, *site_down, *equal;
    uint16_t *site;
    struct network net;
    struct rates_sites sites; /* those of `net`, if they were measured */
    bool probed; /* rates were measured, so links of peers are known by them only */
};

/* ---- the model ----------------------------------------------------------------------------------------------------- */

static double limit(uint64_t bps)
{
    return bps == 0 || bps == TOPO_NO_LIMIT ? INFINITY : (double)bps;
}

static void model_cells(struct model *o)
{
    uint32_t n = o->m->count;
    for (uint32_t pair = 0; pair < n * n; pair++) {
        const struct topo_cell *c = &o->m->cells[pair];
        if (c->source != TOPO_UNKNOWN) {
            (void)bandwidth_keep(&o->known, &(struct bandwidth_entry){
                                                .from = o->ids[pair / n], .to = o->ids[pair % n], .rate_bps = c->rate_bps, .rtt_us = c->rtt_us,
                                                .loss_ppm = c->loss_ppm, .assumed = c->source == TOPO_ASSUMED});
            o->probed = o->probed || topo_source_measured(c->source);
        }
        o->path[pair] = c->source == TOPO_UNKNOWN || c->rate_bps == TOPO_NO_LIMIT ? INFINITY : (double)c->rate_bps;
        o->delay[pair] = (double)c->rtt_us * 0.5e-6;
    }
}

static void model_links(struct model *o)
{
    const struct topo_matrix *m = o->m;
    bool limits = false;
    for (uint32_t i = 0; i < m->count; i++) {
        o->up[i] = limit(m->peers[i].up_bps);
        o->down[i] = limit(m->peers[i].down_bps);
        o->site[i] = (uint16_t)m->peers[i].site;
        o->equal[i] = 1.0 / m->count;
    }
    for (uint32_t s = 0; s < m->site_count; s++) {
        o->site_up[s] = limit(m->sites[s].up_bps);
        o->site_down[s] = limit(m->sites[s].down_bps);
        limits = limits || isfinite(o->site_up[s]) || isfinite(o->site_down[s]);
    }
    o->net = (struct network){.n = m->count, .up_bps = o->up, .down_bps = o->down, .path_bps = o->path, .delay_s = o->delay};
    if (limits) {
        o->net.sites = m->site_count;
        o->net.site = o->site;
        o->net.site_up_bps = o->site_up;
        o->net.site_down_bps = o->site_down;
    }
}

/* What was measured over many edges at once, as the master keeps it. */
static void model_together(struct model *o)
{
    for (uint32_t i = 0; i < o->m->count; i++) {
        const struct topo_peer *p = &o->m->peers[i];
        const struct bandwidth_entry all[] = {{.from = o->ids[i], .to = RATES_ALL, .rate_bps = p->up_bps},
                                              {.from = RATES_ALL, .to = o->ids[i], .rate_bps = p->down_bps},
                                              {.from = o->ids[i], .to = RATES_FAR, .rate_bps = p->far_up_bps},
                                              {.from = RATES_FAR, .to = o->ids[i], .rate_bps = p->far_down_bps}};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            if (all[k].rate_bps > 0) {
                (void)bandwidth_keep(&o->known, &all[k]);
            }
        }
    }
}

static void model_fini(struct model *o)
{
    void *owned[] = {o->known.entries, o->ids, o->up, o->down, o->path, o->delay, o->site_up, o->site_down, o->equal, o->site};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        free(owned[i]);
    }
}

static bool model_init(struct model *o, const struct topo_matrix *m)
{
    size_t n = m->count, sites = m->site_count, capacity = BANDWIDTH_CAPACITY(n);
    struct bandwidth_entry *entries = calloc(capacity, sizeof *entries);
    double **doubles[] = {&o->up, &o->down, &o->equal, &o->path, &o->delay, &o->site_up, &o->site_down};
    const size_t counts[] = {n, n, n, n * n, n * n, sites, sites};
    *o = (struct model){.m = m, .ids = calloc(n, sizeof *o->ids), .site = calloc(n, sizeof *o->site)};
    bool good = entries != NULL && o->ids != NULL && o->site != NULL;
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        *doubles[i] = calloc(counts[i] + 1, sizeof(double));
        good = good && *doubles[i] != NULL;
    }
    if (!good) {
        free(entries);
        return false;
    }
    bandwidth_init(&o->known, entries, capacity);
    for (size_t i = 0; i < n; i++) {
        o->ids[i] = i + 1;
    }
    model_cells(o);
    model_links(o);
    if (o->probed) { /* as the master does */
        model_together(o);
        (void)rates_fill(&o->known, o->ids, n, o->up, o->down, o->path);
        rates_add_sites(&o->known, o->ids, &o->sites, &o->net);
    }
    return true;
}

/* ---- the ring ------------------------------------------------------------------------------------------------------ */

/* Of the slowest known edge; 0: one cannot connect; infinite: none has a limit. */
static double ring_rate(const struct topo_matrix *m, const uint16_t *order)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < m->count && m->count > 1; i++) {
        const struct topo_cell *c = &m->cells[(size_t)order[i] * m->count + order[(i + 1) % m->count]];
        double rate = c->rate_bps == TOPO_NO_LIMIT ? INFINITY : (double)c->rate_bps;
        least = c->source != TOPO_UNKNOWN && rate < least ? rate : least;
    }
    return least;
}

static bool solve_ring(struct topo_solution *s, const struct model *o)
{
    size_t n = o->m->count;
    uint64_t *cost = calloc(n * n, sizeof *cost);
    uint16_t *storage = calloc(TOUR_LOCAL_ROOM(n), sizeof *storage);
    void *bound_storage = malloc(tour_bound_room(n));
    struct tour_score score = {0, 0};
    bool good = cost != NULL && storage != NULL && bound_storage != NULL;
    for (size_t i = 0; good && i < n; i++) {
        s->ring[i] = o->m->ring != NULL ? o->m->ring[i] : (uint16_t)i;
    }
    if (good && s->known > 0) {
        (void)tour_costs_fill(&o->known, o->ids, n, cost);
        struct tour_local search;
        if (n <= TOUR_EXACT_MAX) {
            (void)tour_exact_solve(cost, n, s->ring, &score);
        } else if (tour_local_init(&search, cost, n, s->ring, SOLVE_STARTS, tour_local_moves(n), SOLVE_SEED, storage)) {
            (void)tour_local_step(&search, UINT64_MAX);
            score = tour_local_best(&search, s->ring);
        }
        uint64_t bound = tour_bound(cost, n, score.max, bound_storage);
        s->ring_bps = ring_rate(o->m, s->ring);
        s->ring_proven = bound == score.max;
        s->bound_bps = s->ring_proven || bound == 0 ? s->ring_bps : (double)TOUR_FORBIDDEN / (double)bound;
        s->used_bps = o->m->ring != NULL ? ring_rate(o->m, o->m->ring) : 0;
    }
    free(cost);
    free(storage);
    free(bound_storage);
    return good;
}

_Static_assert((int)TREES_MEMBERS == 64, "as solve_trees says");

/* ---- shares, trees ------------------------------------------------------------------------------------------------- */

/* Measured rates go the way of the master: those that differ by no more than probes err are moved towards equal. */
static bool trees_of_probes(const struct model *o, struct tree_set *out, struct tree_forecast *forecast, void *storage)
{
    bool leaf[TREES_MEMBERS] = {false};
    double up[TREES_MEMBERS], down[TREES_MEMBERS], path[TREES_MEMBERS * TREES_MEMBERS], delay[TREES_MEMBERS * TREES_MEMBERS];
    const struct trees_job job = {.bandwidth = &o->known, .ids = o->ids, .members = o->m->count, .leaf = leaf, .up_bps = up, .down_bps = down,
                                  .path_bps = path, .delay_s = delay, .storage = storage};
    return trees_make(&job, out, forecast);
}

static bool solve_trees(struct topo_solution *s, const struct model *o, struct tree_forecast *forecast)
{
    uint32_t n = o->m->count;
    s->no_trees = n < 3 ? "of two peers all trees are the same" : n > TREES_MEMBERS ? "groups of more than 64 members have none" : NULL;
    if (s->no_trees != NULL) {
        return true;
    }
    void *storage = malloc(trees_room(n) + 8);
    s->trees.parent = calloc((size_t)TREE_SET_MOST * n, sizeof *s->trees.parent);
    bool good = storage != NULL && s->trees.parent != NULL;
    if (good && !(o->probed ? trees_of_probes(o, &s->trees, forecast, storage) : tree_packing_solve(&o->net, TREE_ANY, storage, &s->trees, forecast))) {
        s->trees.count = 0;
        s->no_trees = "no tree reaches all peers";
    } else if (good) {
        s->tree_bps = 1 / forecast->s_per_bit;
        s->tree_bound_bps = forecast->bound_s_per_bit > 0 ? 1 / forecast->bound_s_per_bit : 0;
    }
    free(storage);
    return good;
}

static bool solve_shares(struct topo_solution *s, const struct model *o, bool *solved)
{
    size_t n = o->m->count;
    double s_per_bit;
    void *storage = n <= SHARES_MEMBERS ? malloc(shares_room(n, o->net.sites)) : NULL;
    *solved = storage != NULL && shares_solve(&o->net, storage, s->share, &s_per_bit);
    if (!*solved) {
        memcpy(s->share, o->equal, n * sizeof *s->share);
    }
    free(storage);
    return n > SHARES_MEMBERS || storage != NULL;
}

/* ---- time, load ---------------------------------------------------------------------------------------------------- */

/* What the library takes: direct unless another is faster by a tenth (collectives/choose.c).  It has no weighted shares but
 * in its trees. */
static enum cost_algo chosen(const double *expected_s)
{
    enum cost_algo best = COST_DIRECT;
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        bool faster = expected_s[a] < 0.9 * expected_s[COST_DIRECT] && expected_s[a] < expected_s[best];
        best = a != COST_WEIGHTED && faster ? (enum cost_algo)a : best;
    }
    return best;
}

static void load_of_trees(struct topo_solution *s, size_t n)
{
    for (uint32_t t = 0; t < s->trees.count; t++) {
        const uint16_t *parent = s->trees.parent + t * n;
        double part = (double)s->trees.share[t] / TREE_SET_WHOLE;
        for (size_t i = 0; i < n; i++) {
            if (parent[i] != i) {
                s->load[i * n + parent[i]] += part;
                s->load[parent[i] * n + i] += part;
            }
        }
    }
}

static void solve_load(struct topo_solution *s, const struct model *o)
{
    size_t n = o->m->count;
    if (s->choice.algo == COST_TREES) {
        load_of_trees(s, n);
    } else if (s->choice.algo == COST_RING) {
        for (size_t i = 0; i < n; i++) {
            s->load[s->ring[i] * n + s->ring[(i + 1) % n]] = 2 * ((double)n - 1) / (double)n;
        }
    } else {
        for (size_t pair = 0; pair < n * n; pair++) {
            double part = s->choice.algo == COST_TINY ? 1 : 2 / (double)n;
            s->load[pair] = pair / n == pair % n ? 0 : part;
        }
    }
}

/* How many times as long as predicted operations have taken. */
static double times_of(const struct topo_matrix *m, enum cost_algo algo)
{
    enum topo_kind kind = algo == COST_RING ? TOPO_RING : algo == COST_TREES ? TOPO_FOREST : TOPO_DIRECT;
    return m->times[kind].permille > 0 ? m->times[kind].permille / 1000.0 : 1;
}

static bool solve_plans(struct topo_solution *s, const struct model *o)
{
    struct tree_forecast forecast = {.s_per_bit = INFINITY};
    bool weighted = false;
    if (!solve_trees(s, o, &forecast) || !solve_shares(s, o, &weighted)) {
        return false;
    }
    const struct cost_plans plans = {.order = s->ring, .equal = o->equal, .share = weighted ? s->share : NULL,
                                     .trees = s->trees.count > 0 ? &forecast : NULL};
    struct cost_choice delays;
    (void)cost_choose(&o->net, &plans, UINT32_MAX, s->job, &s->choice);
    (void)cost_choose(&o->net, &plans, UINT32_MAX, (struct cost_job){.bytes = 0}, &delays);
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        double links_s = s->choice.predicted_s[a] - delays.predicted_s[a];
        s->expected_s[a] = isfinite(s->choice.predicted_s[a]) ? delays.predicted_s[a] + links_s * times_of(o->m, (enum cost_algo)a) : INFINITY;
    }
    s->choice.algo = chosen(s->expected_s);
    s->sites = o->net.site == o->sites.site ? o->sites : (struct rates_sites){.count = 0};
    solve_load(s, o);
    return true;
}

struct topo_solution *topo_solve(const struct topo_matrix *m, double bytes)
{
    struct topo_solution *s = calloc(1, sizeof *s);
    struct model o = {.m = NULL};
    size_t n = m->count;
    bool good = s != NULL && model_init(&o, m);
    if (good) {
        s->known = topo_matrix_known(m);
        s->pairs = m->count * (m->count - 1);
        s->job = (struct cost_job){.bytes = bytes, .chunk_bytes = BOUNDS_FRAME_BYTES};
        s->ring = calloc(n, sizeof *s->ring);
        s->share = calloc(n, sizeof *s->share);
        s->load = calloc(n * n, sizeof *s->load);
        s->no_plan = n < 2 ? "there is one peer only" : !bandwidth_covers(&o.known, o.ids, n) ? "not all pairs are measured: let the members call pcclOptimizeTopology" : NULL;
        good = s->ring != NULL && s->share != NULL && s->load != NULL && solve_ring(s, &o) && (s->no_plan != NULL || solve_plans(s, &o));
    }
    model_fini(&o);
    if (!good) {
        topo_solution_free(s);
        return NULL;
    }
    return s;
}

void topo_solution_free(struct topo_solution *s)
{
    if (s != NULL) {
        free(s->ring);
        free(s->share);
        free(s->trees.parent);
        free(s->load);
        free(s);
    }
}

const char *topo_algorithm_name(enum cost_algo algo)
{
    return algo == COST_TREES ? "forest" : algo == COST_WEIGHTED ? "direct, by shares" : cost_algo_name(algo);
}
