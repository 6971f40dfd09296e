/* scalar.c - the kernels as one element at a time, in plain C: what every instruction set is compared with.
 *
 * Written apart from the vector templates on purpose; quantisation and hash share their templates, whose tests compute
 * the values a third way.  Invariant: these loops define the bits of every kernel.
 * SPDX-License-Identifier: MIT */
#include "kernels/half.h"
#include "kernels/levels.h"

#define HASH_GROUP 1
#include "kernels/hash_tmpl.h"
#include "kernels/quant_tmpl.h"

static void hash_groups(struct hash_lanes *lanes, const uint8_t *data, size_t groups)
{
    for (size_t i = 0; i < groups; i++) {
        hash_vector(lanes, i % HASH_LANES, data + 16 * i);
    }
}

/* CALC makes r from x and y. */
#define REDUCE_SCALAR(name, T, CALC) REDUCE_SCALAR_LOOP(name, T, T, y = z, CALC)
/* B: b's type; WIDEN makes y from z, which has it. */
#define REDUCE_SCALAR_LOOP(name, T, B, WIDEN, CALC)                                                                    \
    static void reduce_##name(void *out, const void *a, const void *b, size_t count)                                   \
    {                                                                                                                  \
        uint8_t *to = out;                                                                                             \
        const uint8_t *from_a = a, *from_b = b;                                                                        \
        for (size_t i = 0; i < count; i++) {                                                                           \
            T x, y, r;                                                                                                 \
            B z;                                                                                                       \
            memcpy(&x, from_a + i * sizeof(x), sizeof(x));                                                             \
            memcpy(&z, from_b + i * sizeof(z), sizeof(z));                                                             \
            WIDEN;                                                                                                     \
            CALC;                                                                                                      \
            memcpy(to + i * sizeof(r), &r, sizeof(r));                                                                 \
        }                                                                                                              \
    }

#define REDUCE_SCALAR_INTEGER(t, T)                                                                                    \
    REDUCE_SCALAR(sum_##t, T, r = (T)((uint64_t)x + (uint64_t)y))                                                      \
    REDUCE_SCALAR(prod_##t, T, r = (T)((uint64_t)x * (uint64_t)y))                                                     \
    REDUCE_SCALAR(max_##t, T, r = x > y ? x : y)                                                                       \
    REDUCE_SCALAR(min_##t, T, r = x < y ? x : y)                                                                       \
    REDUCE_SCALAR(and_##t, T, r = (T)(x & y))                                                                          \
    REDUCE_SCALAR(or_##t, T, r = (T)(x | y))                                                                           \
    REDUCE_SCALAR(xor_##t, T, r = (T)(x ^ y))

/* Any byte but 0 is true. */
REDUCE_SCALAR(or_bool, uint8_t, r = x != 0 || y != 0)
REDUCE_SCALAR(and_bool, uint8_t, r = x != 0 && y != 0)

/* Of two zeros, max and min take the second. */
#define REDUCE_SCALAR_FLOAT(t, T, B, WIDEN, NAN_VALUE)                                                                 \
    REDUCE_SCALAR_LOOP(sum_##t, T, B, WIDEN, r = x + y; r = r == r ? r : NAN_VALUE)                                    \
    REDUCE_SCALAR_LOOP(prod_##t, T, B, WIDEN, r = x * y; r = r == r ? r : NAN_VALUE)                                   \
    REDUCE_SCALAR_LOOP(max_##t, T, B, WIDEN, r = x > y ? x : y; r = x == x && y == y ? r : NAN_VALUE)                  \
    REDUCE_SCALAR_LOOP(min_##t, T, B, WIDEN, r = x < y ? x : y; r = x == x && y == y ? r : NAN_VALUE)

REDUCE_SCALAR_INTEGER(u8, uint8_t)
REDUCE_SCALAR_INTEGER(i8, int8_t)
REDUCE_SCALAR_INTEGER(i16, int16_t)
REDUCE_SCALAR_INTEGER(u16, uint16_t)
REDUCE_SCALAR_INTEGER(u32, uint32_t)
REDUCE_SCALAR_INTEGER(i32, int32_t)
REDUCE_SCALAR_INTEGER(u64, uint64_t)
REDUCE_SCALAR_INTEGER(i64, int64_t)
static float scalar_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

REDUCE_SCALAR_FLOAT(f32, float, float, y = z, __builtin_nanf(""))
REDUCE_SCALAR_FLOAT(f64, double, double, y = z, __builtin_nan(""))
REDUCE_SCALAR_FLOAT(f16, float, uint16_t, y = scalar_of_bits(half_f16_widen_bits(z)), __builtin_nanf(""))
REDUCE_SCALAR_FLOAT(bf16, float, uint16_t, y = scalar_of_bits(half_bf16_widen_bits(z)), __builtin_nanf(""))

#include "kernels/convert_tmpl.h"

static void widen_f16(float *out, const uint16_t *in, size_t count)
{
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (size_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, from + i * sizeof(h), sizeof(h));
        const uint32_t f = half_f16_widen_bits(h);
        memcpy(to + i * sizeof(f), &f, sizeof(f));
    }
}

static void narrow_f16(uint16_t *out, const float *in, size_t count)
{
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (size_t i = 0; i < count; i++) {
        uint32_t f;
        memcpy(&f, from + i * sizeof(f), sizeof(f));
        const uint16_t h = half_f16_narrow_bits(f);
        memcpy(to + i * sizeof(h), &h, sizeof(h));
    }
}

#define KERNELS_NAME "scalar"
#define KERNELS_TABLE kernels_scalar
#include "kernels/table_tmpl.h"
