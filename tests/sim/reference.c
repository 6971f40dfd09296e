/* reference.c - an all-reduce computed another way, to compare with.
 *
 * One idea: inputs are small integers and powers of two, so that exact integer and double arithmetic gives the one right answer
 * whatever the order; it is rounded once, here by hand.  Quantised results must lie within the sum of the steps' bounds.
 * Sums of f32 and f64 have fractions, so that the order of folding shows: they must lie within the rounding of each step
 * here, and be the same bits on all peers (oracle.c).
 * Invariant: nothing of the library's kernels is used.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "program.h"


static double float_of_half(uint16_t h, bool bfloat)
{
    uint64_t u = h;
    float f;
    double v;
    if (bfloat) {
        uint32_t b = (uint32_t)h << 16;
        memcpy(&f, &b, 4);
        return f;
    }
    unsigned exponent = (h >> 10) & 31;
    if (exponent == 0) {
        v = (h & 0x3FF) * 0x1p-24;
        return h & 0x8000 ? -v : v;
    }
    u = (u & 0x8000) << 48 | (uint64_t)(exponent == 31 ? 2047 : exponent + 1008) << 52 | (u & 0x3FF) << 42;
    memcpy(&v, &u, 8);
    return v;
}

/* Nearest value with `bits` of significand and exponents of half or bfloat16; ties to even. */
static double round_to(double v, bool bfloat)
{
    if (v == 0 || !isfinite(v)) {
        return v;
    }
    int exponent;
    frexp(v, &exponent);
    int bits = bfloat ? 8 : 11, least = bfloat ? -133 : -24;
    int scale = exponent - bits > least ? exponent - bits : least;
    double r = ldexp(nearbyint(ldexp(v, -scale)), scale);
    double most = bfloat ? ldexp(255, 120) : 65504;
    return fabs(r) > most ? copysign(INFINITY, v) : r;
}

static inline __attribute__((always_inline)) double value_at(const void *data, uint64_t i, enum dtype type)
{
    switch (type) {
    case DTYPE_U8:
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2: return ((const uint8_t *)data)[i];
    case DTYPE_BOOL: return ((const uint8_t *)data)[i] != 0;
    case DTYPE_I8: return ((const int8_t *)data)[i];
    case DTYPE_I16: return ((const int16_t *)data)[i];
    case DTYPE_U16: return ((const uint16_t *)data)[i];
    case DTYPE_U32: return ((const uint32_t *)data)[i];
    case DTYPE_I32: return ((const int32_t *)data)[i];
    case DTYPE_U64: return (double)((const uint64_t *)data)[i];
    case DTYPE_I64: return (double)((const int64_t *)data)[i];
    case DTYPE_F16: return float_of_half(((const uint16_t *)data)[i], false);
    case DTYPE_BF16: return float_of_half(((const uint16_t *)data)[i], true);
    case DTYPE_F32: return ((const float *)data)[i];
    case DTYPE_F64: return ((const double *)data)[i];
    case DTYPE_COUNT: break;
    }
    return 0;
}

/* Integers wrap like the type does: everything modulo 2^64, cut at the end. */
static inline __attribute__((always_inline)) uint64_t integer_at(const void *data, uint64_t i, enum dtype type)
{
    if (type == DTYPE_U64 || type == DTYPE_I64) {
        return ((const uint64_t *)data)[i];
    }
    return (uint64_t)(int64_t)value_at(data, i, type);
}

static int64_t integer_cut(uint64_t v, enum dtype type)
{
    switch (dtype_size(type)) {
    case 1:
        return type == DTYPE_U8 || type == DTYPE_BOOL ? (int64_t)(uint8_t)v : (int64_t)(int8_t)v;
    case 2:
        return type == DTYPE_U16 ? (int64_t)(uint16_t)v : (int64_t)(int16_t)v;
    case 4:
        return type == DTYPE_U32 ? (int64_t)(uint32_t)v : (int64_t)(int32_t)v;
    default:
        return (int64_t)v;
    }
}

static inline bool type_is_float(enum dtype type)
{
    return type >= DTYPE_F16 && type <= DTYPE_F64;
}

