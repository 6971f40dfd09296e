/* hash.h - SimpleHash64: the lane-and-tree hash of shared state, equal on CPU and GPU.
 *
 * Low 32 bits: exactly the SimpleHash of the original PCCL (256 lanes of mix with rotation 7, blocks, tree folds, tail).
 * High 32 bits: a second set of lanes over the same words with other constants and another rotation (15), folded the same
 * way, with the length mixed in at the end.  Hash of zero bytes: 0 in the low half; the high half still mixes the length.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_HASH_H
#define PCCL_KERNELS_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* Both halves at once; each mixes w into h as  h = rotate((h ^ (w + add)), rotation) * multiplier. */
#define HASH_LOW_ADD 0x9E3779B1u
#define HASH_LOW_ROTATION 7
#define HASH_LOW_MULTIPLIER 0x85EBCA6Bu
#define HASH_HIGH_ADD 0xC2B2AE3Du
#define HASH_HIGH_ROTATION 15
#define HASH_HIGH_MULTIPLIER 0x27D4EB2Fu

struct hash_lanes {
    uint32_t low[HASH_LANES], high[HASH_LANES];
};

struct hash_kernels {
    /* Mixes vectors of 16 bytes into the lanes, vector i into lane i mod HASH_LANES, from lanes of zero. */
    void (*block)(struct hash_lanes *lanes, const void *data, size_t vectors);
    /* Folds the lanes to one word per half, high << 32 | low. */
    uint64_t (*fold)(const struct hash_lanes *lanes);
};

uint64_t hash_simple64(const void *data, size_t size);
/* The same on a given level, for tests and benchmarks. */
uint64_t hash_simple64_on(const struct kernels *kernels, const void *data, size_t size);

/* Small general 64-bit mixer for parameter hashes, digests and tables; not SimpleHash. */
static inline uint64_t hash_mix64(uint64_t h, uint64_t v)
{
    h ^= v + 0x9E3779B97F4A7C15u + (h << 6) + (h >> 2);
    h ^= h >> 33;
    h *= 0xFF51AFD7ED558CCDu;
    h ^= h >> 33;
    h *= 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 33);
}

#endif
