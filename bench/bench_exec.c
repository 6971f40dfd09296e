/* bench_exec.c - what plans and executors cost: an all-reduce of f32 sums between ranks of one process, one thread.
 *
 * The network is one memcpy per frame, so a row says how fast memory, kernels and executor could feed it; "copy" moves the same
 * bytes by memcpy alone, "empty" runs the same events with frames of one element and gives the time per frame.  All
 * ranks share the one thread: a rank of its own would take its part of the time.
 * Usage: bench_exec [megabytes] [runs].
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/exec.h"

enum { BENCH_RANKS = 8, BENCH_SLOTS = 64, BENCH_FRAME = 128 << 10 };

struct bench_rank {
    struct plan plan;
    struct plan_segment segments[BENCH_RANKS];
    struct plan_step steps[5 * BENCH_RANKS];
    uint32_t partners[BENCH_RANKS - 1];
    struct room room;
    struct frame_pool pool;
    unsigned char *slots;
    struct room_slot room_slots[BENCH_SLOTS];
    float *in, *out;
    struct exec exec;
    void *arena;
};

static double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *bench_alloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (p == NULL) {
        fprintf(stderr, "bench_exec: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

static void bench_begin(struct bench_rank *ranks, const struct plan_params *params, const struct numeric *numeric)
{
    for (uint32_t r = 0; r < params->world; r++) {
        struct bench_rank *b = &ranks[r];
        struct plan_params q = *params;
        q.rank = r;
        plan_make(&b->plan, &q, b->segments, b->steps, NULL, b->partners);
        room_init(&b->room, b->slots, BENCH_FRAME, BENCH_SLOTS, b->room_slots);
        struct exec_config config = {.plan = &b->plan, .numeric = numeric, .room = &b->room, .pool = &b->pool, .in = b->in,
                                     .out = b->out, .lanes = 1};
        for (uint32_t i = 0; i < 2 * params->world && b->pool.count < 2 * params->world; i++) {
            frame_pool_give(&b->pool, bench_alloc(BENCH_FRAME));
        }
        b->arena = bench_alloc(exec_arena_bytes(&config));
        exec_init(&b->exec, &config, b->arena);
    }
    for (uint32_t r = 0; r < params->world; r++) {
        for (uint32_t i = 0; i < ranks[r].plan.partner_count; i++) {
            struct exec_out out;
            exec_step(&ranks[r].exec, &(struct exec_event){.kind = EXEC_READY, .partner = i}, &out);
        }
    }
}

/* Moves one frame from `r` to its i-th partner, credits first; returns its bytes. */
static size_t bench_move(struct bench_rank *ranks, uint32_t r, uint32_t i)
{
    uint32_t t = ranks[r].partners[i], back = plan_number(&ranks[t].plan, r);
    struct exec *from = &ranks[r].exec, *to = &ranks[t].exec;
    struct exec_out pulled, landed;
    struct exec_credit credit;
    if (exec_take_credit(to, back, &credit)) {
        exec_step(from, &(struct exec_event){.kind = EXEC_CREDIT, .partner = i, .credit = credit.frames, .sums = credit.sums}, &landed);
    }
    if (!exec_has_frame(from, i)) {
        return 0;
    }
    exec_step(from, &(struct exec_event){.kind = EXEC_PULL, .partner = i}, &pulled);
    exec_step(to, &(struct exec_event){.kind = EXEC_HEADER, .partner = back, .frame = pulled.frame, .phase = pulled.phase,
                                       .bytes = pulled.bytes}, &landed);
    if (landed.refused) {
        fprintf(stderr, "bench_exec: frame %u refused\n", pulled.frame);
        exit(1);
    }
    memcpy(landed.dst, pulled.data, pulled.bytes);
    exec_step(to, &(struct exec_event){.kind = EXEC_ARRIVED, .partner = back}, &landed);
    exec_step(from, &(struct exec_event){.kind = EXEC_SENT, .partner = i}, &landed);
    return pulled.bytes;
}

struct bench_result {
    double seconds, copy_seconds;
    size_t frames, bytes;
};

