/* kernels.h - the table of compute kernels, one per instruction set, chosen once at run time.
 *
 * Every kernel gives the same bits on every instruction set: no fused multiply-add, fixed order, round to nearest even,
 * denormals kept.  kernels_get() reads the environment mask PCCL_CPU (scalar | avx2 | avx512 | neon: the best level
 * allowed) once.  Callers hold the fixed floating-point environment (fpenv_enter/leave) around kernels.
 * Pointers may have any alignment.  Counts are elements.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_KERNELS_H
#define PCCL_KERNELS_KERNELS_H

#include "core/dtype.h"

/* out[i] = a[i] op b[i], null for operators that the type has not (redop_for); `out` may equal `a`, and `b` of the same type.  Floats: max and min propagate NaN, and every NaN result, of sums and
 * products too, is the canonical quiet one; of two zeros max and min take b[i]. */
typedef void (*kernel_reduce)(void *out, const void *a, const void *b, size_t count);
/* out[i] = in[i] / divisor: floats by true division, integers truncated towards zero. */
typedef void (*kernel_divide)(void *inout, size_t count, uint64_t divisor);
/* f16 or bf16 to f32, exactly, and back (round to nearest even, NaNs canonical). */
typedef void (*kernel_widen)(float *out, const uint16_t *in, size_t count);
typedef void (*kernel_narrow)(uint16_t *out, const float *in, size_t count);
/* Replaces every NaN by the canonical quiet NaN of the type. */
typedef void (*kernel_canonical)(void *inout, size_t count);

enum { HASH_LANES = 256 };

struct kernels {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */
    /* The entries of REDOP_AVG and REDOP_PREMUL equal that of REDOP_SUM.  In the rows F16 and BF16 only b has that type; a and out are f32. */
    kernel_reduce reduce[DTYPE_COUNT][REDOP_COUNT];
    kernel_divide divide[DTYPE_COUNT]; /* null for types without an average, and those summed in a wider one */
    kernel_canonical canonical[DTYPE_COUNT]; /* null for integers */
    kernel_widen widen_f16, widen_bf16;
    kernel_narrow narrow_f16, narrow_bf16;
    /* further entries (quantisation, hash) are declared in quant.h and hash.h */
    const struct quant_kernels *quant;
    const struct hash_kernels *hash;
};

/* Whether some processor has a level of this name: what PCCL_CPU may say. */
bool kernels_known(const char *name);

/* The best table that this processor and PCCL_CPU allow; never null. */
const struct kernels *kernels_get(void);

/* A given level, or null if it is not built in or the processor lacks it.  For tests and benchmarks. */
const struct kernels *kernels_level(const char *name);

/* Round to nearest, denormals kept, exceptions masked: saves the control word, sets ours; leave restores. */
struct fpenv {
    uint64_t saved;
};
void fpenv_enter(struct fpenv *env);
void fpenv_leave(const struct fpenv *env);

#endif
