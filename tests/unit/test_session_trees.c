/* test_session_trees.c - trees that a view carries: which are followed, and by which operations.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { TREES = 2 };

/* View 2 of the three, with two trees; `edge`: this one has no link with peer 1. */
static void plant(struct bench *b, const uint32_t *share, const uint16_t *parent, bool edge)
{
    unsigned char raw[1024];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .sizes = {PEERS, PEERS, 1, PEERS},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024, .tree_mib_ns = 5000000, .tree_delay_us = 300},
                         .members = PEERS, .weights = edge ? PEERS : 0, .trees = TREES, .edges = edge};
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    for (uint32_t i = 0; i < m.weights; i++) {
        put_u32(&w, i == 2);
    }
    for (uint32_t t = 0; t < TREES; t++) {
        put_view_tree(&w, share[t], parent + (size_t)t * PEERS, PEERS);
    }
    if (edge) {
        put_missing_edge(&w, &(struct missing_edge){.a = self, .b = peer_id(1), .relay = peer_id(2)});
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

static bool connected(const struct bench *b)
{
    struct session_info info;
    session_info(b->s, &info);
    return info.connected;
}

/* An all-reduce of so many of that type goes along the trees, if it may. */
static bool follows(struct bench *b, uint64_t count, enum dtype type, enum quant quant)
{
    struct op_params p = {.kind = PLAN_ALL_REDUCE, .dtype = type, .op = REDOP_SUM, .count = count, .quant = quant, .quant_dtype = DTYPE_I8};
    return session_plan_by(b->s, &p, PLAN_FOREST).algorithm == PLAN_FOREST;
}

static const uint32_t shares[TREES] = {40000, 25536};
static const uint16_t parents[TREES * PEERS] = {0, 0, 1, 2, 2, 2};

TEST(large_plain_sums_may_go_along_the_trees_of_a_view) /* partial sums of others would be rounded on the way; small ones have no use for trees */
{
    struct bench *b = bench_new();
    EXPECT(!follows(b, 1 << 20, DTYPE_F32, QUANT_NONE)); /* view 1 has none */
    plant(b, shares, parents, false);
    EXPECT(connected(b));
    EXPECT(follows(b, 1 << 20, DTYPE_F32, QUANT_NONE) && follows(b, 257, DTYPE_I32, QUANT_NONE));
    EXPECT(!follows(b, 256, DTYPE_F32, QUANT_NONE));
    EXPECT(!follows(b, 1 << 20, DTYPE_F16, QUANT_NONE) && !follows(b, 1 << 20, DTYPE_F32, QUANT_MINMAX));
    struct op_params p = {.kind = PLAN_ALL_REDUCE, .dtype = DTYPE_F32, .op = REDOP_SUM, .count = 1 << 20};
    EXPECT_EQ(session_plan_by(b->s, &p, PLAN_FOREST).ns, 4 * 5000000 + 300000);
    p.kind = PLAN_REDUCE_SCATTER;
    EXPECT(session_plan_by(b->s, &p, PLAN_FOREST).algorithm != PLAN_FOREST);
    bench_free(b);
}

TEST(trees_over_a_missing_edge_are_not_followed) /* a slice would wait for a link that is not */
{
    struct bench *b = bench_new();
    plant(b, shares, parents, true); /* the first tree has this one's parent, or child, at peer 1 */
    EXPECT(connected(b) && !follows(b, 1 << 20, DTYPE_F32, QUANT_NONE));
    bench_free(b);
    b = bench_new();
    const uint16_t stars[TREES * PEERS] = {2, 2, 2, 2, 2, 2};
    plant(b, shares, stars, true);
    EXPECT(connected(b) && follows(b, 1 << 20, DTYPE_F32, QUANT_NONE));
    bench_free(b);
}

TEST(what_is_no_set_of_trees_is_no_view) /* slices that overlap, or nobody sums up, or a way that goes round */
{
    const struct {
        uint32_t share[TREES];
        uint16_t parent[TREES * PEERS];
    } bad[] = {
        {{40000, 25535}, {0, 0, 1, 2, 2, 2}}, {{40000, 25537}, {0, 0, 1, 2, 2, 2}}, {{65536, 0}, {0, 0, 1, 2, 2, 2}},
        {{40000, 25536}, {0, 0, 1, 2, 2, 3}}, {{40000, 25536}, {1, 2, 0, 2, 2, 2}}, {{40000, 25536}, {0, 1, 1, 2, 2, 2}},
        {{UINT32_MAX, 65537}, {0, 0, 1, 2, 2, 2}}, {{40000, 25536}, {0, 0, 1, 65535, 65535, 65535}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bench *b = bench_new();
        plant(b, bad[i].share, bad[i].parent, false);
        EXPECT(!connected(b));
        bench_free(b);
    }
}
