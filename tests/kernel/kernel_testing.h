/* kernel_testing.h - what the kernel tests share: levels, guarded memory, awkward numbers, scaling of the long ones.
 *
 * PCCL_TEST_SCALE=n divides the work of the long tests by n (for emulators; sanitised runs use 20 if it is unset).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_KERNEL_TESTING_H
#define PCCL_TESTS_KERNEL_TESTING_H

#include <sys/mman.h>
#include <unistd.h>

#include "core/random.h"
#include "kernels/kernels.h"
#include "tests/testing.h"

enum { KT_LEVELS = 4, KT_GUARDED = 65536 };

static const char *const kt_level_names[KT_LEVELS] = {"scalar", "avx2", "avx512", "neon"};

/* The i-th level, null if this processor lacks it; remembered, since cpuid is slow in a virtual machine. */
static inline const struct kernels *kt_level(int i)
{
    static const struct kernels *known[KT_LEVELS];
    static bool asked[KT_LEVELS];
    if (!asked[i]) {
        known[i] = kernels_level(kt_level_names[i]);
        asked[i] = true;
    }
    return known[i];
}

static inline uint64_t kt_scaled(uint64_t work)
{
    const char *text = getenv("PCCL_TEST_SCALE");
    const unsigned long plain = getenv("PCCL_SANITIZED") != NULL ? 20 : getenv("PCCL_TEST_QUICK") != NULL ? 10 : 1;
    const unsigned long by = text != NULL ? strtoul(text, NULL, 10) : plain;
    return by > 1 ? work / by + 1 : work;
}

/* KT_GUARDED bytes between two pages that may not be touched. */
static inline uint8_t *kt_guarded_new(void)
{
    const size_t page = 65536; /* a multiple of every page size */
    uint8_t *p = mmap(NULL, 2 * page + KT_GUARDED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, KT_GUARDED, PROT_READ | PROT_WRITE) != 0) {
        abort();
    }
    return p + page;
}

static inline void kt_guarded_free(uint8_t *p)
{
    munmap(p - 65536, 2 * 65536 + KT_GUARDED);
}

static inline uint32_t kt_bits32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline uint64_t kt_bits64(double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float kt_f32(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline double kt_f64(uint64_t bits)
{
    double f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* Numbers that trip kernels: zeros, infinities, quiet and signalling NaNs, denormals, extremes, ties. */
static const uint32_t kt_awkward32[] = {
    0,          0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001,
    0xFFBFFFFF, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x477FE000,
    0x477FF000, 0x33000000, 0x33000001, 0x38800000, 0x387FFFFF, 0x3F808000, 0x3F818000, 0x7F7F8000, 0x3EAAAAAB,
};
static const uint64_t kt_awkward64[] = {
    0,
    0x8000000000000000,
    0x3FF0000000000000,
    0xBFF0000000000000,
    0x7FF0000000000000,
    0xFFF0000000000000,
    0x7FF8000000000000,
    0xFFF8000000000001,
    0x7FF0000000000001,
    0x0000000000000001,
    0x8000000000000001,
    0x000FFFFFFFFFFFFF,
    0x0010000000000000,
    0x7FEFFFFFFFFFFFFF,
    0xFFEFFFFFFFFFFFFF,
    0x3FD5555555555555,
};
enum {
    KT_AWKWARD32 = sizeof(kt_awkward32) / sizeof(kt_awkward32[0]),
    KT_AWKWARD64 = sizeof(kt_awkward64) / sizeof(kt_awkward64[0])
};

/* Random bits, every fourth 32-bit or 64-bit float an awkward one. */
static inline void kt_fill(struct rng *r, uint8_t *p, size_t count, enum dtype type)
{
    const size_t size = dtype_size(type);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = rng_next(r);
        const bool awkward = rng_below(r, 4) == 0;
        if (type == DTYPE_F32) {
            const float tame = (float)(int32_t)(uint32_t)bits / 65536.0f;
            bits = awkward ? kt_awkward32[bits % KT_AWKWARD32] : bits & (1u << 20) ? kt_bits32(tame) : bits >> 32;
        } else if (type == DTYPE_F64) {
            const double tame = (double)(int32_t)(uint32_t)bits / 65536.0;
            bits = awkward ? kt_awkward64[bits % KT_AWKWARD64] : bits & (1u << 20) ? kt_bits64(tame) : bits;
        } else if (awkward) { /* the edges of integer ranges */
            bits = (bits & 1) != 0 ? (uint64_t)1 << (8 * size - 1) : ~(uint64_t)0 >> (bits >> 1 & 1);
        }
        const uint8_t bytes[8] = {(uint8_t)bits,         (uint8_t)(bits >> 8),  (uint8_t)(bits >> 16),
                                  (uint8_t)(bits >> 24), (uint8_t)(bits >> 32), (uint8_t)(bits >> 40),
                                  (uint8_t)(bits >> 48), (uint8_t)(bits >> 56)};
        memcpy(p + i * size, bytes, size);
    }
}

#endif
