/* avx512.c - the kernels for x86-64 with AVX-512 F, BW, VL and DQ; CMake compiles it with those flags by its name.
 *
 * The templates with 64-byte vectors; by hand only the f16 conversions and the hash's transposition.
 * SPDX-License-Identifier: MIT */
#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/levels.h"

/* Sixteen vectors of 16 bytes; after the transposition the lane of vector 4k + j is number 4j + k of its group. */
#define HASH_GROUP 16
#include "kernels/hash_tmpl.h"
#include "kernels/quant_tmpl.h"

#define REDUCE_BYTES 64
#define REDUCE_HALVES(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define REDUCE_WIDEN_F16(v, from) (v) = (reduce_v_f32)_mm512_cvtph_ps(REDUCE_HALVES(from))
#define REDUCE_WIDEN_BF16(v, from) (v) = (reduce_v_f32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(REDUCE_HALVES(from)), 16)
#include "kernels/reduce_tmpl.h"

#include "kernels/convert_tmpl.h"

/* Bytes that the loads run ahead of the arithmetic. */
#define HASH_AHEAD 4096

#define HASH_STEP(h, w, rotation, add, multiplier)                                                                     \
    (h) = _mm512_mullo_epi32(_mm512_rol_epi32(_mm512_xor_si512(h, _mm512_add_epi32(w, add)), rotation), multiplier)

static void hash_order(uint32_t lanes[HASH_LANES])
{
    const __m512i places = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (size_t base = 0; base < HASH_LANES; base += HASH_GROUP) {
        _mm512_storeu_si512(lanes + base, _mm512_permutexvar_epi32(places, _mm512_loadu_si512(lanes + base)));
    }
}

static void hash_groups(struct hash_lanes *lanes, const uint8_t *data, size_t groups)
{
    const __m512i low_add = _mm512_set1_epi32((int)HASH_LOW_ADD), high_add = _mm512_set1_epi32((int)HASH_HIGH_ADD);
    const __m512i low_multiplier = _mm512_set1_epi32((int)HASH_LOW_MULTIPLIER);
    const __m512i high_multiplier = _mm512_set1_epi32((int)HASH_HIGH_MULTIPLIER);
    for (size_t g = 0; g < groups; g++) {
        const size_t base = g * HASH_GROUP % HASH_LANES;
        const uint8_t *p = data + 16 * HASH_GROUP * g;
        for (int line = 0; line < 4; line++) { /* the hardware's own stops at pages; past the end it is harmless */
            _mm_prefetch((const char *)p + HASH_AHEAD + 64 * line, _MM_HINT_T0);
        }
        const __m512i v0 = _mm512_loadu_si512(p + 0), v1 = _mm512_loadu_si512(p + 64);
        const __m512i v2 = _mm512_loadu_si512(p + 128), v3 = _mm512_loadu_si512(p + 192);
        const __m512i a = _mm512_unpacklo_epi32(v0, v1), b = _mm512_unpackhi_epi32(v0, v1);
        const __m512i c = _mm512_unpacklo_epi32(v2, v3), d = _mm512_unpackhi_epi32(v2, v3);
        const __m512i w0 = _mm512_unpacklo_epi64(a, c), w1 = _mm512_unpackhi_epi64(a, c);
        const __m512i w2 = _mm512_unpacklo_epi64(b, d), w3 = _mm512_unpackhi_epi64(b, d);
        __m512i low, high;
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
    for (; count >= 16; count -= 16, to += 64, from += 32) {
        _mm512_storeu_si512(to, _mm512_castps_si512(_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from))));
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
    const __m256i magnitude = _mm256_set1_epi16(0x7FFF), infinite = _mm256_set1_epi16(0x7C00);
    const __m256i nan = _mm256_set1_epi16(HALF_NAN_F16);
    uint8_t *to = (uint8_t *)out;
    const uint8_t *from = (const uint8_t *)in;
    for (; count >= 16; count -= 16, to += 32, from += 64) {
        const __m512 f = _mm512_castsi512_ps(_mm512_loadu_si512(from));
        const __m256i h = _mm512_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __m256i is_nan = _mm256_cmpgt_epi16(_mm256_and_si256(h, magnitude), infinite);
        _mm256_storeu_si256((__m256i *)to, _mm256_blendv_epi8(h, nan, is_nan));
    }
    for (; count > 0; count--, to += 2, from += 4) {
        uint32_t f;
        memcpy(&f, from, sizeof(f));
        const uint16_t h = half_f16_narrow_bits(f);
        memcpy(to, &h, sizeof(h));
    }
}

#define KERNELS_NAME "avx512"
#define KERNELS_TABLE kernels_avx512
#include "kernels/table_tmpl.h"

#endif
