/* bitset.h - sets of small integers in words of the caller.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_BITSET_H
#define PCCL_CORE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t bitset_words(uint32_t count)
{
    return (count + 63) / 64;
}

static inline bool bitset_has(const uint64_t *set, uint32_t i)
{
    return (set[i / 64] >> (i % 64)) & 1;
}

static inline void bitset_add(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void bitset_clear(uint64_t *set, uint32_t count)
{
    for (uint32_t w = 0; w < bitset_words(count); w++) {
        set[w] = 0;
    }
}

/* Whether 0 .. count-1 are all in. */
static inline bool bitset_full(const uint64_t *set, uint32_t count)
{
    for (uint32_t w = 0; w < count / 64; w++) {
        if (set[w] != UINT64_MAX) {
            return false;
        }
    }
    uint64_t tail = ((uint64_t)1 << (count % 64)) - 1;
    return count % 64 == 0 || (set[count / 64] & tail) == tail;
}

#endif
