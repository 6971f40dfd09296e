/* scene.h - a small cluster in which a test lets one thing happen at a named moment, and the run to its end.
 *
 * One idea: the drawn options are replaced by plain ones, faults are fired by hand, all oracles hold to the end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_SCENE_H
#define PCCL_TESTS_SIM_SCENE_H

#include "program.h"
#include "tests/testing.h"

static inline struct world *scene_new(uint32_t peers, uint32_t steps)
{
    struct world *w = calloc(1, sizeof *w);
    struct options o = {.seed = 4711, .peers = peers, .max_members = WORLD_NODES, .max_edges = BOUNDS_EDGES, .idle_tags = 16384,
                        .groups = 1, .lanes = 2, .steps = steps, .ops = 4,
                        .op_bytes = 4096, .verify = true,
                        .sync_percent = 100, .latency_ns = CLOCK_MS, .jitter_ns = CLOCK_MS, .heartbeat_ns = CLOCK_S / 2,
                        .dead_ns = 3 * CLOCK_S, .stall_ns = 3 * CLOCK_S, .persist_ns = CLOCK_MS, .fault_ns = 2 * CLOCK_S,
                        .socket_bytes = 2000, .frame_bytes = 1024, .eager_bytes = 256, .mesh_members = 32,
                        .room_slots = 8, .algorithm = PLAN_DIRECT, .leaf_bytes = 64, .scripted = true};
    world_init(w, &o, false);
    w->tail = calloc(WORLD_TAIL, WORLD_LINE);
    for (uint32_t i = 0; i < peers; i++) {
        node_new(w, 0, 0);
    }
    world_post(w, o.fault_ns, EVENT_HEAL, WORLD_NOBODY, 0, 0, 0);
    return w;
}

/* Runs until process `node` is in `phase` with at least `members` in its view; false if that does not come. */
static inline bool scene_until(struct world *w, uint32_t node, enum phase phase, uint32_t members)
{
    struct session_info info;
    while (w->now <= w->end_at && world_step(w)) {
        session_info(w->nodes[node].session, &info);
        if (info.world >= members && node_phase(w, &w->nodes[node]) == phase) {
            return true;
        }
    }
    return false;
}

static inline void scene_fault(struct world *w, enum fault_kind kind, uint16_t node, uint16_t other, int64_t for_ns)
{
    w->faults[w->fault_count] = (struct fault){.kind = kind, .node = node, .other = other, .for_ns = for_ns};
    faults_fire(w, w->fault_count++);
}

static inline bool scene_said(const struct world *w, const char *text)
{
    for (uint32_t i = 0; i < w->tail_count && i < WORLD_TAIL; i++) {
        if (strstr(w->tail[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

/* To the end; every oracle held and everybody's calls returned. */
static inline void scene_end(struct world *w)
{
    world_run(w);
    if (w->failed) {
        fprintf(stderr, "%s\n", w->violation);
    }
    EXPECT(!w->failed);
    free(w->tail);
    w->tail = NULL;
    world_fini(w);
    free(w);
}

#endif