static struct bench_result bench_once(struct bench_rank *ranks, const struct plan_params *params,
                                      const struct numeric *numeric)
{
    struct bench_result result = {0};
    bool moved = true;
    bench_begin(ranks, params, numeric);
    double start = bench_now();
    while (moved) {
        moved = false;
        for (uint32_t r = 0; r < params->world; r++) {
            for (uint32_t i = 0; i < ranks[r].plan.partner_count; i++) {
                size_t bytes = bench_move(ranks, r, i);
                moved |= bytes > 0;
                result.frames += bytes > 0;
                result.bytes += bytes;
            }
        }
    }
    result.seconds = bench_now() - start;
    for (uint32_t r = 0; r < params->world; r++) {
        if (!ranks[r].exec.idle || ranks[r].out[params->count / 2] != (float)params->world) {
            fprintf(stderr, "bench_exec: rank %u has no result\n", r);
            exit(1);
        }
        free(ranks[r].arena);
    }
    start = bench_now();
    for (size_t done = 0; done + BENCH_FRAME <= result.bytes; done += BENCH_FRAME) {
        size_t at = done % (params->count * sizeof(float) - BENCH_FRAME + 1);
        memcpy((unsigned char *)ranks[0].out + at, (unsigned char *)ranks[1].in + at, BENCH_FRAME);
    }
    result.copy_seconds = bench_now() - start;
    return result;
}

static void bench_row(struct bench_rank *ranks, enum plan_algorithm algorithm, uint32_t world, size_t bytes, int runs)
{
    static const char *const names[] = {"tiny", "direct", "ring"};
    size_t count = bytes / sizeof(float);
    struct numeric numeric;
    struct plan_params params = {.algorithm = algorithm, .world = world, .count = count, .align = 1};
    params.frame_elements = plan_frame_elements(plan_largest(&params), 4 * 1024, 1, BENCH_FRAME);
    if (!numeric_init(&numeric, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get())) {
        return;
    }
    struct bench_result best = bench_once(ranks, &params, &numeric);
    for (int i = 1; i < runs; i++) {
        struct bench_result one = bench_once(ranks, &params, &numeric);
        double copy = one.copy_seconds < best.copy_seconds ? one.copy_seconds : best.copy_seconds;
        best = one.seconds < best.seconds ? one : best;
        best.copy_seconds = copy;
    }
    params.frame_elements = 1;
    params.count = 1 << 16;
    struct bench_result empty = bench_once(ranks, &params, &numeric);
    printf("%-8s %5u %10.2f %12.2f %12.2f %12.0f\n", names[algorithm], world, best.seconds * 1e3,
           (double)bytes / best.seconds * 1e-9, (double)bytes / best.copy_seconds * 1e-9,
           empty.seconds / (double)empty.frames * 1e9);
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20;
    int runs = argc > 2 ? atoi(argv[2]) : 5;
    struct bench_rank *ranks = bench_alloc(BENCH_RANKS * sizeof(*ranks));
    if (bytes == 0 || runs < 1) {
        fprintf(stderr, "usage: bench_exec [megabytes] [runs]\n");
        return 2;
    }
    for (uint32_t r = 0; r < 4; r++) {
        ranks[r].slots = bench_alloc((size_t)BENCH_SLOTS * BENCH_FRAME);
        ranks[r].in = bench_alloc(bytes);
        ranks[r].out = bench_alloc(bytes);
        for (size_t i = 0; i < bytes / sizeof(float); i++) {
            ranks[r].in[i] = 1;
        }
    }
    printf("# all ranks in one thread; f32 sum of %zu MB; kernels: %s\n", bytes >> 20, kernels_get()->name);
    printf("%-8s %5s %10s %12s %12s %12s\n", "plan", "ranks", "ms", "algbw GB/s", "copy GB/s", "ns/frame");
    bench_row(ranks, PLAN_DIRECT, 2, bytes, runs);
    bench_row(ranks, PLAN_DIRECT, 4, bytes, runs);
    bench_row(ranks, PLAN_RING, 4, bytes, runs);
    for (uint32_t r = 0; r < 4; r++) {
        free(ranks[r].slots);
        free(ranks[r].in);
        free(ranks[r].out);
    }
    free(ranks);
    return 0;
}
