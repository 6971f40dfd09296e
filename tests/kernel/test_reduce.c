/* test_reduce.c - reductions, division and canonical NaNs: every level against the scalar twin, bit for bit, and the
 * scalar twin against arithmetic done another way.
 * SPDX-License-Identifier: MIT */
#include "kernels/half.h"
#include "tests/kernel/kernel_testing.h"

enum { COUNT_MAX = 140 };

static bool is_integer(enum dtype type)
{
    return type < DTYPE_F16;
}

static bool is_half(enum dtype type)
{
    return type == DTYPE_F16 || type == DTYPE_BF16;
}

/* One call on three offsets; compares with the scalar table and checks that nothing around the output changed. */
static void check_against_twin(const struct kernels *k, enum dtype type, enum redop op, size_t count, size_t offset,
                               const uint8_t *a, const uint8_t *b)
{
    uint8_t want[COUNT_MAX * 8 + 128], got[COUNT_MAX * 8 + 128];
    const size_t bytes = count * dtype_size(type);
    memset(want, 0xA5, sizeof(want));
    memset(got, 0xA5, sizeof(got));
    struct fpenv env;
    fpenv_enter(&env);
    kt_level(0)->reduce[type][op](want + offset, a, b, count);
    k->reduce[type][op](got + offset, a, b, count);
    fpenv_leave(&env);
    if (memcmp(want, got, bytes + offset + 64) != 0) {
        fprintf(stderr, "%s %s %s count %zu offset %zu\n", k->name, dtype_name(type), redop_name(op), count, offset);
        EXPECT(false);
    }
}

TEST(every_level_equals_the_scalar_twin_on_all_alignments)
{
    struct rng r = {1};
    uint8_t *a = kt_guarded_new(), *b = kt_guarded_new();
    for (int level = 1; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int type = 0; k != NULL && type < DTYPE_COUNT; type++) {
            for (int op = 0; !is_half((enum dtype)type) && op < REDOP_COUNT; op++) {
                if (!redop_for((enum redop)op, (enum dtype)type)) {
                    continue;
                }
                for (size_t align = 0; align < 64; align++) {
                    const size_t count = rng_below(&r, COUNT_MAX + 1), other = (align * 7 + 3) % 64;
                    kt_fill(&r, a + align, count, (enum dtype)type);
                    kt_fill(&r, b + other, count, (enum dtype)type);
                    check_against_twin(k, (enum dtype)type, (enum redop)op, count, (align * 13 + 5) % 64, a + align,
                                       b + other);
                }
            }
        }
    }
    kt_guarded_free(a);
    kt_guarded_free(b);
}

TEST(every_small_count_stays_inside_its_pages) /* reading or writing one byte too far ends the test program */
{
    struct rng r = {2};
    uint8_t *a = kt_guarded_new(), *b = kt_guarded_new();
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int type = 0; k != NULL && type < DTYPE_COUNT; type++) {
            for (int op = 0; !is_half((enum dtype)type) && op < REDOP_COUNT; op++) {
                if (!redop_for((enum redop)op, (enum dtype)type)) {
                    continue;
                }
                for (size_t count = 0; count <= COUNT_MAX; count++) {
                    const size_t bytes = count * dtype_size((enum dtype)type);
                    uint8_t *a_end = a + KT_GUARDED - bytes, *b_end = b + KT_GUARDED - bytes;
                    kt_fill(&r, a, count, (enum dtype)type);
                    kt_fill(&r, b_end, count, (enum dtype)type);
                    check_against_twin(k, (enum dtype)type, (enum redop)op, count, 0, a, b_end);
                    k->reduce[type][op](a_end, b_end, b_end, count);
                    k->reduce[type][op](b, a, a, count);
                    if (k->divide[type] != NULL) {
                        k->divide[type](a_end, count, 3);
                        k->divide[type](b, count, 3);
                    }
                }
            }
        }
    }
    kt_guarded_free(a);
    kt_guarded_free(b);
}

