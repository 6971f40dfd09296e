/* test_sim_waits.c - programs that wait for one another: in rings, where not everybody hears of everybody, and against votes.
 * SPDX-License-Identifier: MIT */
#include "scene.h"

static struct cluster *ring_new(uint32_t peers, uint32_t steps)
{
    struct cluster *cl = scene_new(peers, steps);
    cl->opt.ring = true;
    cl->opt.eager_bytes = 0;
    cl->opt.sync_percent = 0;
    cl->master.config.plan.eager_bytes = 0;
    cl->master.master = master_init(&cl->master.config, cl->master.arena);
    return cl;
}

static uint32_t excluded(const struct cluster *cl)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cl->oracle.id_count; i++) {
        count += cl->oracle.ids[i].excluded;
    }
    return count;
}

/* All operations of that step use the ring, and there are some. */
static bool goes_round(const struct cluster *cl, uint64_t step)
{
    uint32_t count = program_op_count(cl, 0, step);
    for (uint32_t j = 0; j < count; j++) {
        struct op_params p;
        bool in_place;
        uint64_t tag;
        program_describe_op(cl, 0, step, j, &p, &in_place, &tag);
        if (p.quant != QUANT_NONE || p.dtype == DTYPE_F16 || p.dtype == DTYPE_BF16 || p.count == 0) {
            return false;
        }
    }
    return count > 0;
}

TEST(a_vote_against_an_operation_of_a_ring_ends_as_an_error_of_the_operation) /* it hung from four members on */
{
    struct cluster *cl = ring_new(6, 100);
    cl->opt.update_on_error_percent = 100;
    const struct program *p = cl->nodes[3].program;
    while (!(p->status[PROGRAM_OPS] == OP_PENDING && goes_round(cl, p->step + 1)) && cluster_step(cl)) {
    }
    scene_fault(cl, FAULT_VOTE, 3, 0, 0);
    while (cl->stats.aborts == 0 && cluster_step(cl)) {
    }
    EXPECT(cl->stats.aborts > 0);
    EXPECT_EQ(excluded(cl), 0);
    scene_end(cl);
}

/* Whether a wait of process `node` names process `end` in the end, for a launch. */
static bool names_in_the_end(const struct cluster *cl, uint32_t node, uint32_t end)
{
    struct session_wait waits[8];
    uint32_t count = session_waits(cl->nodes[node].session, waits, 8);
    bool found = false;
    for (uint32_t i = 0; i < count && i < 8; i++) {
        bool direct = waits[i].peer == cl->nodes[end].id && strcmp(waits[i].phase, "launch") == 0;
        bool then = waits[i].then == cl->nodes[end].id && waits[i].then_phase != NULL && strcmp(waits[i].then_phase, "launch") == 0;
        found = found || direct || then;
        EXPECT(direct || strcmp(waits[i].phase, "launch") != 0); /* nobody who has launched is waited for to launch */
    }
    return found;
}

TEST(a_program_that_launches_late_in_a_ring_costs_nobody_anything_and_all_can_ask_for_it) /* somebody healthy was blamed */
{
    struct cluster *cl = ring_new(6, 1000);
    while (!cl->healed && cluster_step(cl)) { /* that is when late programs are hurried up */
    }
    const struct program *p = cl->nodes[3].program;
    while (!(p->status[PROGRAM_OPS] == OP_PENDING && goes_round(cl, p->step + 1)) && cluster_step(cl)) {
    }
    cl->nodes[3].program->not_before = cl->now + 15 * CLOCK_S; /* five times the stall time */
    int64_t until = cl->now + 14 * CLOCK_S;
    while (cl->now < until && cluster_step(cl)) {
    }
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT(i == 3 || names_in_the_end(cl, i, 3));
    }
    EXPECT_EQ(cl->stats.aborts, 0);
    EXPECT_EQ(excluded(cl), 0);
    cl->opt.steps = 1;
    scene_end(cl);
}
