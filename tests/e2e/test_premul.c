/* test_premul.c - pre-multiplied sums: every member's input times its own factor, in every call that takes an operator.
 *
 * Inputs are whole numbers up to 7 and factors -2, 0.5, 1, 1.5 in turn: sums stay below 64, so that all types hold them exactly.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

enum { TYPES = 4, MOST_WORLD = 9 };

static const pcclDataType_t types[TYPES] = {pcclFloat16, pcclBFloat16, pcclFloat, pcclDouble};

static size_t size_of(pcclDataType_t type)
{
    return type == pcclDouble ? 8 : type == pcclFloat ? 4 : 2;
}

static void store(void *at, pcclDataType_t type, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint16_t half = (uint16_t)(bits >> 16 & 0x8000);
    half |= v == 0 ? 0 : (uint16_t)( ((((bits >> 23) & 0xFF) - 112) << 10) | ((bits >> 13) & 0x3FF));
    uint16_t bfloat = (uint16_t)(bits >> 16);
    const void *from = type == pcclFloat16 ? (void *)&half : type == pcclBFloat16 ? (void *)&bfloat : type == pcclFloat ? (void *)&f : (void *)&v;
    memcpy(at, from, size_of(type));
}

static double factor_of(uint32_t rank)
{
    static const double factors[] = {-2, 0.5, 1, 1.5};
    return factors[rank % 4];
}

static double input(uint32_t rank, size_t i)
{
    return (double)((i * 7 + rank * 5 + i / 11) % 8);
}

static void fill(void *at, pcclDataType_t type, uint32_t rank, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        store((char *)at + i * size_of(type), type, input(rank, i));
    }
}

/* Element 0 of `at` is element `first` of the sum. */
static void expect_sum(const void *at, pcclDataType_t type, uint32_t world, size_t first, size_t count)
{
    size_t wrong = 0, size = size_of(type);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        unsigned char want[8];
        for (uint32_t r = 0; r < world; r++) {
            double product = factor_of(r) * input(r, first + i);
            sum = r == 0 ? product : sum + product; /* of one the sign of 0 stays */
        }
        store(want, type, sum);
        wrong += memcmp((const char *)at + i * size, want, size) != 0;
    }
    EXPECT_EQ(wrong, 0);
    if (wrong > 0) {
        fprintf(stderr, "# type %d, world %u, count %zu\n", (int)type, world, count);
    }
}

static void expect_input(const void *at, pcclDataType_t type, uint32_t rank, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char want[8];
        store(want, type, input(rank, i));
        wrong += memcmp((const char *)at + i * size_of(type), want, size_of(type)) != 0;
    }
    EXPECT_EQ(wrong, 0);
}

/* Every call, of one type and count; `count` of each part where there are parts. */
static void every_call(pcclComm_t *comm, uint32_t world, uint32_t rank, pcclDataType_t type, pcclRedOp_t op, size_t count)
{
    size_t size = size_of(type), all = count * world;
    uint32_t root = (uint32_t)count % world;
    char *x = malloc(all * size + 1), *y = malloc(all * size + 1);
    fill(x, type, rank, all);
    EXPECT_EQ(pcclAllReduceOrdered(x, y, count, type, op, comm, NULL), pcclSuccess);
    expect_sum(y, type, world, 0, count);
    EXPECT_EQ(pcclReduceScatter(x, y, count, type, op, comm, NULL), pcclSuccess);
    expect_sum(y, type, world, rank * count, count);
    EXPECT_EQ(pcclReduce(x, rank == root ? y : NULL, count, type, op, root, comm, NULL), pcclSuccess);
    if (rank == root) {
        expect_sum(y, type, world, 0, count);
    }
    expect_input(x, type, rank, all);
    if (world > 1) { /* the original's calls need two */
        pcclReduceDescriptor_t d = {.count = count, .op = op, .tag = 7, .src_descriptor = {.datatype = type}};
        pcclReduceOpDescriptor_t list[2] = {{x, y, d}, {x, y + count * size, d}};
        list[1].descriptor.tag = 8;
        EXPECT_EQ(pcclAllReduceMultipleWithRetry(list, 2, comm, NULL, 2), pcclSuccess);
        expect_sum(y, type, world, 0, count);
        expect_sum(y + count * size, type, world, 0, count);
    }
    pcclAsyncOp_t handle;
    EXPECT_EQ(pcclAllReduceOrdered(x, x, count, type, op, comm, &handle), pcclSuccess); /* in place */
    EXPECT_EQ(pcclAwaitAsync(&handle, NULL), pcclSuccess);
    expect_sum(x, type, world, 0, count);
    free(x);
    free(y);
}

static void all_types(struct cluster_peer *p, void *context)
{
    uint32_t world = *(const uint32_t *)context;
    static const size_t counts[] = {0, 1, 5, 1000, 20000};
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (int t = 0; t < TYPES; t++) {
        unsigned char factor[8];
        pcclRedOp_t op;
        store(factor, types[t], factor_of(self.rank));
        EXPECT_EQ(pcclRedOpCreatePreMulSum(&op, factor, types[t], t % 2 == 0 ? pcclFactorByValue : pcclFactorByPointer, p->comm), pcclSuccess);
        if (t % 2 == 0) {
            memset(factor, 0x55, sizeof factor); /* it was copied */
        }
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            every_call(p->comm, world, self.rank, types[t], op, counts[c]);
        }
        EXPECT_EQ(pcclRedOpDestroy(op, p->comm), pcclSuccess);
    }
}

