/* algorithm.c - direct or ring for the larger operations of a view: what the cost model predicts from measured edges.
 *
 * Direct unless a ring is clearly faster, as where one pair is slow and the ring goes round it.  Edges not measured yet say
 * nothing: the algorithm of the view before stays.  Invariant: a view with a missing edge uses direct (view.c).
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"
#include "world/world_state.h"
#include "topology/cost.h"
#include "topology/rates.h"

#define NOMINAL_BYTES 67108864.0
#define CLEARLY_FASTER 0.9 /* the gain that pays for a change when rates are known to a few per cent only */

static bool all_measured(const struct world *w, const uint64_t *keys, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < n; k++) {
            if (i != k && bandwidth_either(&w->bandwidth, keys[i], keys[k]) == NULL) {
                return false;
            }
        }
    }
    return true;
}

uint8_t algorithm_choose(struct world *w, const struct view_record *v, const uint32_t *ring, uint8_t before)
{
    uint32_t n = v->members;
    if (n < PLAN_RING_LEAST) {
        return PLAN_DIRECT;
    }
    if (n > BOUNDS_RING) {
        return before;
    }
    double *up = w->common->scratch_rates, *down = up + n, *share = down + n;
    const uint64_t *keys = member_rates_keys(w, v->ids, n);
    if (!all_measured(w, keys, n) || !rates_fill(&w->bandwidth, keys, n, up, down, w->common->scratch_path)) {
        return before;
    }
    for (uint32_t i = 0; i < n; i++) {
        share[i] = 1.0 / n;
        w->common->scratch_order[i] = (uint16_t)ring[i];
    }
    struct rates_sites sites;
    struct network net = {.n = n, .up_bps = up, .down_bps = down, .path_bps = w->common->scratch_path};
    rates_add_sites(&w->bandwidth, keys, &sites, &net);
    const struct cost_job job = {.bytes = NOMINAL_BYTES, .chunk_bytes = w->common->config.plan.frame_bytes};
    const struct cost_plans plans = {.order = w->common->scratch_order, .equal = share};
    struct cost_choice choice;
    if (!cost_choose(&net, &plans, 1u << COST_DIRECT | 1u << COST_RING, job, &choice)) {
        return PLAN_DIRECT;
    }
    bool ring_wins = choice.predicted_s[COST_RING] < CLEARLY_FASTER * choice.predicted_s[COST_DIRECT];
    return ring_wins ? PLAN_RING : PLAN_DIRECT;
}
