/* crowd.c - clusters of 33 to 64 members, above the size up to which everybody tells everybody.
 *
 * One idea: dissemination has rounds that only a crowd has; the programs are short, so that one seed of eight can afford it.
 * Invariant: a function of the seed alone; other seeds draw nothing here.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

enum { CROWD_SEEDS = 8 };

void crowd_draw(struct options *o)
{
    if (o->seed % CROWD_SEEDS != 3) {
        return;
    }
    struct rng r = {.state = mix64(o->seed, 0xC70D)};
    o->peers = 33 + (uint32_t)rng_below(&r, 32);
    o->max_members = CLUSTER_NODES;
    o->groups = 1;
    o->lanes = 1;
    o->steps = 1;
    o->ops = 1 + (uint32_t)rng_below(&r, 2);
    o->op_bytes = 256;
    o->frame_bytes = 1024;
    o->mesh_members = 1 + (uint32_t)rng_below(&r, 8);
    o->room_slots = 2 * CLUSTER_NODES; /* fewer than senders is another matter, and a slow one */
    o->query_percent = o->optimise_percent = 0;
    o->sync_percent = rng_below(&r, 8) == 0 ? o->sync_percent : 0;
    o->split_percent = 0;
    o->fault_ns = 60 * o->latency_ns + CLOCK_S / 5;
    o->faults = (uint32_t)rng_below(&r, 4);
    o->crowd = true;
    if (rng_below(&r, 4) == 0) { /* on lanes, whose digests the members compare */
        o->eager_bytes = 0;
        o->verify = true;
    }
}

/* Among so many, one result that differs has to stop all the rounds that it could still vouch for; the master, which would
 * end the view before the last round, often stands still meanwhile. */
void crowd_fault(struct cluster *cl)
{
    if (!cl->opt.crowd || cl->opt.eager_bytes != 0 || cl->fault_count + 2 > FAULTS_MAX) {
        return;
    }
    uint16_t node = (uint16_t)rng_below(&cl->rng, cl->opt.peers);
    cl->faults[cl->fault_count] = (struct fault){.kind = FAULT_RESULT, .node = node};
    cluster_post(cl, 0, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
    cl->faults[cl->fault_count++] = (struct fault){
        .kind = FAULT_MASTER_PAUSE, .node = node, .armed = true, .phase = PHASE_LAST, .for_ns = 100 * cl->opt.latency_ns};
    cl->armed++;
}
