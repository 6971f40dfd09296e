/* avx2.c - the kernels for x86-64 with AVX2 and F16C; CMake compiles it with -mavx2 -mf16c by its name.
 *
 * The templates with 32-byte vectors; by hand only the f16 conversions and the hash's transposition.
 * SPDX-License-Identifier: MIT */
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/levels.h"

/* Eight vectors of 16 bytes; after the transposition the lane of vector 2k + j is number 4j + k of its group. */
#define HASH_GROUP 8
#include "kernels/hash_tmpl.h"
#include "kernels/quant_tmpl.h"

#define REDUCE_BYTES 32
#define REDUCE_HALVES(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define REDUCE_WIDEN_F16(v, from) (v) = (reduce_v_f32)_mm256_cvtph_ps(REDUCE_HALVES(from))
#define REDUCE_WIDEN_BF16(v, from) (v) = (reduce_v_f32)_mm256_slli_epi32(_mm256_cvtepu16_epi32(REDUCE_HALVES(from)), 16)
#include "kernels/reduce_tmpl.h"

#include "kernels/convert_tmpl.h"

/* Bytes that the loads run ahead of the arithmetic. */
#define HASH_AHEAD 4096

#define HASH_STEP(h, w, rotation, add, multiplier)                                                                     \
    do {                                                                                                               \
        const __m256i t_ = _mm256_xor_si256(h, _mm256_add_epi32(w, add));                                              \
        (h) = _mm256_mullo_epi32(                                                                                      \
            _mm256_or_si256(_mm256_slli_epi32(t_, rotation), _mm256_srli_epi32(t_, 32 - (rotation))), multiplier);     \
    } while (0)

static void hash_order(uint32_t lanes[HASH_LANES])
{
    const __m256i places = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (size_t base = 0; base < HASH_LANES; base += HASH_GROUP) {
        __m256i *group = (__m256i *)(void *)(lanes + base);
        _mm256_storeu_si256(group, _mm256_permutevar8x32_epi32(_mm256_loadu_si256(group), places));
    }
}

static void hash_groups(struct hash_lanes *lanes, const uint8_t *data, size_t groups)
{
    const __m256i low_add = _mm256_set1_epi32((int)HASH_LOW_ADD), high_add = _mm256_set1_epi32((int)HASH_HIGH_ADD);
    const __m256i low_multiplier = _mm256_set1_epi32((int)HASH_LOW_MULTIPLIER);
    const __m256i high_multiplier = _mm256_set1_epi32((int)HASH_HIGH_MULTIPLIER);
    for (size_t g = 0; g < groups; g++) {
        const size_t base = g * HASH_GROUP % HASH_LANES;
        const uint8_t *p = data + 16 * HASH_GROUP * g;
        for (int line = 0; line < 2; line++) { /* the hardware's own stops at pages; past the end it is harmless */
            _mm_prefetch((const char *)p + HASH_AHEAD + 64 * line, _MM_HINT_T0);
        }
        const __m256i v0 = _mm256_loadu_si256((const __m256i *)(p + 0)),
                      v1 = _mm256_loadu_si256((const __m256i *)(p + 32));
        const __m256i v2 = _mm256_loadu_si256((const __m256i *)(p + 64)),
                      v3 = _mm256_loadu_si256((const __m256i *)(p + 96));
        const __m256i a = _mm256_unpacklo_epi32(v0, v1), b = _mm256_unpackhi_epi32(v0, v1);
        const __m256i c = _mm256_unpacklo_epi32(v2, v3), d = _mm256_unpackhi_epi32(v2, v3);
        const __m256i w0 = _mm256_unpacklo_epi64(a, c), w1 = _mm256_unpackhi_epi64(a, c);
        const __m256i w2 = _mm256_unpacklo_epi64(b, d), w3 = _mm256_unpackhi_epi64(b, d);
        __m256i low, high;
        memcpy(&low, lanes->low + base, sizeof(low));
        memcpy(&high, lanes->high + base, sizeof(high));
        HASH_STEP(low, w0, HASH_LOW_ROTATION, low_add, low_multiplier);
        HASH_STEP(high, w0, HASH_HIGH_ROTATION, high_add, high_multiplier);
        HASH_STEP(low, w1, HASH_LOW_ROTATION, low_add, low_multiplier);
        HASH_STEP(high, w1, HASH_HIGH_ROTATION, high_add, high_multiplier);
        HASH_STEP(low, w2, HASH_LOW_ROTATION, low_add, low_multiplier);
        HASH_STEP(high, w2, HASH_HIGH_ROTATION, high_add, high_multiplier);
        HASH_STEP(low, w3, HASH_LOW_ROTATION, low_add, low_multiplier);
        HASH_STEP(high, w3, HASH_HIGH_ROTATION, high_add, high_multiplier);
        memcpy(lanes->low + base, &low, sizeof(low));
        memcpy(lanes->high + base, &high, sizeof(high));
    }
    hash_order(lanes->low);
    hash_order(lanes->high);
}

static void widen_f16(float *out, const uint16_t *in, size_t count)
{
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (; count >= 8; count -= 8, to += 32, from += 16) {
        _mm256_storeu_si256((__m256i *)to,
                            _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from))));
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
    const __m128i magnitude = _mm_set1_epi16(0x7FFF), infinite = _mm_set1_epi16(0x7C00);
    const __m128i nan = _mm_set1_epi16(HALF_NAN_F16);
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (; count >= 8; count -= 8, to += 16, from += 32) {
        const __m256 f = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)from));
        const __m128i h = _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __m128i is_nan = _mm_cmpgt_epi16(_mm_and_si128(h, magnitude), infinite);
        _mm_storeu_si128((__m128i *)to, _mm_blendv_epi8(h, nan, is_nan));
    }
    for (; count > 0; count--, to += 2, from += 4) {
        uint32_t f;
        memcpy(&f, from, sizeof(f));
        const uint16_t h = half_f16_narrow_bits(f);
        memcpy(to, &h, sizeof(h));
    }
}

#define KERNELS_NAME "avx2"
#define KERNELS_TABLE kernels_avx2
#include "kernels/table_tmpl.h"

#endif
