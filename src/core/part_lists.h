/* part_lists.h - how a buffer is cut into parts, one for each rank: by lists, or into equal ones that lie one behind the other.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_PART_LISTS_H
#define PCCL_CORE_PART_LISTS_H

#include <stddef.h>
#include <stdint.h>

/* Borrowed, by rank as programs count. */
struct part_lists {
    const size_t *counts; /* elements of each part; null: all equal, of a count that stands beside */
    const size_t *places; /* first element of each part; null: one behind the other */
};

static inline size_t part_count(const struct part_lists *lists, size_t equal, uint32_t rank)
{
    return lists->counts != NULL ? lists->counts[rank] : equal;
}

static inline size_t part_place(const struct part_lists *lists, size_t equal, uint32_t rank)
{
    if (lists->places != NULL) {
        return lists->places[rank];
    }
    size_t place = lists->counts != NULL ? 0 : equal * rank;
    for (uint32_t r = 0; lists->counts != NULL && r < rank; r++) {
        place += lists->counts[r];
    }
    return place;
}

#endif
