/* test_numeric.c - the numbers of one operation from user to wire to sum and back: all types and operators against wider
 * arithmetic, the same bits on every level and for every cut, whatever floating-point environment the program has set.
 * SPDX-License-Identifier: MIT */
#include "kernels/half.h"
#include "kernels/hash.h"
#include "kernels/numeric.h"
#include "tests/kernel/kernel_testing.h"

enum { COUNT = 1500, WORLD_MAX = 9, USER_BYTES = COUNT * 8, CASES = DTYPE_COUNT + 4 };

/* Every type plain, then four quantised forms. */
static bool case_init(struct numeric *n, int which, enum redop op, const struct kernels *k)
{
    static const struct {
        enum dtype dtype;
        enum quant quant;
        enum dtype to;
    } quantised[4] = {{DTYPE_F32, QUANT_MINMAX, DTYPE_U8},
                      {DTYPE_F32, QUANT_ZPS, DTYPE_I8},
                      {DTYPE_F64, QUANT_MINMAX, DTYPE_U16},
                      {DTYPE_F64, QUANT_ZPS, DTYPE_U16}};
    static const uint64_t factors[DTYPE_COUNT] = {[DTYPE_F16] = 0x3E66, [DTYPE_BF16] = 0x3FC1, [DTYPE_F32] = 0x3FC01235, /* 1.5 and more */
                                                  [DTYPE_F64] = 0x3FF8000123456789};
    const int q = which - DTYPE_COUNT;
    const bool good = which < DTYPE_COUNT ? numeric_init(n, (enum dtype)which, op, QUANT_NONE, DTYPE_U8, k)
                                          : numeric_init(n, quantised[q].dtype, op, quantised[q].quant, quantised[q].to, k);
    n->factor = good ? factors[n->dtype] : 0;
    return good;
}

static bool case_has(int which, int op)
{
    struct numeric n;
    return case_init(&n, which, REDOP_SUM, kernels_get()) && redop_for((enum redop)op, n.dtype);
}

static void fill_user(struct rng *r, const struct numeric *n, uint8_t *user, bool awkward)
{
    if (awkward || n->dtype < DTYPE_F16 || n->dtype > DTYPE_F64) {
        kt_fill(r, user, COUNT, n->dtype);
        return;
    }
    for (size_t i = 0; i < COUNT; i++) {
        const double x = (double)(int64_t)rng_below(r, 4001) / 1000 - 2;
        const uint32_t bits = kt_bits32((float)x);
        const uint16_t h = n->dtype == DTYPE_F16 ? half_f16_narrow_bits(bits) : half_bf16_narrow_bits(bits);
        const float f = (float)x;
        const void *from = n->dtype == DTYPE_F64 ? (const void *)&x : n->dtype == DTYPE_F32 ? (const void *)&f : &h;
        memcpy(user + i * dtype_size(n->dtype), from, dtype_size(n->dtype));
    }
}

/* What the owner of a range does; `cut` elements at a time, a multiple of the block.  `acc`, `wire`: scratch. */
struct owner {
    uint8_t acc[USER_BYTES], sent[WORLD_MAX][USER_BYTES], wire[USER_BYTES], user[USER_BYTES];
};

static void owner_run(struct owner *o, const struct numeric *n, uint8_t inputs[][USER_BYTES], uint32_t world,
                      size_t cut)
{
    for (uint32_t peer = 0; peer < world; peer++) {
        numeric_encode(n, o->sent[peer], inputs[peer], COUNT);
    }
    for (size_t at = 0; at < COUNT; at += cut) {
        const size_t count = COUNT - at < cut ? COUNT - at : cut;
        uint8_t *acc = o->acc + numeric_acc_bytes(n, at);
        numeric_load(n, acc, o->sent[0] + numeric_wire_bytes(n, at), count);
        for (uint32_t peer = 1; peer < world; peer++) {
            numeric_fold(n, acc, o->sent[peer] + numeric_wire_bytes(n, at), count);
        }
        numeric_finish(n, o->user + numeric_user_bytes(n, at), o->wire + numeric_wire_bytes(n, at), acc, count, world);
    }
}

static uint8_t inputs[WORLD_MAX][USER_BYTES];
static struct owner first, second;

