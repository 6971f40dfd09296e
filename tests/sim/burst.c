/* burst.c - bursts: up to 1,000 asynchronous calls launched in a few turns, and a fault in the middle of them.
 *
 * One idea: what is harmless for a handful of calls (one outbox for all that was deferred, one table, one walk over all slots) is not
 * for as many as a program may have; one seed of 64 has so many, of full size or of next to none.
 * Invariant: a function of the seed alone; other seeds draw nothing here.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

enum { BURST_SEEDS = 64, BURST_MOST = 1000 };

void burst_draw(struct options *o)
{
    if (o->seed % BURST_SEEDS != 21) {
        return;
    }
    struct rng r = {.state = mix64(o->seed, 0xB0057)};
    o->burst = BURST_MOST >> rng_below(&r, 5);
    o->burst -= (uint32_t)rng_below(&r, o->burst / 4);
    o->peers = 3 + (uint32_t)rng_below(&r, 3);
    o->groups = 1;
    o->lanes = 1;
    o->steps = 2;
    o->think = true;
    o->small_limits = o->small_limits && o->burst < 200;
    o->op_bytes = o->burst <= 250 ? CLUSTER_BYTES : CLUSTER_BYTES / 4;
    o->frame_bytes = o->op_bytes;
    o->socket_bytes = 65536;
    o->split_percent = 0;
    o->eager_bytes = o->burst < 100 && rng_below(&r, 2) == 0 ? 0 : 4 * o->op_bytes; /* of which a view takes a quarter */
    o->persist_ns = o->latency_ns * (int64_t)rng_below(&r, 60); /* a view that takes its time: many calls wait for it */
    o->faults = 1 + (uint32_t)rng_below(&r, 4);
    o->burst_at = 1 + (uint32_t)rng_below(&r, o->burst / 4);
}

/* The process whose calls are counted meets the fault of its burst once it has launched so many. */
void burst_launched(struct cluster *cl, uint16_t node)
{
    static const uint8_t kinds[] = {FAULT_CRASH, FAULT_CRASH, FAULT_LINK, FAULT_MASTER_LINE, FAULT_LEAVE, FAULT_JOIN};
    if (cl->opt.burst == 0 || node != cl->opt.seed / BURST_SEEDS % cl->opt.peers || ++cl->burst_launched != cl->opt.burst_at ||
        cl->fault_count == FAULTS_MAX) {
        return;
    }
    uint64_t h = mix64(cl->opt.seed, 0xFA);
    cl->faults[cl->fault_count] = (struct fault){
        .kind = (enum fault_kind)kinds[h % sizeof kinds], .node = (uint16_t)(h >> 8) % cl->opt.peers, .other = node};
    cluster_post(cl, 0, EVENT_FAULT, CLUSTER_NOBODY, cl->fault_count++, 0, 0);
}
