/* bench_many.c - a thousand tensors of a model's gradients: each by itself, in one call, in buckets, and small ones; JSON for each.
 *
 * One idea: the tensors of a step (sizes from 4 KB to 4 MB, as many in each octave, in an order without order) summed up in place, from
 * the first launch until the last is there.  A launch is timed by itself as well.  Buckets of 25 MB are filled and emptied by copies that
 * count, as data-parallel training does it, and are timed alone as well.  bench/compare/compare_many.py runs Gloo beside it.
 *
 * bench_many [RANKS] [ROUNDS]; PCCL_SHM_DISABLE=1 for TCP.  A line of JSON: mode, tensors, bytes, us for all (median), launch_us (median
 * of the rounds' medians, and of their worst), wrong.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <math.h>

#include "bench_peers.h"

enum { TENSORS = 1000, SMALL = 4096, BUCKET = 25 << 20, BUCKETS_MOST = 64, ROUNDS_MOST = 99 };

enum mode { EACH, BULK, BUCKETED, COPIES, EACH_SMALL, BULK_SMALL, MODES };

static const char *const mode_name[MODES] = {"each", "bulk", "bucketed", "bucketed, copies alone", "each, 4 KB", "bulk, 4 KB"};

struct tensors {
    size_t bytes[TENSORS], all;
    float *memory, *at[TENSORS];
    float *bucket;
};

struct spent {
    double all, launch, launch_worst; /* microseconds; of one launch */
};

static void tensors_make(struct tensors *t, bool small)
{
    t->all = 0;
    for (int i = 0; i < TENSORS; i++) {
        double octave = 10.0 * (double)(i * 387 % TENSORS) / (TENSORS - 1);
        t->bytes[i] = small ? SMALL : (size_t)(SMALL * exp2(octave)) & ~(size_t)3;
        t->all += t->bytes[i];
    }
    t->memory = malloc(t->all);
    t->bucket = malloc(t->all);
    if (t->memory == NULL || t->bucket == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", t->all);
        exit(1);
    }
    memset(t->bucket, 0, t->all);
    float *at = t->memory;
    for (int i = 0; i < TENSORS; i++) {
        t->at[i] = at;
        at += t->bytes[i] / sizeof *at;
    }
}

static pcclReduceDescriptor_t floats(size_t bytes, uint64_t tag)
{
    return (pcclReduceDescriptor_t){.count = bytes / 4, .op = pcclSum, .tag = tag, .src_descriptor = {.datatype = pcclFloat}};
}

static struct spent run_each(pcclComm_t *comm, const struct tensors *t)
{
    static pcclAsyncReduceOp_t handle[TENSORS];
    static double launch[TENSORS];
    double begin = bench_now_us();
    for (int i = 0; i < TENSORS; i++) {
        pcclReduceDescriptor_t what = floats(t->bytes[i], (uint64_t)i);
        double before = bench_now_us();
        bench_must(pcclAllReduceAsync(t->at[i], t->at[i], &what, comm, &handle[i]), "launch");
        launch[i] = bench_now_us() - before;
    }
    for (int i = 0; i < TENSORS; i++) {
        bench_must(pcclAwaitAsyncReduce(&handle[i], NULL), "await");
    }
    double all = bench_now_us() - begin, worst = bench_quantile(launch, TENSORS, 1);
    return (struct spent){all, bench_quantile(launch, TENSORS, 0.5), worst};
}

static struct spent run_bulk(pcclComm_t *comm, const struct tensors *t)
{
    static pcclReduceOpDescriptor_t list[TENSORS];
    double begin = bench_now_us();
    for (int i = 0; i < TENSORS; i++) {
        list[i] = (pcclReduceOpDescriptor_t){t->at[i], t->at[i], floats(t->bytes[i], (uint64_t)i)};
    }
    bench_must(pcclAllReduceMultipleWithRetry(list, TENSORS, comm, NULL, TENSORS), "reduce many");
    return (struct spent){bench_now_us() - begin, 0, 0};
}

/* Null: nothing is summed up. */
static struct spent run_buckets(pcclComm_t *comm, const struct tensors *t)
{
    struct bucket {
        int first, end;
        float *at;
        pcclAsyncReduceOp_t handle;
    } bucket[BUCKETS_MOST];
    int count = 0;
    double begin = bench_now_us();
    float *to = t->bucket;
    for (int i = 0; i < TENSORS; count++) {
        struct bucket *b = &bucket[count];
        *b = (struct bucket){.first = i, .at = to};
        for (size_t bytes = 0; i < TENSORS && (bytes == 0 || bytes + t->bytes[i] <= BUCKET); i++) {
            memcpy(to, t->at[i], t->bytes[i]);
            to += t->bytes[i] / sizeof *to;
            bytes += t->bytes[i];
        }
        b->end = i;
        pcclReduceDescriptor_t what = floats((size_t)(to - b->at) * sizeof *to, (uint64_t)count);
        if (comm != NULL) {
            bench_must(pcclAllReduceAsync(b->at, b->at, &what, comm, &b->handle), "launch");
        }
    }
    for (int k = 0; k < count; k++) {
        if (comm != NULL) {
            bench_must(pcclAwaitAsyncReduce(&bucket[k].handle, NULL), "await");
        }
        const float *from = bucket[k].at;
        for (int i = bucket[k].first; i < bucket[k].end; from += t->bytes[i++] / sizeof *from) {
            memcpy(t->at[i], from, t->bytes[i]);
        }
    }
    return (struct spent){bench_now_us() - begin, 0, 0};
}

