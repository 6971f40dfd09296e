/* quant_tmpl.h - template of the quantisation kernels; included once per instruction set.
 *
 * Plain loops that the compiler vectorises for the flags of the including file.  Rounding is the addition of 1.5 * 2^23
 * (2^52), whose low bits then are the integer: the same instruction everywhere.  Extremes are found on integers that
 * order like the floats, so the order of comparison cannot matter.
 * Invariant: each element's value depends on that element and the map alone.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/quant.h"

static bool quant_scan_f32(const void *in, size_t count, double *min, double *max)
{
    const uint8_t *p = in;
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (size_t i = 0; i < count; i++) {
        int32_t bits;
        memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
        bits ^= (bits >> 31) & INT32_MAX; /* sign and magnitude to two's complement order */
        low = bits < low ? bits : low;
        high = bits > high ? bits : high;
    }
    const bool finite = high < 0x7F800000 && low >= -0x7F800000; /* -inf maps to -0x7F800001 */
    float f;
    low ^= (low >> 31) & INT32_MAX;
    high ^= (high >> 31) & INT32_MAX;
    memcpy(&f, &low, sizeof(f));
    *min = (double)f;
    memcpy(&f, &high, sizeof(f));
    *max = (double)f;
    return finite;
}

static bool quant_scan_f64(const void *in, size_t count, double *min, double *max)
{
    const uint8_t *p = in;
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        int64_t bits;
        memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
        bits ^= (bits >> 63) & INT64_MAX;
        low = bits < low ? bits : low;
        high = bits > high ? bits : high;
    }
    const bool finite = high < 0x7FF0000000000000 && low >= -0x7FF0000000000000;
    low ^= (low >> 63) & INT64_MAX;
    high ^= (high >> 63) & INT64_MAX;
    memcpy(min, &low, sizeof(low));
    memcpy(max, &high, sizeof(high));
    return finite;
}

/* T: source type, B: its bits as an integer, MAGIC: 1.5 * 2^(mantissa bits), Q: the integer sent, W: what holds q - zero. */
#define QUANT_DEFINE(suffix, T, B, MAGIC, Q, W)                                                                         \
    static void quant_encode_##suffix(void *out, const void *in, size_t count, const struct quant_map *map)            \
    {                                                                                                                  \
        const T offset = (T)map->offset, scale = (T)map->scale, pre = (T)map->pre, magic = (T)MAGIC;                   \
        const T k_min = (T)map->k_min, k_max = (T)map->k_max;                                                          \
        B base;                                                                                                        \
        memcpy(&base, &magic, sizeof(base));                                                                           \
        base -= (B)map->zero;                                                                                          \
        const uint8_t *restrict from = in;                                                                             \
        uint8_t *restrict to = out;                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                                           \
            T x;                                                                                                       \
            B bits;                                                                                                    \
            memcpy(&x, from + i * sizeof(x), sizeof(x));                                                               \
            x = (x * pre - offset) / scale;                                                                            \
            x = x > k_min ? x : k_min;                                                                                 \
            x = x < k_max ? x : k_max;                                                                                 \
            x += magic;                                                                                                \
            memcpy(&bits, &x, sizeof(bits));                                                                           \
            const Q q = (Q)(bits - base);                                                                              \
            memcpy(to + i * sizeof(q), &q, sizeof(q));                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void quant_decode_##suffix(void *out, const void *in, size_t count, const struct quant_map *map)            \
    {                                                                                                                  \
        const T offset = (T)map->offset, scale = (T)map->scale, post = (T)map->post;                                   \
        const W zero = (W)map->zero;                                                                                   \
        const uint8_t *restrict from = in;                                                                             \
        uint8_t *restrict to = out;                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                                           \
            Q q;                                                                                                       \
            memcpy(&q, from + i * sizeof(q), sizeof(q));                                                               \
            const T x = (offset + (T)((W)q - zero) * scale) * post;                                                    \
            memcpy(to + i * sizeof(x), &x, sizeof(x));                                                                 \
        }                                                                                                              \
    }

#define QUANT_MAGIC_F32 12582912.0f
#define QUANT_MAGIC_F64 6755399441055744.0

QUANT_DEFINE(f32_u8, float, uint32_t, QUANT_MAGIC_F32, uint8_t, int32_t)
QUANT_DEFINE(f32_i8, float, uint32_t, QUANT_MAGIC_F32, int8_t, int32_t)
QUANT_DEFINE(f32_u16, float, uint32_t, QUANT_MAGIC_F32, uint16_t, int32_t)
QUANT_DEFINE(f32_i16, float, uint32_t, QUANT_MAGIC_F32, int16_t, int32_t)
QUANT_DEFINE(f64_u8, double, uint64_t, QUANT_MAGIC_F64, uint8_t, int32_t)
QUANT_DEFINE(f64_i8, double, uint64_t, QUANT_MAGIC_F64, int8_t, int32_t)
QUANT_DEFINE(f64_u16, double, uint64_t, QUANT_MAGIC_F64, uint16_t, int32_t)
QUANT_DEFINE(f64_i16, double, uint64_t, QUANT_MAGIC_F64, int16_t, int32_t)
QUANT_DEFINE(f64_u32, double, uint64_t, QUANT_MAGIC_F64, uint32_t, int64_t)
QUANT_DEFINE(f64_i32, double, uint64_t, QUANT_MAGIC_F64, int32_t, int64_t)

static const struct quant_kernels quant_table = {
    .scan = {quant_scan_f32, quant_scan_f64},
    .encode = {{quant_encode_f32_u8, quant_encode_f32_i8, quant_encode_f32_u16, quant_encode_f32_i16},
               {quant_encode_f64_u8, quant_encode_f64_i8, quant_encode_f64_u16, quant_encode_f64_i16, quant_encode_f64_u32,
                quant_encode_f64_i32}},
    .decode = {{quant_decode_f32_u8, quant_decode_f32_i8, quant_decode_f32_u16, quant_decode_f32_i16},
               {quant_decode_f64_u8, quant_decode_f64_i8, quant_decode_f64_u16, quant_decode_f64_i16, quant_decode_f64_u32,
                quant_decode_f64_i32}},
};
