/* test_half.c - f16 and bf16: every value widened, narrowing on all ties and their neighbours, against arithmetic on the
 * values; every level against the scalar twin.
 * SPDX-License-Identifier: MIT */
#include "tests/kernel/kernel_testing.h"

/* A 16-bit float format as its numbers, not its bits. */
struct format {
    int mantissa_bits, exponent_bias, exponent_max;
    uint16_t nan;
};
static const struct format f16 = {10, 15, 31, 0x7E00}, bf16 = {7, 127, 255, 0x7FC0};

static double power_of_two(int exponent)
{
    double p = 1;
    for (; exponent > 0; exponent--) {
        p *= 2;
    }
    for (; exponent < 0; exponent++) {
        p /= 2;
    }
    return p;
}

/* The value of a finite one. */
static double naive_value(const struct format *f, uint16_t h)
{
    const int mantissa = h & ((1 << f->mantissa_bits) - 1), exponent = (h & 0x7FFF) >> f->mantissa_bits;
    const double fraction = mantissa / power_of_two(f->mantissa_bits);
    const double magnitude = exponent == 0 ? fraction * power_of_two(1 - f->exponent_bias)
                                           : (1 + fraction) * power_of_two(exponent - f->exponent_bias);
    return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

static double round_even(double x) /* 0 <= x < 2^40 */
{
    const double down = (double)(int64_t)x, rest = x - down;
    const bool odd = ((int64_t)x & 1) != 0;
    return rest > 0.5 || (rest == 0.5 && odd) ? down + 1 : down;
}

static uint16_t naive_narrow(const struct format *f, float x)
{
    if (x != x) {
        return f->nan;
    }
    const uint16_t sign = (uint16_t)(kt_bits32(x) >> 31 << 15);
    const double magnitude = x < 0 ? -(double)x : (double)x;
    int exponent = 1 - f->exponent_bias;
    double top = power_of_two(exponent + 1);
    while (exponent < 128 && magnitude >= top) {
        exponent++;
        top *= 2;
    }
    /* in units of the last place: 0 .. 2^(bits+1), the upper end being the next exponent's first number */
    const double units = round_even(magnitude / power_of_two(exponent - f->mantissa_bits));
    const uint32_t bits = ((uint32_t)(exponent + f->exponent_bias - 1) << f->mantissa_bits) + (uint32_t)units;
    const uint32_t infinite = (uint32_t)f->exponent_max << f->mantissa_bits;
    return (uint16_t)(sign | (bits < infinite ? bits : infinite));
}

static void widen_all(const struct kernels *k, const struct format *f, uint32_t *out)
{
    static uint16_t in[65536];
    for (uint32_t i = 0; i < 65536; i++) {
        in[i] = (uint16_t)i;
    }
    (f == &f16 ? k->widen_f16 : k->widen_bf16)((float *)out, in, 65536);
}

static void narrow(const struct kernels *k, const struct format *f, uint16_t *out, const float *in, size_t count)
{
    (f == &f16 ? k->narrow_f16 : k->narrow_bf16)(out, in, count);
}

TEST(widening_is_exact_for_all_65536_values_on_every_level)
{
    static uint32_t out[65536], twin[65536];
    for (int format = 0; format < 2; format++) {
        const struct format *f = format == 0 ? &f16 : &bf16;
        const int infinite = f->exponent_max << f->mantissa_bits;
        for (int level = 0; level < KT_LEVELS; level++) {
            const struct kernels *k = kt_level(level);
            if (k == NULL) {
                continue;
            }
            widen_all(k, f, out);
            for (int i = 0; i < 65536; i++) {
                const int magnitude = i & 0x7FFF;
                if (magnitude < infinite) {
                    EXPECT_EQ(out[i], kt_bits32((float)naive_value(f, (uint16_t)i)));
                } else if (magnitude == infinite) {
                    EXPECT_EQ(out[i], (i & 0x8000) != 0 ? 0xFF800000 : 0x7F800000);
                } else {
                    EXPECT((out[i] & 0x7FFFFFFF) > 0x7F800000);
                }
            }
            if (level == 0) {
                memcpy(twin, out, sizeof(out));
            }
            EXPECT(memcmp(out, twin, sizeof(out)) == 0);
        }
    }
}

TEST(narrowing_undoes_widening)
{
    static uint32_t wide[65536];
    static uint16_t out[65536];
    for (int format = 0; format < 2; format++) {
        const struct format *f = format == 0 ? &f16 : &bf16;
        for (int level = 0; level < KT_LEVELS; level++) {
            const struct kernels *k = kt_level(level);
            if (k == NULL) {
                continue;
            }
            widen_all(k, f, wide);
            narrow(k, f, out, (const float *)wide, 65536);
            for (int i = 0; i < 65536; i++) {
                const bool nan = (i & 0x7FFF) > f->exponent_max << f->mantissa_bits;
                EXPECT_EQ(out[i], nan ? f->nan : i);
            }
        }
    }
}

TEST(narrowing_rounds_ties_to_even_at_every_border)
{
    for (int format = 0; format < 2; format++) {
        const struct format *f = format == 0 ? &f16 : &bf16;
        const int infinite = f->exponent_max << f->mantissa_bits;
        for (int level = 0; level < KT_LEVELS; level++) {
            const struct kernels *k = kt_level(level);
            for (int i = 0; k != NULL && i < infinite; i++) {
                const double low = naive_value(f, (uint16_t)i);
                const double step = i + 1 < infinite ? naive_value(f, (uint16_t)(i + 1)) - low
                                                     : low - naive_value(f, (uint16_t)(i - 1));
                float in[16];
                uint16_t out[16], want[16];
                for (int j = 0; j < 16; j++) { /* the tie and seven single-precision steps to either side, both signs */
                    const uint32_t tie = kt_bits32((float)(low + step / 2)) + (uint32_t)(j % 8) - 4;
                    in[j] = kt_f32(tie | (j < 8 ? 0 : 0x80000000));
                    want[j] = naive_narrow(f, in[j]);
                }
                narrow(k, f, out, in, 16);
                EXPECT(memcmp(out, want, sizeof(want)) == 0);
            }
        }
    }
}

TEST(narrowing_of_any_bits_is_the_same_on_every_level_and_right_in_the_scalar_one)
{
    enum { PIECE = 4096 };
    static float in[PIECE];
    static uint16_t twin[PIECE], out[PIECE];
    uint32_t bits = 0;
    for (uint64_t piece = 0; piece < kt_scaled(1024); piece++) {
        for (int i = 0; i < PIECE; i++) {
            in[i] = kt_f32(bits);
            bits += 1021; /* a prime step that covers the range once in 2^22 */
        }
        for (int format = 0; format < 2; format++) {
            const struct format *f = format == 0 ? &f16 : &bf16;
            narrow(kt_level(0), f, twin, in, PIECE);
            for (int i = 0; i < PIECE; i += 16) {
                EXPECT_EQ(twin[i], naive_narrow(f, in[i]));
            }
            for (int level = 1; level < KT_LEVELS; level++) {
                if (kt_level(level) != NULL) {
                    narrow(kt_level(level), f, out, in, PIECE);
                    EXPECT(memcmp(out, twin, sizeof(out)) == 0);
                }
            }
        }
    }
}

TEST(conversions_of_all_small_counts_and_alignments_stay_inside_their_pages)
{
    struct rng r = {1};
    uint8_t *narrow_page = kt_guarded_new(), *wide_page = kt_guarded_new();
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (size_t count = 0; k != NULL && count <= 70; count++) {
            for (size_t align = 0; align < 64; align++) {
                uint8_t *h = narrow_page + KT_GUARDED - 2 * count, *w = wide_page + KT_GUARDED - 4 * count;
                h -= align % 2 == 0 ? 0 : align;
                w -= align % 3 == 0 ? 0 : align;
                uint8_t want[70 * 4];
                for (int format = 0; format < 2; format++) {
                    const struct format *f = format == 0 ? &f16 : &bf16;
                    kt_fill(&r, w, count, DTYPE_F32);
                    narrow(k, f, (uint16_t *)(void *)h, (const float *)(const void *)w, count);
                    narrow(kt_level(0), f, (uint16_t *)(void *)want, (const float *)(const void *)w, count);
                    EXPECT(memcmp(h, want, 2 * count) == 0);
                    (f == &f16 ? k->widen_f16 : k->widen_bf16)((float *)(void *)w, (const uint16_t *)(const void *)h,
                                                               count);
                    const struct kernels *s = kt_level(0);
                    (f == &f16 ? s->widen_f16 : s->widen_bf16)((float *)(void *)want, (const uint16_t *)(const void *)h,
                                                               count);
                    EXPECT(memcmp(w, want, 4 * count) == 0);
                }
            }
        }
    }
    kt_guarded_free(narrow_page);
    kt_guarded_free(wide_page);
}
