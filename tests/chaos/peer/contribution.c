/* contribution.c - see contribution.h.
 *
 * Integers are held as 64 bits with wrap-around and cut to their type, so that full-range sums and products have one right
 * answer; float values are small integers, exact in every type, unless `rough`.
 * SPDX-License-Identifier: MIT */
#include "contribution.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/chaos/dice.h"
#include "tests/chaos/chaos_plan.h"

enum { MASK = 32, QUANT_BLOCK = 256, DIGIT_BITS = 2, AVERAGE_MARK = 100 };

static bool is_float(pcclDataType_t type)
{
    return type >= pcclFloat16;
}

static bool is_signed(pcclDataType_t type)
{
    return type == pcclInt8 || type == pcclInt16 || type == pcclInt32 || type == pcclInt64;
}

size_t contribution_element_bytes(pcclDataType_t type)
{
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return bytes[type];
}

size_t contribution_bytes(const struct contribution *c)
{
    return c->count * contribution_element_bytes(c->type);
}

/* One element of either kind: `whole` for integers, `real` for floats. */
struct number {
    int64_t whole;
    double real;
};

/* ---- Elements in memory --------------------------------------------------------------------------------------------- */

static double half_to_double(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double v = exponent == 0    ? ldexp(fraction, -24)
               : exponent == 31 ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                                : ldexp(fraction + 1024, exponent - 25);
    return (h & 0x8000) != 0 ? -v : v;
}

/* Of a value that half precision holds exactly and as a normal number, or 0. */
static uint16_t half_of_exact(double v)
{
    int exponent;
    uint16_t sign = v < 0 ? 0x8000 : 0;
    double fraction = frexp(fabs(v), &exponent);
    return fraction == 0 ? sign
                         : (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(fraction, 11) & 1023));
}

static void store(pcclDataType_t type, void *buffer, size_t at, struct number n)
{
    unsigned char *to = (unsigned char *)buffer + at * contribution_element_bytes(type);
    if (!is_float(type)) {
        memcpy(to, &n.whole, contribution_element_bytes(type)); /* little-endian, like everything here */
    } else if (type == pcclFloat16) {
        uint16_t half = half_of_exact(n.real);
        memcpy(to, &half, sizeof half);
    } else if (type == pcclDouble) {
        memcpy(to, &n.real, sizeof n.real);
    } else {
        float single = (float)n.real;
        memcpy(to, (const char *)&single + (type == pcclBFloat16 ? 2 : 0), type == pcclBFloat16 ? 2 : 4);
    }
}

/* Integers cut to their type and extended again, by sign where they have one. */
static int64_t cut(pcclDataType_t type, int64_t whole)
{
    int away = 64 - 8 * (int)contribution_element_bytes(type);
    return is_signed(type) ? (int64_t)((uint64_t)whole << away) >> away
                           : (int64_t)((uint64_t)whole << away >> away);
}

static struct number load(pcclDataType_t type, const void *buffer, size_t at)
{
    const unsigned char *from = (const unsigned char *)buffer + at * contribution_element_bytes(type);
    struct number n = {0, 0};
    uint16_t half;
    float single = 0;
    if (!is_float(type)) {
        memcpy(&n.whole, from, contribution_element_bytes(type));
        n.whole = cut(type, n.whole);
    } else if (type == pcclFloat16) {
        memcpy(&half, from, sizeof half);
        n.real = half_to_double(half);
    } else if (type == pcclDouble) {
        memcpy(&n.real, from, sizeof n.real);
    } else {
        memcpy((char *)&single + (type == pcclBFloat16 ? 2 : 0), from, type == pcclBFloat16 ? 2 : 4);
        n.real = (double)single;
    }
    return n;
}

/* ---- Who took part -------------------------------------------------------------------------------------------------- */

/* Short 64-bit sums carry a digit of two bits per key in element 0; everything else an element per key. */
static bool in_digits(const struct contribution *c)
{
    return c->op == pcclSum && c->quantised == pcclQuantNone && c->count < MASK && c->count > 0 &&
           contribution_element_bytes(c->type) == 8;
}

static size_t marks(const struct contribution *c)
{
    return in_digits(c) ? 1 : c->quantised != pcclQuantNone ? QUANT_BLOCK : MASK; /* a block has a scale of its own */
}

size_t contribution_telling(const struct contribution *c)
{
    return marks(c) + (c->quantised != pcclQuantNone ? 1 : 0);
}

