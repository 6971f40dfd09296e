/* test_sim_scenarios.c - small clusters in which one thing happens, and what must come of it.
 *
 * One idea: the drawn options are replaced by plain ones, the fault is fired by hand at a named moment of the trace, and the run goes
 * on to its end under all oracles.  Invariant: a scenario is a function of its code; nothing is drawn but latencies.
 * SPDX-License-Identifier: MIT */
#include "scene.h"

TEST(a_quiet_run_has_one_view_per_admission_and_no_abort) /* a freeze without a cause would show here */
{
    struct world *w = scene_new(4, 3);
    EXPECT(scene_until(w, 0, PHASE_VOTING, 4));
    scene_end(w);
}

TEST(death_aborts_a_running_reduce_and_the_retry_succeeds) /* R34, R7: survivors would hang, or count a part twice */
{
    struct world *w = scene_new(4, 4);
    EXPECT(scene_until(w, 1, PHASE_MIDDLE, 4) || scene_until(w, 1, PHASE_ANNOUNCED, 4));
    scene_fault(w, FAULT_CRASH, 1, 0, 0);
    while (w->stats.aborts == 0 && world_step(w)) {
    }
    EXPECT(w->stats.aborts > 0);
    uint64_t before = w->stats.successes;
    for (int i = 0; i < 4000 && world_step(w); i++) {
    }
    EXPECT(w->stats.successes > before);
    scene_end(w);
}

TEST(a_late_caller_owes_the_abort) /* without the debt its next call would pair with the others' retry */
{
    struct world *w = scene_new(4, 4);
    EXPECT(scene_until(w, 2, PHASE_ANNOUNCED, 4));
    scene_fault(w, FAULT_LATE, 3, 0, CLOCK_S / 4);
    scene_fault(w, FAULT_CRASH, 0, 0, 0);
    scene_end(w);
}

TEST(a_frozen_process_is_excluded_and_comes_back_as_a_newcomer) /* R8: SIGSTOP would stall everybody for ever */
{
    struct world *w = scene_new(3, 6);
    EXPECT(scene_until(w, 1, PHASE_ANNOUNCED, 3));
    uint64_t id = w->nodes[1].id;
    w->heal_at += 30 * CLOCK_S;
    scene_fault(w, FAULT_FREEZE, 1, 0, 8 * CLOCK_S);
    while (w->nodes[1].id == id && world_step(w)) {
    }
    EXPECT(w->nodes[1].id != id || w->failed == false);
    scene_end(w);
}

TEST(a_mismatch_is_the_same_error_everywhere_and_harms_nothing_else) /* R5: it would hang, or misreduce */
{
    struct world *w = scene_new(3, 5);
    scene_fault(w, FAULT_MISMATCH, 2, 0, 0);
    while (w->stats.refusals < 3 && world_step(w)) {
    }
    EXPECT_EQ(w->stats.refusals, 3);
    EXPECT_EQ(w->stats.aborts, 0);
    scene_end(w);
}

TEST(a_source_that_lies_is_found_out_and_nothing_of_it_is_applied) /* R10, G6 */
{
    struct world *w = scene_new(3, 3);
    scene_fault(w, FAULT_LIAR, 0, 0, 0);
    scene_end(w);
}

TEST(a_receiver_that_resumes_while_the_view_ends_still_gets_its_state) /* nobody told it of the election: all hung */
{
    struct world *w = scene_new(4, 3);
    while (w->nodes[2].program->vote != VOTE_SYNC && world_step(w)) { /* the first one: all but one have to receive */
    }
    EXPECT(w->nodes[1].program->vote != VOTE_SYNC);
    scene_fault(w, FAULT_LATE, 1, 0, 10 * CLOCK_MS); /* meanwhile the master gets the vote of 2 */
    int64_t voted = w->now;
    while (w->now < voted + 10 * CLOCK_MS && world_step(w)) {
    }
    scene_fault(w, FAULT_MASTER_LINE, 2, 0, 0);
    EXPECT(scene_until(w, 0, PHASE_STAGING, 4));
    EXPECT(!w->nodes[2].elected);
    scene_fault(w, FAULT_FREEZE, 3, 0, 2 * CLOCK_S); /* its report on the view comes late */
    scene_fault(w, FAULT_LINK, 0, 1, 0);
    EXPECT(scene_until(w, 2, PHASE_STAGING_FROZEN, 4));
    scene_end(w);
}

