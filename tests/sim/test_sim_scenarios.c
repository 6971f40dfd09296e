/* test_sim_scenarios.c - small clusters in which one thing happens, and what must come of it.
 *
 * One idea: the drawn options are replaced by plain ones, the fault is fired by hand at a named moment of the trace, and the run goes
 * on to its end under all oracles.  Invariant: a scenario is a function of its code; nothing is drawn but latencies.
 * SPDX-License-Identifier: MIT */
#include "peer_probe.h"
#include "scene.h"
#include "topology/bandwidth.h"

TEST(a_quiet_run_has_one_view_per_admission_and_no_abort) /* a freeze without a cause would show here */
{
    struct cluster *cl = scene_new(4, 3);
    EXPECT(scene_until(cl, 0, PHASE_VOTING, 4));
    scene_end(cl);
}

TEST(death_aborts_a_running_reduce_and_the_retry_succeeds) /* R34, R7: survivors would hang, or count a part twice */
{
    struct cluster *cl = scene_new(4, 4);
    EXPECT(scene_until(cl, 1, PHASE_MIDDLE, 4) || scene_until(cl, 1, PHASE_ANNOUNCED, 4));
    scene_fault(cl, FAULT_CRASH, 1, 0, 0);
    while (cl->stats.aborts == 0 && cluster_step(cl)) {
    }
    EXPECT(cl->stats.aborts > 0);
    uint64_t before = cl->stats.successes;
    for (int i = 0; i < 4000 && cluster_step(cl); i++) {
    }
    EXPECT(cl->stats.successes > before);
    scene_end(cl);
}

TEST(a_late_caller_owes_the_abort) /* without the debt its next call would pair with the others' retry */
{
    struct cluster *cl = scene_new(4, 4);
    EXPECT(scene_until(cl, 2, PHASE_ANNOUNCED, 4));
    scene_fault(cl, FAULT_LATE, 3, 0, CLOCK_S / 4);
    scene_fault(cl, FAULT_CRASH, 0, 0, 0);
    scene_end(cl);
}

TEST(a_frozen_process_is_excluded_and_comes_back_as_a_newcomer) /* R8: SIGSTOP would stall everybody for ever */
{
    struct cluster *cl = scene_new(3, 6);
    EXPECT(scene_until(cl, 1, PHASE_ANNOUNCED, 3));
    uint64_t id = cl->nodes[1].id;
    cl->heal_at += 30 * CLOCK_S;
    scene_fault(cl, FAULT_FREEZE, 1, 0, 8 * CLOCK_S);
    while (cl->nodes[1].id == id && cluster_step(cl)) {
    }
    EXPECT(cl->nodes[1].id != id || cl->failed == false);
    scene_end(cl);
}

TEST(a_mismatch_is_the_same_error_everywhere_and_harms_nothing_else) /* R5: it would hang, or misreduce */
{
    struct cluster *cl = scene_new(3, 5);
    scene_fault(cl, FAULT_MISMATCH, 2, 0, 0);
    while (cl->stats.refusals < 3 && cluster_step(cl)) {
    }
    EXPECT_EQ(cl->stats.refusals, 3);
    EXPECT_EQ(cl->stats.aborts, 0);
    scene_end(cl);
}

TEST(a_source_that_lies_is_found_out_and_nothing_of_it_is_applied) /* R10, G6 */
{
    struct cluster *cl = scene_new(3, 3);
    scene_fault(cl, FAULT_LIAR, 0, 0, 0);
    scene_end(cl);
}

TEST(a_receiver_that_resumes_while_the_view_ends_still_gets_its_state) /* nobody told it of the election: all hung */
{
    struct cluster *cl = scene_new(4, 3);
    while (cl->nodes[2].program->vote != VOTE_SYNC && cluster_step(cl)) { /* the first one: all but one have to receive */
    }
    EXPECT(cl->nodes[1].program->vote != VOTE_SYNC);
    scene_fault(cl, FAULT_LATE, 1, 0, 10 * CLOCK_MS); /* meanwhile the master gets the vote of 2 */
    int64_t voted = cl->now;
    while (cl->now < voted + 10 * CLOCK_MS && cluster_step(cl)) {
    }
    scene_fault(cl, FAULT_MASTER_LINE, 2, 0, 0);
    EXPECT(scene_until(cl, 0, PHASE_STAGING, 4));
    EXPECT(!cl->nodes[2].elected);
    scene_fault(cl, FAULT_FREEZE, 3, 0, 2 * CLOCK_S); /* its report on the view comes late */
    scene_fault(cl, FAULT_LINK, 0, 1, 0);
    EXPECT(scene_until(cl, 2, PHASE_STAGING_FROZEN, 4));
    scene_end(cl);
}

TEST(a_broken_link_between_two_living_peers_costs_no_member) /* R6: it was never dialled again */
{
    struct cluster *cl = scene_new(3, 5);
    EXPECT(scene_until(cl, 0, PHASE_ANNOUNCED, 3));
    uint32_t ids = cl->oracle.id_count;
    scene_fault(cl, FAULT_LINK, 0, 1, 0);
    for (int i = 0; i < 3000 && cluster_step(cl); i++) {
    }
    EXPECT_EQ(cl->oracle.id_count, ids);
    for (uint32_t i = 0; i < cl->oracle.id_count; i++) {
        EXPECT(!cl->oracle.ids[i].excluded || program_ended(&cl->nodes[cl->oracle.ids[i].node]));
    }
    scene_end(cl);
}