static struct number of(int64_t whole)
{
    return (struct number){whole, (double)whole};
}

/* Element `at` of the marks: what a peer puts there that is the one meant, or is not. */
static struct number mark(const struct contribution *c, bool meant)
{
    switch (c->op) {
    case pcclSum:
    case pcclMax:
        return of(meant);
    case pcclAvg:
        return of(meant ? AVERAGE_MARK : 0);
    case pcclProd:
        return of(meant ? 2 : 1);
    case pcclBitOr:
    case pcclBitXor:
        return of(meant);
    case pcclMin:
    case pcclBitAnd:
        return of(meant ? 0 : 1);
    case pcclRedOpMost:
        break;
    }
    return of(0);
}

/* ---- Values --------------------------------------------------------------------------------------------------------- */

static struct number value(const struct contribution *c, unsigned key, size_t at)
{
    uint64_t h = (c->call + at + ((uint64_t)key << 48)) * 0x9fb21c651e98df25u; /* cheap: there are millions of them */
    h = (h ^ h >> 35) * 0x9fb21c651e98df25u;
    h ^= h >> 28;
    if (c->rough) {
        double v = (double)(int64_t)(h >> 11) / (double)(UINT64_C(1) << 50) / 3;
        return (struct number){0, c->op == pcclProd ? 1 + v / 64 : v};
    }
    if (is_float(c->type)) {
        return of(c->op == pcclProd ? 1 + (int64_t)(h & 1) : (int64_t)(h % 8));
    }
    return c->op == pcclAvg ? of((int64_t)(h % 4)) : (struct number){cut(c->type, (int64_t)h), 0};
}

static struct number element(const struct contribution *c, unsigned key, size_t at)
{
    if (in_digits(c)) {
        return at == 0 ? of((int64_t)(UINT64_C(1) << DIGIT_BITS * key)) : value(c, key, at);
    }
    if (c->count >= contribution_telling(c) && at < marks(c)) {
        return mark(c, at == key);
    }
    return value(c, key, at);
}

void contribution_fill(const struct contribution *c, unsigned key, void *buffer)
{
    for (size_t i = 0; i < c->count; i++) {
        store(c->type, buffer, i, element(c, key, i));
    }
}

bool contribution_unchanged(const struct contribution *c, unsigned key, const void *buffer)
{
    size_t size = contribution_element_bytes(c->type);
    for (size_t i = 0; i < c->count; i++) {
        uint64_t expected = 0, found = 0;
        store(c->type, &expected, 0, element(c, key, i));
        memcpy(&found, (const char *)buffer + i * size, size);
        if (memcmp(&expected, &found, size) != 0) {
            return false;
        }
    }
    return true;
}

/* ---- The fold ------------------------------------------------------------------------------------------------------- */

static bool less(const struct contribution *c, struct number a, struct number b)
{
    if (is_float(c->type)) {
        return a.real < b.real;
    }
    return is_signed(c->type) ? a.whole < b.whole : (uint64_t)a.whole < (uint64_t)b.whole;
}

static struct number fold(const struct contribution *c, struct number a, struct number b)
{
    switch (c->op) {
    case pcclSum:
    case pcclAvg:
        return (struct number){cut(c->type, (int64_t)((uint64_t)a.whole + (uint64_t)b.whole)), a.real + b.real};
    case pcclProd:
        return (struct number){cut(c->type, (int64_t)((uint64_t)a.whole * (uint64_t)b.whole)), a.real * b.real};
    case pcclMax:
        return less(c, a, b) ? b : a;
    case pcclMin:
        return less(c, b, a) ? b : a;
    case pcclBitAnd:
        return of(a.whole & b.whole);
    case pcclBitOr:
        return of(a.whole | b.whole);
    case pcclBitXor:
        return of(a.whole ^ b.whole);
    case pcclRedOpMost:
        break;
    }
    return a;
}

static struct number finish(const struct contribution *c, struct number n, uint32_t world)
{
    if (c->op != pcclAvg) {
        return n;
    }
    return (struct number){n.whole / (int64_t)world, n.real / (double)world};
}

/* What element `at` must be if those of `who` took part; *range_out: between the least and the most of the inputs. */
static struct number expected(const struct contribution *c, uint64_t who, uint32_t world, size_t at, double *range_out)
{
    struct number all = {0, 0};
    double most = 0;
    bool first = true;
    for (unsigned key = 0; key < PLAN_PEERS; key++) {
        if ((who >> key & 1) == 0) {
            continue;
        }
        struct number one = element(c, key, at);
        all = first ? one : fold(c, all, one);
        most += fabs(one.real);
        first = false;
    }
    *range_out = most;
    return finish(c, all, world);
}

