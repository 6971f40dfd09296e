/* neon.c - the kernels for 64-bit ARM.
 *
 * The templates with 16-byte vectors; by hand only the f16 conversions and the hash's de-interleaving loads.
 * SPDX-License-Identifier: MIT */
#if defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/levels.h"

/* Four vectors of 16 bytes, de-interleaved by the load itself. */
#define HASH_GROUP 4
#include "kernels/hash_tmpl.h"
#include "kernels/quant_tmpl.h"

#define REDUCE_BYTES 16
#define REDUCE_WIDEN_F16(v, from) (v) = (reduce_v_f32)vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)))
#define REDUCE_WIDEN_BF16(v, from) (v) = (reduce_v_f32)vshll_n_u16(vreinterpret_u16_u8(vld1_u8(from)), 16)
#include "kernels/reduce_tmpl.h"

#include "kernels/convert_tmpl.h"

#define HASH_STEP(h, w, add, rotation, multiplier)                                                                     \
    do {                                                                                                               \
        const uint32x4_t t_ = veorq_u32(h, vaddq_u32(w, add));                                                         \
        (h) = vmulq_u32(vsriq_n_u32(vshlq_n_u32(t_, rotation), t_, 32 - (rotation)), multiplier);                      \
    } while (0)

static void hash_groups(struct hash_lanes *lanes, const uint8_t *data, size_t groups)
{
    const uint32x4_t low_add = vdupq_n_u32(HASH_LOW_ADD), high_add = vdupq_n_u32(HASH_HIGH_ADD);
    const uint32x4_t low_multiplier = vdupq_n_u32(HASH_LOW_MULTIPLIER);
    const uint32x4_t high_multiplier = vdupq_n_u32(HASH_HIGH_MULTIPLIER);
    for (size_t g = 0; g < groups; g++) {
        const size_t base = g * HASH_GROUP % HASH_LANES;
        const uint32x4x4_t v = vld4q_u32((const uint32_t *)(const void *)(data + 64 * g));
        uint32x4_t low = vld1q_u32(lanes->low + base), high = vld1q_u32(lanes->high + base);
        for (int i = 0; i < 4; i++) {
            HASH_STEP(low, v.val[i], low_add, HASH_LOW_ROTATION, low_multiplier);
            HASH_STEP(high, v.val[i], high_add, HASH_HIGH_ROTATION, high_multiplier);
        }
        vst1q_u32(lanes->low + base, low);
        vst1q_u32(lanes->high + base, high);
    }
}

static void widen_f16(float *out, const uint16_t *in, size_t count)
{
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (; count >= 4; count -= 4, to += 16, from += 8) {
        const float32x4_t f = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)));
        vst1q_u8(to, vreinterpretq_u8_f32(f));
    }
    for (; count > 0; count--, to += 4, from += 2) {
        uint16_t h;
        memcpy(&h, from, sizeof(h));
        const uint32_t f = half_f16_widen_bits(h);
        memcpy(to, &f, sizeof(f));
    }
}

static void narrow_f16(uint16_t *out, const float *in, size_t count)
{
    const uint16x4_t magnitude = vdup_n_u16(0x7FFF), infinite = vdup_n_u16(0x7C00), nan = vdup_n_u16(HALF_NAN_F16);
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (; count >= 4; count -= 4, to += 8, from += 16) {
        const uint16x4_t h = vreinterpret_u16_f16(vcvt_f16_f32(vreinterpretq_f32_u8(vld1q_u8(from))));
        const uint16x4_t is_nan = vcgt_u16(vand_u16(h, magnitude), infinite);
        vst1_u8(to, vreinterpret_u8_u16(vbsl_u16(is_nan, nan, h)));
    }
    for (; count > 0; count--, to += 2, from += 4) {
        uint32_t f;
        memcpy(&f, from, sizeof(f));
        const uint16_t h = half_f16_narrow_bits(f);
        memcpy(to, &h, sizeof(h));
    }
}

#define KERNELS_NAME "neon"
#define KERNELS_TABLE kernels_neon
#include "kernels/table_tmpl.h"

#endif
