/* levels.h - the kernel tables that the files of this folder provide to dispatch.c, and what the processor offers.
 *
 * A level that is not built for this architecture is absent, never empty.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_LEVELS_H
#define PCCL_KERNELS_LEVELS_H

#include "kernels/kernels.h"

extern const struct kernels kernels_scalar;
#if defined(__x86_64__)
extern const struct kernels kernels_avx2;
extern const struct kernels kernels_avx512;
#elif defined(__aarch64__)
extern const struct kernels kernels_neon;
#endif

enum cpu_feature { CPU_AVX2 = 1u << 0, CPU_AVX512 = 1u << 1, CPU_NEON = 1u << 2 };

/* The levels this processor and operating system can run, as a set of cpu_feature bits. */
unsigned cpu_features(void);

#endif
