/* options.c - what a seed chooses: cluster, program, limits, latencies, number of faults.
 *
 * One idea: swarm testing; every seed switches most things off, so that rare combinations are not drowned.
 * Invariant: a function of the seed alone.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "collectives/plan.h"
#include "sim_cluster.h"

enum { SOCKET_FRAMES = 8 };

static uint32_t pick(struct rng *r, uint32_t low, uint32_t high)
{
    return low + (uint32_t)rng_below(r, high - low + 1);
}

void options_draw(struct options *o, uint64_t seed)
{
    struct rng r = {.state = seed ^ 0x5DEECE66D};
    *o = (struct options){.seed = seed};
    o->op_bytes = 4096;
    bool large = rng_below(&r, 10) == 0;
    o->check_every = seed % 16 == 0 ? 1 : 100;
    o->peers = large ? pick(&r, 7, rng_below(&r, 6) == 0 ? 64 : 20) : pick(&r, 2, 6);
    o->groups = rng_below(&r, 3) != 0 ? 1 : pick(&r, 1, o->peers < 3 ? o->peers : 3);
    o->lanes = rng_below(&r, 2) != 0 ? 1 : pick(&r, 1, CLUSTER_LANES);
    o->steps = large ? pick(&r, 1, 3) : pick(&r, 2, 6);
    o->ops = pick(&r, 1, large ? 3 : 6);
    o->small_limits = rng_below(&r, 3) == 0;
    o->max_members = o->small_limits ? o->peers + pick(&r, 0, 2) : CLUSTER_NODES;
    o->idle_tags = o->small_limits ? (uint32_t)(mix64(seed, 78) % 6) : UINT32_MAX;
    o->part_bytes = mix64(seed, 79) % 4 != 0 ? 0 : 64 + (uint32_t)(mix64(seed, 80) % 400);
    o->max_edges = o->small_limits ? pick(&r, 1, 4) : BOUNDS_EDGES;
    o->verify = rng_below(&r, 2) == 0;
    o->think = rng_below(&r, 2) == 0;
    o->query_percent = rng_below(&r, 2) == 0 ? 0 : 50;
    o->optimise_percent = rng_below(&r, 3) != 0 ? 0 : 60;
    o->sync_percent = rng_below(&r, 3) == 0 ? 0 : 70;
    o->repeat_percent = rng_below(&r, 4) == 0 ? 30 : 0;
    o->update_on_error_percent = rng_below(&r, 3) * 45;
    o->update_first_percent = mix64(seed, 77) % 3 * 50; /* nobody, some, everybody: without a draw of its own */
    static const int64_t latency[] = {50000, 500000, 5000000, 40000000};
    o->latency_ns = latency[rng_below(&r, 4)];
    o->jitter_ns = rng_below(&r, 3) == 0 ? 0 : o->latency_ns * (int64_t)pick(&r, 1, 3);
    o->heartbeat_ns = CLOCK_S;
    o->dead_ns = 10 * CLOCK_S;
    o->stall_ns = 10 * CLOCK_S;
    if (rng_below(&r, 2) != 0) { /* the hasty profile */
        o->heartbeat_ns = CLOCK_S / 2;
        o->dead_ns = o->stall_ns = 3 * CLOCK_S;
    }
    o->measure_ns = mix64(seed, 97) % 3 == 0 ? (int64_t)(mix64(seed, 98) % 8 + 1) * 20 * CLOCK_MS : 15 * CLOCK_S; /* a few probes, or all */
    o->persist_ns = rng_below(&r, 2) == 0 ? 0 : 20 * CLOCK_MS;
    o->fault_ns = (int64_t)pick(&r, 1, 5) * 20 * o->latency_ns * 10 + CLOCK_S / 5;
    o->split_percent = rng_below(&r, 2) == 0 ? 0 : pick(&r, 5, 60);
    o->socket_bytes = rng_below(&r, 2) == 0 ? 65536 : pick(&r, 100, 3000);
    static const uint32_t frames[] = {1024, 2048, 4096};
    o->frame_bytes = frames[rng_below(&r, 3)];
    o->eager_bytes = rng_below(&r, 3) == 0 ? 0 : pick(&r, 8, 1024);
    o->mesh_members = rng_below(&r, 4) == 0 ? pick(&r, 1, 4) : 32;
    o->room_slots = rng_below(&r, 2) == 0 ? pick(&r, 2, 4) : 32;
    o->ring = rng_below(&r, 2) != 0;
    /* Limits of the library: one element goes round a ring alone: nobody else has anything to do meanwhile, and that must not look like a standstill. */
    o->places = !large && o->latency_ns <= 5 * CLOCK_MS && mix64(seed, 95) % 3 != 0; /* without a draw of its own */
    int64_t round_ns = algorithms_round_ns(o);
    o->ring = o->ring && round_ns < o->stall_ns;
    /* And who has sent its part waits while all others send theirs into what room there is. */
    o->room_slots = round_ns / (o->room_slots / 2) < o->stall_ns ? o->room_slots : 32;
    o->leaf_bytes = 32u << rng_below(&r, 4);
    o->faults = rng_below(&r, 5) == 0 ? 0 : pick(&r, 1, rng_below(&r, 4) == 0 ? 20 : 5);
    crowd_draw(o);
    burst_draw(o);
    refused_draw(o);
    growth_options(o);
    bool spread = mix64(seed, 79) % 5 == 0 && !o->crowd && o->burst == 0 && o->refused == 0; /* over worlds; without a draw of its own */
    o->worlds = spread ? 2 + (uint32_t)(mix64(seed, 80) % (CLUSTER_WORLDS - 1)) : 1;
    o->forming = mix64(seed, 81) % 2 == 0;
    uint32_t more = spread && o->forming && !large ? 2 + (uint32_t)(mix64(seed, 82) % 7) : 0; /* worlds of more than one or two */
    o->peers += more;
    o->max_members += o->small_limits ? more : 0;
    process_options(o);
    o->bulk = rng_below(&r, 4) == 0 && o->refused == 0;
    o->rate = rng_below(&r, 8) == 0 && o->burst == 0 ? pick(&r, 1000, 12000) : 0;
    o->windows = mix64(seed, 96) % 4 == 0; /* without a draw of its own */
    uint32_t unsent = SOCKET_FRAMES * o->frame_bytes; /* as the library tells the kernel (SOCK_UNSENT) */
    o->socket_bytes = o->rate != 0 && o->socket_bytes > unsent ? unsent : o->socket_bytes;
}

