/* scene.h - a small cluster in which a test lets one thing happen at a named moment, and the run to its end.
 *
 * One idea: the drawn options are replaced by plain ones, faults are fired by hand, all oracles hold to the end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_SCENE_H
#define PCCL_TESTS_SIM_SCENE_H

#include "program.h"
#include "tests/testing.h"

static inline struct cluster *scene_new(uint32_t peers, uint32_t steps)
{
    struct cluster *cl = calloc(1, sizeof *cl);
    struct options o = {.seed = 4711, .peers = peers, .max_members = CLUSTER_NODES, .max_edges = BOUNDS_EDGES, .idle_tags = 16384,
                        .worlds = 1, .groups = 1, .lanes = 2, .steps = steps, .ops = 4,
                        .op_bytes = 4096, .verify = true,
                        .sync_percent = 100, .latency_ns = CLOCK_MS, .jitter_ns = CLOCK_MS, .heartbeat_ns = CLOCK_S / 2,
                        .dead_ns = 3 * CLOCK_S, .stall_ns = 3 * CLOCK_S, .persist_ns = CLOCK_MS, .measure_ns = 15 * CLOCK_S, .fault_ns = 2 * CLOCK_S,
                        .socket_bytes = 2000, .frame_bytes = 1024, .eager_bytes = 256, .mesh_members = 32,
                        .room_slots = 8, .leaf_bytes = 64, .scripted = true};
    cluster_init(cl, &o, false);
    cl->tail = calloc(CLUSTER_TAIL, CLUSTER_LINE);
    for (uint32_t i = 0; i < peers; i++) {
        node_new(cl, 0, 0);
    }
    cluster_post(cl, o.fault_ns, EVENT_HEAL, CLUSTER_NOBODY, 0, 0, 0);
    return cl;
}

/* Runs until process `node` is in `phase` with at least `members` in its view; false if that does not come. */
static inline bool scene_until(struct cluster *cl, uint32_t node, enum phase phase, uint32_t members)
{
    struct session_info info;
    while (cl->now <= cl->end_at && cluster_step(cl)) {
        session_info(cl->nodes[node].session, &info);
        if (info.world >= members && node_phase(cl, &cl->nodes[node]) == phase) {
            return true;
        }
    }
    return false;
}

static inline void scene_fault(struct cluster *cl, enum fault_kind kind, uint16_t node, uint16_t other, int64_t for_ns)
{
    cl->faults[cl->fault_count] = (struct fault){.kind = kind, .node = node, .other = other, .for_ns = for_ns};
    faults_fire(cl, cl->fault_count++);
}

static inline bool scene_said(const struct cluster *cl, const char *text)
{
    for (uint32_t i = 0; i < cl->tail_count && i < CLUSTER_TAIL; i++) {
        if (strstr(cl->tail[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

/* To the end; every oracle held and everybody's calls returned. */
static inline void scene_end(struct cluster *cl)
{
    cluster_run(cl);
    if (cl->failed) {
        fprintf(stderr, "%s\n", cl->violation);
    }
    EXPECT(!cl->failed);
    free(cl->tail);
    cl->tail = NULL;
    cluster_fini(cl);
    free(cl);
}

#endif
