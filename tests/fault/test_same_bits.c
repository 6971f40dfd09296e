/* test_same_bits.c - worlds of 2 to 9 processes whose processors differ in what they can do: every type and operator, the
 * same bits everywhere (G2), and the right ones.
 *
 * Bits are compared on random patterns (NaN, infinities, denormals included); values on small whole numbers, whose results
 * this file computes in double or in 64-bit integers.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <math.h>

#include "tests/fault/peer_calls.h"

enum { TYPES = 13 /* all that something is computed with */, OPERATORS = 8, OF_NUMBERS = 5, MOST = 40000 };

static const size_t type_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* ---- Values of each type, by definition ------------------------------------------------------------------------------ */

static double half_value(uint16_t bits, int exponent_bits)
{
    int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1), mantissa = bits & ((1 << mantissa_bits) - 1);
    double v = exponent == 0 ? ldexp(mantissa, 1 - bias - mantissa_bits)
                             : ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (bits & 0x8000) != 0 ? -v : v;
}

static uint16_t half_bits(int value, int exponent_bits)
{
    for (uint32_t bits = 0; bits < 0x8000; bits++) {
        if (half_value((uint16_t)bits, exponent_bits) == abs(value)) {
            return (uint16_t)(bits | (value < 0 ? 0x8000u : 0u));
        }
    }
    abort();
}

static void put_value(void *at, int type, int value)
{
    static uint16_t half[2][16]; /* found once */
    int64_t whole = value;
    float f = (float)value;
    double d = value;
    if (half[0][9] == 0) {
        for (int v = -4; v <= 4; v++) {
            half[0][v + 8] = half_bits(v, 5);
            half[1][v + 8] = half_bits(v, 8);
        }
    }
    switch (type) {
    case pcclFloat16:
    case pcclBFloat16:
        memcpy(at, &half[type == pcclBFloat16][value + 8], 2);
        break;
    case pcclFloat:
        memcpy(at, &f, sizeof f);
        break;
    case pcclDouble:
        memcpy(at, &d, sizeof d);
        break;
    default: /* integers: the low bytes */
        memcpy(at, &whole, type_bytes[type]);
        break;
    }
}

static bool is_float(int type)
{
    return type >= pcclFloat16 && type <= pcclDouble;
}

static double get_value(const void *at, int type)
{
    uint16_t h;
    float f;
    double d;
    memcpy(&h, at, 2);
    switch (type) {
    case pcclFloat16:
        return half_value(h, 5);
    case pcclBFloat16:
        return half_value(h, 8);
    case pcclFloat:
        memcpy(&f, at, sizeof f);
        return (double)f;
    default:
        memcpy(&d, at, sizeof d);
        return d;
    }
}

static int small_value(int type, int op, int index, size_t i)
{
    int v = (int)((i * 7 + (size_t)index * 5 + i / 11) % 4) + 1;
    bool sign = type == pcclInt8 || type == pcclInt16 || type == pcclInt32 || type == pcclInt64 || is_float(type);
    if (type == pcclBool) {
        return v % 2 * v;
    }
    return op == pcclProd ? 1 + v % 2 : sign && i % 3 == 0 ? -v : v;
}

static void check_value(struct peer *self, int type, int op, int world, size_t i, const void *at)
{
    int64_t sum = 0, product = 1, most = INT64_MIN, least = INT64_MAX, all = -1, any = 0, odd = 0;
    for (int k = 0; k < world; k++) {
        int v = small_value(type, op, k, i);
        sum += v;
        product *= v;
        most = v > most ? v : most;
        least = v < least ? v : least;
        all &= v;
        any |= v;
        odd ^= v;
    }
    const int64_t numbers[OPERATORS] = {sum, sum / world, product, most, least, all, any, odd};
    const int64_t truths[OPERATORS] = {any != 0, 0, 0, any != 0, least != 0, least != 0, any != 0, 0};
    int64_t want = type == pcclBool ? truths[op] : numbers[op];
    if (!is_float(type)) {
        PEER_EXPECT(self, memcmp(at, &want, type_bytes[type]) == 0); /* little-endian, as the library requires */
        return;
    }
    double exact = op == pcclAvg ? (double)sum / world : (double)want;
    double unit = type == pcclFloat16 ? 0x1p-10 : type == pcclBFloat16 ? 0x1p-7 : type == pcclFloat ? 0x1p-22 : 0x1p-51;
    PEER_EXPECT(self, fabs(get_value(at, type) - exact) <= (op == pcclAvg ? unit * fabs(exact) : 0));
}

/* Numbers of all types; bits of integers; truth values have no average, product and exclusive or. */
static bool has_operator(int type, int op)
{
    return type == pcclBool ? op != pcclAvg && op != pcclProd && op != pcclBitXor : op < OF_NUMBERS || !is_float(type);
}

/* ---- Operations ---------------------------------------------------------------------------------------------------------- */

static void reduce(struct peer *self, void *in, void *out, const pcclReduceDescriptor_t *d)
{
    pcclReduceInfo_t info;
    if (pcclAllReduce(in, out, d, self->comm, &info) != pcclSuccess) {
        fprintf(stderr, "peer %d, type %d, operator %d, count %zu: %s\n", self->index, d->src_descriptor.datatype, d->op,
                d->count, pcclGetLastError());
        PEER_EXPECT(self, false);
    }
}