void options_print(const struct options *o)
{
    printf("seed %llu: %u peers in %u worlds, %u groups, %u lanes, %u steps, up to %u ops, %u faults in %.3f s\n", (unsigned long long)o->seed,
           o->peers, o->worlds, o->groups, o->lanes, o->steps, o->ops, o->faults, (double)o->fault_ns / 1e9);
    printf("  latency %.3f + %.3f ms, heartbeat %.1f s, dead %.1f s, journal %.0f ms, pieces %u %%, socket %u B, %u B/s\n",
           (double)o->latency_ns / 1e6, (double)o->jitter_ns / 1e6, (double)o->heartbeat_ns / 1e9, (double)o->dead_ns / 1e9,
           (double)o->persist_ns / 1e6, o->split_percent, o->socket_bytes, o->rate);
    printf("  frame %u B, eager %u B, mesh %u, room %u, %s, leaf %u B, small limits %d, members %u, verify %d, think %d, windows %d,\n  burst %u at %u, refused %u by %u, ahead %d, lists %d\n",
           o->frame_bytes, o->eager_bytes, o->mesh_members, o->room_slots, o->ring ? "ring" : "direct",
           o->leaf_bytes, o->small_limits, o->max_members, o->verify, o->think, o->windows, o->burst, o->burst_at, o->refused, o->refused_by, o->refused_ahead,
           o->bulk);
    printf("  query %u %%, optimise %u %%, sync %u %%, update after an error %u %%, first %u %%\n", o->query_percent,
           o->optimise_percent, o->sync_percent, o->update_on_error_percent, o->update_first_percent);
}
