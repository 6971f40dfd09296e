/* quant.c - chooses each block's affine map, writes and reads its metadata, and runs the kernels over it.
 *
 * All choices are made here, once, in scalar double arithmetic; the instruction sets only apply the map.  Scales are
 * rounded up, so that no quotient leaves the integer's range; a decoded value is then within half a scale of the
 * original, plus the rounding of the last addition (within a whole one where half a scale more would be infinite).
 * Invariant: a finite block decodes to finite values, a block of equal values exactly, one with a NaN or an infinity to NaN everywhere.
 * SPDX-License-Identifier: MIT */
#include "kernels/quant.h"

#include <float.h>
#include <string.h>

#include "kernels/half.h"

enum { QUANT_BATCH = 4 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the kernels write integers as the wire has them");

static bool quant_is_f64(const struct numeric *n)
{
    return n->dtype == DTYPE_F64;
}

static bool quant_is_signed(const struct numeric *n)
{
    return n->quant_dtype == DTYPE_I8 || n->quant_dtype == DTYPE_I16 || n->quant_dtype == DTYPE_I32;
}

static enum quant_target quant_target_of(const struct numeric *n)
{
    static const enum quant_target of_size[5][2] = {
        [1] = {QUANT_TO_U8, QUANT_TO_I8}, [2] = {QUANT_TO_U16, QUANT_TO_I16}, [4] = {QUANT_TO_U32, QUANT_TO_I32},
    };
    return of_size[dtype_size(n->quant_dtype)][quant_is_signed(n)];
}

static double quant_largest(const struct numeric *n)
{
    return quant_is_f64(n) ? DBL_MAX : (double)FLT_MAX;
}

/* The integer range: 2^bits - 1, half of it if signed. */
static int64_t quant_steps(const struct numeric *n)
{
    const int64_t all = (INT64_C(1) << (8 * dtype_size(n->quant_dtype))) - 1;
    return quant_is_signed(n) ? all / 2 : all;
}

static size_t quant_zero_bytes(const struct numeric *n)
{
    return quant_is_signed(n) ? 0 : dtype_size(n->quant_dtype) > 2 ? 4 : 2;
}

static size_t quant_meta_bytes(const struct numeric *n)
{
    const size_t size = dtype_size(n->dtype);
    if (n->quant == QUANT_MINMAX) {
        return 2 * size;
    }
    return size + quant_zero_bytes(n);
}

size_t quant_wire_bytes(const struct numeric *n, size_t count)
{
    const size_t blocks = count / NUMERIC_BLOCK + (count % NUMERIC_BLOCK != 0);
    return blocks * quant_meta_bytes(n) + count * dtype_size(n->quant_dtype);
}

static void quant_put(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t quant_get(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)from[i] << (8 * i);
    }
    return value;
}

/* A number of the source type to and from its bits. */
static uint64_t quant_bits(const struct numeric *n, double value)
{
    uint64_t bits64;
    uint32_t bits32;
    const float narrow = (float)value;
    memcpy(&bits64, &value, sizeof(bits64));
    memcpy(&bits32, &narrow, sizeof(bits32));
    return quant_is_f64(n) ? bits64 : bits32;
}

static double quant_value(const struct numeric *n, uint64_t bits)
{
    const uint32_t bits32 = (uint32_t)bits;
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof(wide));
    memcpy(&narrow, &bits32, sizeof(narrow));
    return quant_is_f64(n) ? wide : (double)narrow;
}

static bool quant_finite(const struct numeric *n, double value)
{
    return value >= -quant_largest(n) && value <= quant_largest(n); /* false for NaN */
}

/* The smallest number of the source type that is not below `value`, for finite values that are not negative. */
static double quant_round_up(const struct numeric *n, double value)
{
    const uint64_t bits = quant_bits(n, value);
    return quant_value(n, bits) < value ? quant_value(n, bits + 1) : quant_value(n, bits);
}

