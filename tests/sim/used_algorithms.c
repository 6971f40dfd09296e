/* used_algorithms.c - which algorithms simulated clusters use: what their processes wish and have measured, and a count of what came of it.
 *
 * One idea: an algorithm is tested where it was on its way when something went wrong, so each fault counts for what its process had
 * handed to its lanes by then, and how far that was.  What travels with its launch has no lanes: it counts as it ends.
 * Invariant: of every kind exactly the algorithms that have a plan for it (plan_offers) are asked for and counted.
 * SPDX-License-Identifier: MIT */
#include "used_algorithms.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/bitset.h"
#include "sim_cluster.h"

enum { ENDS_OK, ENDS_LOST, ENDS_OTHER };

/* The only one of its kind that a view may take; small calls travel with their launch in half of the seeds. */
static uint16_t alone(uint64_t draw, enum plan_kind kind)
{
    uint8_t offered[PLAN_ALGORITHMS];
    uint32_t count = 0;
    for (uint8_t a = 0; a < PLAN_ALGORITHMS; a++) {
        offered[count] = a;
        count += plan_offers(kind, (enum plan_algorithm)a);
    }
    uint16_t one = (uint16_t)(1u << offered[mix64(draw, 2000 + (uint64_t)kind) % count]);
    return draw >> 20 & 1 ? one : (uint16_t)(one | 1u << PLAN_TINY);
}

static uint64_t environment(const struct options *o)
{
    return mix64(o->seed, 83);
}

static bool wishes_one(uint64_t all)
{
    return all / 4 % 4 == 1;
}

/* Of what may be taken, what goes round the ring or along it, if there is any; in half of the seeds also what travels with its launch. */
static uint16_t round_only(const struct options *o, uint16_t allowed)
{
    uint16_t before = allowed != 0 ? allowed : UINT16_MAX;
    unsigned tiny = o->eager_bytes > 0 && environment(o) >> 21 & 1;
    uint16_t round = (uint16_t)(before & (1u << PLAN_RING | 1u << PLAN_CHAIN | 1u << PLAN_FOREST | tiny << PLAN_TINY));
    return round != 0 ? round : allowed;
}

int64_t algorithms_round_ns(const struct options *o)
{
    int64_t hop_ns = o->latency_ns * (o->places ? 1 + PLACES_APART : 1) + o->jitter_ns;
    return 2 * (int64_t)(o->peers + 8) * hop_ns;
}

/* Each has measured something else, all have the same environment; without draws of their own. */
void algorithms_config(const struct options *o, struct node *n)
{
    uint64_t own = mix64(o->seed, 1000 + n->index), all = environment(o);
    if (all % 4 != 0) {
        n->config.costs = (struct costs){(uint32_t)(own % 50000), (uint32_t)(own >> 16 & 0x3FFF), (uint32_t)(own >> 32 & 0x3FFF),
                                         (uint32_t)(own >> 48 & 0xFFF)};
        n->config.cores = (uint16_t)(own >> 60);
    }
    for (int k = 0; k < PLAN_KINDS && all / 4 % 4 == 0; k++) {
        n->config.wishes.allowed[k] = (uint16_t)(mix64(all, (uint64_t)k) | 1u << PLAN_DIRECT);
    }
    for (int k = 0; k < PLAN_KINDS && wishes_one(all); k++) {
        n->config.wishes.allowed[k] = alone(all, (enum plan_kind)k);
    }
    for (int k = 0; k < PLAN_KINDS && o->ring; k++) {
        n->config.wishes.allowed[k] = round_only(o, n->config.wishes.allowed[k]);
    }
    if (o->wishes != NULL) {
        n->config.wishes = *o->wishes;
    }
    for (int k = 0; k < PLAN_KINDS && o->crowd && algorithms_round_ns(o) >= o->stall_ns; k++) { /* options_draw has looked before there were so many */
        uint16_t allowed = n->config.wishes.allowed[k] != 0 ? n->config.wishes.allowed[k] : UINT16_MAX;
        uint16_t short_ways = (uint16_t)(allowed & ~(1u << PLAN_RING | 1u << PLAN_CHAIN | 1u << PLAN_FOREST));
        n->config.wishes.allowed[k] = short_ways != 0 ? short_ways : (uint16_t)(1u << PLAN_DIRECT);
    }
}

