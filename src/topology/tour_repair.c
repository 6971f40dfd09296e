/* tour_repair.c - cutting leavers out of a ring and putting newcomers in.
 *
 * Its one idea: the score of an insertion needs only the two largest edges of the ring as it is.
 * Invariant: order[0..count) never holds a member twice.
 * SPDX-License-Identifier: MIT */
#include "topology/tour_repair.h"

#include <string.h>

static bool order_has(const uint16_t *order, size_t count, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        if (order[i] == index) {
            return true;
        }
    }
    return false;
}

static size_t order_keep(const uint64_t *old_ids, size_t old_count, const uint64_t *members, size_t n, uint16_t *order)
{
    size_t count = 0;
    for (size_t k = 0; k < old_count; k++) {
        for (size_t i = 0; i < n; i++) {
            if (members[i] == old_ids[k] && !order_has(order, count, i)) {
                order[count++] = (uint16_t)i;
                break;
            }
        }
    }
    return count;
}

/* After which position `who` goes in; count >= 1. */
static size_t order_place(const uint64_t *cost, size_t n, const uint16_t *order, size_t count, size_t who)
{
    uint64_t first = 0, second = 0; /* the two largest edges of the ring so far */
    for (size_t i = 0; count > 1 && i < count; i++) {
        uint64_t c = cost[order[i] * n + order[i + 1 == count ? 0 : i + 1]];
        if (c > first) {
            second = first;
            first = c;
        } else if (c > second) {
            second = c;
        }
    }
    size_t place = 0;
    struct tour_score best = {UINT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < count; i++) {
        size_t a = order[i], b = order[i + 1 == count ? 0 : i + 1];
        uint64_t gone = count > 1 ? cost[a * n + b] : 0;
        uint64_t in = cost[a * n + who], out = cost[who * n + b];
        uint64_t most = gone == first ? second : first;
        most = in > most ? in : most;
        most = out > most ? out : most;
        /* Sums are compared as differences, lifted by the most an edge can cost so that they stay unsigned. */
        struct tour_score s = {most, in + out + TOUR_FORBIDDEN - gone};
        if (tour_score_less(s, best)) {
            best = s;
            place = i;
        }
    }
    return place;
}

static void order_begin_with_zero(uint16_t *order, size_t n)
{
    size_t zero = 0;
    while (order[zero] != 0) {
        zero++;
    }
    uint16_t turned[TOUR_PEERS_MAX];
    for (size_t i = 0; i < n; i++) {
        turned[i] = order[(zero + i) % n];
    }
    memcpy(order, turned, n * sizeof *order);
}

bool tour_repair_order(const uint64_t *old_ids, size_t old_count, const uint64_t *members, size_t n,
                       const uint64_t *cost, uint16_t *order_out, struct tour_score *score_out)
{
    if (n == 0 || n > TOUR_PEERS_MAX) {
        return false;
    }
    size_t count = order_keep(old_ids, old_count, members, n, order_out);
    for (size_t who = 0; who < n; who++) {
        if (order_has(order_out, count, who)) {
            continue;
        }
        size_t at = count == 0 ? 0 : order_place(cost, n, order_out, count, who) + 1;
        memmove(&order_out[at + 1], &order_out[at], (count - at) * sizeof *order_out);
        order_out[at] = (uint16_t)who;
        count++;
    }
    order_begin_with_zero(order_out, n);
    *score_out = tour_score_of(cost, n, order_out);
    return true;
}