struct fold {
    double real, size; /* size: sum of magnitudes */
    uint64_t whole;
};

/* One member's input into the folds of all elements; floating point needs no whole numbers. */
static inline __attribute__((always_inline)) void fold_add(struct fold *folds, const void *data, const struct op_params *p, double factor,
                                                           bool first, enum dtype type)
{
    for (uint64_t i = 0; i < p->count; i++) {
        struct fold *f = &folds[i];
        double v = value_at(data, i, type) * factor;
        uint64_t u = type_is_float(type) ? 0 : integer_at(data, i, type);
        if (first) {
            *f = (struct fold){.real = v, .size = fabs(v), .whole = u};
            continue;
        }
        f->size += fabs(v);
        switch ((enum redop)p->op) {
        case REDOP_SUM:
        case REDOP_AVG:
        case REDOP_PREMUL:
            f->real += v;
            f->whole += u;
            break;
        case REDOP_PROD:
            f->real *= v;
            f->whole *= u;
            break;
        case REDOP_MAX:
            f->real = v > f->real ? v : f->real;
            f->whole = (int64_t)u > (int64_t)f->whole ? u : f->whole;
            break;
        case REDOP_MIN:
            f->real = v < f->real ? v : f->real;
            f->whole = (int64_t)u < (int64_t)f->whole ? u : f->whole;
            break;
        case REDOP_AND:
            f->whole &= u;
            break;
        case REDOP_OR:
            f->whole |= u;
            break;
        case REDOP_XOR:
            f->whole ^= u;
            break;
        case REDOP_COUNT:
            break;
        }
    }
}

/* Of the member that runs on this node. */
static void fold_member(struct fold *folds, const void *data, const struct op_params *p, uint32_t node, bool first)
{
    double factor = p->op == REDOP_PREMUL ? program_factor(node) : 1;
    switch ((enum dtype)p->dtype) {
    case DTYPE_U8: fold_add(folds, data, p, factor, first, DTYPE_U8); break;
    case DTYPE_I8: fold_add(folds, data, p, factor, first, DTYPE_I8); break;
    case DTYPE_U16: fold_add(folds, data, p, factor, first, DTYPE_U16); break;
    case DTYPE_I16: fold_add(folds, data, p, factor, first, DTYPE_I16); break;
    case DTYPE_U32: fold_add(folds, data, p, factor, first, DTYPE_U32); break;
    case DTYPE_I32: fold_add(folds, data, p, factor, first, DTYPE_I32); break;
    case DTYPE_U64: fold_add(folds, data, p, factor, first, DTYPE_U64); break;
    case DTYPE_I64: fold_add(folds, data, p, factor, first, DTYPE_I64); break;
    case DTYPE_F16: fold_add(folds, data, p, factor, first, DTYPE_F16); break;
    case DTYPE_BF16: fold_add(folds, data, p, factor, first, DTYPE_BF16); break;
    case DTYPE_F32: fold_add(folds, data, p, factor, first, DTYPE_F32); break;
    case DTYPE_F64: fold_add(folds, data, p, factor, first, DTYPE_F64); break;
    case DTYPE_BOOL: fold_add(folds, data, p, factor, first, DTYPE_BOOL); break;
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2:
    case DTYPE_COUNT: break;
    }
}