TEST(a_broken_link_between_two_living_peers_costs_no_member) /* R6: it was never dialled again */
{
    struct world *w = scene_new(3, 5);
    EXPECT(scene_until(w, 0, PHASE_ANNOUNCED, 3));
    uint32_t ids = w->oracle.id_count;
    scene_fault(w, FAULT_LINK, 0, 1, 0);
    for (int i = 0; i < 3000 && world_step(w); i++) {
    }
    EXPECT_EQ(w->oracle.id_count, ids);
    for (uint32_t i = 0; i < w->oracle.id_count; i++) {
        EXPECT(!w->oracle.ids[i].excluded || program_ended(&w->nodes[w->oracle.ids[i].node]));
    }
    scene_end(w);
}

static bool anybody_ended(const struct world *w)
{
    for (uint32_t i = 0; i < w->node_count; i++) {
        if (program_ended(&w->nodes[i])) {
            return true;
        }
    }
    return false;
}

TEST(a_pair_that_cannot_talk_costs_no_member) /* R15: a third that waits for one of them would have that one blamed */
{
    for (uint16_t k = 0; k < 6; k++) { /* each pair of three, cut one way or both */
        uint16_t a = k % 3, b = (k + 1) % 3;
        struct world *w = scene_new(3, 60);
        while (w->stats.successes < 60 && world_step(w)) { /* all have the state: a receiver needs a link with a source */
        }
        w->apart_any = w->apart[a][b] = true;
        w->apart[b][a] = k < 3;
        world_cut(w, a, b, true);
        world_cut(w, b, a, k < 3);
        scene_fault(w, FAULT_LINK, a, b, 0); /* closed, not silent: it may well be made again, as far as anybody knows */
        while (!anybody_ended(w) && world_step(w)) {
        }
        for (uint32_t i = 0; i < w->oracle.id_count; i++) {
            EXPECT(!w->oracle.ids[i].excluded);
        }
        EXPECT(w->stats.aborts > 0 && w->stats.aborts <= 2 * 3); /* for all three: it breaks, it cannot be made */
        scene_end(w);
    }
}

TEST(a_departed_voter_is_not_waited_for) /* R9, R19: the others' update would hang */
{
    struct world *w = scene_new(3, 4);
    EXPECT(scene_until(w, 1, PHASE_VOTING, 3));
    scene_fault(w, FAULT_CRASH, 1, 0, 0);
    scene_end(w);
}

TEST(groups_of_one_run_do_not_wait_for_each_others_failures) /* R11, R13 */
{
    struct world *w = scene_new(2, 4);
    node_new(w, 1, 0);
    node_new(w, 1, 0);
    EXPECT(scene_until(w, 3, PHASE_ANNOUNCED, 2));
    scene_fault(w, FAULT_CRASH, 3, 0, 0);
    scene_end(w);
}

TEST(an_optimised_ring_is_the_order_of_the_next_view) /* R18: the solver's result was thrown away */
{
    struct world *w = scene_new(4, 2);
    w->opt.optimise_percent = 100;
    w->opt.algorithm = PLAN_RING;
    w->bandwidth_seed = 99;
    while (!scene_said(w, "peer 0   vote ended 3 1") && world_step(w)) {
    }
    EXPECT(scene_said(w, "peer 0   vote ended 3 1"));
    uint32_t next[8] = {0};
    uint32_t members = 0;
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct member_info info;
        uint32_t place;
        if (session_member(w->nodes[0].session, rank, &info, &place)) {
            next[place & 7] = world_node_of(w, info.id);
            members++;
        }
    }
    EXPECT_EQ(members, 4);
    uint64_t ours = UINT64_MAX, best = 0; /* slowest edge: of the view's ring, and of the best of all 6 rings */
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t rate = sync_bandwidth(w, (uint16_t)next[i], (uint16_t)next[(i + 1) % 4]);
        ours = rate < ours ? rate : ours;
    }
    static const uint16_t rings[6][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}};
    for (uint32_t k = 0; k < 6; k++) {
        uint64_t slowest = UINT64_MAX;
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t rate = sync_bandwidth(w, rings[k][i], rings[k][(i + 1) % 4]);
            slowest = rate < slowest ? rate : slowest;
        }
        best = slowest > best ? slowest : best;
    }
    EXPECT_EQ(ours, best);
    scene_end(w);
}

TEST(the_same_seed_gives_the_same_trace) /* a clock, an address or an order of hashing in a step would show here */
{
    static struct world w;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct options o;
        uint64_t hash[2];
        for (int i = 0; i < 2; i++) {
            options_draw(&o, seed);
            world_init(&w, &o, false);
            world_run(&w);
            hash[i] = w.trace_hash;
            world_fini(&w);
        }
        EXPECT_EQ(hash[0], hash[1]);
    }
}
