/* test_sim_worlds.c - processes with sessions in several worlds: what befalls one world, and what befalls a process.
 * SPDX-License-Identifier: MIT */
#include "scene.h"

enum { PROCESSES = 3, WORLDS = 2 };

/* Each process has a session in the default world and one in another; that one has a given size, or is open to all. */
static struct cluster *scene_of_worlds(uint64_t seed, bool forming)
{
    struct cluster *cl = scene_new(0, 4);
    struct options o = cl->opt;
    char (*tail)[CLUSTER_LINE] = cl->tail;
    cluster_fini(cl);
    o.seed = seed;
    o.worlds = WORLDS;
    o.forming = forming;
    o.together = true;
    o.peers = PROCESSES * WORLDS;
    cluster_init(cl, &o, false);
    cl->tail = tail;
    for (uint32_t i = 0; i < o.peers; i++) {
        node_new(cl, i % WORLDS * CLUSTER_LABELS, 0);
    }
    cl->opt.scripted = false; /* nothing is drawn any more; all oracles and all kinds of calls */
    cluster_post(cl, o.fault_ns, EVENT_HEAL, CLUSTER_NOBODY, 0, 0, 0);
    return cl;
}

static bool shrank(const struct cluster *cl, uint32_t world)
{
    bool whole = false, less = false;
    for (uint32_t i = 0; i < cl->oracle.view_count; i++) {
        const struct view_record *v = &cl->oracle.views[i];
        whole = whole || (v->group == world * CLUSTER_LABELS && v->members == PROCESSES);
        less = less || (whole && v->group == world * CLUSTER_LABELS && v->members == PROCESSES - 1);
    }
    return less;
}

/* W1: a view that ends, a member that goes or a master's connection that breaks would stop calls of a world that it is not of. */
TEST(what_befalls_one_world_loses_no_call_of_another_with_the_same_processes)
{
    static const enum fault_kind kinds[] = {FAULT_LINK, FAULT_MASTER_LINE, FAULT_RETURN, FAULT_REVOKE, FAULT_CANCEL};
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct cluster *cl = scene_of_worlds(300 + i, false);
        EXPECT(scene_until(cl, 1, PHASE_ANNOUNCED, PROCESSES));
        uint64_t views = cl->stats.views;
        scene_fault(cl, kinds[i], 3, 5, 0);
        EXPECT(cl->touched[1] && !cl->touched[0]);
        while (!cl->healed && cluster_step(cl)) {
        }
        EXPECT(cl->stats.calm > 0);                                /* calls of the other world that the oracle has looked at */
        EXPECT(cl->stats.views > views || kinds[i] == FAULT_MASTER_LINE || kinds[i] == FAULT_CANCEL);
        scene_end(cl);
    }
}

TEST(a_process_that_dies_is_lost_in_each_of_its_worlds)
{
    struct cluster *cl = scene_of_worlds(310, false);
    EXPECT(scene_until(cl, 0, PHASE_ANNOUNCED, PROCESSES));
    scene_fault(cl, FAULT_CRASH, 2, 0, 0);
    EXPECT(!cl->nodes[2].alive && !cl->nodes[3].alive && cl->nodes[0].alive && cl->nodes[5].alive);
    while (!cl->healed && cluster_step(cl)) {
    }
    EXPECT(shrank(cl, 0) && shrank(cl, 1));
    scene_end(cl);
}

TEST(a_process_that_stands_still_does_so_in_each_of_its_worlds)
{
    struct cluster *cl = scene_of_worlds(320, false);
    EXPECT(scene_until(cl, 0, PHASE_ANNOUNCED, PROCESSES));
    scene_fault(cl, FAULT_FREEZE, 2, 0, CLOCK_S / 10);
    EXPECT(cl->nodes[2].frozen && cl->nodes[3].frozen && !cl->nodes[4].frozen);
    scene_end(cl);
}

/* What is made by its members together has ranks, and calls in the order of issue, like any world. */
TEST(worlds_of_a_given_size_make_calls_whose_results_are_checked)
{
    uint64_t worked = 0, formed = 0;
    for (uint64_t seed = 330; seed < 334; seed++) {
        struct cluster *cl = scene_of_worlds(seed, true);
        while (!cl->healed && cluster_step(cl)) {
        }
        worked += cl->stats.worked;
        formed += cl->stats.formed;
        scene_end(cl);
    }
    EXPECT(formed >= 4 && worked >= PROCESSES);
}
