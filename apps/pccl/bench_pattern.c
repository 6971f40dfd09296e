/* bench_pattern.c - the numbers of a benchmark.
 *
 * Rank r gives i % 13 + 2 * ((r + i) % W) at element i: no two ranks, and no two places near to each other, alike.  For a
 * product one rank in turn gives 1 to 3, the others 1; of truth values some are 0.  Of
 * pre-multiplied sums ranks have the factors 1 and 2 in turn.  What comes out is computed in 64 bits and rounded once.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"

enum { BASE = 13, FACTORS = 3 };

static uint64_t given_at(enum dtype type, enum redop op, unsigned world, unsigned rank, size_t i)
{
    uint64_t value = i % BASE + 2 * ((rank + i) % world);
    if (type == DTYPE_BOOL) { /* true at all, true at some, false at most */
        return value % FACTORS < i % FACTORS ? 0 : value + 1;
    }
    if (op == REDOP_PROD) {
        return rank == i % world ? 1 + i % FACTORS : 1;
    }
    return value;
}

/* A fold of one more; sums and products wrap as the type does when they are stored, or divided. */
static uint64_t fold(enum dtype type, enum redop op, uint64_t a, uint64_t b)
{
    if (type == DTYPE_BOOL) {
        return op == REDOP_MIN || op == REDOP_AND ? a != 0 && b != 0 : a != 0 || b != 0;
    }
    switch (op) {
    case REDOP_SUM:
    case REDOP_AVG:
    case REDOP_PREMUL: return a + b;
    case REDOP_PROD: return a * b;
    case REDOP_MAX: return a > b ? a : b;
    case REDOP_MIN: return a < b ? a : b;
    case REDOP_AND: return a & b;
    case REDOP_OR: return a | b;
    case REDOP_XOR: return a ^ b;
    case REDOP_COUNT: break;
    }
    return 0;
}

/* A sum wraps as its type does before it is divided; the wide types are far from that. */
static uint64_t divide_whole(enum dtype type, uint64_t value, unsigned divisor)
{
    switch (type) {
    case DTYPE_I8: return (uint64_t)((int8_t)value / (int)divisor);
    case DTYPE_I16: return (uint64_t)((int16_t)value / (int)divisor);
    case DTYPE_U8: return (uint8_t)value / divisor;
    case DTYPE_U16: return (uint16_t)value / divisor;
    case DTYPE_I32: case DTYPE_U32: case DTYPE_I64: case DTYPE_U64:
    case DTYPE_F16: case DTYPE_BF16: case DTYPE_F32: case DTYPE_F64:
    case DTYPE_BOOL: case DTYPE_F8E4M3: case DTYPE_F8E5M2: case DTYPE_COUNT: break;
    }
    return value / divisor;
}

/* value / divisor, rounded once. */
static void store(enum dtype type, uint64_t value, unsigned divisor, unsigned char *at)
{
    float f = (float)value / (float)divisor;
    double d = (double)value / divisor;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &f, sizeof bits);
    switch (type) {
    case DTYPE_F16:
    case DTYPE_BF16:
        half = type == DTYPE_F16 ? half_f16_narrow_bits(bits) : half_bf16_narrow_bits(bits);
        memcpy(at, &half, sizeof half);
        break;
    case DTYPE_F32: memcpy(at, &f, sizeof f); break;
    case DTYPE_F64: memcpy(at, &d, sizeof d); break;
    case DTYPE_U8: case DTYPE_I8: case DTYPE_U16: case DTYPE_I16: case DTYPE_U32: case DTYPE_I32:
    case DTYPE_U64: case DTYPE_I64: case DTYPE_BOOL: case DTYPE_F8E4M3: case DTYPE_F8E5M2:
        value = divide_whole(type, value, divisor);
        for (size_t b = 0; b < dtype_size(type); b++) {
            at[b] = (unsigned char)(value >> (8 * b));
        }
        break;
    case DTYPE_COUNT: break;
    }
}

/* The rank that `source` had when all were there. */
static unsigned old_rank(unsigned source, int without)
{
    return without != BENCH_NOBODY && source >= (unsigned)without ? source + 1 : source;
}

static unsigned factor_of(unsigned rank)
{
    return 1 + rank % 2; /* exact in every type */
}

/* What the fold takes of a rank. */
static uint64_t term_at(enum dtype type, enum redop op, unsigned world, unsigned rank, size_t i)
{
    return given_at(type, op, world, rank, i) * (op == REDOP_PREMUL ? factor_of(rank) : 1);
}

static uint64_t reduced_at(const struct bench_pattern *p, enum dtype type, enum redop op, unsigned world, int without, size_t i)
{
    uint64_t value = term_at(type, op, world, old_rank(0, without), i);
    for (unsigned source = 1; source < p->world; source++) {
        value = fold(type, op, value, term_at(type, op, world, old_rank(source, without), i));
    }
    return value;
}

bool bench_pattern_init(struct bench_pattern *p, enum dtype type, enum redop op, unsigned world, int without)
{
    size_t period = (size_t)BASE * FACTORS * world, bytes = dtype_size(type);
    unsigned left = without == BENCH_NOBODY ? world : world - 1;
    unsigned char *at = malloc(period * bytes * (left + 1));
    *p = (struct bench_pattern){.period = period, .element_bytes = bytes, .world = left, .blocks = at};
    if (at == NULL) {
        return false;
    }
    for (unsigned source = 0; source < left; source++) {
        for (size_t i = 0; i < period; i++, at += bytes) {
            store(type, given_at(type, op, world, old_rank(source, without), i), 1, at);
        }
    }
    for (size_t i = 0; i < period; i++, at += bytes) {
        store(type, reduced_at(p, type, op, world, without, i), op == REDOP_AVG ? left : 1, at);
    }
    return true;
}

void bench_pattern_factor(enum dtype type, unsigned rank, unsigned char out[8])
{
    store(type, factor_of(rank), 1, out);
}

void bench_pattern_fini(struct bench_pattern *p)
{
    free(p->blocks);
    p->blocks = NULL;
}

static const unsigned char *block_of(const struct bench_pattern *p, unsigned source)
{
    return p->blocks + source * p->period * p->element_bytes;
}

void bench_pattern_fill(const struct bench_pattern *p, unsigned source, size_t first, void *out, size_t count)
{
    const unsigned char *block = block_of(p, source);
    unsigned char *to = out;
    for (size_t at = first % p->period, n; count > 0; count -= n, at = 0) {
        n = count < p->period - at ? count : p->period - at;
        memcpy(to, block + at * p->element_bytes, n * p->element_bytes);
        to += n * p->element_bytes;
    }
}

uint64_t bench_pattern_wrong(const struct bench_pattern *p, unsigned source, size_t first, const void *data, size_t count)
{
    const unsigned char *block = block_of(p, source), *from = data;
    uint64_t wrong = 0;
    for (size_t at = first % p->period, n; count > 0; count -= n, at = 0) {
        n = count < p->period - at ? count : p->period - at;
        const unsigned char *want = block + at * p->element_bytes;
        if (memcmp(from, want, n * p->element_bytes) != 0) {
            for (size_t i = 0; i < n; i++) {
                wrong += memcmp(from + i * p->element_bytes, want + i * p->element_bytes, p->element_bytes) != 0;
            }
        }
        from += n * p->element_bytes;
    }
    return wrong;
}
