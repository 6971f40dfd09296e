/* test_quant.c - block quantisation: the wire bytes by hand, a second decoder, error bounds per element, the error table
 * against double, awkward blocks, equality of levels.
 * SPDX-License-Identifier: MIT */
#include <float.h>

#include "kernels/numeric.h"
#include "tests/kernel/kernel_testing.h"

enum { FORMATS = 15, COUNT = 64 * NUMERIC_BLOCK };

static const struct {
    enum dtype dtype;
    enum quant quant;
    enum dtype quant_dtype;
    double steps;
    size_t meta_bytes;
} formats[FORMATS] = {
    {DTYPE_F32, QUANT_MINMAX, DTYPE_U8, 255, 8},  {DTYPE_F32, QUANT_MINMAX, DTYPE_U16, 65535, 8},
    {DTYPE_F32, QUANT_ZPS, DTYPE_I8, 127, 4},     {DTYPE_F32, QUANT_ZPS, DTYPE_I16, 32767, 4},
    {DTYPE_F32, QUANT_ZPS, DTYPE_U8, 254, 6},     {DTYPE_F32, QUANT_ZPS, DTYPE_U16, 65534, 6},
    {DTYPE_F64, QUANT_MINMAX, DTYPE_U8, 255, 16}, {DTYPE_F64, QUANT_MINMAX, DTYPE_U16, 65535, 16},
    {DTYPE_F64, QUANT_ZPS, DTYPE_I8, 127, 8},     {DTYPE_F64, QUANT_ZPS, DTYPE_I16, 32767, 8},
    {DTYPE_F64, QUANT_ZPS, DTYPE_U8, 254, 10},    {DTYPE_F64, QUANT_ZPS, DTYPE_U16, 65534, 10},
    {DTYPE_F64, QUANT_MINMAX, DTYPE_U32, 4294967295, 16}, {DTYPE_F64, QUANT_ZPS, DTYPE_I32, 2147483647, 8},
    {DTYPE_F64, QUANT_ZPS, DTYPE_U32, 4294967294, 12},
};

static struct numeric format_numeric(int format, const struct kernels *k)
{
    struct numeric n;
    EXPECT(numeric_init(&n, formats[format].dtype, REDOP_SUM, formats[format].quant, formats[format].quant_dtype, k));
    return n;
}

static const char *format_name(int format)
{
    static char name[64];
    snprintf(name, sizeof(name), "%s %s %s", dtype_name(formats[format].dtype),
             formats[format].quant == QUANT_MINMAX ? "minmax" : "zps", dtype_name(formats[format].quant_dtype));
    return name;
}

/* Buffers as doubles for the tests, as the source type for the library. */
static void store(const struct numeric *n, uint8_t *p, size_t i, double x)
{
    const float f = (float)x;
    if (n->dtype == DTYPE_F64) {
        memcpy(p + 8 * i, &x, 8);
    } else {
        memcpy(p + 4 * i, &f, 4);
    }
}

static double fetch(const struct numeric *n, const uint8_t *p, size_t i)
{
    double x;
    float f;
    memcpy(&x, p + (n->dtype == DTYPE_F64 ? 8 * i : 0), 8);
    memcpy(&f, p + (n->dtype == DTYPE_F64 ? 0 : 4 * i), 4);
    return n->dtype == DTYPE_F64 ? x : (double)f;
}

static double magnitude(double x)
{
    return x < 0 ? -x : x;
}

/* ---- Distributions --------------------------------------------------------------------------------------------------- */

enum { DIST_NORMAL, DIST_LAPLACE, DIST_STUDENT, DIST_UNIFORM, DIST_NEGATIVE, DIST_CONSTANT, DISTS };
static const char *const dist_names[DISTS] = {"normal",  "laplace",      "student-t 3",
                                              "uniform", "all negative", "constant"};

