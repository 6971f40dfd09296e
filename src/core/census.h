/* census.h - whether indices that are in use or free are each of an arena's, once.
 *
 * Number, sum and sum of squares are compared: no memory is needed, and a slot that is missing, or there twice, shows.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_CENSUS_H
#define PCCL_CORE_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

struct census {
    uint64_t count, sum, squares;
};

static inline void census_add(struct census *c, uint64_t index)
{
    c->count++;
    c->sum += index;
    c->squares += index * index;
}

/* 0 .. capacity-1 have each been added once. */
static inline bool census_whole(const struct census *c, uint64_t capacity)
{
    struct census want = {0};
    for (uint64_t i = 0; i < capacity; i++) {
        census_add(&want, i);
    }
    return c->count == want.count && c->sum == want.sum && c->squares == want.squares;
}

#endif