static bool element_right(const struct fold *f, const struct call *c, uint64_t i, uint32_t world)
{
    const struct op_params *p = &c->params;
    enum dtype type = (enum dtype)p->dtype;
    if (!type_is_float(type)) {
        if (type == DTYPE_BOOL && world > 1) { /* a sum of how many are true, or one of them; the answer is a 0 or a 1 */
            return ((const uint8_t *)c->out)[i] == (f->whole != 0);
        }
        int64_t want = integer_cut(f->whole, type), got = integer_cut(integer_at(c->out, i, type), type);
        if (p->op == REDOP_AVG) {
            want = type == DTYPE_U64 ? (int64_t)((uint64_t)want / world) : want / (int64_t)world;
        }
        return want == got;
    }
    double want = f->real, got = value_at(c->out, i, type);
    if (p->quant != QUANT_NONE) {
        want = p->op == REDOP_AVG ? want / world : want;
        int bits = p->quant_dtype == DTYPE_U8 || p->quant_dtype == DTYPE_I8 ? 8 : 16;
        double step = 32.0 / (ldexp(1, bits - 1) - 1); /* inputs lie in [-8, 8]; a block's range is at most twice that */
        bool sum = p->op == REDOP_SUM || p->op == REDOP_PREMUL;
        double each = sum ? (double)world : 1;
        return fabs(got - want) <= step * (each + 1) * (sum ? (double)world / 2 + 1 : 2);
    }
    if (program_fractions(p)) {
        double step = type == DTYPE_F32 ? 0x1p-23 : 0x1p-52, over = p->op == REDOP_AVG ? world : 1;
        return fabs(got - want / over) <= step * (world + 1) * f->size / over;
    }
    if (p->op == REDOP_AVG) {
        want = type == DTYPE_F64 ? want / world : (double)((float)want / (float)world);
    }
    if (type == DTYPE_F32) {
        want = (float)want;
    } else if (type == DTYPE_F16 || type == DTYPE_BF16) {
        want = round_to(want, type == DTYPE_BF16);
    }
    return want == got;
}

/* Sums of this rank's part. */
static bool reference_part(const struct cluster *cl, const struct view_record *view, const struct call *c, uint32_t self)
{
    static unsigned char input[CLUSTER_BYTES + 8];
    static struct fold folds[CLUSTER_BYTES];
    struct op_params p = c->params;
    p.count = parts_output(c, self);
    for (uint32_t m = 0; m < view->members; m++) {
        parts_given(cl, view, c, m, input);
        fold_member(folds, input + parts_from(c, m, self) * dtype_size((enum dtype)p.dtype), &p,
                    oracle_node_of(cl, view->ids[m]), m == 0);
    }
    for (uint64_t i = 0; i < p.count; i++) {
        if (!element_right(&folds[i], c, i, view->members)) {
            return false;
        }
    }
    return true;
}

static bool reference_ordered(const struct cluster *cl, const struct view_record *by_id, const struct call *c, char *why, size_t size)
{
    struct view_record ranked = *by_id;
    const struct view_record *view = &ranked;
    uint32_t self = 0;
    oracle_by_keys(cl, &ranked);
    while (self < view->members && view->ids[self] != c->node->id) {
        self++;
    }
    bool fits = self < view->members && c->world == view->members && c->rank == self;
    bool right = fits && (plan_kind_sums(c->params.kind) ? reference_part(cl, view, c, self)
                                                                : parts_moved_right(cl, view, c, self));
    if (!right) {
        snprintf(why, size, "kind %u of %zu %s, %s, at rank %u of %u%s", c->params.kind, c->base,
                 dtype_name((enum dtype)c->params.dtype), c->uneven ? "uneven" : "even", c->rank, c->world,
                 fits ? "" : ", which is not its place in the view");
    }
    return right;
}

bool reference_check(const struct cluster *cl, const struct view_record *view, const struct call *c, char *why, size_t size)
{
    static unsigned char input[CLUSTER_BYTES + 8];
    static struct fold folds[CLUSTER_BYTES];
    if (c->params.kind != PLAN_ALL_REDUCE) {
        return reference_ordered(cl, view, c, why, size);
    }
    uint64_t key = program_key(c->node, c->op, 0);
    for (uint32_t m = 0; m < view->members; m++) {
        program_input(cl, oracle_node_of(cl, view->ids[m]), key, &c->params, input);
        fold_member(folds, input, &c->params, oracle_node_of(cl, view->ids[m]), m == 0);
    }
    for (uint64_t i = 0; i < c->params.count; i++) {
        if (!element_right(&folds[i], c, i, view->members)) {
            snprintf(why, size, "element %llu of %llu, %s of %s, quant %u, %u members: %.9g, right is %.9g",
                     (unsigned long long)i, (unsigned long long)c->params.count, redop_name((enum redop)c->params.op),
                     dtype_name((enum dtype)c->params.dtype), c->params.quant, view->members,
                     value_at(c->out, i, (enum dtype)c->params.dtype), folds[i].real);
            return false;
        }
    }
    return true;
}