TEST(all_peers_hold_what_the_wire_says_on_every_level_and_for_every_cut) /* G2 */
{
    static uint8_t decoded[USER_BYTES];
    struct rng r = {1};
    for (int which = 0; which < CASES; which++) {
        for (int op = 0; op < REDOP_COUNT; op++) {
            for (uint32_t world = 2; case_has(which, op) && world <= WORLD_MAX; world++) {
                struct numeric n;
                EXPECT(case_init(&n, which, (enum redop)op, kt_level(0)));
                for (uint32_t peer = 0; peer < world; peer++) {
                    fill_user(&r, &n, inputs[peer], world % 2 == 0);
                }
                owner_run(&first, &n, inputs, world, COUNT);
                numeric_decode(&n, decoded, first.wire, COUNT);
                EXPECT(memcmp(decoded, first.user, numeric_user_bytes(&n, COUNT)) == 0);
                for (int level = 0; level < KT_LEVELS; level++) {
                    if (kt_level(level) != NULL) {
                        EXPECT(case_init(&n, which, (enum redop)op, kt_level(level)));
                        owner_run(&second, &n, inputs, world, NUMERIC_BLOCK * (1 + world % 3));
                        EXPECT(memcmp(first.user, second.user, numeric_user_bytes(&n, COUNT)) == 0);
                        EXPECT(memcmp(first.wire, second.wire, numeric_wire_bytes(&n, COUNT)) == 0);
                    }
                }
            }
        }
    }
}

static float half_value(enum dtype type, const uint8_t *p, size_t i)
{
    uint16_t h;
    memcpy(&h, p + 2 * i, 2);
    return kt_f32(type == DTYPE_F16 ? half_f16_widen_bits(h) : half_bf16_widen_bits(h));
}

TEST(the_bits_are_those_of_every_other_architecture) /* the constant was printed by another one */
{
    struct rng r = {11};
    uint64_t digest = 0;
    for (int which = 0; which < CASES; which++) {
        for (int op = 0; op < REDOP_COUNT; op++) {
            struct numeric n;
            if (!case_has(which, op)) {
                continue;
            }
            EXPECT(case_init(&n, which, (enum redop)op, kernels_get()));
            for (int peer = 0; peer < 4; peer++) {
                fill_user(&r, &n, inputs[peer], peer == op);
            }
            owner_run(&first, &n, inputs, 4, COUNT);
            digest = hash_mix64(digest, hash_simple64(first.user, numeric_user_bytes(&n, COUNT)));
            digest = hash_mix64(digest, hash_simple64(first.wire, numeric_wire_bytes(&n, COUNT)));
        }
    }
    if (digest != 0xE7B4FC9B3C350827) {
        fprintf(stderr, "digest of all results: %016" PRIX64 "\n", digest);
        EXPECT(false);
    }
}

TEST(products_with_a_factor_are_rounded_once_to_the_type_and_leave_the_input_alone)
{
    struct rng r = {12};
    static uint8_t before[USER_BYTES];
    for (int level = 0; level < KT_LEVELS; level++) {
        for (int type = DTYPE_F16; kt_level(level) != NULL && type <= DTYPE_F64; type++) {
            struct numeric n;
            EXPECT(case_init(&n, type, REDOP_PREMUL, kt_level(level)));
            EXPECT(n.encoded && !n.plain);
            fill_user(&r, &n, inputs[0], false);
            memcpy(before, inputs[0], USER_BYTES);
            numeric_encode(&n, first.wire, inputs[0], COUNT);
            EXPECT(memcmp(before, inputs[0], USER_BYTES) == 0);
            for (size_t i = 0; i < COUNT; i++) {
                const size_t size = dtype_size((enum dtype)type);
                uint8_t want[8];
                if (type == DTYPE_F64) {
                    double x, y;
                    memcpy(&x, inputs[0] + 8 * i, 8);
                    memcpy(&y, &n.factor, 8);
                    x *= y;
                    memcpy(want, &x, 8);
                } else if (type == DTYPE_F32) {
                    float x, y;
                    memcpy(&x, inputs[0] + 4 * i, 4);
                    memcpy(&y, &n.factor, 4);
                    x = (float)((double)x * (double)y);
                    memcpy(want, &x, 4);
                } else {
                    const float x = half_value((enum dtype)type, inputs[0], i), y = half_value((enum dtype)type, (const uint8_t *)&n.factor, 0);
                    const uint32_t bits = kt_bits32((float)((double)x * (double)y));
                    const uint16_t h = type == DTYPE_F16 ? half_f16_narrow_bits(bits) : half_bf16_narrow_bits(bits);
                    memcpy(want, &h, 2);
                }
                EXPECT(memcmp(first.wire + size * i, want, size) == 0);
            }
        }
    }
}

