/* test_sim_waits.c - programs that wait for one another: in rings, where not everybody hears of everybody, and against votes.
 * SPDX-License-Identifier: MIT */
#include "scene.h"

static struct world *ring_new(uint32_t peers, uint32_t steps)
{
    struct world *w = scene_new(peers, steps);
    w->opt.algorithm = PLAN_RING;
    w->opt.eager_bytes = 0;
    w->opt.sync_percent = 0;
    w->master.config.plan.algorithm = PLAN_RING;
    w->master.config.plan.eager_bytes = 0;
    w->master.master = master_init(&w->master.config, w->master.arena);
    return w;
}

static uint32_t excluded(const struct world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->oracle.id_count; i++) {
        count += w->oracle.ids[i].excluded;
    }
    return count;
}

/* All operations of that step use the ring, and there are some. */
static bool goes_round(const struct world *w, uint64_t step)
{
    uint32_t count = program_op_count(w, 0, step);
    for (uint32_t j = 0; j < count; j++) {
        struct op_params p;
        bool in_place;
        uint64_t tag;
        program_describe_op(w, 0, step, j, &p, &in_place, &tag);
        if (p.quant != QUANT_NONE || p.dtype == DTYPE_F16 || p.dtype == DTYPE_BF16 || p.count == 0) {
            return false;
        }
    }
    return count > 0;
}

TEST(a_vote_against_an_operation_of_a_ring_ends_as_an_error_of_the_operation) /* it hung from four members on */
{
    struct world *w = ring_new(6, 100);
    w->opt.update_on_error_percent = 100;
    const struct program *p = w->nodes[3].program;
    while (!(p->status[PROGRAM_OPS] == OP_PENDING && goes_round(w, p->step + 1)) && world_step(w)) {
    }
    scene_fault(w, FAULT_VOTE, 3, 0, 0);
    while (w->stats.aborts == 0 && world_step(w)) {
    }
    EXPECT(w->stats.aborts > 0);
    EXPECT_EQ(excluded(w), 0);
    scene_end(w);
}

/* Whether a wait of process `node` names process `end` in the end, for a launch. */
static bool names_in_the_end(const struct world *w, uint32_t node, uint32_t end)
{
    struct session_wait waits[8];
    uint32_t count = session_waits(w->nodes[node].session, waits, 8);
    bool found = false;
    for (uint32_t i = 0; i < count && i < 8; i++) {
        bool direct = waits[i].peer == w->nodes[end].id && strcmp(waits[i].phase, "launch") == 0;
        bool then = waits[i].then == w->nodes[end].id && waits[i].then_phase != NULL && strcmp(waits[i].then_phase, "launch") == 0;
        found = found || direct || then;
        EXPECT(direct || strcmp(waits[i].phase, "launch") != 0); /* nobody who has launched is waited for to launch */
    }
    return found;
}

TEST(a_program_that_launches_late_in_a_ring_costs_nobody_anything_and_all_can_ask_for_it) /* somebody healthy was blamed */
{
    struct world *w = ring_new(6, 1000);
    while (!w->healed && world_step(w)) { /* that is when late programs are hurried up */
    }
    const struct program *p = w->nodes[3].program;
    while (!(p->status[PROGRAM_OPS] == OP_PENDING && goes_round(w, p->step + 1)) && world_step(w)) {
    }
    w->nodes[3].program->not_before = w->now + 15 * CLOCK_S; /* five times the stall time */
    int64_t until = w->now + 14 * CLOCK_S;
    while (w->now < until && world_step(w)) {
    }
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT(i == 3 || names_in_the_end(w, i, 3));
    }
    EXPECT_EQ(w->stats.aborts, 0);
    EXPECT_EQ(excluded(w), 0);
    w->opt.steps = 1;
    scene_end(w);
}
