/* reduce_tmpl.h - template of the reductions, out = a op b; included once per instruction set.
 *
 * The including file defines REDUCE_BYTES, the size of a vector register.  Whole vectors are loaded from both inputs
 * before one is stored, so `out` may equal either; the remainder goes through the same arithmetic in a padded copy.
 * Invariant: each element's bits depend on its two inputs alone; every NaN result is the canonical one, so they do not
 * depend on which operand a processor favours.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "kernels/half.h"

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

/* V: vector of the elements, CALC makes r from x and y. */
#define REDUCE_KERNEL(name, V, size, CALC)                                                                             \
    static void reduce_##name(void *out, const void *a, const void *b, size_t count)                                   \
    {                                                                                                                  \
        uint8_t *to = out;                                                                                             \
        const uint8_t *from_a = a, *from_b = b;                                                                        \
        size_t left = count * (size);                                                                                  \
        V x, y, r;                                                                                                     \
        for (; left >= REDUCE_BYTES; left -= REDUCE_BYTES) {                                                           \
            memcpy(&x, from_a, sizeof(x));                                                                             \
            memcpy(&y, from_b, sizeof(y));                                                                             \
            CALC;                                                                                                      \
            memcpy(to, &r, sizeof(r));                                                                                 \
            to += REDUCE_BYTES;                                                                                        \
            from_a += REDUCE_BYTES;                                                                                    \
            from_b += REDUCE_BYTES;                                                                                    \
        }                                                                                                              \
        if (left > 0) {                                                                                                \
            x = (V){0};                                                                                                \
            y = (V){0};                                                                                                \
            memcpy(&x, from_a, left);                                                                                  \
            memcpy(&y, from_b, left);                                                                                  \
            CALC;                                                                                                      \
            memcpy(to, &r, left);                                                                                      \
        }                                                                                                              \
    }

/* Lanes of `yes` where the mask is set, of `no` elsewhere; all three as vectors M of integers. */
#define REDUCE_SELECT(M, mask, yes, no) (((M)(mask) & (M)(yes)) | (~(M)(mask) & (M)(no)))

/* Signed sums and products are computed unsigned: they wrap. */
#define REDUCE_INTEGER(t, unsigned_t, size)                                                                            \
    REDUCE_KERNEL(sum_##t, reduce_v_##unsigned_t, size, r = x + y)                                                     \
    REDUCE_KERNEL(prod_##t, reduce_v_##unsigned_t, size, r = x * y)                                                    \
    REDUCE_KERNEL(max_##t, reduce_v_##t, size, r = REDUCE_SELECT(reduce_v_##t, x > y, x, y))                           \
    REDUCE_KERNEL(min_##t, reduce_v_##t, size, r = REDUCE_SELECT(reduce_v_##t, x < y, x, y))

#define REDUCE_CLEAN(t, M, bad, value) (reduce_v_##t)(((M)(bad) & ((M){0} + NAN_BITS_##t)) | (~(M)(bad) & (M)(value)))
#define NAN_BITS_f32 0x7FC00000
#define NAN_BITS_f64 0x7FF8000000000000

#define REDUCE_FLOAT(t, M, size)                                                                                       \
    REDUCE_KERNEL(sum_##t, reduce_v_##t, size, r = x + y; r = REDUCE_CLEAN(t, M, r != r, r))                           \
    REDUCE_KERNEL(prod_##t, reduce_v_##t, size, r = x * y; r = REDUCE_CLEAN(t, M, r != r, r))                          \
    REDUCE_KERNEL(max_##t, reduce_v_##t, size, r = (reduce_v_##t)REDUCE_SELECT(M, x > y, x, y);                        \
                  r = REDUCE_CLEAN(t, M, (x != x) | (y != y), r))                                                      \
    REDUCE_KERNEL(min_##t, reduce_v_##t, size, r = (reduce_v_##t)REDUCE_SELECT(M, x < y, x, y);                        \
                  r = REDUCE_CLEAN(t, M, (x != x) | (y != y), r))

REDUCE_INTEGER(u8, u8, 1)
REDUCE_INTEGER(i8, u8, 1)
REDUCE_INTEGER(i16, u16, 2)
REDUCE_INTEGER(u16, u16, 2)
REDUCE_INTEGER(u32, u32, 4)
REDUCE_INTEGER(i32, u32, 4)
REDUCE_INTEGER(u64, u64, 8)
REDUCE_INTEGER(i64, u64, 8)
REDUCE_FLOAT(f32, reduce_v_i32, 4)
REDUCE_FLOAT(f64, reduce_v_i64, 8)
