/* hash.c - SimpleHash64 over the kernels: the geometry of blocks, the last fold and the tail.
 *
 * The geometry is that of a GPU grid: up to 960 blocks of 256 lanes, so both kinds of processor compute it equally well.
 * The high half mixes the length in at the end; the low half, like the original, does not.
 * SPDX-License-Identifier: MIT */
#include "kernels/hash.h"

#include <string.h>

enum { HASH_BLOCKS_MAX = 960 };

static uint32_t hash_mix_low(uint32_t h, uint32_t w)
{
    h ^= w + HASH_LOW_ADD;
    return (h << HASH_LOW_ROTATION | h >> (32 - HASH_LOW_ROTATION)) * HASH_LOW_MULTIPLIER;
}

static uint32_t hash_mix_high(uint32_t h, uint32_t w)
{
    h ^= w + HASH_HIGH_ADD;
    return (h << HASH_HIGH_ROTATION | h >> (32 - HASH_HIGH_ROTATION)) * HASH_HIGH_MULTIPLIER;
}

/* Up to four bytes, little-endian. */
static uint32_t hash_word(const uint8_t *p, size_t size)
{
    uint32_t w = 0;
    for (size_t i = 0; i < size; i++) {
        w |= (uint32_t)p[i] << (8 * i);
    }
    return w;
}

static uint64_t hash_blocks(const struct hash_kernels *k, const uint8_t *data, size_t vectors)
{
    const size_t rows = (vectors + HASH_LANES - 1) / HASH_LANES;
    const size_t grid = rows < HASH_BLOCKS_MAX ? rows : HASH_BLOCKS_MAX;
    const size_t per = (vectors + grid - 1) / grid;
    struct hash_lanes sums, lanes;
    memset(&sums, 0, sizeof(sums));
    for (size_t b = 0; b < grid; b++) {
        const size_t begin = b * per < vectors ? b * per : vectors;
        const size_t end = vectors - begin < per ? vectors : begin + per;
        k->block(&lanes, data + 16 * begin, end - begin);
        const uint64_t h = k->fold(&lanes);
        const size_t i = b % HASH_LANES;
        sums.low[i] = hash_mix_low(sums.low[i], (uint32_t)h);
        sums.high[i] = hash_mix_high(sums.high[i], (uint32_t)(h >> 32));
    }
    return k->fold(&sums);
}

uint64_t hash_simple64_on(const struct kernels *kernels, const void *data, size_t size)
{
    const uint8_t *p = data;
    const size_t vectors = size / 16;
    const uint64_t h = vectors > 0 ? hash_blocks(kernels->hash, p, vectors) : 0;
    uint32_t low = (uint32_t)h, high = (uint32_t)(h >> 32);
    for (size_t at = 16 * vectors; at < size; at += 4) {
        const uint32_t w = hash_word(p + at, size - at < 4 ? size - at : 4);
        low = hash_mix_low(low, w);
        high = hash_mix_high(high, w);
    }
    high = hash_mix_high(high, (uint32_t)size);
    high = hash_mix_high(high, (uint32_t)((uint64_t)size >> 32));
    return (uint64_t)high << 32 | low;
}

uint64_t hash_simple64(const void *data, size_t size)
{
    return hash_simple64_on(kernels_get(), data, size);
}