static double uniform(struct rng *r)
{
    return ((double)(rng_next(r) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct rng *r) /* sum of 12: no library function, tails to 6 */
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += uniform(r);
    }
    return sum;
}

static double root(double x) /* by Newton */
{
    double y = x > 1 ? x : 1;
    for (int i = 0; i < 60; i++) {
        y = (y + x / y) / 2;
    }
    return y;
}

/* -log of a uniform number, by von Neumann's comparison method: no library function either. */
static double exponential(struct rng *r)
{
    for (double whole = 0;; whole++) {
        const double first = uniform(r);
        double last = first;
        for (int run = 1;; run++) {
            const double next = uniform(r);
            if (next > last) {
                if (run % 2 == 1) {
                    return whole + first;
                }
                break;
            }
            last = next;
        }
    }
}

static double draw(struct rng *r, int dist)
{
    switch (dist) {
    case DIST_NORMAL:
        return normal(r);
    case DIST_LAPLACE:
        return (rng_next(r) & 1) != 0 ? exponential(r) : -exponential(r);
    case DIST_STUDENT: {
        const double a = normal(r), b = normal(r), c = normal(r);
        return normal(r) / root((a * a + b * b + c * c) / 3 + 1e-12);
    }
    case DIST_UNIFORM:
        return uniform(r) - 0.5;
    case DIST_NEGATIVE:
        return -5 - uniform(r);
    default:
        return 0.3;
    }
}

/* ---- Tests ----------------------------------------------------------------------------------------------------------- */

/* Integers that are no narrower than the numbers: these go as they are. */
static bool goes_as_it_is(enum dtype type, enum quant quant, enum dtype to)
{
    const bool is_unsigned = to == DTYPE_U32 || to == DTYPE_U64, is_signed = to == DTYPE_I32 || to == DTYPE_I64;
    const bool wide = to == DTYPE_U64 || to == DTYPE_I64;
    return (type == DTYPE_F32 || (type == DTYPE_F64 && wide)) &&
           (quant == QUANT_MINMAX ? is_unsigned : quant == QUANT_ZPS && (is_unsigned || is_signed));
}

TEST(only_the_documented_pairs_of_types_are_offered)
{
    int offered = 0, exact = 0;
    for (int type = 0; type < DTYPE_COUNT; type++) {
        for (int quant = 0; quant < QUANT_COUNT; quant++) {
            for (int to = 0; to < DTYPE_COUNT; to++) {
                bool listed = false;
                for (int f = 0; f < FORMATS; f++) {
                    listed = listed || ((int)formats[f].dtype == type && (int)formats[f].quant == quant &&
                                        (int)formats[f].quant_dtype == to);
                }
                const bool as_it_is = goes_as_it_is((enum dtype)type, (enum quant)quant, (enum dtype)to);
                listed = listed || as_it_is;
                EXPECT_EQ(numeric_quant_supported((enum dtype)type, (enum quant)quant, (enum dtype)to), listed);
                struct numeric n;
                const bool ok =
                    numeric_init(&n, (enum dtype)type, REDOP_MAX, (enum quant)quant, (enum dtype)to, kt_level(0));
                EXPECT_EQ(ok, listed || quant == QUANT_NONE);
                EXPECT(!as_it_is || (n.quant == QUANT_NONE && n.plain && numeric_wire_bytes(&n, 7) == 7 * dtype_size(n.dtype)));
                offered += listed;
                exact += as_it_is;
            }
        }
    }
    EXPECT_EQ(exact, 9);
    EXPECT_EQ(offered, FORMATS + exact);
}

