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

static inline void bitset_remove(uint64_t *set, uint32_t i)
{
    set[i / 64] &= ~((uint64_t)1 << (i % 64));
}

/* The first that is in, at or behind `from`; `count` if there is none. */
static inline uint32_t bitset_next(const uint64_t *set, uint32_t count, uint32_t from)
{
    for (uint32_t i = from; i < count; i = (i / 64 + 1) * 64) {
        uint64_t rest = set[i / 64] >> (i % 64);
        if (rest != 0) {
            uint32_t at = i + (uint32_t)__builtin_ctzll(rest);
            return at < count ? at : count;
        }
    }
    return count;
}

static inline void bitset_clear(uint64_t *set, uint32_t count)
{
    for (uint32_t w = 0; w < bitset_words(count); w++) {
        set[w] = 0;
    }
}

#endif
