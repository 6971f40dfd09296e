/* reduce_tmpl.h - template of the reductions, out = a op b; included once per instruction set.
 *
 * The including file defines REDUCE_BYTES, the size of a vector register, and REDUCE_WIDEN_F16 and REDUCE_WIDEN_BF16, which make a
 * vector of f32 from half as many bytes of halves.  Whole vectors are loaded from both inputs before one is stored, so `out` may
 * equal either; the remainder goes through the same arithmetic in a padded copy.
 * Invariant: each element's bits depend on its two inputs alone; every NaN result is the canonical one, so they do not
 * depend on which operand a processor favours.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/half.h"

/* Bytes that the loads of halves run ahead of the arithmetic; past the end it is harmless. */
#define REDUCE_AHEAD 4096

#define REDUCE_VECTOR(t, T) typedef T reduce_v_##t __attribute__((vector_size(REDUCE_BYTES)))
REDUCE_VECTOR(u8, uint8_t);
REDUCE_VECTOR(i8, int8_t);
REDUCE_VECTOR(i16, int16_t);
REDUCE_VECTOR(u16, uint16_t);
REDUCE_VECTOR(u32, uint32_t);
REDUCE_VECTOR(i32, int32_t);
REDUCE_VECTOR(u64, uint64_t);
REDUCE_VECTOR(i64, int64_t);
REDUCE_VECTOR(f32, float);
REDUCE_VECTOR(f64, double);

/* V: vector of the elements, LOAD makes one from b's bytes, of which it takes `share` for each byte of V; CALC makes r from x and y. */
#define REDUCE_LOOP(name, V, size, share, LOAD, CALC)                                                                  \
    static void reduce_##name(void *out, const void *a, const void *b, size_t count)                                   \
    {                                                                                                                  \
        uint8_t *to = out;                                                                                             \
        const uint8_t *from_a = a, *from_b = b;                                                                        \
        size_t left = count * (size);                                                                                  \
        V x, y, r;                                                                                                     \
        for (; left >= REDUCE_BYTES; left -= REDUCE_BYTES) {                                                           \
            memcpy(&x, from_a, sizeof(x));                                                                             \
            if ((share) > 1) { /* the hardware's own prefetch stops at pages, and a sum in the cache does not hide it */           \
                __builtin_prefetch((const void *)((uintptr_t)from_b + REDUCE_AHEAD));                                  \
            }                                                                                                          \
            LOAD(y, from_b);                                                                                           \
            CALC;                                                                                                      \
            memcpy(to, &r, sizeof(r));                                                                                 \
            to += REDUCE_BYTES;                                                                                        \
            from_a += REDUCE_BYTES;                                                                                    \
            from_b += REDUCE_BYTES / (share);                                                                          \
        }                                                                                                              \
        if (left > 0) {                                                                                                \
            uint8_t rest[REDUCE_BYTES] = {0};                                                                          \
            x = (V){0};                                                                                                \
            memcpy(&x, from_a, left);                                                                                  \
            memcpy(rest, from_b, left / (share));                                                                      \
            LOAD(y, rest);                                                                                             \
            CALC;                                                                                                      \
            memcpy(to, &r, left);                                                                                      \
        }                                                                                                              \
    }

#define REDUCE_LOAD(v, from) memcpy(&(v), from, sizeof(v))
#define REDUCE_KERNEL(name, V, size, ...) REDUCE_LOOP(name, V, size, 1, REDUCE_LOAD, __VA_ARGS__)

/* Lanes of `yes` where the mask is set, of `no` elsewhere; all three as vectors M of integers. */
#define REDUCE_SELECT(M, mask, yes, no) (((M)(mask) & (M)(yes)) | (~(M)(mask) & (M)(no)))

/* Signed sums and products are computed unsigned: they wrap. */
#define REDUCE_INTEGER(t, unsigned_t, size)                                                                            \
    REDUCE_KERNEL(sum_##t, reduce_v_##unsigned_t, size, r = x + y)                                                     \
    REDUCE_KERNEL(prod_##t, reduce_v_##unsigned_t, size, r = x * y)                                                    \
    REDUCE_KERNEL(max_##t, reduce_v_##t, size, r = REDUCE_SELECT(reduce_v_##t, x > y, x, y))                           \
    REDUCE_KERNEL(min_##t, reduce_v_##t, size, r = REDUCE_SELECT(reduce_v_##t, x < y, x, y))                           \
    REDUCE_KERNEL(and_##t, reduce_v_##unsigned_t, size, r = x & y)                                                     \
    REDUCE_KERNEL(or_##t, reduce_v_##unsigned_t, size, r = x | y)                                                      \
    REDUCE_KERNEL(xor_##t, reduce_v_##unsigned_t, size, r = x ^ y)

/* Any byte but 0 is true; results are 0 and 1. */
REDUCE_KERNEL(or_bool, reduce_v_u8, 1, r = (reduce_v_u8)((x | y) != 0) & 1)
REDUCE_KERNEL(and_bool, reduce_v_u8, 1, r = (reduce_v_u8)((x != 0) & (y != 0)) & 1)

#define REDUCE_CLEAN(t, M, bad, value) (reduce_v_##t)(((M)(bad) & ((M){0} + NAN_BITS_##t)) | (~(M)(bad) & (M)(value)))
#define NAN_BITS_f32 0x7FC00000
#define NAN_BITS_f64 0x7FF8000000000000

/* t: of the sum; name: of what is added to it, which LOAD makes a vector of the sum's type. */
#define REDUCE_FLOAT(name, t, M, size, share, LOAD)                                                                    \
    REDUCE_LOOP(sum_##name, reduce_v_##t, size, share, LOAD, r = x + y; r = REDUCE_CLEAN(t, M, r != r, r))             \
    REDUCE_LOOP(prod_##name, reduce_v_##t, size, share, LOAD, r = x * y; r = REDUCE_CLEAN(t, M, r != r, r))            \
    REDUCE_LOOP(max_##name, reduce_v_##t, size, share, LOAD, r = (reduce_v_##t)REDUCE_SELECT(M, x > y, x, y);          \
                r = REDUCE_CLEAN(t, M, (x != x) | (y != y), r))                                                        \
    REDUCE_LOOP(min_##name, reduce_v_##t, size, share, LOAD, r = (reduce_v_##t)REDUCE_SELECT(M, x < y, x, y);          \
                r = REDUCE_CLEAN(t, M, (x != x) | (y != y), r))

REDUCE_INTEGER(u8, u8, 1)
REDUCE_INTEGER(i8, u8, 1)
REDUCE_INTEGER(i16, u16, 2)
REDUCE_INTEGER(u16, u16, 2)
REDUCE_INTEGER(u32, u32, 4)
REDUCE_INTEGER(i32, u32, 4)
REDUCE_INTEGER(u64, u64, 8)
REDUCE_INTEGER(i64, u64, 8)
REDUCE_FLOAT(f32, f32, reduce_v_i32, 4, 1, REDUCE_LOAD)
REDUCE_FLOAT(f64, f64, reduce_v_i64, 8, 1, REDUCE_LOAD)
REDUCE_FLOAT(f16, f32, reduce_v_i32, 4, 2, REDUCE_WIDEN_F16)
REDUCE_FLOAT(bf16, f32, reduce_v_i32, 4, 2, REDUCE_WIDEN_BF16)