TEST(eight_bits_move_a_quarter_of_the_floats_bytes_and_at_most_one_in_a_hundred_more) /* the maps of the blocks */
{
    static const enum quant forms[] = {QUANT_MINMAX, QUANT_ZPS};
    for (int f = 0; f < 2; f++) {
        struct numeric n;
        EXPECT(numeric_init(&n, DTYPE_F32, REDOP_SUM, forms[f], forms[f] == QUANT_ZPS ? DTYPE_I8 : DTYPE_U8, kernels_get()));
        for (size_t count = 4096; count <= 1 << 20; count *= 4) {
            EXPECT(numeric_wire_bytes(&n, count) * 100 <= 26 * numeric_user_bytes(&n, count));
        }
    }
}

TEST(wire_bytes_of_known_blocks)
{
    struct numeric n = format_numeric(2, kernels_get()); /* f32 to i8 */
    const float a[4] = {127, -127, 2.5f, -3.5f};
    uint8_t wire[64];
    memset(wire, 0xEE, sizeof(wire));
    numeric_encode(&n, wire, a, 4);
    const uint8_t want_i8[9] = {0, 0, 0x80, 0x3F, 127, 0x81, 2, 0xFC, 0xEE}; /* scale 1; ties to even */
    EXPECT(memcmp(wire, want_i8, sizeof(want_i8)) == 0);
    EXPECT_EQ(numeric_wire_bytes(&n, 4), 8);

    n = format_numeric(0, kernels_get());    /* f32 to u8, min and step */
    const float b[5] = {-255, 255, 0, 1, 3}; /* step 2: 127.5, 128 and 129 steps */
    numeric_encode(&n, wire, b, 5);
    const uint8_t want_u8[13] = {0, 0, 0x7F, 0xC3, 0, 0, 0, 0x40, 0, 255, 128, 128, 129};
    EXPECT(memcmp(wire, want_u8, sizeof(want_u8)) == 0);

    n = format_numeric(5, kernels_get()); /* f32 to u16 with zero point */
    const float c[3] = {-1, 65533, 0};
    numeric_encode(&n, wire, c, 3);
    const uint8_t want_u16[12] = {0, 0, 0x80, 0x3F, 1, 0, 0, 0, 0xFE, 0xFF, 1, 0};
    EXPECT(memcmp(wire, want_u16, sizeof(want_u16)) == 0);

    n = format_numeric(9, kernels_get()); /* f64 to i16, scale 1/2 */
    const double d[2] = {16383.5, -0.5};
    numeric_encode(&n, wire, d, 2);
    const uint8_t want_i16[12] = {0, 0, 0, 0, 0, 0, 0xE0, 0x3F, 0xFF, 0x7F, 0xFF, 0xFF};
    EXPECT(memcmp(wire, want_i16, sizeof(want_i16)) == 0);
}

TEST(wire_size_depends_on_the_count_alone)
{
    for (int f = 0; f < FORMATS; f++) {
        const struct numeric n = format_numeric(f, kernels_get());
        for (size_t count = 0; count < 1030; count++) {
            const size_t blocks = (count + 255) / 256;
            EXPECT_EQ(numeric_wire_bytes(&n, count),
                      blocks * formats[f].meta_bytes + count * dtype_size(formats[f].quant_dtype));
        }
    }
}

TEST(blocks_do_not_depend_on_where_a_frame_is_cut)
{
    struct rng r = {3};
    static uint8_t user[1000 * 8], whole[4096], part[4096];
    for (int f = 0; f < FORMATS; f++) {
        const struct numeric n = format_numeric(f, kernels_get());
        kt_fill(&r, user, 1000, n.dtype);
        numeric_encode(&n, whole, user, 1000);
        numeric_encode(&n, part, user, 512);
        numeric_encode(&n, part + numeric_wire_bytes(&n, 512), user + numeric_user_bytes(&n, 512), 488);
        EXPECT(memcmp(whole, part, numeric_wire_bytes(&n, 1000)) == 0);
    }
}

static uint64_t bytes_at(const uint8_t *p, size_t size)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

