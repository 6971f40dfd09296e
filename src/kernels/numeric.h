/* numeric.h - how the numbers of one operation travel and add up: the only face of the kernels that plans and executors
 * use.
 *
 * Three representations of `count` elements:
 *   user   what the program gave: count x dtype
 *   wire   what is sent: user bytes for plain types; for quantised ones blocks of (metadata, integers); for f16 and bf16
 *          the user bytes; for a pre-multiplied sum all that times the factor, in the user type, before it is quantised
 *   acc    what is summed: user type for plain types; f32 for f16, bf16 and quantised f32; f64 for quantised f64
 * "plain" means that all three are the same bytes: receive, fold and send then need no conversion (numeric_fold_plain).
 * Quantised data: a frame begins at a multiple of NUMERIC_BLOCK elements of its buffer, or of its part where a plan has
 * parts, so blocks do not depend on who owns what.
 * All functions set and restore the floating-point environment themselves.  Alignment is free.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_NUMERIC_H
#define PCCL_KERNELS_NUMERIC_H

#include "core/dtype.h"
#include "kernels/kernels.h"

enum { NUMERIC_BLOCK = 256 };

struct numeric {
    enum dtype dtype;       /* user type */
    enum redop op;
    enum quant quant;
    enum dtype quant_dtype; /* meaningful with quant != QUANT_NONE */
    enum dtype acc_dtype;
    bool plain;
    bool exact;             /* one member alone gets the result: it is quantised only if another has summed it up, and sends it */
    bool encoded;           /* what a member gives is not the user bytes as they lie: it is quantised, or multiplied */
    uint64_t factor;        /* REDOP_PREMUL: the bits of this member's own, in the user type; set by whoever encodes */
    const struct kernels *kernels; /* borrowed, static */
};

/* False if the combination is not supported (nothing written).  Whoever folds has seen to it that the type has the operator (redop_for). */
bool numeric_init(struct numeric *n, enum dtype dtype, enum redop op, enum quant quant, enum dtype quant_dtype,
                  const struct kernels *kernels);

size_t numeric_user_bytes(const struct numeric *n, size_t count);
size_t numeric_wire_bytes(const struct numeric *n, size_t count); /* same for every content */
size_t numeric_acc_bytes(const struct numeric *n, size_t count);

/* user -> wire (multiplies, quantises, or copies); not quantised, `wire` may equal `user`. */
void numeric_encode(const struct numeric *n, void *wire, const void *user, size_t count);
/* wire -> user (dequantises, or copies); same bits on every machine. */
void numeric_decode(const struct numeric *n, void *user, const void *wire, size_t count);
/* acc = wire, widened. */
void numeric_load(const struct numeric *n, void *acc, const void *wire, size_t count);
/* acc = acc op wire. */
void numeric_fold(const struct numeric *n, void *acc, const void *wire, size_t count);
/* Ends a reduction of `world` contributions: averages if the op says so, then wire = rounded or quantised acc and
 * user = what everybody will decode from that wire.  `acc` is destroyed.  `wire` may be null if nobody needs it. */
void numeric_finish(const struct numeric *n, void *user, void *wire, void *acc, size_t count, uint32_t world);

/* Plain types only: out = a op b; `out` may equal `a`. */
void numeric_fold_plain(const struct numeric *n, void *out, const void *a, const void *b, size_t count);
/* Plain types only: the averaging at the end, in place.  No-op unless op is REDOP_AVG. */
void numeric_finish_plain(const struct numeric *n, void *inout, size_t count, uint32_t world);

/* Replaces NaNs in user data by the canonical one (needed where several peers compute the same element). */
void numeric_canonical(const struct numeric *n, void *user, size_t count);

/* Whether dtype -> quant_dtype with this algorithm is offered (the list in pccl.h). */
bool numeric_quant_supported(enum dtype dtype, enum quant quant, enum dtype quant_dtype);

#endif
