/* tour_exact.c - Held and Karp's dynamic program (J. SIAM 10, 1962), twice: for the largest edge, then for the sum.
 *
 * Its one idea: tables are filled from the end of the ring ("still to visit `mask`, now at i, then back to 0"), so that
 * reading them from the front yields the smallest of all optimal orders without extra work.
 * Invariant: peers 1..n-1 are bits 0..n-2 of a mask; best[mask][i] is meaningful for i outside mask.
 * SPDX-License-Identifier: MIT */
#include "topology/tour_exact.h"

enum { OTHERS = TOUR_EXACT_MAX - 1 };

struct table {
    uint64_t best[1u << OTHERS][OTHERS];
};

/* Adds an edge to the value of the rest of a ring; edges above `cap` are worth infinity. */
static uint64_t value_join(uint64_t edge, uint64_t rest, bool summing, uint64_t cap)
{
    if (edge > cap || rest == UINT64_MAX) {
        return UINT64_MAX;
    }
    if (summing) {
        return edge + rest;
    }
    return edge > rest ? edge : rest;
}

/* Least value from peer `at` through all of `mask` back to 0; reads the rows of smaller masks. */
static uint64_t value_from(const struct table *t, const uint64_t *cost, size_t n, size_t at, unsigned mask,
                           bool summing, uint64_t cap)
{
    if (mask == 0) {
        return value_join(cost[at * n], 0, summing, cap);
    }
    uint64_t best = UINT64_MAX;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
        unsigned next = (unsigned)__builtin_ctz(rest);
        uint64_t v = value_join(cost[at * n + next + 1], t->best[mask & ~(1u << next)][next], summing, cap);
        best = v < best ? v : best;
    }
    return best;
}

static uint64_t table_fill(struct table *t, const uint64_t *cost, size_t n, bool summing, uint64_t cap)
{
    unsigned all = (1u << (n - 1)) - 1;
    for (unsigned mask = 0; mask < all; mask++) {
        for (unsigned i = 0; i + 1 < n; i++) {
            if ((mask >> i & 1) == 0) {
                t->best[mask][i] = value_from(t, cost, n, i + 1, mask, summing, cap);
            }
        }
    }
    return value_from(t, cost, n, 0, all, summing, cap);
}

bool tour_exact_solve(const uint64_t *cost, size_t n, uint16_t *order_out, struct tour_score *score_out)
{
    if (n < 1 || n > TOUR_EXACT_MAX) {
        return false;
    }
    order_out[0] = 0;
    *score_out = (struct tour_score){0, 0};
    if (n == 1) {
        return true;
    }
    struct table t;
    uint64_t cap = table_fill(&t, cost, n, false, TOUR_FORBIDDEN);
    uint64_t sum = table_fill(&t, cost, n, true, cap), left = sum;
    unsigned mask = (1u << (n - 1)) - 1;
    for (size_t k = 1; k < n; k++) {
        size_t at = order_out[k - 1];
        for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
            unsigned next = (unsigned)__builtin_ctz(rest);
            uint64_t edge = cost[at * n + next + 1], then = t.best[mask & ~(1u << next)][next];
            if (value_join(edge, then, true, cap) == left) {
                order_out[k] = (uint16_t)(next + 1);
                mask &= ~(1u << next);
                left = then;
                break;
            }
        }
    }
    *score_out = (struct tour_score){cap, sum};
    return true;
}
