/* numeric.c - how the numbers of one operation travel and add up.
 *
 * Plain types are the same bytes in all three forms; f16 and bf16 are widened to f32 and rounded once at the end;
 * quantised ones are decoded, summed in full precision and, unless the sum is exact, quantised once; of a pre-multiplied sum each product is taken on its way
 * from the user, like a quantised one.  Conversions go through tiles on the stack
 * that stay in the first cache.  Invariant: after numeric_finish, `user` is exactly what the others decode from `wire`.
 * SPDX-License-Identifier: MIT */
#include "kernels/numeric.h"

#include <string.h>

#include "kernels/quant.h"

enum { NUMERIC_TILE = 4 * NUMERIC_BLOCK, NUMERIC_AHEAD = 4096 };

/* Big enough for a tile of f64, and for a tile's wire form. */
union numeric_tile {
    float f32[NUMERIC_TILE];
    double f64[NUMERIC_TILE];
    uint8_t bytes[NUMERIC_TILE * sizeof(double)];
};

static bool numeric_is_half(const struct numeric *n)
{
    return n->dtype == DTYPE_F16 || n->dtype == DTYPE_BF16;
}

bool numeric_quant_supported(enum dtype dtype, enum quant quant, enum dtype quant_dtype)
{
    const bool is_unsigned =
        quant_dtype == DTYPE_U8 || quant_dtype == DTYPE_U16 || quant_dtype == DTYPE_U32 || quant_dtype == DTYPE_U64;
    const bool is_signed =
        quant_dtype == DTYPE_I8 || quant_dtype == DTYPE_I16 || quant_dtype == DTYPE_I32 || quant_dtype == DTYPE_I64;
    if (dtype != DTYPE_F32 && dtype != DTYPE_F64) {
        return false;
    }
    return quant == QUANT_MINMAX ? is_unsigned : quant == QUANT_ZPS && (is_unsigned || is_signed);
}

bool numeric_init(struct numeric *n, enum dtype dtype, enum redop op, enum quant quant, enum dtype quant_dtype,
                  const struct kernels *kernels)
{
    if ((unsigned)dtype >= DTYPE_COUNT || (unsigned)op >= REDOP_COUNT || (unsigned)quant >= QUANT_COUNT) {
        return false;
    }
    if (quant != QUANT_NONE && !numeric_quant_supported(dtype, quant, quant_dtype)) {
        return false;
    }
    if (quant != QUANT_NONE && dtype_size(quant_dtype) >= dtype_size(dtype)) {
        quant = QUANT_NONE; /* integers as wide as the numbers save nothing: these go as they are, and lose nothing */
    }
    n->dtype = dtype;
    n->op = op;
    n->quant = quant;
    n->quant_dtype = quant != QUANT_NONE ? quant_dtype : dtype;
    n->acc_dtype = numeric_is_half(n) ? DTYPE_F32 : dtype;
    n->encoded = quant != QUANT_NONE || op == REDOP_PREMUL;
    n->plain = !n->encoded && !numeric_is_half(n);
    n->factor = 0;
    n->exact = false;
    n->kernels = kernels;
    return true;
}

size_t numeric_user_bytes(const struct numeric *n, size_t count)
{
    return count * dtype_size(n->dtype);
}

size_t numeric_wire_bytes(const struct numeric *n, size_t count)
{
    return n->quant != QUANT_NONE ? quant_wire_bytes(n, count) : numeric_user_bytes(n, count);
}

size_t numeric_acc_bytes(const struct numeric *n, size_t count)
{
    return count * dtype_size(n->acc_dtype);
}

static void numeric_widen(const struct numeric *n, float *out, const uint16_t *in, size_t count)
{
    (n->dtype == DTYPE_F16 ? n->kernels->widen_f16 : n->kernels->widen_bf16)(out, in, count);
}

static void numeric_narrow(const struct numeric *n, uint16_t *out, const float *in, size_t count)
{
    (n->dtype == DTYPE_F16 ? n->kernels->narrow_f16 : n->kernels->narrow_bf16)(out, in, count);
}