/* Where a view has one algorithm for each kind, most calls are of those kinds that have several. */
uint8_t algorithms_kind(const struct options *o, uint64_t draw)
{
    bool several = wishes_one(environment(o)) && draw >> 30 & 1;
    uint8_t one = draw >> 31 & 1 ? PLAN_ALL_GATHER : PLAN_BROADCAST;
    return several ? one : (uint8_t)(draw % PLAN_SEND);
}

void algorithms_fault(struct cluster *cl, const struct node *n)
{
    for (uint32_t i = 0; (i = bitset_next(n->at_work, n->config.max_ops, i)) < n->config.max_ops; i++) {
        const struct run *r = &n->run[i];
        if (!r->done && !r->returned && r->failing == 0) {
            cl->stats.algorithms.fault[r->op.plan.algorithm][run_phase(r) - PHASE_ANNOUNCED]++;
        }
    }
}

void algorithms_ended(struct cluster *cl, const struct run *r, const struct session_outcome *o)
{
    struct algorithm_stats *s = &cl->stats.algorithms;
    uint32_t end = o->result == RESULT_OK ? ENDS_OK : o->result == RESULT_LOST ? ENDS_LOST : ENDS_OTHER;
    if (r->started) {
        s->end[r->op.plan.kind][r->op.plan.algorithm][end]++;
    } else {
        s->launched += end == ENDS_OK;
    }
}

void algorithms_seed_ended(struct algorithm_stats *s)
{
    for (uint32_t a = 0; a < PLAN_ALGORITHMS; a++) {
        const uint64_t *end = s->end[PLAN_ALL_REDUCE][a];
        s->seeds[a] = end[ENDS_OK] + end[ENDS_LOST] + end[ENDS_OTHER] > 0;
    }
}

static uint32_t print_faults(const struct algorithm_stats *s)
{
    uint32_t empty = 0;
    printf("algorithm \\ faults");
    for (uint32_t p = 0; p < ALGORITHM_PHASES; p++) {
        printf("%9s", phase_name((enum phase)(PHASE_ANNOUNCED + p)));
    }
    printf("\n");
    for (uint32_t a = 0; a < PLAN_ALGORITHMS; a++) {
        printf("%-18s", plan_algorithm_name((uint8_t)a));
        uint64_t moving = 0; /* how far, is too rare to ask of those with few frames */
        for (uint32_t p = 0; p < ALGORITHM_PHASES; p++) {
            printf("%9" PRIu64, s->fault[a][p]);
            moving += p == 0 ? 0 : s->fault[a][p];
        }
        empty += (s->fault[a][0] == 0) + (moving == 0);
        printf("\n");
    }
    return empty;
}

uint32_t algorithms_print(const struct algorithm_stats *s)
{
    uint32_t empty = print_faults(s);
    printf("calls by lanes that succeeded, lost a member, ended otherwise; %" PRIu64 " succeeded without\n", s->launched);
    for (uint32_t k = 0; k < PLAN_KINDS; k++) {
        printf("%-18s", plan_kind_name((uint8_t)k));
        for (uint32_t a = 0; a < PLAN_ALGORITHMS; a++) {
            const uint64_t *end = s->end[k][a];
            if (plan_offers((enum plan_kind)k, (enum plan_algorithm)a)) {
                printf("  %s %" PRIu64 " %" PRIu64 " %" PRIu64, plan_algorithm_name((uint8_t)a), end[ENDS_OK], end[ENDS_LOST],
                       end[ENDS_OTHER]);
                bool seldom = a == PLAN_DIRECT && plan_kind_pairs((uint8_t)k); /* where a link is missing; unit/test_session_path */
                empty += (end[ENDS_OK] == 0) + (!seldom && end[ENDS_LOST] == 0) + (!seldom && end[ENDS_OTHER] == 0);
            }
        }
        printf("\n");
    }
    printf("seeds with all-reduce by");
    for (uint32_t a = 0; a < PLAN_ALGORITHMS; a++) {
        if (plan_offers(PLAN_ALL_REDUCE, (enum plan_algorithm)a)) {
            printf("  %s %" PRIu64, plan_algorithm_name((uint8_t)a), s->seeds[a]);
        }
    }
    printf("\n");
    return empty + (s->launched == 0);
}
