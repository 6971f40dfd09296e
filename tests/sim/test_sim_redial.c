/* test_sim_redial.c - all connections of one process reset at once, at each phase; and that the dead are still found at once.
 * SPDX-License-Identifier: MIT */
#include "reset_fault.h"
#include "scene.h"

static uint32_t excluded(const struct cluster *cl)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cl->oracle.id_count; i++) {
        count += cl->oracle.ids[i].excluded;
    }
    return count;
}

static void run_until(struct cluster *cl, int64_t at)
{
    while (cl->now < at && cluster_step(cl)) {
    }
}

static const enum phase phases[] = {PHASE_IDLE,   PHASE_ANNOUNCED,  PHASE_FIRST,  PHASE_MIDDLE,  PHASE_LAST,   PHASE_HOLD,         PHASE_FROZEN,
                                    PHASE_DECIDING, PHASE_INSTALLING, PHASE_VOTING, PHASE_LINKING, PHASE_STAGING, PHASE_STAGING_FROZEN};

TEST(a_process_whose_connections_are_all_reset_keeps_its_place_at_each_phase) /* it was excluded within milliseconds */
{
    uint32_t met = 0;
    for (uint32_t p = 0; p < sizeof phases / sizeof *phases; p++) {
        for (uint16_t victim = 0; victim < 3; victim++) { /* the one that others dial, one of both, the one that dials all */
            struct cluster *cl = scene_new(3, 40);
            if (phases[p] == PHASE_FROZEN || phases[p] == PHASE_INSTALLING || phases[p] == PHASE_STAGING_FROZEN) {
                EXPECT(scene_until(cl, 0, phases[p] == PHASE_STAGING_FROZEN ? PHASE_STAGING : PHASE_MIDDLE, 3));
                scene_fault(cl, FAULT_LINK, 0, 1, 0);
            }
            if (scene_until(cl, victim, phases[p], phases[p] == PHASE_LINKING ? 1 : 3)) {
                met++;
                scene_fault(cl, FAULT_RESET, victim, 0, 0);
                run_until(cl, cl->now + 2 * CLOCK_S);
                EXPECT_EQ(excluded(cl), 0);
                EXPECT_EQ(cl->nodes[0].edges + cl->nodes[1].edges + cl->nodes[2].edges, 0); /* no link counts as a bad one */
            }
            scene_end(cl);
        }
    }
    printf("# %u of %zu phases met\n", met, 3 * sizeof phases / sizeof *phases);
    EXPECT(met >= 30);
}

TEST(all_processes_whose_connections_are_reset_at_once_keep_their_places) /* a switch that forgets all of them */
{
    struct cluster *cl = scene_new(4, 40);
    EXPECT(scene_until(cl, 0, PHASE_MIDDLE, 4));
    for (uint16_t i = 0; i < 4; i++) {
        scene_fault(cl, FAULT_RESET, i, 0, 0);
    }
    run_until(cl, cl->now + 2 * CLOCK_S);
    EXPECT_EQ(excluded(cl), 0);
    scene_end(cl);
}

/* Virtual time until the members that are left have the next view. */
static int64_t lost_after(struct cluster *cl, uint16_t victim, bool silent)
{
    int64_t begin = cl->now;
    struct session_info info = {.world = 3};
    node_kill(cl, &cl->nodes[victim], silent);
    for (uint16_t i = 0; i < 3; i++) {
        for (info.world = 3; i != victim && info.world == 3 && cluster_step(cl);) {
            session_info(cl->nodes[i].session, &info);
        }
    }
    return cl->now - begin;
}

TEST(a_process_that_ends_is_lost_as_soon_as_it_refuses) /* a member that nobody dials, too; nobody waits for the second */
{
    for (uint16_t victim = 0; victim < 3; victim++) {
        struct cluster *cl = scene_new(3, 40);
        EXPECT(scene_until(cl, victim, PHASE_MIDDLE, 3));
        EXPECT(lost_after(cl, victim, false) < 80 * CLOCK_MS); /* the shell of this cluster dials for the first time after 50 ms */
        EXPECT_EQ(excluded(cl), 1);
        scene_end(cl);
    }
}

TEST(a_process_that_ends_while_it_is_dialled_again_is_lost_as_soon_as_it_refuses)
{
    for (int64_t after = 0; after < 12; after++) {
        struct cluster *cl = scene_new(3, 40);
        EXPECT(scene_until(cl, 1, PHASE_MIDDLE, 3));
        scene_fault(cl, FAULT_RESET, 1, 0, 0);
        run_until(cl, cl->now + after * CLOCK_MS);
        EXPECT(lost_after(cl, 1, false) < 3 * CLOCK_S / 5); /* the wait of these members */
        EXPECT_EQ(excluded(cl), 1);
        scene_end(cl);
    }
}
