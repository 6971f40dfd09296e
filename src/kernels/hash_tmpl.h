/* hash_tmpl.h - template of the SimpleHash64 kernels; included once per instruction set.
 *
 * The including file defines HASH_GROUP, the number of vectors that its hash_groups takes at a time; hash_groups may keep
 * the lanes of a group in another order while it runs.  What is left over is mixed one vector at a time.
 * Invariant: the result does not depend on HASH_GROUP.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/hash.h"

#define HASH_MIX(h, w, add, rotation, multiplier)                                                                      \
    (((((h) ^ ((w) + (add))) << (rotation)) | (((h) ^ ((w) + (add))) >> (32 - (rotation)))) * (multiplier))
#define HASH_MIX_LOW(h, w) HASH_MIX(h, w, HASH_LOW_ADD, HASH_LOW_ROTATION, HASH_LOW_MULTIPLIER)
#define HASH_MIX_HIGH(h, w) HASH_MIX(h, w, HASH_HIGH_ADD, HASH_HIGH_ROTATION, HASH_HIGH_MULTIPLIER)

/* Mixes vectors 0 .. groups * HASH_GROUP - 1 into lanes of zero. */
static void hash_groups(struct hash_lanes *lanes, const uint8_t *data, size_t groups);

static void hash_vector(struct hash_lanes *lanes, size_t lane, const uint8_t *data)
{
    for (int i = 0; i < 4; i++, data += 4) {
        const uint32_t w =
            (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        lanes->low[lane] = HASH_MIX_LOW(lanes->low[lane], w);
        lanes->high[lane] = HASH_MIX_HIGH(lanes->high[lane], w);
    }
}

static void hash_block(struct hash_lanes *lanes, const void *data, size_t vectors)
{
    const uint8_t *p = data;
    const size_t groups = vectors / HASH_GROUP;
    memset(lanes, 0, sizeof(*lanes));
    hash_groups(lanes, p, groups);
    for (size_t i = groups * HASH_GROUP; i < vectors; i++) {
        hash_vector(lanes, i % HASH_LANES, p + 16 * i);
    }
}

/* One level of the trees of several warps: 2 * o words of each in `from` become o in `to`. */
#define HASH_LEVEL(MIX, to, from, warps, o)                                                                            \
    for (int w = 0; w < (warps); w++) {                                                                                \
        for (int i = 0; i < (o); i++) {                                                                                \
            (to)[w * (o) + i] = MIX((from)[2 * w * (o) + i], (from)[(2 * w + 1) * (o) + i]);                           \
        }                                                                                                              \
    }

/* Eight trees over 32 lanes each, then one over their results, padded with zeros. */
#define HASH_FOLD_DEFINE(half, MIX)                                                                                    \
    static uint32_t hash_fold_##half(const uint32_t lanes[HASH_LANES])                                                 \
    {                                                                                                                  \
        uint32_t a[128], b[64], top[32] = {0};                                                                         \
        HASH_LEVEL(MIX, a, lanes, 8, 16)                                                                               \
        HASH_LEVEL(MIX, b, a, 8, 8)                                                                                    \
        HASH_LEVEL(MIX, a, b, 8, 4)                                                                                    \
        HASH_LEVEL(MIX, b, a, 8, 2)                                                                                    \
        HASH_LEVEL(MIX, top, b, 8, 1)                                                                                  \
        HASH_LEVEL(MIX, a, top, 1, 16)                                                                                 \
        HASH_LEVEL(MIX, b, a, 1, 8)                                                                                    \
        HASH_LEVEL(MIX, a, b, 1, 4)                                                                                    \
        HASH_LEVEL(MIX, b, a, 1, 2)                                                                                    \
        HASH_LEVEL(MIX, a, b, 1, 1)                                                                                    \
        return a[0];                                                                                                   \
    }

HASH_FOLD_DEFINE(low, HASH_MIX_LOW)
HASH_FOLD_DEFINE(high, HASH_MIX_HIGH)

static uint64_t hash_fold(const struct hash_lanes *lanes)
{
    return (uint64_t)hash_fold_high(lanes->high) << 32 | hash_fold_low(lanes->low);
}

static const struct hash_kernels hash_table = {.block = hash_block, .fold = hash_fold};