static bool anybody_ended(const struct cluster *cl)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        if (program_ended(&cl->nodes[i])) {
            return true;
        }
    }
    return false;
}

TEST(a_pair_that_cannot_talk_costs_no_member) /* R15: a third that waits for one of them would have that one blamed */
{
    for (uint16_t k = 0; k < 6; k++) { /* each pair of three, cut one way or both */
        uint16_t a = k % 3, b = (k + 1) % 3;
        struct cluster *cl = scene_new(3, 60);
        while (cl->stats.successes < 60 && cluster_step(cl)) { /* all have the state: a receiver needs a link with a source */
        }
        cl->apart_any = cl->apart[a][b] = true;
        cl->apart[b][a] = k < 3;
        cluster_cut(cl, a, b, true);
        cluster_cut(cl, b, a, k < 3);
        scene_fault(cl, FAULT_LINK, a, b, 0); /* closed, not silent: it may well be made again, as far as anybody knows */
        while (!anybody_ended(cl) && cluster_step(cl)) {
        }
        for (uint32_t i = 0; i < cl->oracle.id_count; i++) {
            EXPECT(!cl->oracle.ids[i].excluded);
        }
        EXPECT(cl->stats.aborts > 0 && cl->stats.aborts <= 2 * 3); /* for all three: it breaks, it cannot be made */
        scene_end(cl);
    }
}

TEST(a_departed_voter_is_not_waited_for) /* R9, R19: the others' update would hang */
{
    struct cluster *cl = scene_new(3, 4);
    EXPECT(scene_until(cl, 1, PHASE_VOTING, 3));
    scene_fault(cl, FAULT_CRASH, 1, 0, 0);
    scene_end(cl);
}

TEST(groups_of_one_run_do_not_wait_for_each_others_failures) /* R11, R13 */
{
    struct cluster *cl = scene_new(2, 4);
    node_new(cl, 1, 0);
    node_new(cl, 1, 0);
    EXPECT(scene_until(cl, 3, PHASE_ANNOUNCED, 2));
    scene_fault(cl, FAULT_CRASH, 3, 0, 0);
    scene_end(cl);
}

/* Whether the first four are all far from each other, so that each edge is measured in the vote. */
static bool all_far(const struct cluster *cl)
{
    for (uint32_t i = 0; i < 16; i++) {
        if (i / 4 < i % 4 && probe_trip_us(cl, i / 4, i % 4) < BANDWIDTH_APART_US) {
            return false;
        }
    }
    return true;
}

TEST(an_optimised_ring_is_the_order_of_the_next_view) /* R18: the solver's result was thrown away */
{
    struct cluster *cl = scene_new(4, 2);
    cl->opt.optimise_percent = 100;
    cl->opt.ring = true;
    cl->plain_probes = true;
    for (cl->bandwidth_seed = 99; !all_far(cl);) {
        cl->bandwidth_seed++;
    }
    while (!scene_said(cl, "peer 0   vote ended 3 1") && cluster_step(cl)) {
    }
    EXPECT(scene_said(cl, "peer 0   vote ended 3 1"));
    uint32_t next[8] = {0};
    uint32_t members = 0;
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct session_member info;
        if (session_member(cl->nodes[0].session, rank, &info)) {
            next[info.ring_position & 7] = cluster_node_of(cl, info.id);
            members++;
        }
    }
    EXPECT_EQ(members, 4);
    uint64_t ours = UINT64_MAX, best = 0; /* slowest edge: of the view's ring, and of the best of all 6 rings */
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t rate = probe_bandwidth(cl, (uint16_t)next[i], (uint16_t)next[(i + 1) % 4]);
        ours = rate < ours ? rate : ours;
    }
    static const uint16_t rings[6][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}};
    for (uint32_t k = 0; k < 6; k++) {
        uint64_t slowest = UINT64_MAX;
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t rate = probe_bandwidth(cl, rings[k][i], rings[k][(i + 1) % 4]);
            slowest = rate < slowest ? rate : slowest;
        }
        best = slowest > best ? slowest : best;
    }
    EXPECT_EQ(ours, best);
    scene_end(cl);
}

TEST(worlds_of_one_master_do_not_wait_for_each_others_failures_or_votes) /* same labels, another name */
{
    struct cluster *cl = scene_new(2, 4);
    node_new(cl, CLUSTER_LABELS, 0);
    node_new(cl, CLUSTER_LABELS, 0);
    EXPECT(scene_until(cl, 3, PHASE_ANNOUNCED, 2));
    uint64_t view = cl->nodes[0].view;
    scene_fault(cl, FAULT_CRASH, 3, 0, 0);
    EXPECT_EQ(cl->nodes[0].view, view);
    scene_end(cl);
}

TEST(the_same_seed_gives_the_same_trace) /* a clock, an address or an order of hashing in a step would show here */
{
    static struct cluster cl;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct options o;
        uint64_t hash[2];
        for (int i = 0; i < 2; i++) {
            options_draw(&o, seed);
            cluster_init(&cl, &o, false);
            cluster_run(&cl);
            hash[i] = cl.trace_hash;
            cluster_fini(&cl);
        }
        EXPECT_EQ(hash[0], hash[1]);
    }
}