/* The least scale, or one next to it, whose `steps` reach over `span`: among the smallest numbers a division rounds down by much. */
static double quant_scale(const struct numeric *n, double span, double quotient, int64_t steps)
{
    const double scale = quant_round_up(n, quotient);
    return scale * (double)steps < span ? quant_value(n, quant_bits(n, scale) + 1) : scale;
}

/* Rounds to nearest, ties to even, |value| < 2^50. */
static int64_t quant_round(double value)
{
    const double magic = 6755399441055744.0;
    const double sum = value + magic;
    int64_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    return bits - 0x4338000000000000;
}

static struct quant_map quant_map_minmax(const struct numeric *n, double min, double max)
{
    const int64_t steps = quant_steps(n);
    const double quarter = quant_largest(n) / 4, little = quant_is_f64(n) ? 0x1p-45 : 0x1p-20;
    struct quant_map map = {.pre = 1, .post = 1, .offset = min, .k_min = 0, .k_max = steps};
    if (max > min && (max > quarter || min < -quarter)) {
        /* at a quarter of the size nothing overflows; the step a little small, so that the top stays below max */
        map.pre = 0.25;
        map.post = 4;
        map.offset = min / 4;
        const double range = max / 4 - map.offset;
        map.scale = quant_value(n, quant_bits(n, (range - range * little) / (double)steps));
        return map;
    }
    const double range = max - min;
    map.scale = quant_scale(n, range, range / (double)steps, steps);
    return map;
}

static struct quant_map quant_map_zps(const struct numeric *n, double min, double max)
{
    const int64_t steps = quant_steps(n);
    const double largest = quant_largest(n);
    struct quant_map map = {.pre = 1, .post = 1, .k_min = -steps, .k_max = steps};
    if (min == max && min != 0) { /* one value: it is the scale, and one step of it leads back exactly */
        return (struct quant_map){.pre = 1, .post = 1, .scale = min < 0 ? -min : min, .k_min = -1, .k_max = 1,
                                  .zero = min < 0 && !quant_is_signed(n)};
    }
    if (quant_is_signed(n)) {
        const double magnitude = max > -min ? max : -min;
        map.scale = quant_scale(n, magnitude, magnitude / (double)steps, steps);
    } else {
        const double low = min < 0 ? min : 0, high = max > 0 ? max : 0;
        /* one step is kept free: low and high each may round outwards by half */
        const double inner = (double)(steps - 1);
        map.scale = quant_scale(n, high - low, high / inner - low / inner, steps - 1);
        map.zero = map.scale > 0 ? quant_round(-low / map.scale) : 0;
        map.zero = map.zero < 0 ? 0 : map.zero > steps ? steps : map.zero;
        map.k_min = -map.zero;
        map.k_max = steps - map.zero;
    }
    if (map.scale > largest / (double)(2 * steps)) { /* the last product could overflow: bound the quotient, so far below that no rounding matters */
        const int64_t limit = (int64_t)(largest * (1 - 0x1p-50) / map.scale);
        map.k_min = map.k_min < -limit ? -limit : map.k_min;
        map.k_max = map.k_max > limit ? limit : map.k_max;
    }
    return map;
}

static size_t quant_write_meta(const struct numeric *n, uint8_t *to, const struct quant_map *map)
{
    const size_t size = dtype_size(n->dtype);
    if (n->quant == QUANT_MINMAX) {
        quant_put(to, quant_bits(n, map->offset), size);
        quant_put(to + size, quant_bits(n, map->post > 1 ? -map->scale : map->scale), size);
        return 2 * size;
    }
    quant_put(to, quant_bits(n, map->scale), size);
    quant_put(to + size, (uint64_t)map->zero, quant_zero_bytes(n));
    return quant_meta_bytes(n);
}

/* False if the block is to decode to NaN. */
static bool quant_read_meta(const struct numeric *n, const uint8_t *from, struct quant_map *map)
{
    const size_t size = dtype_size(n->dtype);
    *map = (struct quant_map){.pre = 1, .post = 1};
    if (n->quant == QUANT_MINMAX) {
        map->offset = quant_value(n, quant_get(from, size));
        map->scale = quant_value(n, quant_get(from + size, size));
        if (map->scale < 0) {
            map->scale = -map->scale;
            map->post = 4;
        }
    } else {
        map->scale = quant_value(n, quant_get(from, size));
        map->zero = (int64_t)quant_get(from + size, quant_zero_bytes(n));
    }
    return quant_finite(n, map->offset) && quant_finite(n, map->scale);
}

