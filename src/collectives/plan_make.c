/* plan_make.c - which algorithms there are: the storage that each needs, and the file that makes its plan.
 *
 * Its one idea: the algorithms build on plan.c and know nothing of each other; only this file knows them all.
 * Invariant: a plan never has more segments or steps than the sizes that are told here for its algorithm.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

enum { PLAN_ROUNDS = 32 }; /* most bits of a world */

static uint32_t rounds_of(uint32_t world)
{
    uint32_t k = 0;
    while (k < PLAN_ROUNDS - 1 && (UINT32_C(1) << k) < world) {
        k++;
    }
    return k;
}

bool plan_offers(enum plan_kind kind, enum plan_algorithm algorithm)
{
    static const uint16_t offers[PLAN_KINDS] = {
        [PLAN_ALL_REDUCE] = 1 << PLAN_TINY | 1 << PLAN_DIRECT | 1 << PLAN_RING | 1 << PLAN_TREE | 1 << PLAN_HALVING |
                            1 << PLAN_FOREST,
        [PLAN_REDUCE_SCATTER] = 1 << PLAN_DIRECT,
        [PLAN_ALL_GATHER] = 1 << PLAN_DIRECT | 1 << PLAN_RING | 1 << PLAN_BRUCK,
        [PLAN_BROADCAST] = 1 << PLAN_DIRECT | 1 << PLAN_TREE | 1 << PLAN_CHAIN,
        [PLAN_SCATTER] = 1 << PLAN_PAIRWISE | 1 << PLAN_DIRECT,
        [PLAN_ALL_TO_ALL] = 1 << PLAN_PAIRWISE | 1 << PLAN_DIRECT | 1 << PLAN_BRUCK,
        [PLAN_REDUCE] = 1 << PLAN_DIRECT | 1 << PLAN_TREE | 1 << PLAN_CHAIN,
        [PLAN_GATHER] = 1 << PLAN_PAIRWISE | 1 << PLAN_DIRECT,
        [PLAN_SEND] = 1 << PLAN_CHAIN,
    };
    return kind < PLAN_KINDS && algorithm < PLAN_ALGORITHMS && (offers[kind] >> algorithm & 1) != 0;
}

/* Segments of parts that are handed on, at most, of an all-to-all: at the host of most, and at any of those. */
static uint32_t most_relayed(const struct plan_params *q)
{
    uint32_t without = 0, most = 0, run = 0;
    for (uint32_t i = 0; q->weights != NULL && i < 2 * q->world; i++) { /* twice around: they may lie across the end */
        bool lacks = q->weights[i % q->world] == 0;
        without += lacks && i < q->world;
        run = lacks ? run + 1 : 0;
        most = run > most ? run : most;
    }
    return without < 2 ? 0 : (without - 1) * (most > 2 ? most : 2);
}

/* Parts that come and go: only the root of a scatter or gather has something to do with all. */
static uint32_t pairs_of(const struct plan_params *q)
{
    return q->kind == PLAN_ALL_TO_ALL ? 2 * q->world : q->rank == q->root ? q->world : 1;
}

uint32_t plan_max_segments(const struct plan_params *q)
{
    uint32_t world = q->world;
    if (q->kind == PLAN_ALL_TO_ALL && q->algorithm == PLAN_DIRECT) {
        return 2 * world + most_relayed(q);
    }
    switch ((int)q->algorithm) {
    case PLAN_TINY:
    case PLAN_CHAIN:
    case PLAN_TREE:
        return 1;
    case PLAN_PAIRWISE:
        return pairs_of(q);
    case PLAN_FOREST:
        return forest_segments(q);
    default:
        return plan_packs(q->kind, q->algorithm) ? 2 * rounds_of(world) + 1 : world; /* to and from one rank in each, and the output */
    }
}

/* Most parts that one rank hosts, where each of them has a step with all. */
static uint32_t most_hosted(const struct plan_params *q)
{
    uint32_t hosted = 0;
    bool parts = q->kind == PLAN_ALL_GATHER || q->kind == PLAN_REDUCE_SCATTER;
    for (uint32_t r = 0; parts && q->weights != NULL && r < q->world; r++) {
        hosted += q->weights[r] == 0;
    }
    return hosted;
}