/* How far a float result may be off: nothing for exact values, rounding for rough ones, steps of the code if quantised. */
static double tolerance(const struct contribution *c, double magnitude)
{
    double of_type = c->type == pcclDouble ? 1e-12 : c->type == pcclFloat ? 1e-5 : c->op == pcclAvg ? 0.01 : 0;
    if (c->quantised != pcclQuantNone) {
        bool coarse = contribution_element_bytes(c->quantised_to) == 1;
        return (magnitude + 16) * (coarse ? 0.05 : 0.001) * (c->op == pcclProd ? 64 : 1);
    }
    return c->rough || c->op == pcclAvg ? of_type * (magnitude + 1) : 0;
}

static bool right(const struct contribution *c, struct number found, struct number wanted, double magnitude)
{
    if (!is_float(c->type)) {
        return found.whole == wanted.whole;
    }
    double t = tolerance(c, fabs(magnitude) > fabs(wanted.real) ? fabs(magnitude) : fabs(wanted.real));
    return found.real == wanted.real || fabs(found.real - wanted.real) <= t;
}

/* Is a mark `meant`, and not the `other`?  Quantised ones are a little off. */
static bool near(const struct contribution *c, struct number found, struct number meant, struct number other)
{
    double allowed = fabs(meant.real - other.real) * (c->quantised != pcclQuantNone ? 0.45 : 0.01);
    return is_float(c->type) ? fabs(found.real - meant.real) <= allowed
                             : found.whole == meant.whole;
}

/* Who took part, by the marks; false if one took part more than once. */
static bool read_marks(const struct contribution *c, const void *result, uint32_t world, uint64_t *who_out,
                       char text[CONTRIBUTION_TEXT])
{
    struct number digits = load(c->type, result, 0);
    uint64_t sum = is_float(c->type) ? (uint64_t)digits.real : (uint64_t)digits.whole;
    for (unsigned key = 0; key < PLAN_PEERS; key++) {
        struct number found, in = mark(c, true), out = mark(c, false);
        if (in_digits(c)) {
            found = of((int64_t)(sum >> DIGIT_BITS * key & 3));
            in = of(1);
            out = of(0);
        } else {
            found = load(c->type, result, key);
            in = c->op == pcclAvg ? finish(c, in, world) : in;
        }
        if (near(c, found, in, out)) {
            *who_out |= UINT64_C(1) << key;
        } else if (!near(c, found, out, in)) {
            snprintf(text, CONTRIBUTION_TEXT, "key %u took part %" PRId64 " or %g times", key, found.whole, found.real);
            return false;
        }
    }
    return true;
}

bool contribution_check(const struct contribution *c, const void *result, uint32_t world, uint64_t *who_out,
                        char text[CONTRIBUTION_TEXT])
{
    double range = 0;
    *who_out = 0;
    if (c->count < contribution_telling(c)) {
        return true;
    }
    if (!read_marks(c, result, world, who_out, text)) {
        return false;
    }
    if ((uint32_t)__builtin_popcountll(*who_out) != world) {
        snprintf(text, CONTRIBUTION_TEXT, "set %" PRIx64 " took part, the world says %u", *who_out, world);
        return false;
    }
    for (size_t i = marks(c); i < c->count; i++) {
        struct number found = load(c->type, result, i), wanted = expected(c, *who_out, world, i, &range);
        if (!right(c, found, wanted, range)) {
            snprintf(text, CONTRIBUTION_TEXT,
                     "element %zu of %zu is %" PRId64 " or %.17g, expected %" PRId64 " or %.17g; type %d, op %d, set %" PRIx64,
                     i, c->count, found.whole, found.real, wanted.whole, wanted.real, (int)c->type, (int)c->op, *who_out);
            return false;
        }
    }
    return true;
}

uint64_t contribution_digest(const void *bytes, size_t size)
{
    uint64_t h = size, word = 0;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, (const char *)bytes + i, 8);
        h = (h ^ word) * 0x9fb21c651e98df25u;
        h ^= h >> 32;
    }
    word = 0;
    if (i < size) {
        memcpy(&word, (const char *)bytes + i, size - i);
    }
    return dice_hash(h, word);
}
