/* quant.h - block quantisation: the wire form of quantised data and the kernels that make and read it.
 *
 * Values travel in blocks of NUMERIC_BLOCK elements (the last may be shorter), each (metadata, integers); all metadata
 * is little-endian, T is the source type:
 *   MinMax                      T offset, T step
 *   ZeroPointScale, signed      T scale
 *   ZeroPointScale, unsigned    the same, then the zero point as u16, of 32-bit integers as u32
 * Every block decodes as (offset + (q - zero) * scale) * post, with post = 1 but for values near the largest of T, which
 * are quantised at a quarter of their size (step sent negative).  A scale that is not finite decodes to NaN everywhere.
 * Integers of 32 bits are made of f64 only: what is no narrower than its source is sent as it is, which numeric.c decides.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_QUANT_H
#define PCCL_KERNELS_QUANT_H

#include "kernels/numeric.h"

enum quant_source { QUANT_FROM_F32 = 0, QUANT_FROM_F64, QUANT_SOURCES };
enum quant_target { QUANT_TO_U8 = 0, QUANT_TO_I8, QUANT_TO_U16, QUANT_TO_I16, QUANT_TO_U32, QUANT_TO_I32, QUANT_TARGETS };

/* The affine map of one block.  The doubles hold values of the source type. */
struct quant_map {
    double offset, scale; /* scale > 0 for encoding */
    double pre, post;     /* 1 and 1, or 1/4 and 4 */
    int64_t k_min, k_max; /* bounds of the rounded quotient, |k| below 2^(bits of the integer) */
    int64_t zero;         /* q = k + zero */
};

struct quant_kernels {
    /* Smallest and largest of in[0..count), count > 0, -0 below +0; false if one is not finite. */
    bool (*scan[QUANT_SOURCES])(const void *in, size_t count, double *min, double *max);
    /* q = clamp(round((x * pre - offset) / scale)) + zero, ties to even. */
    void (*encode[QUANT_SOURCES][QUANT_TARGETS])(void *out, const void *in, size_t count, const struct quant_map *map);
    /* x = (offset + (q - zero) * scale) * post, each operation rounded once. */
    void (*decode[QUANT_SOURCES][QUANT_TARGETS])(void *out, const void *in, size_t count, const struct quant_map *map);
};

/* Bytes of `count` elements on the wire. */
size_t quant_wire_bytes(const struct numeric *n, size_t count);
/* One or more blocks; `out` and `in` must not overlap. */
void quant_encode(const struct numeric *n, void *out, const void *in, size_t count);
void quant_decode(const struct numeric *n, void *out, const void *in, size_t count);

#endif