static struct spent run(enum mode mode, pcclComm_t *comm, const struct tensors *t)
{
    if (mode == BUCKETED || mode == COPIES) {
        return run_buckets(mode == COPIES ? NULL : comm, t);
    }
    return mode == BULK || mode == BULK_SMALL ? run_bulk(comm, t) : run_each(comm, t);
}

static uint64_t wrong_after(enum mode mode, pcclComm_t *comm, const struct tensors *t, int world, int index)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < t->all / 4; i++) {
        t->memory[i] = (float)(i % 13) + (float)index;
    }
    run(mode, comm, t);
    for (size_t i = 0; i < t->all / 4; i++) {
        int own = (int)(i % 13);
        wrong += t->memory[i] != (float)(mode == COPIES ? own + index : world * own + world * (world - 1) / 2);
        t->memory[i] = 0; /* stays so, however often it is summed up */
    }
    return wrong;
}

static int peer_main(uint16_t port, int world, int index)
{
    const char *text = getenv("BENCH_ROUNDS");
    int rounds = text != NULL ? atoi(text) : 5;
    struct tensors mixed, small;
    tensors_make(&mixed, false);
    tensors_make(&small, true);
    pcclComm_t *comm = bench_join(port, world);
    uint64_t wrong = 0;
    for (int mode = 0; mode < MODES; mode++) { /* one after the other: a program does one of them, step by step */
        const struct tensors *t = mode == EACH_SMALL || mode == BULK_SMALL ? &small : &mixed;
        uint64_t here = wrong_after((enum mode)mode, comm, t, world, index);
        bench_tell((uint64_t)mode, 3, (double)t->all, here);
        wrong += here;
        run((enum mode)mode, comm, t);
        for (int round = 0; round < rounds; round++) {
            struct spent s = run((enum mode)mode, comm, t);
            bench_tell((uint64_t)mode, 0, s.all, 0);
            bench_tell((uint64_t)mode, 1, s.launch, 0);
            bench_tell((uint64_t)mode, 2, s.launch_worst, 0);
        }
    }
    bench_must(pcclDestroyCommunicator(comm), "destroy");
    return wrong != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    }
    int ranks = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 5, bad = 0;
    if (ranks < 2 || ranks > BENCH_PEERS_MAX || rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: %s [RANKS, 2 to %d] [ROUNDS, 1 to %d]\n", argv[0], BENCH_PEERS_MAX, ROUNDS_MOST);
        return 2;
    }
    char text[16];
    snprintf(text, sizeof text, "%d", rounds);
    setenv("BENCH_ROUNDS", text, 1);
    pcclMasterInstance_t *master;
    uint16_t port = bench_master_start(&master);
    int records[BENCH_PEERS_MAX];
    pid_t pid[BENCH_PEERS_MAX];
    static double value[MODES][3][ROUNDS_MOST];
    int counts[MODES][3] = {{0}};
    uint64_t wrong[MODES] = {0}, bytes[MODES] = {0};
    for (int i = 0; i < ranks; i++) {
        pid[i] = bench_peer_start(port, ranks, i, &records[i]);
    }
    for (int i = 0; i < ranks; i++) {
        struct bench_record r;
        int status;
        while (bench_hear(records[i], &r)) {
            if (r.size == 3) {
                wrong[r.kind] += r.wrong;
                bytes[r.kind] = (uint64_t)r.value;
            } else if (i == 0 && counts[r.kind][r.size] < rounds) {
                value[r.kind][r.size][counts[r.kind][r.size]++] = r.value;
            }
        }
        bad += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    }
    bench_master_end(master);
    for (int mode = 0; mode < MODES && bad == 0; mode++) {
        double us[3];
        for (int k = 0; k < 3; k++) {
            us[k] = bench_quantile(value[mode][k], (size_t)counts[mode][k], 0.5);
        }
        printf("{\"mode\": \"%s\", \"tensors\": %d, \"bytes\": %" PRIu64 ", \"us\": %.0f, \"launch_us\": %.2f, \"worst_launch_us\": %.1f, \"wrong\": %" PRIu64 "}\n",
               mode_name[mode], TENSORS, bytes[mode], us[0], us[1], us[2], wrong[mode]);
    }
    if (bad != 0) {
        fprintf(stderr, "a peer failed, or a result is wrong\n");
    }
    return bad != 0;
}
