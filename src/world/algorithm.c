/* algorithm.c - direct or ring for the larger operations of a view: what the cost model predicts from measured edges.
 *
 * Direct unless a ring is clearly faster, as where one pair is slow and the ring goes round it.  Edges not measured yet say
 * nothing: the algorithm of the view before stays.  Invariant: a view with a missing edge uses direct (view.c).
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"
#include "topology/cost.h"
#include "world/member_rates.h"

#define NOMINAL_BYTES 67108864.0
#define CLEARLY_FASTER 0.9 /* the gain that pays for a change when rates are known to a few per cent only */

uint8_t algorithm_choose(struct world *w, const struct view_record *v, const uint32_t *ring, uint8_t before)
{
    uint32_t n = v->members;
    if (n < PLAN_RING_LEAST) {
        return PLAN_DIRECT;
    }
    if (n > BOUNDS_RING) {
        return before;
    }
    struct member_network m;
    const uint64_t *keys = member_rates_keys(w, v->ids, n);
    if (!bandwidth_covers(&w->bandwidth, keys, n) || !member_network(w, keys, n, &m)) {
        return before;
    }
    for (uint32_t i = 0; i < n; i++) {
        w->common->scratch_order[i] = (uint16_t)ring[i];
    }
    const struct cost_job job = {.bytes = NOMINAL_BYTES, .chunk_bytes = w->common->config.plan.frame_bytes};
    const struct cost_plans plans = {.order = w->common->scratch_order, .equal = m.share};
    struct cost_choice choice;
    if (!cost_choose(&m.net, &plans, 1u << COST_DIRECT | 1u << COST_RING, job, &choice)) {
        return PLAN_DIRECT;
    }
    bool ring_wins = choice.predicted_s[COST_RING] < CLEARLY_FASTER * choice.predicted_s[COST_DIRECT];
    return ring_wins ? PLAN_RING : PLAN_DIRECT;
}
