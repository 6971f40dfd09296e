/* layout.h - several tables in one piece of memory: where each lies, or how much all need.
 *
 * Its one idea: the same walk counts first and hands out then, so size and places cannot disagree.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_LAYOUT_H
#define PCCL_CORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct layout {
    unsigned char *base; /* borrowed, aligned for anything; null: only counting */
    size_t used;         /* bytes so far */
};

/* The next table of `count` entries of `size` bytes, aligned for integers of 64 bits; null when only counting. */
static inline void *layout_take(struct layout *l, size_t count, size_t size)
{
    size_t at = l->used;
    l->used += (count * size + 7) & ~(size_t)7;
    return l->base == NULL ? NULL : l->base + at;
}

/* Entries of a table that grows: those it has if they are enough, else twice as many until they are, or all there may be. */
static inline uint32_t layout_doubled(uint32_t have, uint32_t first, uint32_t need, uint32_t limit)
{
    uint32_t size = have == 0 ? first : have;
    while (size < need && size < limit) {
        size *= 2;
    }
    return have >= need ? have : size < limit ? size : limit;
}

#endif