/* The halves of b end at the page, and so does the sum. */
static void check_halves(const struct kernels *k, enum dtype type, enum redop op, const uint8_t *a, const uint8_t *b, uint8_t *sum,
                         size_t count)
{
    float want[COUNT_MAX], wide[COUNT_MAX];
    for (size_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, b + 2 * i, sizeof(h));
        wide[i] = kt_f32(type == DTYPE_F16 ? half_f16_widen_bits(h) : half_bf16_widen_bits(h));
    }
    struct fpenv env;
    fpenv_enter(&env);
    kt_level(0)->reduce[DTYPE_F32][op](want, a, wide, count); /* widened first, then summed: the definition */
    memcpy(sum, a, 4 * count);
    k->reduce[type][op](sum, sum, b, count);
    fpenv_leave(&env);
    if (memcmp(sum, want, 4 * count) != 0) {
        fprintf(stderr, "%s %s %s count %zu\n", k->name, dtype_name(type), redop_name(op), count);
        EXPECT(false);
    }
}

TEST(halves_are_folded_into_sums_as_if_they_were_widened_first)
{
    struct rng r = {12};
    uint8_t *sum = kt_guarded_new(), *b = kt_guarded_new(), a[COUNT_MAX * 4 + 64];
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int type = DTYPE_F16; k != NULL && type <= DTYPE_BF16; type++) {
            for (int op = 0; op < REDOP_COUNT; op++) {
                if (!redop_for((enum redop)op, (enum dtype)type)) {
                    continue;
                }
                for (size_t count = 0; count <= COUNT_MAX; count++) {
                    uint8_t *halves = b + KT_GUARDED - 2 * count;
                    for (size_t i = 0; i < 2 * count; i++) {
                        halves[i] = (uint8_t)(rng_next(&r) >> 40); /* all sorts, NaNs and infinities too */
                    }
                    kt_fill(&r, a + count % 64, count, DTYPE_F32);
                    check_halves(k, (enum dtype)type, (enum redop)op, a + count % 64, halves, sum + KT_GUARDED - 4 * count, count);
                }
            }
        }
    }
    kt_guarded_free(sum);
    kt_guarded_free(b);
}

TEST(output_may_be_either_input)
{
    struct rng r = {3};
    uint8_t a[COUNT_MAX * 8], b[COUNT_MAX * 8], want[COUNT_MAX * 8], work[COUNT_MAX * 8];
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int type = 0; k != NULL && type < DTYPE_COUNT; type++) {
            for (int op = 0; !is_half((enum dtype)type) && op < REDOP_COUNT; op++) {
                if (!redop_for((enum redop)op, (enum dtype)type)) {
                    continue;
                }
                const size_t bytes = COUNT_MAX * dtype_size((enum dtype)type);
                kt_fill(&r, a, COUNT_MAX, (enum dtype)type);
                kt_fill(&r, b, COUNT_MAX, (enum dtype)type);
                k->reduce[type][op](want, a, b, COUNT_MAX);
                memcpy(work, a, bytes);
                k->reduce[type][op](work, work, b, COUNT_MAX);
                EXPECT(memcmp(work, want, bytes) == 0);
                memcpy(work, b, bytes);
                k->reduce[type][op](work, a, work, COUNT_MAX);
                EXPECT(memcmp(work, want, bytes) == 0);
            }
        }
    }
}

/* An element as a wide integer, the sign extended. */
static __int128 integer_at(const uint8_t *p, enum dtype type)
{
    const size_t size = dtype_size(type);
    unsigned __int128 value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (unsigned __int128)p[i] << (8 * i);
    }
    const bool is_signed = type == DTYPE_I8 || type == DTYPE_I16 || type == DTYPE_I32 || type == DTYPE_I64;
    if (is_signed && (p[size - 1] & 0x80) != 0) {
        value |= ~(unsigned __int128)0 << (8 * size);
    }
    return (__int128)value;
}