/* A number of the source type from the upper bits that were sent. */
static double number_at(const struct numeric *n, const uint8_t *p, size_t size)
{
    const uint64_t bits = bytes_at(p, size) << (8 * (dtype_size(n->dtype) - size));
    return n->dtype == DTYPE_F64 ? kt_f64(bits) : (double)kt_f32((uint32_t)bits);
}

static double rounded(const struct numeric *n, double x) /* f32: sums and products of two are exact in double */
{
    return n->dtype == DTYPE_F64 ? x : (double)(float)x;
}

/* One element decoded by the description in quant.h, one rounding at a time. */
static double naive_decode(const struct numeric *n, const uint8_t *block, size_t meta, size_t i)
{
    const size_t size = dtype_size(n->dtype), q_size = dtype_size(n->quant_dtype);
    int64_t q = (int64_t)bytes_at(block + meta + i * q_size, q_size);
    double offset = 0, scale, post = 1;
    if (n->quant == QUANT_MINMAX) {
        offset = number_at(n, block, size);
        scale = number_at(n, block + size, size);
        post = scale < 0 ? 4 : 1;
        scale = magnitude(scale);
    } else {
        scale = number_at(n, block, size);
        if (n->quant_dtype == DTYPE_U8 || n->quant_dtype == DTYPE_U16 || n->quant_dtype == DTYPE_U32) {
            q -= (int64_t)bytes_at(block + size, q_size == 4 ? 4 : 2);
        } else {
            q = q_size == 1 ? (int8_t)q : q_size == 2 ? (int16_t)q : (int32_t)q;
        }
    }
    const double product = rounded(n, (double)q * scale);
    return rounded(n, offset + product) * post;
}

TEST(decoding_equals_the_description_bit_for_bit_on_every_level)
{
    struct rng r = {4};
    static uint8_t user[COUNT * 8], wire[COUNT * 5], back[COUNT * 8], twin_wire[COUNT * 5];
    for (int f = 0; f < FORMATS; f++) {
        for (int dist = 0; dist < DISTS; dist++) {
            for (int level = 0; level < KT_LEVELS; level++) {
                if (kt_level(level) == NULL) {
                    continue;
                }
                const struct numeric n = format_numeric(f, kt_level(level));
                const size_t count = 2000, block_bytes = numeric_wire_bytes(&n, NUMERIC_BLOCK);
                for (size_t i = 0; level == 0 && i < count; i++) {
                    store(&n, user, i, draw(&r, dist));
                }
                numeric_encode(&n, wire, user, count);
                numeric_decode(&n, back, wire, count);
                if (level == 0) {
                    memcpy(twin_wire, wire, sizeof(wire));
                }
                EXPECT(memcmp(wire, twin_wire, numeric_wire_bytes(&n, count)) == 0);
                for (size_t i = 0; i < count; i++) {
                    const uint8_t *block = wire + i / NUMERIC_BLOCK * block_bytes;
                    EXPECT(fetch(&n, back, i) == naive_decode(&n, block, formats[f].meta_bytes, i % NUMERIC_BLOCK));
                }
            }
        }
    }
}

/* The largest error that a block's content justifies: half a step, scales rounded up, the last addition rounded. */
static double error_bound(const struct numeric *n, int format, double min, double max)
{
    const bool wide = n->dtype == DTYPE_F64;
    const double tiny = wide ? 4.9406564584124654e-324 : 1.4012984643248171e-45;
    const double top = max > -min ? max : -min, ulp = top * (wide ? 2.3e-16 : 1.2e-7) + 2 * tiny;
    if (n->quant == QUANT_MINMAX) {
        return (max / formats[format].steps - min / formats[format].steps) * 0.51 + 2 * ulp;
    }
    const bool is_signed = n->quant_dtype == DTYPE_I8 || n->quant_dtype == DTYPE_I16 || n->quant_dtype == DTYPE_I32;
    const double low = min < 0 ? min : 0, high = max > 0 ? max : 0, steps = formats[format].steps;
    const double scale = (is_signed ? top / steps : high / steps - low / steps) * (1 + 2.4e-7);
    if (top > (wide ? 1.7976931348623157e308 : 3.4028234663852886e38) - scale) {
        return scale * 1.001; /* the next step would be infinite */
    }
    return scale * 0.501 + top * (wide ? 2.3e-16 : 1.2e-7) + 2 * tiny;
}

