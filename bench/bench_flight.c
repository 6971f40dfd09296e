/* bench_flight.c - what an operation costs when many are in flight: 10 against 1,000 of 64 KiB, two peers, one run.
 *
 * One idea: the same operations, out of place, in buffers that were touched before, launched all at once and then awaited in their
 * order; the two numbers in flight take turns, so that what else the machine does meets both.  Time counts from the first launch to the
 * last await, over the operations; beside it stands the processor time of peer 0, which other work on the machine disturbs less.
 * Results are checked.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

enum { PEERS = 2, MOST = 1000, FEW = 10, BYTES = 64 << 10, COUNT = BYTES / 4, ROUNDS = 9 };

static double processor_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct cost {
    double wall, processor; /* microseconds for each */
};

/* Launches and awaits `flight` operations, over and over until MOST are done. */
static struct cost run(pcclComm_t *comm, const float *in, float *out, int flight)
{
    static pcclAsyncReduceOp_t handle[MOST];
    double begin = bench_now_us(), processor = processor_us();
    for (int done = 0; done < MOST; done += flight) {
        for (int i = 0; i < flight; i++) {
            size_t at = (size_t)(done + i) * COUNT;
            pcclReduceDescriptor_t what = {
                .count = COUNT, .op = pcclSum, .tag = (uint64_t)i, .src_descriptor = {.datatype = pcclFloat}};
            bench_must(pcclAllReduceAsync(in + at, out + at, &what, comm, &handle[i]), "launch");
        }
        for (int i = 0; i < flight; i++) {
            bench_must(pcclAwaitAsyncReduce(&handle[i], NULL), "await");
        }
    }
    return (struct cost){(bench_now_us() - begin) / MOST, (processor_us() - processor) / MOST};
}

static int peer_main(uint16_t port, int world, int index)
{
    size_t all = (size_t)MOST * COUNT;
    float *in = malloc(all * sizeof *in), *out = malloc(all * sizeof *out);
    if (in == NULL || out == NULL) {
        return 1;
    }
    for (size_t i = 0; i < all; i++) {
        in[i] = (float)(i % 7);
        out[i] = 0;
    }
    pcclComm_t *comm = bench_join(port, world);
    run(comm, in, out, FEW);
    run(comm, in, out, MOST);
    for (int round = 0; round < ROUNDS; round++) {
        struct cost few = run(comm, in, out, FEW), most = run(comm, in, out, MOST);
        if (index == 0) {
            bench_tell(FEW, 0, few.wall, 0);
            bench_tell(MOST, 0, most.wall, 0);
            bench_tell(FEW, 1, few.processor, 0);
            bench_tell(MOST, 1, most.processor, 0);
        }
    }
    uint64_t wrong = 0;
    for (size_t i = 0; i < all; i++) {
        wrong += out[i] != (float)world * (float)(i % 7);
    }
    bench_tell(0, 0, 0, wrong);
    bench_must(pcclDestroyCommunicator(comm), "destroy");
    free(in);
    free(out);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    }
    pcclMasterInstance_t *master;
    uint16_t port = bench_master_start(&master);
    int records[PEERS], bad = 0;
    pid_t pid[PEERS];
    double value[2][2][ROUNDS]; /* few or most; wall or processor time */
    size_t counts[2][2] = {{0}};
    for (int i = 0; i < PEERS; i++) {
        pid[i] = bench_peer_start(port, PEERS, i, &records[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        struct bench_record r;
        int status;
        while (bench_hear(records[i], &r)) {
            int which = r.kind == MOST, processor = r.size == 1;
            if (r.kind != 0 && counts[which][processor] < ROUNDS) {
                value[which][processor][counts[which][processor]++] = r.value;
            }
        }
        bad += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    }
    bench_master_end(master);
    if (bad != 0 || counts[0][1] != ROUNDS || counts[1][1] != ROUNDS) {
        fprintf(stderr, "a peer failed, or a result is wrong\n");
        return 1;
    }
    double a = bench_quantile(value[0][0], ROUNDS, 0.5), b = bench_quantile(value[1][0], ROUNDS, 0.5);
    double c = bench_quantile(value[0][1], ROUNDS, 0.5), d = bench_quantile(value[1][1], ROUNDS, 0.5);
    printf("%d peers, %d KiB: %.1f us for each of %d in flight, %.1f us for each of %d: %.2f times (goal 2), medians of %d rounds\n",
           PEERS, BYTES >> 10, a, FEW, b, MOST, b / a, ROUNDS);
    printf("processor time of one peer: %.1f us and %.1f us: %.2f times\n", c, d, d / c);
    return 0;
}