uint32_t plan_max_steps(const struct plan_params *q)
{
    uint32_t world = q->world;
    if (q->kind == PLAN_ALL_TO_ALL && q->algorithm == PLAN_DIRECT) {
        return 2 * world + 2 * most_relayed(q);
    }
    switch (q->algorithm) {
    case PLAN_TINY:
        return 2 * world; /* world - 1 gives, world folds, finish */
    case PLAN_DIRECT:
        return (4 + most_hosted(q)) * world; /* own shard 2 x world, as each that it hosts; others two each */
    case PLAN_RING:
        return 5 * world; /* fold, fold, give, recv, send at most */
    case PLAN_TREE:
        return 2 * rounds_of(world) + 3; /* folds and sends, the own fold, give and recv or finish */
    case PLAN_CHAIN:
        return 3;
    case PLAN_BRUCK:
        return plan_packs(q->kind, q->algorithm) ? 3 * rounds_of(world) + 1 : 2 * world; /* pack, send, recv */
    case PLAN_PAIRWISE:
        return pairs_of(q);
    case PLAN_HALVING: /* folds and sends, the own fold, one rank beyond, give and recv */
        return plan_power(world) * (2 * rounds_of(world) + 5);
    case PLAN_FOREST:
        return forest_steps(q);
    case PLAN_ALGORITHMS:
        break;
    }
    return 0;
}

/* In round k blocks have world / 2^(k+1) ways left, rounded up; of each there is a piece of the input, and one of each round before. */
uint32_t plan_max_pieces(const struct plan_params *q)
{
    uint32_t rounds = rounds_of(q->world);
    return plan_packs(q->kind, q->algorithm) ? 3 * q->world + rounds * (rounds + 1) / 2 : 0; /* and the output */
}

/* Whoever goes round has those beside it; of few steps each may be with another one. */
uint32_t plan_max_partners(const struct plan_params *q)
{
    uint32_t steps = plan_max_steps(q), most = q->algorithm == PLAN_RING ? 2 : plan_partner_count(q->algorithm, q->world);
    return steps < most ? steps : most;
}

void plan_make(struct plan *plan, const struct plan_params *params, struct plan_segment *segments, struct plan_step *steps,
               struct plan_piece *pieces, uint32_t *partners)
{
    PCCL_ASSERT(params->world >= 1 && params->rank < params->world && params->root < params->world);
    PCCL_ASSERT(params->align > 0 && params->frame_elements > 0 && params->frame_elements % params->align == 0);
    PCCL_ASSERT(plan_offers(params->kind, params->algorithm) && (params->algorithm != PLAN_PAIRWISE || params->lanes > 0));
    *plan = (struct plan){.params = *params, .segments = segments, .steps = steps, .pieces = pieces, .partners = partners};
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
    case PLAN_TREE:
        plan_make_tree(plan);
        break;
    case PLAN_CHAIN:
        plan_make_chain(plan);
        break;
    case PLAN_BRUCK:
        (params->kind == PLAN_ALL_TO_ALL ? plan_make_bruck_index : plan_make_bruck)(plan);
        break;
    case PLAN_PAIRWISE:
        plan_make_pairwise(plan);
        break;
    case PLAN_HALVING:
        plan_make_halving(plan);
        break;
    case PLAN_FOREST:
        plan_make_forest(plan);
        break;
    case PLAN_ALGORITHMS:
        break;
    }
    PCCL_ASSERT(plan->step_count <= plan_max_steps(params));
    PCCL_ASSERT(plan->segment_count <= plan_max_segments(params));
    PCCL_ASSERT(plan->piece_count <= plan_max_pieces(params));
    plan_number_partners(plan);
    PCCL_ASSERT(plan->partner_count <= plan_max_partners(params));
    plan->params.ring = plan->params.places = NULL;
    plan->params.weights = NULL;
    plan->params.trees = NULL;
    plan->params.apart = NULL;
    plan->params.shown = NULL;
    plan->params.parts = plan->params.out_parts = (struct part_lists){0};
}