static struct quant_map quant_map_block(const struct numeric *n, const uint8_t *in, size_t count)
{
    double min, max;
    if (!n->kernels->quant->scan[quant_is_f64(n) ? QUANT_FROM_F64 : QUANT_FROM_F32](in, count, &min, &max)) {
        return (struct quant_map){.post = 1, .scale = (double)__builtin_nanf("")};
    }
    return n->quant == QUANT_MINMAX ? quant_map_minmax(n, min, max) : quant_map_zps(n, min, max);
}

static void quant_encode_block(const struct numeric *n, uint8_t *out, const uint8_t *in, size_t count, const struct quant_map *map)
{
    out += quant_write_meta(n, out, map);
    if (map->scale > 0) {
        const enum quant_source source = quant_is_f64(n) ? QUANT_FROM_F64 : QUANT_FROM_F32;
        n->kernels->quant->encode[source][quant_target_of(n)](out, in, count, map);
    } else { /* one value only, or NaN */
        memset(out, 0, count * dtype_size(n->quant_dtype));
    }
}

static void quant_fill_nan(const struct numeric *n, uint8_t *out, size_t count)
{
    const uint64_t bits = quant_is_f64(n) ? HALF_NAN_F64 : HALF_NAN_F32;
    const size_t size = dtype_size(n->dtype);
    for (size_t i = 0; i < count; i++) {
        quant_put(out + i * size, bits, size);
    }
}

/* A few blocks at a time: the maps of all of them are found before the first is encoded, else each step waits for the one before. */
void quant_encode(const struct numeric *n, void *out, const void *in, size_t count)
{
    const size_t block_bytes = quant_wire_bytes(n, NUMERIC_BLOCK), size = dtype_size(n->dtype);
    uint8_t *to = out;
    const uint8_t *from = in;
    while (count > 0) {
        struct quant_map map[QUANT_BATCH];
        const size_t part = count < QUANT_BATCH * NUMERIC_BLOCK ? count : QUANT_BATCH * NUMERIC_BLOCK;
        const size_t blocks = (part + NUMERIC_BLOCK - 1) / NUMERIC_BLOCK;
        for (size_t b = 0; b < blocks; b++) {
            const size_t first = b * NUMERIC_BLOCK, left = part - first;
            map[b] = quant_map_block(n, from + first * size, left < NUMERIC_BLOCK ? left : NUMERIC_BLOCK);
        }
        for (size_t b = 0; b < blocks; b++) {
            const size_t first = b * NUMERIC_BLOCK, left = part - first;
            quant_encode_block(n, to, from + first * size, left < NUMERIC_BLOCK ? left : NUMERIC_BLOCK, &map[b]);
            to += block_bytes;
        }
        from += part * size;
        count -= part;
    }
}

void quant_decode(const struct numeric *n, void *out, const void *in, size_t count)
{
    const struct quant_kernels *k = n->kernels->quant;
    const enum quant_source source = quant_is_f64(n) ? QUANT_FROM_F64 : QUANT_FROM_F32;
    const size_t meta_bytes = quant_meta_bytes(n), block_bytes = quant_wire_bytes(n, NUMERIC_BLOCK);
    uint8_t *to = out;
    const uint8_t *from = in;
    while (count > 0) {
        const size_t part = count < NUMERIC_BLOCK ? count : NUMERIC_BLOCK;
        struct quant_map map;
        if (quant_read_meta(n, from, &map)) {
            k->decode[source][quant_target_of(n)](to, from + meta_bytes, part, &map);
        } else {
            quant_fill_nan(n, to, part);
        }
        from += block_bytes;
        to += part * dtype_size(n->dtype);
        count -= part;
    }
}
