/* hash_tmpl.h - template of the SimpleHash64 kernels; included once per instruction set.
 *
 * The including file defines HASH_GROUP, the number of vectors that its hash_groups takes at a time, and
 * HASH_PLACE(i), where in its group hash_groups keeps the lane of the group's vector i.  Lanes are put in order once per
 * block, what is left over is mixed one vector at a time.
 * Invariant: the result does not depend on HASH_GROUP.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/hash.h"

#define HASH_MIX(h, w, add, rotation, multiplier)                                                                      \
    (((((h) ^ ((w) + (add))) << (rotation)) | (((h) ^ ((w) + (add))) >> (32 - (rotation)))) * (multiplier))
#define HASH_MIX_LOW(h, w) HASH_MIX(h, w, HASH_LOW_ADD, HASH_LOW_ROTATION, HASH_LOW_MULTIPLIER)
#define HASH_MIX_HIGH(h, w) HASH_MIX(h, w, HASH_HIGH_ADD, HASH_HIGH_ROTATION, HASH_HIGH_MULTIPLIER)

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

static void hash_order(uint32_t lanes[HASH_LANES])
{
    for (size_t base = 0; base < HASH_LANES; base += HASH_GROUP) {
        uint32_t kept[HASH_GROUP];
        memcpy(kept, lanes + base, sizeof(kept));
        for (size_t i = 0; i < HASH_GROUP; i++) {
            lanes[base + i] = kept[HASH_PLACE(i)];
        }
    }
}

static void hash_block(struct hash_lanes *lanes, const void *data, size_t vectors)
{
    const uint8_t *p = data;
    const size_t groups = vectors / HASH_GROUP;
    memset(lanes, 0, sizeof(*lanes));
    hash_groups(lanes, p, groups);
    hash_order(lanes->low);
    hash_order(lanes->high);
    for (size_t i = groups * HASH_GROUP; i < vectors; i++) {
        hash_vector(lanes, i % HASH_LANES, p + 16 * i);
    }
}

/* Eight trees over 32 lanes side by side, then one over their results, padded with zeros. */
#define HASH_FOLD_DEFINE(half, MIX)                                                                                    \
    static uint32_t hash_fold_##half(uint32_t lanes[HASH_LANES])                                                       \
    {                                                                                                                  \
        uint32_t t[32][8];                                                                                             \
        for (int i = 0; i < 32; i++) {                                                                                 \
            for (int warp = 0; warp < 8; warp++) {                                                                     \
                t[i][warp] = lanes[32 * warp + i];                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        for (int o = 16; o > 0; o /= 2) {                                                                              \
            for (int i = 0; i < o; i++) {                                                                              \
                for (int warp = 0; warp < 8; warp++) {                                                                 \
                    t[i][warp] = MIX(t[i][warp], t[i + o][warp]);                                                      \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        uint32_t top[32] = {0};                                                                                        \
        memcpy(top, t[0], sizeof(t[0]));                                                                               \
        for (int o = 16; o > 0; o /= 2) {                                                                              \
            for (int i = 0; i < o; i++) {                                                                              \
                top[i] = MIX(top[i], top[i + o]);                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        return top[0];                                                                                                 \
    }

HASH_FOLD_DEFINE(low, HASH_MIX_LOW)
HASH_FOLD_DEFINE(high, HASH_MIX_HIGH)

static uint64_t hash_fold(struct hash_lanes *lanes)
{
    return (uint64_t)hash_fold_high(lanes->high) << 32 | hash_fold_low(lanes->low);
}

static const struct hash_kernels hash_table = {.block = hash_block, .fold = hash_fold};