static void check_bound(int format, const double *values, size_t count, const char *what)
{
    const struct numeric n = format_numeric(format, kernels_get());
    uint8_t user[NUMERIC_BLOCK * 8], wire[2048], back[NUMERIC_BLOCK * 8];
    for (size_t i = 0; i < count; i++) {
        store(&n, user, i, values[i]);
    }
    double min = fetch(&n, user, 0), max = min;
    for (size_t i = 1; i < count; i++) {
        const double x = fetch(&n, user, i);
        min = x < min ? x : min;
        max = x > max ? x : max;
    }
    const double bound = error_bound(&n, format, min, max);
    struct fpenv env;
    fpenv_enter(&env);
    numeric_encode(&n, wire, user, count);
    numeric_decode(&n, back, wire, count);
    for (size_t i = 0; i < count; i++) {
        const double x = fetch(&n, user, i), y = fetch(&n, back, i);
        if (!(magnitude(x / 4 - y / 4) * 4 <= bound)) { /* quarters: a difference must not overflow */
            fprintf(stderr, "%s, %s: %.17g became %.17g, bound %g\n", format_name(format), what, x, y, bound);
            EXPECT(false);
        }
    }
    fpenv_leave(&env);
}

TEST(every_element_is_within_half_a_step)
{
    struct rng r = {5};
    double v[NUMERIC_BLOCK];
    for (int f = 0; f < FORMATS; f++) {
        const bool wide = formats[f].dtype == DTYPE_F64;
        const double tiny = wide ? 5e-324 : 1.5e-45, largest = wide ? 1.7976931348623157e308 : 3.4028234663852886e38;
        for (uint64_t round = 0; round < kt_scaled(60); round++) {
            const size_t count = 1 + rng_below(&r, NUMERIC_BLOCK);
            for (int dist = 0; dist < DISTS; dist++) {
                for (size_t i = 0; i < count; i++) {
                    v[i] = draw(&r, dist);
                }
                check_bound(f, v, count, dist_names[dist]);
                check_bound(f, v, 1, "one element");
            }
            for (size_t i = 0; i < count; i++) {
                v[i] = (double)(int64_t)rng_below(&r, 1000) * tiny - (round % 2 != 0 ? 300 * tiny : 0);
            }
            check_bound(f, v, count, "denormals");
            for (size_t i = 0; i < count; i++) {
                v[i] = (uniform(&r) * 2 - 1) * largest;
            }
            v[0] = round % 3 == 0 ? largest : v[0];
            v[count - 1] = round % 2 == 0 ? -largest : v[count - 1];
            check_bound(f, v, count, "the largest");
            for (size_t i = 0; i < count; i++) {
                v[i] = 1e6 + uniform(&r);
            }
            check_bound(f, v, count, "far from zero");
            for (size_t i = 0; i < count; i++) {
                v[i] = uniform(&r) * (wide ? 3e-308 : 2e-38);
            }
            check_bound(f, v, count, "about the smallest normal");
        }
    }
}

