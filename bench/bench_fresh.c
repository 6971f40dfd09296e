/* bench_fresh.c - ten million operations whose tags are never used again: what stays of them in memory, and what each takes.
 *
 * One idea: two peers sum up single floats, 100 at once, each with a tag of its own, counted up or scattered over all 64 bits; an update
 * after every thousand lets go of names that are idle.  Resident memory is read after the first hundredth and at the end.  Every result
 * is checked.  bench_fresh [OPERATIONS].
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

enum { PEERS = 2, AT_ONCE = 100, UPDATE_AFTER = 1000 };

/* Of this process, in bytes. */
static double resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%*s %ld", &pages) != 1) {
        fprintf(stderr, "/proc/self/statm cannot be read\n");
        exit(1);
    }
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* One to one, so no tag comes twice: multiplication by an odd number. */
static uint64_t tag_of(uint64_t i, bool scattered)
{
    return scattered ? i * UINT64_C(0x9E3779B97F4A7C15) : i;
}

/* Results that are wrong. */
static uint64_t reduce(pcclComm_t *comm, uint64_t first, uint64_t end, bool scattered, int index)
{
    uint64_t wrong = 0;
    for (uint64_t at = first; at < end; at += AT_ONCE) {
        pcclAsyncReduceOp_t handle[AT_ONCE];
        float in[AT_ONCE], out[AT_ONCE];
        for (uint64_t k = 0; k < AT_ONCE; k++) {
            pcclReduceDescriptor_t what = {.count = 1, .op = pcclSum, .tag = tag_of(at + k, scattered), .src_descriptor = {.datatype = pcclFloat}};
            in[k] = (float)((at + k) % 1000) + (float)index;
            bench_must(pcclAllReduceAsync(&in[k], &out[k], &what, comm, &handle[k]), "launch");
        }
        for (uint64_t k = 0; k < AT_ONCE; k++) {
            bench_must(pcclAwaitAsyncReduce(&handle[k], NULL), "await");
            wrong += out[k] != 2 * (float)((at + k) % 1000) + 1;
        }
        if ((at + AT_ONCE) % UPDATE_AFTER == 0) {
            bench_must(pcclUpdateTopology(comm), "update");
        }
    }
    return wrong;
}

static int peer_main(uint16_t port, int world, int index)
{
    const char *text = getenv("BENCH_OPERATIONS");
    uint64_t count = text != NULL ? strtoull(text, NULL, 10) : 0, wrong = 0;
    for (int scattered = 0; scattered < 2; scattered++) {
        pcclComm_t *comm = bench_join(port, world);
        wrong += reduce(comm, 0, count / 100, scattered != 0, index);
        double before = resident(), begin = bench_now_us();
        wrong += reduce(comm, count / 100, count, scattered != 0, index);
        double us = (bench_now_us() - begin) / (double)(count - count / 100);
        bench_tell((uint64_t)scattered, 0, before, 0);
        bench_tell((uint64_t)scattered, 1, resident(), 0);
        bench_tell((uint64_t)scattered, 2, us, wrong);
        bench_must(pcclDestroyCommunicator(comm), "destroy");
    }
    return wrong != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    }
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    count -= count % (100 * UPDATE_AFTER);
    if (count == 0) {
        fprintf(stderr, "usage: %s [OPERATIONS, %d or more]\n", argv[0], 100 * UPDATE_AFTER);
        return 2;
    }
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, count);
    setenv("BENCH_OPERATIONS", text, 1);
    pcclMasterInstance_t *master;
    uint16_t port = bench_master_start(&master);
    int records[PEERS], bad = 0;
    pid_t pid[PEERS];
    double value[2][3] = {{0}};
    for (int i = 0; i < PEERS; i++) {
        pid[i] = bench_peer_start(port, PEERS, i, &records[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        struct bench_record r;
        int status;
        while (bench_hear(records[i], &r)) {
            value[r.kind][r.size] = i == 0 ? r.value : value[r.kind][r.size];
        }
        bad += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    }
    bench_master_end(master);
    if (bad != 0) {
        fprintf(stderr, "a peer failed, or a result is wrong\n");
        return 1;
    }
    for (int s = 0; s < 2; s++) {
        printf("%" PRIu64 " operations, tags %s: %.2f us each; resident %.2f MB after the first hundredth, %.2f at the end: %+.2f MB (goal 1)\n",
               count, s == 0 ? "counted up" : "scattered", value[s][2], value[s][0] / 1e6, value[s][1] / 1e6, (value[s][1] - value[s][0]) / 1e6);
    }
    return 0;
}
