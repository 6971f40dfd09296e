/* rows.h - hash tables of indices in memory of the caller: a power of two rows, each the index + 1 of an entry, 0: free.
 *
 * Whoever finds its home taken stands in the next free row behind it.  Invariant: between an entry and its home no row is free.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_ROWS_H
#define PCCL_CORE_ROWS_H

#include <stdint.h>

/* A power of two that is at least `wanted`; `least` is one, too. */
static inline uint32_t rows_for(uint32_t least, uint32_t wanted)
{
    uint32_t size = least;
    while (size < wanted) {
        size *= 2;
    }
    return size;
}

/* The entry at `hole` goes; what stands behind it moves up, unless that would put it before its home: of entry `i` of `of`. */
static inline void rows_close(uint32_t *row, uint32_t size, uint32_t hole, uint32_t (*home)(const void *of, uint32_t i),
                              const void *of)
{
    uint32_t mask = size - 1;
    for (uint32_t at = (hole + 1) & mask; row[at] != 0; at = (at + 1) & mask) {
        if (((at - home(of, row[at] - 1)) & mask) >= ((at - hole) & mask)) {
            row[hole] = row[at];
            hole = at;
        }
    }
    row[hole] = 0;
}

#endif
