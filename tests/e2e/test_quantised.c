/* test_quantised.c - ordered collectives that sum, with what travels quantised.
 *
 * Inputs are 0 or 255, which min-max quantisation to u8 keeps exactly: so a sum that only one member gets is exact, and what differs in
 * one that all get is its own quantisation.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

enum { MOST_WORLD = 9 };

static const pcclQuantizationOptions_t minmax = {.algorithm = pcclQuantMinMax, .quantized_datatype = pcclUint8};

static double input(uint32_t rank, size_t i)
{
    uint32_t h = ((uint32_t)i * 8 + rank) * 2654435761u; /* each element of each member for itself, so that all sums occur */
    return (h ^ h >> 15) >> 7 & 1 ? 255 : 0;
}

static void store(void *at, pcclDataType_t type, size_t i, double v)
{
    if (type == pcclFloat) {
        ((float *)at)[i] = (float)v;
    } else {
        ((double *)at)[i] = v;
    }
}

static double value(const void *at, pcclDataType_t type, size_t i)
{
    return type == pcclFloat ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

/* Element 0 of `at` is element `first` of the sum; how far they may be apart. */
static void expect_sum(const void *at, pcclDataType_t type, uint32_t world, size_t first, size_t count, double apart)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (uint32_t r = 0; r < world; r++) {
            sum += input(r, first + i);
        }
        wrong += !(fabs(value(at, type, i) - sum) <= apart);
    }
    EXPECT_EQ(wrong, 0);
    if (wrong > 0) {
        fprintf(stderr, "# type %d, world %u, element %zu of %zu, apart %g\n", (int)type, world, first, count, apart);
    }
}

/* All members hold the bits that rank 0 holds. */
static void expect_alike(pcclComm_t *comm, const void *at, size_t bytes, uint32_t world)
{
    char *all = malloc(bytes * world + 1);
    EXPECT_EQ(pcclAllGather(at, all, bytes, pcclUint8, comm, NULL), pcclSuccess);
    for (uint32_t r = 1; r < world; r++) {
        EXPECT(memcmp(all, all + r * bytes, bytes) == 0);
    }
    free(all);
}

static void every_call(pcclComm_t *comm, uint32_t world, uint32_t rank, pcclDataType_t type, size_t count)
{
    size_t size = type == pcclFloat ? 4 : 8, all = count * world, counts[MOST_WORLD], before = 0;
    uint32_t root = (uint32_t)count % world;
    char *x = malloc(all * size + 1), *y = malloc(all * size + 1);
    for (size_t i = 0; i < all; i++) {
        store(x, type, i, input(rank, i));
    }
    EXPECT_EQ(pcclReduceScatterQuantized(x, y, count, type, pcclSum, &minmax, comm, NULL), pcclSuccess);
    expect_sum(y, type, world, rank * count, count, 0);
    for (uint32_t r = 0; r < world; r++) { /* the parts of the first and the last are of other sizes */
        counts[r] = r == 0 ? count / 2 : r == world - 1 ? count + count / 2 : count;
        before += r < rank ? counts[r] : 0;
    }
    counts[0] = world == 1 ? count : counts[0];
    char *own = malloc(2 * count * size + 1);
    EXPECT_EQ(pcclReduceScatterVQuantized(x, own, counts, NULL, type, pcclSum, &minmax, comm, NULL), pcclSuccess);
    expect_sum(own, type, world, before, counts[rank] < all ? counts[rank] : all, 0);
    EXPECT_EQ(pcclReduceQuantized(x, rank == root ? y : NULL, count, type, pcclSum, &minmax, root, comm, NULL), pcclSuccess);
    if (rank == root) {
        expect_sum(y, type, world, 0, count, 0);
    }
    EXPECT_EQ(pcclAllReduceQuantized(x, y, count, type, pcclSum, &minmax, comm, NULL), pcclSuccess);
    expect_sum(y, type, world, 0, count, world == 1 ? 0 : world); /* the sum is quantised, too: half a step is world / 2 */
    expect_alike(comm, y, count * size, world);
    EXPECT_EQ(pcclAllReduceQuantized(x, x, count, type, pcclSum, NULL, comm, NULL), pcclSuccess); /* in place, and not quantised */
    expect_sum(x, type, world, 0, count, 0);
    free(own);
    free(x);
    free(y);
}

static void all_sizes(struct cluster_peer *p, void *context)
{
    uint32_t world = *(const uint32_t *)context;
    static const size_t counts[] = {0, 1, 6, 1000, 20000};
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        every_call(p->comm, world, self.rank, pcclFloat, counts[c]);
        every_call(p->comm, world, self.rank, pcclDouble, counts[c]);
    }
}

TEST(sums_that_one_member_gets_are_exact_and_those_of_all_are_alike)
{
    static const uint32_t worlds[] = {1, 2, 4, MOST_WORLD}; /* in whose sums 255 is no multiple of a step */
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        uint32_t world = worlds[i];
        struct cluster c;
        cluster_start(&c, (int)world, NULL, 1);
        cluster_run(&c, all_sizes, &world);
        cluster_stop(&c);
    }
}

static bool says(const char *text)
{
    pcclErrorInfo_t info;
    return pcclGetLastErrorInfo(&info) == pcclSuccess && strstr(info.text, text) != NULL;
}

static void mistakes(struct cluster_peer *p, void *context)
{
    float x[8] = {0}, y[4];
    (void)context;
    pcclQuantizationOptions_t wrong = {.algorithm = (pcclQuantizationAlgorithm_t)9};
    EXPECT_EQ(pcclReduceScatterQuantized(x, y, 4, pcclFloat, pcclSum, &wrong, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("quantization->algorithm is 9: expected 0 (pcclQuantNone) to 2 (pcclQuantZeroPointScale)"));
    wrong = (pcclQuantizationOptions_t){.algorithm = pcclQuantMinMax, .quantized_datatype = (pcclDataType_t)77};
    EXPECT_EQ(pcclReduceScatterQuantized(x, y, 4, pcclFloat, pcclSum, &wrong, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("quantization->quantized_datatype is 77: expected"));
    wrong.quantized_datatype = pcclInt8;
    EXPECT_EQ(pcclReduceScatterQuantized(x, y, 4, pcclFloat, pcclSum, &wrong, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("(pcclQuantMinMax): it takes datatype f32 or f64 to quantized_datatype u8, u16, u32 or u64, not f32 to i8"));
    const pcclQuantizationOptions_t *mine = p->index == 0 ? &minmax : NULL;
    EXPECT_EQ(pcclReduceScatterQuantized(x, y, 4, pcclFloat, pcclSum, mine, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("min-max u8"));
    EXPECT_EQ(pcclReduceScatterQuantized(x, y, 4, pcclFloat, pcclSum, &minmax, p->comm, NULL), pcclSuccess);
}

TEST(options_that_cannot_be_and_those_that_differ_are_told_on_all_members)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, mistakes, NULL);
    cluster_stop(&c);
}