static bool integer_is(const uint8_t *p, enum dtype type, __int128 value)
{
    for (size_t i = 0; i < dtype_size(type); i++) {
        if (p[i] != (uint8_t)((unsigned __int128)value >> (8 * i))) {
            return false;
        }
    }
    return true;
}

static __int128 integer_reduce(enum redop op, __int128 x, __int128 y)
{
    switch (op) {
    case REDOP_SUM:
    case REDOP_AVG:
        return x + y;
    case REDOP_PROD:
        return (__int128)((unsigned __int128)x * (unsigned __int128)y);
    case REDOP_MAX:
        return x > y ? x : y;
    case REDOP_MIN:
        return x < y ? x : y;
    case REDOP_AND:
        return x & y;
    case REDOP_OR:
        return x | y;
    case REDOP_XOR:
        return x ^ y;
    case REDOP_PREMUL:
    case REDOP_COUNT:
        break;
    }
    return 0;
}

TEST(integers_wrap_like_128_bit_arithmetic_cut_off)
{
    struct rng r = {4};
    uint8_t a[COUNT_MAX * 8], b[COUNT_MAX * 8], out[COUNT_MAX * 8];
    for (int type = 0; is_integer((enum dtype)type); type++) {
        const size_t size = dtype_size((enum dtype)type);
        for (int op = 0; op < REDOP_COUNT; op++) {
            if (!redop_for((enum redop)op, (enum dtype)type)) {
                continue;
            }
            for (int round = 0; round < 50; round++) {
                kt_fill(&r, a, COUNT_MAX, (enum dtype)type);
                kt_fill(&r, b, COUNT_MAX, (enum dtype)type);
                kt_level(0)->reduce[type][op](out, a, b, COUNT_MAX);
                for (size_t i = 0; i < COUNT_MAX; i++) {
                    const __int128 x = integer_at(a + i * size, (enum dtype)type);
                    const __int128 y = integer_at(b + i * size, (enum dtype)type);
                    EXPECT(integer_is(out + i * size, (enum dtype)type, integer_reduce((enum redop)op, x, y)));
                }
            }
        }
    }
}

TEST(integer_division_truncates_towards_zero)
{
    static const uint64_t divisors[] = {1,
                                        2,
                                        3,
                                        7,
                                        10,
                                        127,
                                        128,
                                        255,
                                        256,
                                        65535,
                                        65536,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFF,
                                        0x100000000,
                                        0x7FFFFFFFFFFFFFFF,
                                        0x8000000000000000,
                                        UINT64_MAX};
    struct rng r = {5};
    uint8_t in[COUNT_MAX * 8], out[COUNT_MAX * 8];
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int type = 0; k != NULL && is_integer((enum dtype)type); type++) {
            const size_t size = dtype_size((enum dtype)type);
            for (size_t d = 0; d < sizeof(divisors) / sizeof(divisors[0]); d++) {
                kt_fill(&r, in, COUNT_MAX, (enum dtype)type);
                memcpy(out, in, sizeof(in));
                k->divide[type](out, COUNT_MAX, divisors[d]);
                for (size_t i = 0; i < COUNT_MAX; i++) {
                    const __int128 x = integer_at(in + i * size, (enum dtype)type);
                    EXPECT(integer_is(out + i * size, (enum dtype)type, x / (__int128)divisors[d]));
                }
            }
        }
    }
}

/* f32 by way of double: exact sums and products, so one rounding. */
static uint32_t naive_f32(enum redop op, float x, float y)
{
    if (x != x || y != y) {
        return 0x7FC00000;
    }
    double r = 0;
    if (op == REDOP_MAX || op == REDOP_MIN) {
        const bool first = op == REDOP_MAX ? x > y : x < y;
        r = first ? (double)x : (double)y;
    } else {
        r = op == REDOP_PROD ? (double)x * (double)y : (double)x + (double)y;
    }
    return r == r ? kt_bits32((float)r) : 0x7FC00000;
}

