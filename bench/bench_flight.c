/* bench_flight.c - what an operation costs when many are in flight: 10 against 1,000 of 64 KiB, two peers, one run.
 *
 * One idea: the same operations, out of place, in buffers that were touched before, launched all at once and then awaited in their
 * order; the two numbers in flight take turns, so that what else the machine does meets both.  Time counts from the first launch to the
 * last await, over the operations.  Results are checked.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

enum { PEERS = 2, MOST = 1000, FEW = 10, BYTES = 64 << 10, COUNT = BYTES / 4, ROUNDS = 9 };

/* Launches and awaits `flight` operations, over and over until MOST are done; microseconds for each. */
static double run(pcclComm_t *comm, const float *in, float *out, int flight)
{
    static pcclAsyncReduceOp_t handle[MOST];
    double begin = bench_now_us();
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
    return (bench_now_us() - begin) / MOST;
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
        double few = run(comm, in, out, FEW), most = run(comm, in, out, MOST);
        if (index == 0) {
            bench_tell(FEW, 0, few, 0);
            bench_tell(MOST, 0, most, 0);
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
    double few[ROUNDS], most[ROUNDS];
    size_t counts[2] = {0, 0};
    for (int i = 0; i < PEERS; i++) {
        pid[i] = bench_peer_start(port, PEERS, i, &records[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        struct bench_record r;
        int status;
        while (bench_hear(records[i], &r)) {
            if (r.kind == FEW && counts[0] < ROUNDS) {
                few[counts[0]++] = r.value;
            } else if (r.kind == MOST && counts[1] < ROUNDS) {
                most[counts[1]++] = r.value;
            }
        }
        bad += waitpid(pid[i], &status, 0) != pid[i] || status != 0;
    }
    bench_master_end(master);
    if (bad != 0 || counts[0] != ROUNDS || counts[1] != ROUNDS) {
        fprintf(stderr, "a peer failed, or a result is wrong\n");
        return 1;
    }
    double a = bench_quantile(few, ROUNDS, 0.5), b = bench_quantile(most, ROUNDS, 0.5);
    printf("%d peers, %d KiB: %.1f us for each of %d in flight, %.1f us for each of %d: %.2f times (goal 2), medians of %d rounds\n",
           PEERS, BYTES >> 10, a, FEW, b, MOST, b / a, ROUNDS);
    return 0;
}