TEST(f16_and_bf16_are_summed_in_single_precision_and_rounded_once)
{
    struct rng r = {2};
    for (int type = DTYPE_F16; type <= DTYPE_BF16; type++) {
        for (int op = 0; op <= REDOP_MIN; op++) {
            struct numeric n;
            EXPECT(case_init(&n, type, (enum redop)op, kernels_get()));
            EXPECT(!n.plain && n.acc_dtype == DTYPE_F32);
            for (int peer = 0; peer < 5; peer++) {
                fill_user(&r, &n, inputs[peer], false);
            }
            owner_run(&first, &n, inputs, 5, COUNT);
            for (size_t i = 0; i < COUNT; i++) {
                float acc = half_value((enum dtype)type, inputs[0], i);
                for (int peer = 1; peer < 5; peer++) {
                    const float x = half_value((enum dtype)type, inputs[peer], i);
                    const double sum = op == REDOP_PROD ? (double)acc * (double)x : (double)acc + (double)x;
                    acc = op == REDOP_MAX ? (acc > x ? acc : x) : op == REDOP_MIN ? (acc < x ? acc : x) : (float)sum;
                }
                acc = op == REDOP_AVG ? (float)((double)acc / 5) : acc;
                uint16_t got;
                memcpy(&got, first.user + 2 * i, 2);
                EXPECT_EQ(got, type == DTYPE_F16 ? half_f16_narrow_bits(kt_bits32(acc))
                                                 : half_bf16_narrow_bits(kt_bits32(acc)));
            }
        }
    }
}

TEST(plain_fold_and_finish_equal_load_fold_finish)
{
    struct rng r = {3};
    for (int type = 0; type < DTYPE_COUNT; type++) {
        for (int op = 0; op < REDOP_COUNT; op++) {
            struct numeric n;
            if (!case_has(type, op)) {
                continue;
            }
            EXPECT(case_init(&n, type, (enum redop)op, kernels_get()));
            EXPECT_EQ(n.plain, type != DTYPE_F16 && type != DTYPE_BF16 && op != REDOP_PREMUL);
            if (!n.plain) {
                continue;
            }
            for (int peer = 0; peer < 3; peer++) {
                fill_user(&r, &n, inputs[peer], true);
            }
            owner_run(&first, &n, inputs, 3, COUNT);
            numeric_fold_plain(&n, second.acc, inputs[0], inputs[1], COUNT);
            numeric_fold_plain(&n, second.acc, second.acc, inputs[2], COUNT);
            numeric_finish_plain(&n, second.acc, COUNT, 3);
            EXPECT(memcmp(first.user, second.acc, numeric_user_bytes(&n, COUNT)) == 0);
            EXPECT_EQ(numeric_wire_bytes(&n, COUNT), numeric_user_bytes(&n, COUNT));
            EXPECT_EQ(numeric_acc_bytes(&n, COUNT), numeric_user_bytes(&n, COUNT));
        }
    }
}

TEST(finish_without_a_wire_gives_the_same_user_data)
{
    struct rng r = {4};
    for (int which = 0; which < CASES; which++) {
        struct numeric n;
        EXPECT(case_init(&n, which, case_has(which, REDOP_AVG) ? REDOP_AVG : REDOP_SUM, kernels_get()));
        fill_user(&r, &n, inputs[0], false);
        numeric_encode(&n, first.wire, inputs[0], COUNT);
        numeric_load(&n, first.acc, first.wire, COUNT);
        numeric_load(&n, second.acc, first.wire, COUNT);
        numeric_finish(&n, first.user, first.wire, first.acc, COUNT, 3);
        numeric_finish(&n, second.user, NULL, second.acc, COUNT, 3);
        EXPECT(memcmp(first.user, second.user, numeric_user_bytes(&n, COUNT)) == 0);
    }
}

TEST(alignment_is_free_and_nothing_outside_is_touched)
{
    struct rng r = {5};
    uint8_t *user = kt_guarded_new(), *wire = kt_guarded_new(), *acc = kt_guarded_new();
    for (int which = 0; which < CASES; which++) {
        for (size_t count = 0; count < 300; count += count < 40 ? 1 : 37) {
            struct numeric n;
            EXPECT(case_init(&n, which, case_has(which, REDOP_AVG) ? REDOP_AVG : REDOP_SUM, kernels_get()));
            uint8_t *u = user + KT_GUARDED - numeric_user_bytes(&n, count);
            uint8_t *w = wire + KT_GUARDED - numeric_wire_bytes(&n, count);
            uint8_t *a = acc + KT_GUARDED - numeric_acc_bytes(&n, count);
            for (size_t back = 0; back < 3; back++) {
                kt_fill(&r, u - back, count, n.dtype);
                numeric_encode(&n, w - back, u - back, count);
                numeric_load(&n, a - back, w - back, count);
                if (case_has(which, REDOP_SUM)) {
                    numeric_fold(&n, a - back, w - back, count);
                }
                numeric_finish(&n, u - back, w - back, a - back, count, 2);
                numeric_decode(&n, u - back, w - back, count);
                numeric_canonical(&n, u - back, count);
            }
        }
    }
    kt_guarded_free(user);
    kt_guarded_free(wire);
    kt_guarded_free(acc);
}