TEST(f32_equals_double_rounded_once_and_every_nan_is_canonical)
{
    struct rng r = {6};
    float a[COUNT_MAX], b[COUNT_MAX], out[COUNT_MAX];
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int op = 0; k != NULL && op <= REDOP_MIN; op++) {
            for (uint64_t round = 0; round < kt_scaled(2000); round++) {
                kt_fill(&r, (uint8_t *)a, COUNT_MAX, DTYPE_F32);
                kt_fill(&r, (uint8_t *)b, COUNT_MAX, DTYPE_F32);
                k->reduce[DTYPE_F32][op](out, a, b, COUNT_MAX);
                for (int i = 0; i < COUNT_MAX; i++) {
                    EXPECT_EQ(kt_bits32(out[i]), naive_f32((enum redop)op, a[i], b[i]));
                }
            }
        }
    }
}

TEST(f64_equals_the_processors_own_arithmetic_and_every_nan_is_canonical)
{
    struct rng r = {7};
    double a[COUNT_MAX], b[COUNT_MAX], out[COUNT_MAX];
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (int op = 0; k != NULL && op <= REDOP_MIN; op++) {
            kt_fill(&r, (uint8_t *)a, COUNT_MAX, DTYPE_F64);
            kt_fill(&r, (uint8_t *)b, COUNT_MAX, DTYPE_F64);
            k->reduce[DTYPE_F64][op](out, a, b, COUNT_MAX);
            for (int i = 0; i < COUNT_MAX; i++) {
                volatile double x = a[i], y = b[i], want = 0;
                if (op == REDOP_MAX || op == REDOP_MIN) {
                    want = (op == REDOP_MAX ? x > y : x < y) ? x : y;
                    want = x != x ? x : want;
                } else {
                    want = op == REDOP_PROD ? x * y : x + y;
                }
                EXPECT_EQ(kt_bits64(out[i]), want == want ? kt_bits64(want) : 0x7FF8000000000000);
            }
        }
    }
}

TEST(float_division_is_true_division)
{
    struct rng r = {8};
    float in[COUNT_MAX], out[COUNT_MAX];
    double in64[COUNT_MAX], out64[COUNT_MAX];
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (uint64_t divisor = 1; k != NULL && divisor < 200; divisor++) {
            kt_fill(&r, (uint8_t *)in, COUNT_MAX, DTYPE_F32);
            kt_fill(&r, (uint8_t *)in64, COUNT_MAX, DTYPE_F64);
            memcpy(out, in, sizeof(in));
            memcpy(out64, in64, sizeof(in64));
            k->divide[DTYPE_F32](out, COUNT_MAX, divisor);
            k->divide[DTYPE_F64](out64, COUNT_MAX, divisor);
            for (int i = 0; i < COUNT_MAX; i++) {
                const float want = (float)((double)in[i] / (double)divisor);
                volatile double want64 = in64[i];
                want64 /= (double)divisor;
                EXPECT_EQ(kt_bits32(out[i]), want == want ? kt_bits32(want) : 0x7FC00000);
                EXPECT_EQ(kt_bits64(out64[i]), want64 == want64 ? kt_bits64(want64) : 0x7FF8000000000000);
            }
        }
    }
}

