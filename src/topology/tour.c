/* tour.c - edge costs and scores of rings.
 *
 * Its one idea: an edge that nobody has measured counts as an ordinary one, neither sought nor avoided: the median.
 * Invariant: while the matrix is being filled 0 means unknown; no 0 is left off the diagonal.
 * SPDX-License-Identifier: MIT */
#include "topology/tour.h"

#include <string.h>

uint64_t tour_edge_cost(uint64_t rate_bps)
{
    if (rate_bps == 0) {
        return TOUR_FORBIDDEN;
    }
    uint64_t cost = TOUR_FORBIDDEN / rate_bps;
    if (cost == 0) {
        return 1;
    }
    return cost < TOUR_FORBIDDEN ? cost : TOUR_FORBIDDEN - 1;
}

struct tour_score tour_score_of(const uint64_t *cost, size_t n, const uint16_t *order)
{
    struct tour_score s = {0, 0};
    for (size_t i = 0; i < n && n > 1; i++) {
        uint64_t c = cost[order[i] * n + order[i + 1 == n ? 0 : i + 1]];
        s.max = c > s.max ? c : s.max;
        s.sum += c;
    }
    return s;
}

/* The value of rank `rank` (from 0, cheapest first) among the entries that are not 0, digit by digit: no copy of the
 * matrix, no sorting. */
static uint64_t cost_of_rank(const uint64_t *cost, size_t cells, size_t rank)
{
    uint64_t prefix = 0;
    for (unsigned shift = 56;; shift -= 8) {
        size_t histogram[256];
        memset(histogram, 0, sizeof histogram);
        for (size_t i = 0; i < cells; i++) {
            if (cost[i] != 0 && (shift == 56 || (cost[i] ^ prefix) >> (shift + 8) == 0)) {
                histogram[cost[i] >> shift & 0xFF]++;
            }
        }
        uint64_t digit = 0;
        while (rank >= histogram[digit]) {
            rank -= histogram[digit++];
        }
        prefix |= digit << shift;
        if (shift == 0) {
            return prefix;
        }
    }
}

size_t tour_costs_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, uint64_t *cost)
{
    size_t unknown = 0, usable = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            uint64_t *c = &cost[i * n + j];
            *c = 0;
            if (i == j) {
                continue;
            }
            const struct bandwidth_entry *e = bandwidth_either(b, ids[i], ids[j]);
            if (e == NULL) {
                unknown++;
                continue;
            }
            *c = tour_edge_cost(e->rate_bps);
            usable += *c != TOUR_FORBIDDEN;
        }
    }
    uint64_t median = usable == 0 ? 1 : cost_of_rank(cost, n * n, (usable - 1) / 2);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (i != j && cost[i * n + j] == 0) {
                cost[i * n + j] = median;
            }
        }
    }
    return unknown;
}