/* ---- The floating-point environment --------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <xmmintrin.h>
static uint64_t env_read(void)
{
    return _mm_getcsr();
}
static void env_write(uint64_t value)
{
    _mm_setcsr((unsigned)value);
}
/* flush to zero, denormals are zero, round up, a sticky flag raised */
enum { ENV_HOSTILE = 0x1F80 | 0x8000 | 0x0040 | 0x4000 | 0x0004 };
#elif defined(__aarch64__)
static uint64_t env_read(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
static void env_write(uint64_t value)
{
    __asm__ volatile("msr fpcr, %0" ::"r"(value) : "memory");
}
/* flush to zero, default NaN, round up */
enum { ENV_HOSTILE = 1 << 24 | 1 << 25 | 1 << 22 };
#endif

TEST(results_do_not_depend_on_the_programs_floating_point_environment)
{
    struct rng r = {6};
    const uint64_t ordinary = env_read();
    for (int which = 0; which < CASES; which++) {
        for (int op = 0; op < REDOP_COUNT; op++) {
            for (int level = 0; case_has(which, op) && level < KT_LEVELS; level++) {
                struct numeric n;
                if (kt_level(level) == NULL || !case_init(&n, which, (enum redop)op, kt_level(level))) {
                    continue;
                }
                for (int peer = 0; peer < 3; peer++) {
                    fill_user(&r, &n, inputs[peer], true);
                }
                if (n.quant != QUANT_NONE) { /* denormals in whole blocks, or infinities would drown them */
                    memset(inputs, 0, sizeof(inputs[0]));
                    for (size_t i = 0; i < COUNT; i++) {
                        inputs[0][i * dtype_size(n.dtype)] = (uint8_t)(i * 7);
                    }
                    memcpy(inputs[1], inputs[0], sizeof(inputs[0]));
                    memcpy(inputs[2], inputs[0], sizeof(inputs[0]));
                }
                owner_run(&first, &n, inputs, 3, COUNT);
                env_write(ENV_HOSTILE);
                owner_run(&second, &n, inputs, 3, COUNT);
                const uint64_t after = env_read();
                env_write(ordinary);
                EXPECT_EQ(after, ENV_HOSTILE);
                EXPECT(memcmp(first.user, second.user, numeric_user_bytes(&n, COUNT)) == 0);
                EXPECT(memcmp(first.wire, second.wire, numeric_wire_bytes(&n, COUNT)) == 0);
            }
        }
    }
}

TEST(denormals_survive_flush_to_zero)
{
    const float tiny[4] = {1e-40f, -1e-40f, 3e-45f, 1.1754942e-38f};
    float out[4];
    struct numeric n;
    EXPECT(case_init(&n, DTYPE_F32, REDOP_SUM, kernels_get()));
    const uint64_t ordinary = env_read();
    env_write(ENV_HOSTILE);
    numeric_fold_plain(&n, out, tiny, tiny, 4);
    env_write(ordinary);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(kt_bits32(out[i]), kt_bits32(tiny[i]) * 2 - (kt_bits32(tiny[i]) & 0x80000000u));
    }
}

TEST(canonical_touches_floats_only)
{
    struct numeric n;
    uint32_t ints[4] = {0x7FC00001, 0xFFFFFFFF, 1, 2}, floats[4] = {0x7FC00001, 0xFFFFFFFF, 1, 0x7F800000};
    EXPECT(case_init(&n, DTYPE_U32, REDOP_SUM, kernels_get()));
    numeric_canonical(&n, ints, 4);
    EXPECT(ints[0] == 0x7FC00001 && ints[1] == 0xFFFFFFFF);
    EXPECT(case_init(&n, DTYPE_F32, REDOP_SUM, kernels_get()));
    numeric_canonical(&n, floats, 4);
    EXPECT(floats[0] == 0x7FC00000 && floats[1] == 0x7FC00000 && floats[2] == 1 && floats[3] == 0x7F800000);
}

TEST(bad_enums_are_refused)
{
    struct numeric n;
    EXPECT(!numeric_init(&n, DTYPE_COUNT, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    EXPECT(!numeric_init(&n, DTYPE_F32, REDOP_COUNT, QUANT_NONE, DTYPE_U8, kernels_get()));
    EXPECT(!numeric_init(&n, DTYPE_F32, REDOP_SUM, QUANT_COUNT, DTYPE_U8, kernels_get()));
    EXPECT(!numeric_init(&n, DTYPE_F32, REDOP_SUM, QUANT_MINMAX, DTYPE_I8, kernels_get()));
}