TEST(constants_and_zeros_and_nothing_decode_exactly)
{
    for (int f = 0; f < FORMATS; f++) {
        const struct numeric n = format_numeric(f, kernels_get());
        uint8_t user[300 * 8], back[300 * 8], wire[2048] = {0xEE};
        numeric_encode(&n, wire, user, 0);
        EXPECT_EQ(wire[0], 0xEE);
        memset(user, 0, sizeof(user));
        memset(back, 0xEE, sizeof(back));
        numeric_encode(&n, wire, user, 300);
        numeric_decode(&n, back, wire, 300);
        EXPECT(memcmp(user, back, numeric_user_bytes(&n, 300)) == 0);
        const double constants[] = {1, 3, 10, -3.14159, 0.1, -0.7, 1e-30, 1e36, 1e-40, 3e38, FLT_MAX, -FLT_MAX, -1e300, 5e-324, DBL_MAX, -DBL_MAX};
        for (size_t c = 0; c < sizeof constants / sizeof constants[0]; c++) {
            for (size_t i = 0; i < 300; i++) {
                store(&n, user, i, n.dtype == DTYPE_F32 && c > 11 ? 1e-45 : constants[c]);
            }
            numeric_encode(&n, wire, user, 300);
            numeric_decode(&n, back, wire, 300);
            const bool same = memcmp(user, back, numeric_user_bytes(&n, 300)) == 0;
            EXPECT(same);
            if (!same) {
                fprintf(stderr, "%s: %.17g became %.17g\n", format_name(f), fetch(&n, user, 0), fetch(&n, back, 0));
            }
        }
    }
}

TEST(a_block_that_holds_nan_or_infinity_decodes_to_nan_everywhere_and_harms_no_other)
{
    const double bad[4] = {__builtin_nan(""), -__builtin_nan(""), __builtin_inf(), -__builtin_inf()};
    for (int f = 0; f < FORMATS; f++) {
        for (size_t at = 256; at < 512; at += 5) {
            const struct numeric n = format_numeric(f, kernels_get());
            uint8_t user[700 * 8], back[700 * 8], wire[4096];
            for (size_t i = 0; i < 700; i++) {
                store(&n, user, i, 1 + (double)i / 700);
            }
            store(&n, user, at, bad[at % 4]);
            numeric_encode(&n, wire, user, 700);
            numeric_decode(&n, back, wire, 700);
            for (size_t i = 0; i < 700; i++) {
                const double y = fetch(&n, back, i), x = 1 + (double)i / 700;
                const uint64_t nan = n.dtype == DTYPE_F64 ? 0x7FF8000000000000 : 0x7FC00000;
                const size_t size = dtype_size(n.dtype);
                EXPECT(i / 256 == 1 ? bytes_at(back + i * size, size) == nan : magnitude(x - y) < 0.01);
            }
        }
    }
}

TEST(any_bytes_decode_alike_on_every_level) /* a peer that sends rubbish must not split the others */
{
    struct rng r = {6};
    uint8_t wire[1024 * 4], twin[300 * 8], back[300 * 8];
    for (int f = 0; f < FORMATS; f++) {
        for (uint64_t round = 0; round < kt_scaled(300); round++) {
            for (size_t i = 0; i < sizeof(wire); i++) {
                wire[i] = (uint8_t)rng_next(&r);
            }
            for (int level = 0; level < KT_LEVELS; level++) {
                if (kt_level(level) != NULL) {
                    const struct numeric n = format_numeric(f, kt_level(level));
                    numeric_decode(&n, level == 0 ? twin : back, wire, 300);
                    EXPECT(level == 0 || memcmp(twin, back, numeric_user_bytes(&n, 300)) == 0);
                }
            }
        }
    }
}

