/* half.h - one element at a time between f32 and the two 16-bit float formats, in integer arithmetic.
 *
 * Narrowing rounds to nearest, ties to even, whatever the floating-point environment; overflow gives infinity, every
 * NaN the canonical one.  Widening is exact; an f16 NaN comes out quiet with its payload, as the processors' own
 * instructions do it.  Invariant: narrow(widen(x)) == x for every x that is not a NaN.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_HALF_H
#define PCCL_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

#define HALF_NAN_F16 0x7E00u
#define HALF_NAN_BF16 0x7FC0u
#define HALF_NAN_F32 0x7FC00000u
#define HALF_NAN_F64 0x7FF8000000000000u

static inline uint32_t half_f16_widen_bits(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, mantissa = h & 0x3FFu;
    const uint32_t exponent = (h >> 10) & 0x1Fu;
    if (exponent == 31) {
        return sign | 0x7F800000u | (mantissa << 13) | (mantissa != 0 ? 0x00400000u : 0u);
    }
    if (exponent != 0) {
        return sign | ((exponent + 112u) << 23) | (mantissa << 13);
    }
    if (mantissa == 0) {
        return sign;
    }
    /* denormal: mantissa * 2^-24; its leading one becomes the hidden bit */
    const uint32_t shift = (uint32_t)__builtin_clz(mantissa) - 21u;
    return sign | ((113u - shift) << 23) | (((mantissa << shift) & 0x3FFu) << 13);
}

static inline uint16_t half_f16_narrow_bits(uint32_t f)
{
    const uint32_t sign = (f >> 16) & 0x8000u, magnitude = f & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {
        return HALF_NAN_F16;
    }
    if (magnitude >= 0x477FF000u) { /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7C00u);
    }
    if (magnitude >= 0x38800000u) { /* normal in f16: drop 13 bits, the carry may run into the exponent */
        const uint32_t rounded = magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u);
        return (uint16_t)(sign | (rounded >> 13));
    }
    if (magnitude <= 0x33000000u) { /* up to 2^-25: half of the smallest denormal ties to zero */
        return (uint16_t)sign;
    }
    const uint32_t shift = 126u - (magnitude >> 23); /* 14 to 24 */
    const uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t half = 1u << (shift - 1u), kept = mantissa >> shift;
    return (uint16_t)(sign | ((mantissa + half - 1u + (kept & 1u)) >> shift));
}

static inline uint32_t half_bf16_widen_bits(uint16_t h)
{
    return (uint32_t)h << 16;
}

static inline uint16_t half_bf16_narrow_bits(uint32_t f)
{
    const uint32_t rounded = (f + 0x7FFFu + ((f >> 16) & 1u)) >> 16;
    return (uint16_t)((f & 0x7FFFFFFFu) > 0x7F800000u ? HALF_NAN_BF16 : rounded);
}

#endif
