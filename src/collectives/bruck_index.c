/* bruck_index.c - all-to-all in log2 W rounds: in round k each rank sends the blocks whose way still has a step of 2^k, as one range.
 *
 * Its one idea: a block for the rank d ahead goes one step for each bit of d, from the lowest on, together with all others that have
 * this bit.  What a rank sends in a round it packs of its input (blocks that set out) and of what came in earlier rounds (blocks on
 * their way); in the end it packs its output of what has arrived.
 * Invariant: in round k blocks lie by the way that is left to them (d above bit k), and where that is the same the farthest first.
 * So those that come in a round and leave in a later one, or stay, lie one behind the other in both: each run is one piece.
 * Cost: W/2 log2 W blocks each way in ceil(log2 W) messages and one-way delays, in place of W - 1 blocks in as many messages; and
 * twice these blocks of memory.
 * Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing
 * systems", 1997 (its index operation).
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

enum { BRUCK_ROUNDS = 32 }; /* most bits of a world */

/* Which of its round a block is. */
static uint32_t place_of(uint32_t world, uint32_t bit, uint32_t ahead)
{
    uint32_t left = ahead / (2 * bit), first = left * 2 * bit + bit, most = world - 1 - first;
    return left * bit + (most < bit - 1 ? most : bit - 1) - ahead % bit;
}

uint32_t plan_round_blocks(uint32_t world, uint32_t bit)
{
    uint32_t rest = world % (2 * bit);
    return world / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
}

/* The highest bit of it. */
static uint32_t round_of(uint32_t steps)
{
    return 31 - (uint32_t)__builtin_clz(steps);
}

/* A block that has gone `gone` steps, the last ones in the round of their highest bit; where it came then, or from the input. */
static struct plan_piece block_of(const struct plan_params *q, const size_t *came, uint32_t ahead, uint32_t gone)
{
    struct plan_piece piece = {.count = q->count};
    if (gone == 0) {
        piece.from = plan_place_in(q, (q->rank + ahead) % q->world);
    } else {
        uint32_t round = round_of(gone);
        piece.scratch = 1;
        piece.from = came[round] + place_of(q->world, UINT32_C(1) << round, ahead) * q->count;
    }
    return piece;
}

static void pack_round(struct plan *plan, uint32_t segment, uint32_t bit, const size_t *came)
{
    const struct plan_params *q = &plan->params;
    size_t at = 0;
    for (uint32_t first = bit; first < q->world; first += 2 * bit) {
        uint32_t most = q->world - 1 - first;
        for (uint32_t gone = (most < bit - 1 ? most : bit - 1) + 1; gone-- > 0;) {
            struct plan_piece piece = block_of(q, came, first + gone, gone);
            piece.at = at;
            plan_add_piece(plan, segment, &piece);
            at += q->count;
        }
    }
}

static void pack_output(struct plan *plan, const size_t *came)
{
    const struct plan_params *q = &plan->params;
    uint32_t segment = plan->segment_count;
    plan_add_segment(plan, 0, 0, q->count * q->world);
    plan_add_step(plan, segment, STEP_PACK, 0);
    for (uint32_t from = 0; from < q->world; from++) {
        uint32_t gone = (q->rank + q->world - from) % q->world;
        struct plan_piece piece = block_of(q, came, gone, gone);
        piece.at = plan_place_out(q, from);
        plan_add_piece(plan, segment, &piece);
    }
}

/* A message of a round: frames that go have the name under which they come. */
void plan_make_bruck_index(struct plan *plan)
{
    const struct plan_params *q = &plan->params;
    size_t came[BRUCK_ROUNDS] = {0}; /* where in scratch, by round */
    uint32_t round = 0;
    PCCL_ASSERT(q->lanes <= 1);
    for (uint32_t bit = 1; bit < q->world; bit *= 2, round++) {
        uint32_t goes = plan->segment_count, comes = goes + 1;
        size_t count = plan_round_blocks(q->world, bit) * q->count;
        plan_add_segment(plan, 0, 0, count);
        plan_to_scratch(plan, goes);
        plan_add_step(plan, goes, STEP_PACK, 0);
        plan_add_step(plan, goes, STEP_SEND, (q->rank + bit) % q->world);
        pack_round(plan, goes, bit, came);
        plan_add_segment(plan, 0, 0, count);
        plan_to_scratch(plan, comes);
        plan_add_step(plan, comes, STEP_RECV, (q->rank + q->world - bit) % q->world);
        plan->segments[goes].wire = plan->segments[comes].frame;
        came[round] = plan->segments[comes].out;
    }
    pack_output(plan, came);
}