/* argument: int, the world's size.  value[type]: hash over all results of random bits; of the second call: quantised ones. */
static void reduce_everything(struct peer *self, const void *argument, struct reply *reply)
{
    static const size_t counts[] = {1, 7, 1000, MOST};
    int world = *(const int *)argument;
    unsigned char *in = peer_buffer(self, 0, MOST * 8), *out = peer_buffer(self, 1, MOST * 8);
    for (int type = 0; type < TYPES; type++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (int op = 0; op < OPERATORS; op++) {
            for (size_t c = 0; has_operator(type, op) && c < sizeof counts / sizeof counts[0]; c++) {
                pcclReduceDescriptor_t d = {.count = counts[c], .op = (pcclRedOp_t)op, .tag = (uint64_t)(op * 100 + type)};
                uint64_t seed = (uint64_t)self->index * 1000003 + (uint64_t)type * 101 + (uint64_t)op * 13 + c;
                size_t bytes = counts[c] * type_bytes[type];
                d.src_descriptor.datatype = (pcclDataType_t)type;
                for (size_t i = 0; i < bytes; i += 8) {
                    uint64_t r = next_random(&seed);
                    memcpy(in + i, &r, bytes - i < 8 ? bytes - i : 8);
                }
                reduce(self, in, out, &d);
                hash = hash_bytes(hash, out, bytes);
                if (counts[c] > 1000) {
                    continue;
                }
                for (size_t i = 0; i < counts[c]; i++) {
                    put_value(in + i * type_bytes[type], type, small_value(type, op, self->index, i));
                }
                reduce(self, in, in, &d);
                for (size_t i = 0; i < counts[c]; i++) {
                    check_value(self, type, op, world, i, in + i * type_bytes[type]);
                }
            }
        }
        reply->value[type] = (int64_t)hash;
    }
}

static void reduce_quantised(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    static const struct {
        pcclQuantizationAlgorithm_t algorithm;
        pcclDataType_t type;
    } forms[] = {{pcclQuantMinMax, pcclUint8}, {pcclQuantMinMax, pcclUint16}, {pcclQuantZeroPointScale, pcclInt8},
                 {pcclQuantZeroPointScale, pcclUint16}};
    static const size_t counts[] = {30000, 300, 1, 0};
    float *in = peer_buffer(self, 0, MOST * 8), *out = peer_buffer(self, 1, MOST * 8);
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325), seed = (uint64_t)self->index * 77 + f;
        for (int round = 0; round < OF_NUMBERS * 4; round++) {
            int op = round / 4;
            size_t count = counts[round % 4];
            pcclReduceDescriptor_t d = peer_floats(count, 5000 + (uint64_t)op);
            d.op = (pcclRedOp_t)op;
            d.quantization_options = (pcclQuantizationOptions_t){forms[f].type, forms[f].algorithm};
            for (size_t i = 0; i < count; i++) {
                in[i] = ldexpf((float)(int32_t)next_random(&seed), -31 - (int)(i / 5000) * 30); /* down to denormals */
            }
            reduce(self, in, out, &d);
            hash = hash_bytes(hash, out, count * sizeof(float));
        }
        reply->value[f] = (int64_t)hash;
    }
}

static void expect_same(const struct reply *reply, int world, int values)
{
    for (int k = 0; k < world; k++) {
        EXPECT_EQ(reply[k].result, pcclSuccess);
        for (int v = 0; v < values; v++) {
            if (reply[k].value[v] != reply[0].value[v]) {
                fprintf(stderr, "world %d, peer %d, value %d differs\n", world, k, v);
            }
            EXPECT(reply[k].value[v] == reply[0].value[v] && reply[k].value[v] != 0);
        }
    }
}

TEST(worlds_of_two_to_nine_mixed_processes_get_the_same_bits_and_the_right_values)
{
    static const char *const levels[] = {"avx512", "scalar", "avx2"};
    struct processes all;
    struct processes_options o = {.count = 9, .failures = &test_failures, .pool = 2};
    for (int i = 0; i < 9; i++) {
        o.cpu[i] = levels[i % 3];
        o.flush_to_zero[i] = i == 1 || i == 6;
    }
    if (!processes_start(&all, &o)) {
        return;
    }
    int world = 9;
    processes_do(&all, processes_set(9), peer_join, &world, sizeof world, NULL);
    for (; world >= 2 && test_failures == 0; world--) {
        struct reply reply[PROCESSES_MOST];
        processes_do(&all, processes_set(world), peer_update_until, &world, sizeof world, NULL);
        if (getenv("PCCL_SANITIZED") != NULL && world % 3 != 0) {
            EXPECT_EQ(process_do(&all, world - 1, peer_destroy, NULL, 0).result, pcclSuccess);
            continue;
        }
        processes_do(&all, processes_set(world), reduce_everything, &world, sizeof world, reply);
        expect_same(reply, world, TYPES);
        processes_do(&all, processes_set(world), reduce_quantised, NULL, 0, reply);
        expect_same(reply, world, 4);
        EXPECT_EQ(process_do(&all, world - 1, peer_destroy, NULL, 0).result, pcclSuccess);
    }
    processes_stop(&all);
}