TEST(levels_agree_on_awkward_numbers_and_stay_inside_their_pages)
{
    struct rng r = {7};
    uint8_t *user = kt_guarded_new(), *wire = kt_guarded_new(), twin[8192], twin_back[700 * 8];
    for (int f = 0; f < FORMATS; f++) {
        for (uint64_t round = 0; round < kt_scaled(400); round++) {
            const size_t count = round < 100 ? round : rng_below(&r, 700), align = rng_below(&r, 64);
            const struct numeric scalar = format_numeric(f, kt_level(0));
            const size_t user_bytes = numeric_user_bytes(&scalar, count),
                         wire_bytes = numeric_wire_bytes(&scalar, count);
            uint8_t *u = user + KT_GUARDED - user_bytes, *w = wire + KT_GUARDED - wire_bytes;
            u -= round % 2 != 0 ? align : 0;
            w -= round % 3 != 0 ? align : 0;
            for (int level = 0; level < KT_LEVELS; level++) {
                if (kt_level(level) == NULL) {
                    continue;
                }
                const struct numeric n = format_numeric(f, kt_level(level));
                struct rng same = {round};
                kt_fill(&same, u, count, n.dtype);
                for (size_t i = 0; round % 4 != 0 && i < count; i++) { /* mostly finite */
                    store(&n, u, i, fetch(&n, u, i) * 0 == 0 ? fetch(&n, u, i) : 1);
                }
                numeric_encode(&n, level == 0 ? twin : w, u, count);
                EXPECT(level == 0 || memcmp(twin, w, wire_bytes) == 0);
                memcpy(w, twin, wire_bytes);
                numeric_decode(&n, u, w, count);
                memcpy(level == 0 ? twin_back : twin, level == 0 ? u : twin, level == 0 ? user_bytes : wire_bytes);
                EXPECT(memcmp(twin_back, u, user_bytes) == 0);
            }
        }
    }
    kt_guarded_free(user);
    kt_guarded_free(wire);
}

/* Relative root mean square error of one rounding, and of the sum of eight. */
static void measure(int format, int dist, double *one, double *eight)
{
    enum { PEERS = 8 };
    static uint8_t user[COUNT * 8], acc[COUNT * 8], wire[COUNT * 5];
    static double exact[COUNT];
    struct rng r = {100 + (uint64_t)dist};
    const struct numeric n = format_numeric(format, kernels_get());
    double error = 0, power = 0;
    memset(exact, 0, sizeof(exact));
    for (int peer = 0; peer < PEERS; peer++) {
        for (size_t i = 0; i < COUNT; i++) {
            store(&n, user, i, draw(&r, dist));
            exact[i] += fetch(&n, user, i);
        }
        numeric_encode(&n, wire, user, COUNT);
        if (peer == 0) {
            numeric_decode(&n, acc, wire, COUNT);
            for (size_t i = 0; i < COUNT; i++) {
                const double x = fetch(&n, user, i), e = fetch(&n, acc, i) - x;
                error += e * e;
                power += x * x;
            }
            *one = root(error / power);
            numeric_load(&n, acc, wire, COUNT);
        } else {
            numeric_fold(&n, acc, wire, COUNT);
        }
    }
    numeric_finish(&n, user, wire, acc, COUNT, PEERS);
    error = 0;
    power = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const double e = fetch(&n, user, i) - exact[i];
        error += e * e;
        power += exact[i] * exact[i];
    }
    *eight = root(error / power);
}

TEST(error_table_against_double)
{
    /* bounds for one rounding to 8 bits; 16 bits: a 200th; 32 bits: a 200th of a 60,000th */
    static const double bounds[DISTS] = {0.0085, 0.0125, 0.028, 0.0055, 0.013, 0.005};
    printf("relative RMS error of one rounding, and of the sum of 8 peers; block %d\n%-16s", NUMERIC_BLOCK, "");
    for (int dist = 0; dist < DISTS; dist++) {
        printf("%20s", dist_names[dist]);
    }
    printf("\n");
    for (int f = 0; f < FORMATS; f++) {
        printf("%-16s", format_name(f));
        for (int dist = 0; dist < DISTS; dist++) {
            double one = 0, eight = 0;
            measure(f, dist, &one, &eight);
            printf("%10.2e%10.2e", one, eight);
            const double bound = bounds[dist] / (dtype_size(formats[f].quant_dtype) == 4 ? 12e6 : dtype_size(formats[f].quant_dtype) == 2 ? 200 : 1);
            EXPECT(one <= bound);
            EXPECT(eight <= 2 * bound);
        }
        printf("\n");
    }
}
