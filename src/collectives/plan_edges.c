/* plan_edges.c - who has to do with whom under a plan, before it is made: who is told of a launch, for how many room is reserved.
 *
 * Its one idea: it follows from the algorithm and the ranks alone, whatever the counts are; an edge over which nothing moves
 * because a part is empty is one all the same, at both ends.  Invariant: no plan has a step with a rank that is no partner.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

static bool is_power(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

bool plan_partners(enum plan_algorithm algorithm, uint32_t world, uint32_t root, uint32_t a, uint32_t b)
{
    uint32_t apart = a > b ? a - b : b - a, power = plan_power(world);
    uint32_t x = (a + world - root) % world, y = (b + world - root) % world; /* behind the root */
    switch ((int)algorithm) {
    case PLAN_TREE:
        return (x != 0 && (x & (x - 1)) == y) || (y != 0 && (y & (y - 1)) == x);
    case PLAN_BRUCK:
        return is_power(apart) || is_power(world - apart);
    case PLAN_HALVING:
        return a < power && b < power ? is_power(a ^ b) : apart == power;
    default:
        return a != b;
    }
}

/* Of a power of two. */
static uint32_t log_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* Bits that distances in such a world have. */
static uint32_t bits_of(uint32_t world)
{
    uint32_t power = plan_power(world);
    return log_of(power) + (power < world);
}

uint32_t plan_partner_count(enum plan_algorithm algorithm, uint32_t world)
{
    switch ((int)algorithm) {
    case PLAN_TREE:
        return bits_of(world);
    case PLAN_BRUCK:
        return 2 * bits_of(world);
    case PLAN_HALVING:
        return log_of(plan_power(world)) + 1;
    default:
        return world;
    }
}

/* The lowest bit of who stands behind the root leads to who is before it, those below to who is behind it. */
static uint32_t tree_partner(uint32_t world, uint32_t root, uint32_t rank, uint32_t bit)
{
    uint32_t x = (rank + world - root) % world, low = x & (0 - x);
    uint32_t y = low == bit ? x - bit : (x == 0 || bit < low) && x + bit < world ? x + bit : x;
    return (y + root) % world;
}

/* As far ahead, then behind: where that is the same as another that is ahead, it was counted there. */
static uint32_t bruck_partner(uint32_t world, uint32_t rank, uint32_t bit, bool behind)
{
    bool again = behind && is_power(world - bit);
    return again ? rank : (rank + (behind ? world - bit : bit)) % world;
}

static uint32_t halving_partner(uint32_t world, uint32_t rank, uint32_t bit)
{
    uint32_t power = plan_power(world);
    if (bit == power) {
        return rank >= power ? rank - power : rank + power < world ? rank + power : rank;
    }
    return rank < power ? rank ^ bit : rank;
}

uint32_t plan_partner(enum plan_algorithm algorithm, uint32_t world, uint32_t root, uint32_t rank, uint32_t i)
{
    switch ((int)algorithm) {
    case PLAN_TREE:
        return tree_partner(world, root, rank, UINT32_C(1) << i);
    case PLAN_BRUCK:
        return bruck_partner(world, rank, UINT32_C(1) << i / 2, i % 2 != 0);
    case PLAN_HALVING:
        return halving_partner(world, rank, UINT32_C(1) << i);
    default:
        return i;
    }
}

static uint32_t children(uint32_t world, uint32_t behind)
{
    uint32_t n = 0;
    for (uint32_t bit = 1; bit < world && (behind & bit) == 0; bit *= 2) {
        n += behind + bit < world;
    }
    return n;
}

uint32_t plan_senders(const struct plan_params *q)
{
    uint32_t power = plan_power(q->world);
    if (q->world < 2 || !plan_kind_sums((uint8_t)q->kind)) {
        return 0;
    }
    switch ((int)q->algorithm) {
    case PLAN_RING:
        return 1;
    case PLAN_CHAIN:
        return plan_ring_rank(q, plan_ring_position(q, q->root) + 1) != q->rank; /* nothing comes to the first one */
    case PLAN_TREE:
        return children(q->world, (q->rank + q->world - q->root) % q->world);
    case PLAN_FOREST:
        return forest_senders(q);
    case PLAN_HALVING:
        return q->rank < power ? log_of(power) + (q->rank + power < q->world) : 0;
    default: /* all give all that they have to the owner of a part, or its host */
        return q->kind == PLAN_ALL_REDUCE || plan_host(q, q->kind == PLAN_REDUCE ? q->root : q->rank) == q->rank ? q->world - 1 : 0;
    }
}