TEST(each_input_is_multiplied_once_by_its_own_factor_in_worlds_of_1_to_9)
{
    for (uint32_t world = 1; world <= MOST_WORLD; world += test_step()) {
        struct cluster c;
        setenv("PCCL_VERIFY", world % 2 == 0 ? "1" : "0", 1);
        cluster_start(&c, (int)world, NULL, 1 + world % 2);
        cluster_run(&c, all_types, &world);
        cluster_stop(&c);
    }
    unsetenv("PCCL_VERIFY");
}

static bool says(const char *words)
{
    bool said = strstr(pcclGetLastError(), words) != NULL;
    if (!said) {
        fprintf(stderr, "# expected '%s' in: %s\n", words, pcclGetLastError());
    }
    return said;
}

static void by_pointer_and_quantised(struct cluster_peer *p, void *context)
{
    (void)context;
    float factor = 1, x[300], y[300];
    pcclRedOp_t op;
    for (int i = 0; i < 300; i++) {
        x[i] = 3; /* a constant block: exact when quantised */
    }
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&op, &factor, pcclFloat, pcclFactorByPointer, p->comm), pcclSuccess);
    pcclReduceDescriptor_t d = cluster_floats(300, 5);
    d.op = op;
    d.quantization_options = (pcclQuantizationOptions_t){pcclUint8, pcclQuantMinMax};
    for (int round = 1; round < 4; round++) {
        factor = (float)(round * (p->index + 1)); /* read at each launch */
        EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, NULL), pcclSuccess);
        float want = (float)(3 * round * (1 + 2));
        EXPECT(y[0] > want * 0.999f && y[0] < want * 1.001f && y[299] == y[0] && x[0] == 3);
    }
    EXPECT_EQ(pcclRedOpDestroy(op, p->comm), pcclSuccess);
}

TEST(a_factor_by_pointer_is_read_at_each_launch_and_goes_with_quantisation)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, by_pointer_and_quantised, NULL);
    cluster_stop(&c);
}

static void mistakes(struct cluster_peer *p, void *context)
{
    (void)context;
    float factor = 2, x[4] = {1, 2, 3, 4}, y[4];
    pcclRedOp_t op, other;
    EXPECT_EQ(pcclRedOpCreatePreMulSum(NULL, &factor, pcclFloat, pcclFactorByValue, p->comm), pcclInvalidArgument);
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&op, NULL, pcclFloat, pcclFactorByValue, p->comm), pcclInvalidArgument);
    EXPECT(says("factor is null"));
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&op, &factor, pcclInt32, pcclFactorByValue, p->comm), pcclInvalidArgument);
    EXPECT(says("datatype is 5 (i32)"));
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&op, &factor, pcclFloat, (pcclFactorResidence_t)2, p->comm), pcclInvalidArgument);
    EXPECT(says("residence is 2"));
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&op, &factor, pcclFloat, pcclFactorByValue, p->comm), pcclSuccess);
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&other, &factor, pcclFloat, pcclFactorByValue, p->comm), pcclSuccess);
    EXPECT(op != other && op > pcclBitXor);
    EXPECT_EQ(pcclAllReduceOrdered(x, y, 2, pcclDouble, op, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("which multiplies f32, of f64: create one of that type"));
    EXPECT_EQ(pcclAllReduceOrdered(x, y, 4, pcclFloat, (pcclRedOp_t)8, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("op is 8: expected 0 (pcclSum) to 7 (pcclBitXor), or one of pcclRedOpCreatePreMulSum"));
    EXPECT_EQ(pcclRedOpDestroy(op, p->comm), pcclSuccess);
    EXPECT_EQ(pcclRedOpDestroy(op, p->comm), pcclInvalidArgument);
    pcclRedOp_t next = op; /* in its place, and not taken for it */
    EXPECT_EQ(pcclRedOpCreatePreMulSum(&next, &factor, pcclFloat, pcclFactorByValue, p->comm), pcclSuccess);
    EXPECT(next != op);
    EXPECT_EQ(pcclRedOpDestroy(op, p->comm), pcclInvalidArgument);
    EXPECT_EQ(pcclRedOpDestroy(next, p->comm), pcclSuccess);
    EXPECT_EQ(pcclRedOpDestroy(pcclSum, p->comm), pcclInvalidArgument);
    EXPECT_EQ(pcclAllReduceOrdered(x, y, 4, pcclFloat, op, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("expected 0 (pcclSum)"));
    EXPECT_EQ(pcclAllReduceOrdered(x, y, 4, pcclFloat, p->index == 0 ? other : pcclSum, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("4 f32, premul_sum") && says("4 f32, sum"));
    EXPECT_EQ(pcclAllReduceOrdered(x, y, 4, pcclFloat, other, p->comm, NULL), pcclSuccess); /* 2 x and 2 x */
    EXPECT(y[0] == 4 && y[3] == 16);
}

TEST(what_is_no_operator_of_that_type_is_told)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, mistakes, NULL);
    cluster_stop(&c);
}