/* Lets the loads of what follows run ahead of the arithmetic: the hardware's own prefetch stops at pages, and arithmetic in the cache
 * does not hide that.  Past the end it is harmless. */
static void numeric_ahead(const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64) {
        __builtin_prefetch((const void *)((uintptr_t)from + NUMERIC_AHEAD + at));
    }
}

/* A buffer of no elements may be null, which memmove does not take. */
static void numeric_move(const struct numeric *n, void *to, const void *from, size_t count)
{
    if (count > 0) {
        memmove(to, from, numeric_user_bytes(n, count));
    }
}

/* acc form of one wire range, without touching the floating-point environment. */
static void numeric_expand(const struct numeric *n, void *acc, const void *wire, size_t count)
{
    if (n->quant != QUANT_NONE) {
        quant_decode(n, acc, wire, count);
    } else if (numeric_is_half(n)) {
        numeric_widen(n, acc, wire, count);
    } else {
        numeric_move(n, acc, wire, count);
    }
}

/* So many times the factor, as what the products are computed in. */
static void numeric_factors(const struct numeric *n, union numeric_tile *factors, size_t count)
{
    uint64_t bits = n->factor;
    if (numeric_is_half(n)) {
        float wide;
        numeric_widen(n, &wide, (const uint16_t *)(const void *)&bits, 1); /* little-endian, like everything here */
        memcpy(&bits, &wide, sizeof wide);
    }
    const size_t size = dtype_size(n->acc_dtype);
    for (size_t i = 0; i < count; i++) {
        memcpy(factors->bytes + i * size, &bits, size);
    }
}

/* Each product is rounded once to the user type: that of two halves is exact in single precision. */
static void numeric_multiply(const struct numeric *n, void *out, const void *user, const union numeric_tile *factors, size_t count)
{
    const kernel_reduce prod = n->kernels->reduce[n->acc_dtype][REDOP_PROD];
    if (numeric_is_half(n)) {
        union numeric_tile wide;
        numeric_widen(n, wide.f32, user, count);
        prod(&wide, &wide, factors, count);
        numeric_narrow(n, out, wide.f32, count);
    } else {
        prod(out, user, factors, count);
    }
}

/* Tile by tile: multiplied, then quantised. */
static void numeric_encode_tiles(const struct numeric *n, uint8_t *wire, const uint8_t *user, size_t count)
{
    union numeric_tile factors, product;
    numeric_factors(n, &factors, count < NUMERIC_TILE ? count : NUMERIC_TILE);
    while (count > 0) {
        const size_t part = count < NUMERIC_TILE ? count : NUMERIC_TILE;
        numeric_ahead(user, numeric_is_half(n) ? numeric_user_bytes(n, part) : 0);
        numeric_multiply(n, n->quant != QUANT_NONE ? product.bytes : wire, user, &factors, part);
        if (n->quant != QUANT_NONE) {
            quant_encode(n, wire, &product, part);
        }
        user += numeric_user_bytes(n, part);
        wire += numeric_wire_bytes(n, part);
        count -= part;
    }
}

void numeric_encode(const struct numeric *n, void *wire, const void *user, size_t count)
{
    if (!n->encoded) {
        numeric_move(n, wire, user, count);
        return;
    }
    struct fpenv env;
    fpenv_enter(&env);
    if (n->op == REDOP_PREMUL) {
        numeric_encode_tiles(n, wire, user, count);
    } else {
        quant_encode(n, wire, user, count);
    }
    fpenv_leave(&env);
}

void numeric_decode(const struct numeric *n, void *user, const void *wire, size_t count)
{
    if (n->quant == QUANT_NONE) {
        numeric_move(n, user, wire, count);
        return;
    }
    struct fpenv env;
    fpenv_enter(&env);
    quant_decode(n, user, wire, count);
    fpenv_leave(&env);
}

