/* view_ring.c - the ring order of a new view: the old one repaired, never reset.
 *
 * Nothing measured: leavers drop out, newcomers come last, by id.  Otherwise the costs decide where they go in.  A ring over a
 * missing edge is searched again.  Invariant: the ring is a permutation of the ranks.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "world/world_state.h"
#include "world/member_rates.h"
#include "world/view_read.h"
#include "world/view_ring.h"
#include "topology/tour_exact.h"
#include "topology/tour_local.h"
#include "topology/tour_repair.h"

uint32_t ring_costs(const struct world *w, const struct view_record *v, uint64_t *cost)
{
    uint32_t n = v->members;
    (void)tour_costs_fill(&w->bandwidth, member_rates_keys(w, v->ids, n), n, cost);
    for (uint32_t i = 0; i < v->edges; i++) {
        uint32_t a = view_place(v, v->edge[i].a), b = view_place(v, v->edge[i].b);
        if (a != SLOT_NONE && b != SLOT_NONE) {
            cost[a * n + b] = cost[b * n + a] = TOUR_FORBIDDEN;
        }
    }
    return n;
}

static void ring_keep(const struct view_record *from, struct view_record *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->members; i++) {
        uint32_t rank = view_place(to, from->ids[from->ring[i]]);
        if (rank != SLOT_NONE) {
            to->ring[count++] = rank;
        }
    }
    for (uint32_t i = 0; i < to->members; i++) {
        if (to->fresh[i]) {
            to->ring[count++] = i;
        }
    }
    PCCL_ASSERT(count == to->members);
}

void ring_repair(struct world *w, const struct view_record *from, struct view_record *to)
{
    uint32_t n = to->members;
    if ((w->bandwidth.count == 0 && to->edges == 0) || n < 3 || n > BOUNDS_RING || from->members > BOUNDS_RING) {
        ring_keep(from, to);
        return;
    }
    uint64_t *cost = w->common->scratch_cost;
    (void)ring_costs(w, to, cost);
    for (uint32_t i = 0; i < from->members; i++) {
        w->common->scratch_ids[i] = from->ids[from->ring[i]];
    }
    struct tour_score score = {0, 0};
    uint16_t *order = w->common->scratch_order;
    PCCL_ASSERT(tour_repair_order(w->common->scratch_ids, from->members, to->ids, n, cost, order, &score));
    if (!tour_score_possible(score) && n <= TOUR_EXACT_MAX) {
        (void)tour_exact_solve(cost, n, order, &score);
    } else if (!tour_score_possible(score)) {
        struct tour_local search;
        const struct master_config *cfg = &w->common->config;
        PCCL_ASSERT(tour_local_init(&search, cost, n, order, 2, cfg->tour_moves, cfg->seed, w->common->scratch_search));
        while (!tour_local_step(&search, cfg->tour_moves)) {
        }
        (void)tour_local_best(&search, order);
    }
    for (uint32_t i = 0; i < n; i++) {
        to->ring[i] = order[i];
    }
}
