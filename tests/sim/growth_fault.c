/* growth_fault.c - tables that want to grow when there is no memory.
 *
 * One idea: a table is at its fullest in the middle of the protocol, so growth fails for a while, always or mostly, in one seed of 16 whose
 * tables begin as small as they may.  A call that found no room ends with that cause, and nobody else knows of it.
 * Invariant: a function of the seed alone; other seeds draw nothing here.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

enum { GROWTH_SEEDS = 16 };

void growth_options(struct options *o)
{
    o->growth = o->seed % GROWTH_SEEDS == 9;
    o->ops += o->growth ? 4 : 0;
}

void growth_draw(struct cluster *cl)
{
    if (!cl->opt.growth || cl->fault_count == FAULTS_MAX) {
        return;
    }
    struct rng r = {.state = mix64(cl->opt.seed, 0x6709)};
    struct fault *f = &cl->faults[cl->fault_count];
    *f = (struct fault){.kind = FAULT_GROWTH, .node = (uint16_t)rng_below(&r, cl->opt.peers), .other = (uint16_t)rng_below(&r, 4),
                        .armed = rng_below(&r, 3) == 0, .phase = (enum phase)rng_below(&r, PHASE_COUNT)};
    cl->armed += f->armed;
    if (!f->armed) { /* mostly before there is anything to grow for */
        bool first = rng_below(&r, 3) != 0;
        cluster_post(cl, first ? 0 : (int64_t)rng_below(&r, (uint64_t)cl->opt.fault_ns), EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count, 0, 0);
    }
    cl->fault_count++;
}

void growth_fail(struct node *n, const struct fault *f)
{
    n->fail_growth = f->other % 2 == 0 ? 100 : 60;
}

/* Whether there is memory this time. */
bool growth_succeeds(struct cluster *cl, struct node *n)
{
    bool fails = cluster_chance(cl, n->fail_growth);
    n->starved = n->starved || fails;
    return !fails;
}