TEST(canonical_changes_nans_and_nothing_else)
{
    struct rng r = {9};
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        if (k == NULL) {
            continue;
        }
        static uint16_t half[65536 + 1];
        for (uint32_t i = 0; i < 65536; i++) {
            half[i] = (uint16_t)i;
        }
        k->canonical[DTYPE_F16](half, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            const bool nan = (i & 0x7C00) == 0x7C00 && (i & 0x3FF) != 0;
            EXPECT_EQ(half[i], nan ? 0x7E00 : i);
            half[i] = (uint16_t)i;
        }
        k->canonical[DTYPE_BF16](half, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            const bool nan = (i & 0x7F80) == 0x7F80 && (i & 0x7F) != 0;
            EXPECT_EQ(half[i], nan ? 0x7FC0 : i);
        }
        float in[COUNT_MAX], out[COUNT_MAX];
        kt_fill(&r, (uint8_t *)in, COUNT_MAX, DTYPE_F32);
        memcpy(out, in, sizeof(in));
        k->canonical[DTYPE_F32](out, COUNT_MAX);
        for (int i = 0; i < COUNT_MAX; i++) {
            EXPECT_EQ(kt_bits32(out[i]), in[i] == in[i] ? kt_bits32(in[i]) : 0x7FC00000);
        }
        EXPECT(k->canonical[DTYPE_I32] == NULL);
    }
}

TEST(levels_are_found_by_name_and_the_best_is_chosen)
{
    EXPECT(kernels_level("scalar") != NULL);
    EXPECT(kernels_level("sse9") == NULL);
    const struct kernels *best = kernels_level("scalar");
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        if (k != NULL) {
            EXPECT_STR(k->name, kt_level_names[level]);
            best = k;
            printf("level %s available\n", k->name);
        }
    }
    if (getenv("PCCL_CPU") == NULL) {
        EXPECT(kernels_get() == best);
    }
    EXPECT(kernels_get() == kernels_get());
}

TEST(names_and_sizes_of_types)
{
    EXPECT_EQ(dtype_size(DTYPE_F64), 8);
    EXPECT_EQ(dtype_size(DTYPE_BF16), 2);
    EXPECT_EQ(dtype_size(DTYPE_COUNT), 0);
    EXPECT_STR(dtype_name(DTYPE_F32), "f32");
    EXPECT_STR(dtype_name((enum dtype)99), "?");
    EXPECT_STR(redop_name(REDOP_MIN), "min");
    EXPECT_STR(redop_name(REDOP_XOR), "xor");
    EXPECT_STR(redop_name(REDOP_COUNT), "?");
}

TEST(each_type_has_its_operators_and_a_kernel_for_each)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        const bool whole = is_integer((enum dtype)type), number = type <= DTYPE_F64, truth = type == DTYPE_BOOL;
        const bool has[REDOP_COUNT] = {number || truth, number,        number,         number || truth,
                                       number || truth, whole || truth, whole || truth, whole, number && !whole};
        for (int op = 0; op < REDOP_COUNT; op++) {
            EXPECT_EQ(redop_for((enum redop)op, (enum dtype)type), has[op]);
            EXPECT_EQ(redop_refusal((enum redop)op, (enum dtype)type) == NULL, has[op]);
            for (int level = 0; level < KT_LEVELS; level++) {
                EXPECT(kt_level(level) == NULL || (kt_level(level)->reduce[type][op] != NULL) == has[op]);
            }
        }
    }
    EXPECT(!redop_for(REDOP_COUNT, DTYPE_U8) && !redop_for(REDOP_SUM, DTYPE_COUNT));
}

TEST(any_byte_but_0_is_true_and_results_are_0_and_1)
{
    uint8_t a[256 * 256], b[256 * 256], out[256 * 256];
    for (size_t i = 0; i < sizeof a; i++) {
        a[i] = (uint8_t)i;
        b[i] = (uint8_t)(i >> 8);
    }
    for (int level = 0; level < KT_LEVELS; level++) {
        for (int op = 0; kt_level(level) != NULL && op < REDOP_COUNT; op++) {
            if (!redop_for((enum redop)op, DTYPE_BOOL)) {
                continue;
            }
            const bool all = op == REDOP_MIN || op == REDOP_AND;
            kt_level(level)->reduce[DTYPE_BOOL][op](out, a, b, sizeof a);
            for (size_t i = 0; i < sizeof a; i++) {
                EXPECT(out[i] == (all ? a[i] != 0 && b[i] != 0 : a[i] != 0 || b[i] != 0));
            }
        }
    }
}
