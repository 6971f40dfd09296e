/* plan_make.c - which algorithms there are: the storage that each needs, and the file that makes its plan.
 *
 * Its one idea: the algorithms build on plan.c and know nothing of each other; only this file knows them all.
 * Invariant: a plan never has more segments or steps than the sizes that are told here for its algorithm.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

uint32_t plan_max_segments(enum plan_algorithm algorithm, uint32_t world)
{
    return algorithm == PLAN_TINY ? 1 : world;
}

uint32_t plan_max_steps(enum plan_algorithm algorithm, uint32_t world)
{
    switch (algorithm) {
    case PLAN_TINY:
        return 2 * world; /* world - 1 sends, world folds, finish */
    case PLAN_DIRECT:
        return 4 * world; /* own shard 2 x world, others two each */
    case PLAN_RING:
        return 5 * world; /* fold, fold, send, recv, send at most */
    }
    return 0;
}

void plan_make(struct plan *plan, const struct plan_params *params, struct plan_segment *segments,
               struct plan_step *steps)
{
    PCCL_ASSERT(params->world >= 2 && params->rank < params->world);
    PCCL_ASSERT(params->align > 0 && params->frame_elements > 0 && params->frame_elements % params->align == 0);
    plan->params = *params;
    plan->segments = segments;
    plan->steps = steps;
    plan->segment_count = 0;
    plan->step_count = 0;
    plan->frame_count = 0;
    switch (params->algorithm) {
    case PLAN_TINY:
        plan_make_tiny(plan);
        break;
    case PLAN_DIRECT:
        plan_make_direct(plan);
        break;
    case PLAN_RING:
        plan_make_ring(plan);
        break;
    }
    PCCL_ASSERT(plan->step_count <= plan_max_steps(params->algorithm, params->world));
    plan->params.ring = NULL;
    plan->params.weights = NULL;
}
