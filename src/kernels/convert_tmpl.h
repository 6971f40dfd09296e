/* convert_tmpl.h - template of the kernels that work on one array: division, canonical NaNs, bf16; included once per
 * instruction set and vectorised by the compiler.
 *
 * Integers divide by magnitude, so that the smallest negative number and divisors beyond the type need no special case.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/half.h"

/* U: unsigned type, at least 32 bits, that holds the magnitude.  A divisor beyond U gives zero. */
#define DIVIDE_INTEGER(t, T, U)                                                                                        \
    static void divide_##t(void *inout, size_t count, uint64_t divisor)                                                \
    {                                                                                                                  \
        uint8_t *p = inout;                                                                                            \
        const U limit = (U)-1, by = divisor > limit ? limit : (U)divisor;                                              \
        const bool zero = divisor > limit;                                                                             \
        for (size_t i = 0; i < count; i++) {                                                                           \
            T x;                                                                                                       \
            memcpy(&x, p + i * sizeof(x), sizeof(x));                                                                  \
            const bool negative = x < (T)1 && x != 0;                                                                  \
            const U magnitude = negative ? (U)0 - (U)x : (U)x;                                                         \
            const U quotient = zero ? 0 : magnitude / by;                                                              \
            x = (T)(negative ? (U)0 - quotient : quotient);                                                            \
            memcpy(p + i * sizeof(x), &x, sizeof(x));                                                                  \
        }                                                                                                              \
    }

#define DIVIDE_FLOAT(t, T, NAN_VALUE)                                                                                  \
    static void divide_##t(void *inout, size_t count, uint64_t divisor)                                                \
    {                                                                                                                  \
        uint8_t *p = inout;                                                                                            \
        const T by = (T)divisor;                                                                                       \
        for (size_t i = 0; i < count; i++) {                                                                           \
            T x;                                                                                                       \
            memcpy(&x, p + i * sizeof(x), sizeof(x));                                                                  \
            x /= by;                                                                                                   \
            x = x == x ? x : NAN_VALUE;                                                                                \
            memcpy(p + i * sizeof(x), &x, sizeof(x));                                                                  \
        }                                                                                                              \
    }

DIVIDE_INTEGER(u8, uint8_t, uint32_t)
DIVIDE_INTEGER(i8, int8_t, uint32_t)
DIVIDE_INTEGER(i16, int16_t, uint32_t)
DIVIDE_INTEGER(u16, uint16_t, uint32_t)
DIVIDE_INTEGER(u32, uint32_t, uint32_t)
DIVIDE_INTEGER(i32, int32_t, uint32_t)
DIVIDE_INTEGER(u64, uint64_t, uint64_t)
DIVIDE_INTEGER(i64, int64_t, uint64_t)
DIVIDE_FLOAT(f32, float, __builtin_nanf(""))
DIVIDE_FLOAT(f64, double, __builtin_nan(""))

/* B: the bits as an unsigned integer; everything above INFINITE, sign aside, is a NaN. */
#define CANONICAL(t, B, INFINITE, NAN_BITS)                                                                            \
    static void canonical_##t(void *inout, size_t count)                                                               \
    {                                                                                                                  \
        const B magnitude = (B)((B)-1 >> 1), infinite = INFINITE;                                                      \
        uint8_t *p = inout;                                                                                            \
        for (size_t i = 0; i < count; i++) {                                                                           \
            B x;                                                                                                       \
            memcpy(&x, p + i * sizeof(x), sizeof(x));                                                                  \
            x = (B)(x & magnitude) > infinite ? (B)NAN_BITS : x;                                                       \
            memcpy(p + i * sizeof(x), &x, sizeof(x));                                                                  \
        }                                                                                                              \
    }

CANONICAL(f16, uint16_t, 0x7C00u, HALF_NAN_F16)
CANONICAL(bf16, uint16_t, 0x7F80u, HALF_NAN_BF16)
CANONICAL(f32, uint32_t, 0x7F800000u, HALF_NAN_F32)
CANONICAL(f64, uint64_t, 0x7FF0000000000000u, HALF_NAN_F64)

static void widen_bf16(float *out, const uint16_t *in, size_t count)
{
    uint8_t *restrict to = (uint8_t *)out;
    const uint8_t *restrict from = (const uint8_t *)in;
    for (size_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, from + i * sizeof(h), sizeof(h));
        const uint32_t f = half_bf16_widen_bits(h);
        memcpy(to + i * sizeof(f), &f, sizeof(f));
    }
}

static void narrow_bf16(uint16_t *out, const float *in, size_t count)
{
    uint8_t *restrict to = (uint8_t *)out;
    const uint8_t *restrict from = (const uint8_t *)in;
    for (size_t i = 0; i < count; i++) {
        uint32_t f;
        memcpy(&f, from + i * sizeof(f), sizeof(f));
        const uint16_t h = half_bf16_narrow_bits(f);
        memcpy(to + i * sizeof(h), &h, sizeof(h));
    }
}
