/* test_session_path.c - collectives in a view that misses an edge: by which plan they go round it.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

/* A launch in the order of issue, root by rank; returns whether lanes are to run it. */
static bool launched(struct bench *b, uint32_t slot, const struct op_params *p, uint32_t root, float factor)
{
    static float x[6000], y[6000];
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = info.snapshot.group, .params = *p,
                                        .root_rank = root, .count = (size_t)p->count, .in = x, .out = y, .deadline = INT64_MAX}};
    memcpy(&l.call.factor, &factor, sizeof factor);
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    bool starts = false;
    for (uint32_t i = 0; i < b->out.count; i++) {
        starts = starts || (b->out.actions[i].kind == ACT_OP_START && b->out.actions[i].slot == slot);
    }
    EXPECT(!starts || !b->returned);
    return starts;
}

/* This member is linked with both others, which are not linked with each other. */
TEST(collectives_go_round_a_missing_edge_by_members_that_are_linked_with_all) /* split and windows begin with an all-gather */
{
    static const struct {
        enum plan_kind kind;
        uint32_t root;
        enum plan_algorithm algorithm;
    } calls[] = {{PLAN_ALL_REDUCE, 0, PLAN_DIRECT}, {PLAN_ALL_GATHER, 0, PLAN_DIRECT}, {PLAN_BROADCAST, 0, PLAN_DIRECT},
                 {PLAN_BROADCAST, 1, PLAN_DIRECT}, {PLAN_REDUCE_SCATTER, 0, PLAN_DIRECT}, {PLAN_REDUCE, 0, PLAN_DIRECT},
                 {PLAN_REDUCE, 2, PLAN_DIRECT}, {PLAN_SCATTER, 0, PLAN_PAIRWISE}, {PLAN_SCATTER, 1, PLAN_DIRECT},
                 {PLAN_GATHER, 0, PLAN_PAIRWISE}, {PLAN_GATHER, 2, PLAN_DIRECT},
                 {PLAN_ALL_TO_ALL, 0, PLAN_DIRECT}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct bench *b = bench_with(32, true);
        struct op_params p = {.kind = (uint8_t)calls[i].kind, .count = 2000, .dtype = DTYPE_F32, .op = REDOP_SUM};
        EXPECT(launched(b, 0, &p, calls[i].root, 0));
        const struct plan_params *plan = &session_op(b->s, 0)->plan;
        EXPECT(plan->kind == calls[i].kind && plan->algorithm == calls[i].algorithm && plan->weights != NULL);
        EXPECT(plan->weights[0] == 1 && plan->weights[1] == 0 && plan->weights[2] == 0);
        bench_free(b);
    }
}

TEST(sums_that_are_not_sent_as_they_are_go_round_it_too) /* a host sums up several parts with one set of accumulators */
{
    const struct op_params sums[] = {
        {.kind = PLAN_REDUCE_SCATTER, .count = 2000, .dtype = DTYPE_F16, .op = REDOP_SUM},
        {.kind = PLAN_REDUCE_SCATTER, .count = 2000, .dtype = DTYPE_F32, .op = REDOP_PREMUL},
        {.kind = PLAN_REDUCE, .count = 2000, .dtype = DTYPE_BF16, .op = REDOP_SUM},
    };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        struct bench *b = bench_with(32, true);
        EXPECT(launched(b, 0, &sums[i], 1, 2));
        bench_free(b);
    }
}
