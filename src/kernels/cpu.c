/* cpu.c - which instruction sets this processor and its operating system can run.
 *
 * Asks cpuid and xgetbv itself, since the compilers' built-in names differ.  A level counts only if every extension its
 * file is compiled with is there and the system saves its registers.
 * SPDX-License-Identifier: MIT */
#include "kernels/levels.h"

#if defined(__x86_64__)

#include <cpuid.h>

static uint64_t cpu_saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}

unsigned cpu_features(void)
{
    enum { OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29, AVX2 = 1 << 5 };
    const unsigned avx512 = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31); /* F, DQ, BW, VL */
    unsigned a, b, c, d, b7;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & OSXSAVE) == 0 || (c & AVX) == 0 || (c & F16C) == 0) {
        return 0;
    }
    const uint64_t saved = cpu_saved_registers();
    if (__get_cpuid_count(7, 0, &a, &b7, &c, &d) == 0 || (saved & 0x6u) != 0x6u || (b7 & AVX2) == 0) {
        return 0;
    }
    const bool wide = (saved & 0xE6u) == 0xE6u && (b7 & avx512) == avx512;
    return wide ? CPU_AVX2 | CPU_AVX512 : CPU_AVX2;
}

#elif defined(__aarch64__)

unsigned cpu_features(void)
{
    return CPU_NEON; /* part of every 64-bit ARM */
}

#else

unsigned cpu_features(void)
{
    return 0;
}

#endif
