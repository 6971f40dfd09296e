/* test_constants.c - a tensor of one value comes back exactly from a quantised all-reduce, by every quantiser and type.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdlib.h>

#include "tests/e2e/cluster.h"

enum { MEMBERS = 3, MOST = 70000 };

static const struct {
    pcclQuantizationAlgorithm_t algorithm;
    pcclDataType_t to;
} formats[] = {
    {pcclQuantMinMax, pcclUint8},          {pcclQuantMinMax, pcclUint16},         {pcclQuantZeroPointScale, pcclInt8},
    {pcclQuantZeroPointScale, pcclUint8},  {pcclQuantZeroPointScale, pcclInt16},  {pcclQuantZeroPointScale, pcclUint16},
};

static void reduce_constant(struct cluster_peer *p, size_t format, const float value[MEMBERS], size_t count, pcclRedOp_t op, uint64_t tag)
{
    float *x = malloc(count * sizeof *x), sum = value[0] + value[1] + value[2], want = op == pcclAvg ? sum / MEMBERS : sum;
    size_t wrong = 0;
    pcclReduceDescriptor_t d = cluster_floats(count, tag);
    d.op = op;
    d.quantization_options = (pcclQuantizationOptions_t){.quantized_datatype = formats[format].to, .algorithm = formats[format].algorithm};
    for (size_t i = 0; i < count; i++) {
        x[i] = value[p->index];
    }
    EXPECT_EQ(pcclAllReduce(x, x, &d, p->comm, NULL), pcclSuccess);
    for (size_t i = 0; i < count; i++) {
        wrong += x[i] != want;
    }
    EXPECT_EQ(wrong, 0);
    if (wrong != 0) {
        fprintf(stderr, "# algorithm %d to type %d: %.9g, expected %.9g\n", (int)formats[format].algorithm, (int)formats[format].to,
                (double)x[0], (double)want);
    }
    free(x);
}

static void reduce_constants(struct cluster_peer *p, void *context)
{
    static const float values[][MEMBERS] = {{10, 10, 10}, {0.1F, 0, 0}, {0.5F, 2.25F, -7}, {-0.3F, 0, 0}}; /* whose sums are exact */
    static const size_t counts[] = {1, 3, 1000, MOST};
    uint64_t tag = 1;
    (void)context;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                reduce_constant(p, f, values[v], counts[c], pcclSum, tag++);
                reduce_constant(p, f, values[v], counts[c], pcclAvg, tag++);
            }
        }
    }
}

TEST(a_tensor_of_one_value_comes_back_exactly_from_every_quantiser) /* PCCL 1.0 keeps it, too, by zero point and scale */
{
    struct cluster c;
    cluster_start(&c, MEMBERS, NULL, 1);
    cluster_run(&c, reduce_constants, NULL);
    cluster_stop(&c);
}