void numeric_load(const struct numeric *n, void *acc, const void *wire, size_t count)
{
    uint8_t *to = acc;
    const uint8_t *from = wire;
    struct fpenv env;
    fpenv_enter(&env);
    while (count > 0) {
        const size_t part = count < NUMERIC_TILE ? count : NUMERIC_TILE;
        numeric_ahead(from, n->plain ? 0 : numeric_wire_bytes(n, part));
        numeric_expand(n, to, from, part);
        to += numeric_acc_bytes(n, part);
        from += numeric_wire_bytes(n, part);
        count -= part;
    }
    fpenv_leave(&env);
}

void numeric_fold(const struct numeric *n, void *acc, const void *wire, size_t count)
{
    if (n->plain) {
        numeric_fold_plain(n, acc, acc, wire, count);
        return;
    }
    const kernel_reduce reduce = n->kernels->reduce[numeric_is_half(n) ? n->dtype : n->acc_dtype][n->op];
    uint8_t *to = acc;
    const uint8_t *from = wire;
    struct fpenv env;
    fpenv_enter(&env);
    if (n->quant == QUANT_NONE) {
        reduce(acc, acc, wire, count);
        count = 0;
    }
    while (count > 0) {
        union numeric_tile tile;
        const size_t part = count < NUMERIC_TILE ? count : NUMERIC_TILE;
        numeric_ahead(from, numeric_wire_bytes(n, part));
        quant_decode(n, &tile, from, part);
        reduce(to, to, &tile, part);
        to += numeric_acc_bytes(n, part);
        from += numeric_wire_bytes(n, part);
        count -= part;
    }
    fpenv_leave(&env);
}

/* Ends one tile of a type that is not plain.  `wire` may be null. */
static void numeric_finish_tile(const struct numeric *n, void *user, void *wire, void *acc, size_t count)
{
    union numeric_tile tile;
    if (n->quant != QUANT_NONE && (!n->exact || wire != NULL)) {
        quant_encode(n, wire != NULL ? wire : tile.bytes, acc, count);
        quant_decode(n, user, wire != NULL ? wire : tile.bytes, count);
    } else {
        if (numeric_is_half(n)) {
            numeric_narrow(n, user, acc, count);
        } else {
            numeric_move(n, user, acc, count);
        }
        if (wire != NULL) {
            numeric_move(n, wire, user, count);
        }
    }
}

void numeric_finish(const struct numeric *n, void *user, void *wire, void *acc, size_t count, uint32_t world)
{
    if (n->plain) {
        numeric_finish_plain(n, acc, count, world);
        if (wire != NULL) {
            memmove(wire, acc, numeric_user_bytes(n, count));
        }
        memmove(user, acc, numeric_user_bytes(n, count));
        return;
    }
    uint8_t *to_user = user, *to_wire = wire, *from = acc;
    struct fpenv env;
    fpenv_enter(&env);
    while (count > 0) {
        const size_t part = count < NUMERIC_TILE ? count : NUMERIC_TILE;
        if (n->op == REDOP_AVG) {
            n->kernels->divide[n->acc_dtype](from, part, world);
        }
        numeric_finish_tile(n, to_user, wire != NULL ? to_wire : NULL, from, part);
        from += numeric_acc_bytes(n, part);
        to_user += numeric_user_bytes(n, part);
        if (wire != NULL) {
            to_wire += numeric_wire_bytes(n, part);
        }
        count -= part;
    }
    fpenv_leave(&env);
}

void numeric_fold_plain(const struct numeric *n, void *out, const void *a, const void *b, size_t count)
{
    struct fpenv env;
    fpenv_enter(&env);
    n->kernels->reduce[n->dtype][n->op](out, a, b, count);
    fpenv_leave(&env);
}

void numeric_finish_plain(const struct numeric *n, void *inout, size_t count, uint32_t world)
{
    if (n->op != REDOP_AVG) {
        return;
    }
    struct fpenv env;
    fpenv_enter(&env);
    n->kernels->divide[n->dtype](inout, count, world);
    fpenv_leave(&env);
}

void numeric_canonical(const struct numeric *n, void *user, size_t count)
{
    const kernel_canonical canonical = n->kernels->canonical[n->dtype];
    if (canonical != NULL) {
        canonical(user, count);
    }
}
