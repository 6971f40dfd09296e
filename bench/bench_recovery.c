/* bench_recovery.c - how long the survivors need when one of four peers is killed in the middle of a 64 MB all-reduce.
 *
 * One idea: the peers reduce without a pause; at a moment drawn at random within the length of one operation the parent
 * kills one of them.  From that moment count: until the last survivor has its error, and until the retry is complete at
 * the last survivor.  The retry's result is checked.  Where the survivors had the whole result already, it is committed
 * and nobody gets an error: such a round is counted apart and done again.  Beside it stands how long the kernel took to
 * close the victim's descriptors, before which nobody can know.  All processes read the same clock.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

enum { ROUNDS = 20, PEERS = 4, BYTES = 64 << 20, COUNT = BYTES / 4, WARM = 3 };
enum kind { READY = 1, ERROR_SEEN, RETRY_DONE, COMMITTED };

/* ---- a peer -------------------------------------------------------------------------------------------------------- */

static uint64_t count_wrong(const float *data, int world)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        wrong += data[i] != (float)world * (float)(i % 7);
    }
    return wrong;
}

static void peer_run(uint16_t port, int world, float *in, float *out)
{
    pcclReduceDescriptor_t what = {.count = COUNT, .op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};
    pcclReduceInfo_t info = {0};
    pcclResult_t result = pcclSuccess;
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (float)(i % 7);
        out[i] = 0;
    }
    pcclComm_t *comm = bench_join(port, world);
    double took = 0;
    for (int i = 0; result == pcclSuccess; i++) {
        double start = bench_now_us();
        result = pcclAllReduce(in, out, &what, comm, &info);
        took = i < WARM ? bench_now_us() - start : took;
        if (i == WARM) {
            bench_tell(READY, 0, took, 0);
        }
        if (result == pcclSuccess && (int)info.local_world_size < world) { /* the one before was committed without it */
            bench_tell(COMMITTED, 0, 0, count_wrong(out, world - 1));
            bench_must(pcclDestroyCommunicator(comm), "destroy");
            return;
        }
    }
    bench_tell(ERROR_SEEN, (uint64_t)result, bench_now_us(), 0);
    while ((result = pcclAllReduce(in, out, &what, comm, NULL)) == pcclRankConnectionLost) {
    }
    double done = bench_now_us();
    bench_must(result, "retry");
    bench_tell(RETRY_DONE, (uint64_t)bench_world(comm), done, count_wrong(out, bench_world(comm)));
    bench_must(pcclDestroyCommunicator(comm), "destroy");
}

static int peer_main(uint16_t port, int world)
{
    float *in = malloc(BYTES), *out = malloc(BYTES);
    bool ok = in != NULL && out != NULL;
    if (ok) {
        peer_run(port, world, in, out);
    }
    free(in);
    free(out);
    return ok ? 0 : 1;
}

/* ---- the parent ---------------------------------------------------------------------------------------------------- */

struct round {
    double operation_ms, closed_ms, error_ms, retry_ms;
    uint64_t wrong;
    bool ok, committed;
};

static void wait_us(double us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1e6), .tv_nsec = (long)(us * 1e3) % 1000000000};
    nanosleep(&t, NULL);
}

/* Hears one survivor to its end. */
static void hear_survivor(int records, double killed, struct round *round)
{
    struct bench_record r;
    bool error = false, retry = false;
    while (bench_hear(records, &r)) {
        double ms = (r.value - killed) / 1e3;
        if (r.kind == ERROR_SEEN) {
            error = r.size == pcclRankConnectionLost;
            round->error_ms = ms > round->error_ms ? ms : round->error_ms;
        } else if (r.kind == RETRY_DONE) {
            retry = r.size == PEERS - 1;
            round->retry_ms = ms > round->retry_ms ? ms : round->retry_ms;
            round->wrong += r.wrong;
        } else if (r.kind == COMMITTED) {
            round->committed = true;
            round->wrong += r.wrong;
            error = retry = true;
        }
    }
    round->ok = round->ok && error && retry;
}

static struct round run_round(uint16_t port, unsigned *seed)
{
    struct round round = {.ok = true};
    pid_t pids[PEERS];
    int records[PEERS], victim = rand_r(seed) % PEERS;
    for (int i = 0; i < PEERS; i++) {
        pids[i] = bench_peer_start(port, PEERS, i, &records[i]);
    }
    struct bench_record r = {0};
    for (int i = 0; i < PEERS; i++) {
        round.ok = bench_hear(records[i], &r) && r.kind == READY && round.ok;
    }
    round.operation_ms = r.value / 1e3;
    wait_us(r.value * (1 + (double)(rand_r(seed) % 1000) / 1000));
    double killed = bench_now_us();
    kill(pids[victim], SIGKILL);
    while (bench_hear(records[victim], &r)) {
    }
    round.closed_ms = (bench_now_us() - killed) / 1e3;
    for (int i = 0; i < PEERS; i++) {
        if (i != victim) {
            hear_survivor(records[i], killed, &round);
        } /* the pipe keeps what they say meanwhile */
        close(records[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        round.ok = round.ok && (i == victim || status == 0);
    }
    return round;
}

static void print_distribution(const char *what, const double *values, const char *limit)
{
    double sorted[ROUNDS];
    memcpy(sorted, values, sizeof sorted);
    double median = bench_quantile(sorted, ROUNDS, 0.5);
    printf("%-34s min %6.1f  median %6.1f%s  19 of 20 %6.1f  max %6.1f ms\n", what, sorted[0], median, limit,
           sorted[ROUNDS - 2], sorted[ROUNDS - 1]);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]));
    }
    pcclMasterInstance_t *master;
    uint16_t port = bench_master_start(&master);
    double closed_ms[ROUNDS], error_ms[ROUNDS], retry_ms[ROUNDS];
    unsigned seed = 4;
    int failed = 0, committed = 0;
    printf("# 1 of %d peers killed in the middle of a 64 MB out-of-place all-reduce, loopback, %d times\n", PEERS, ROUNDS);
    printf("# %5s %14s %14s %14s %14s %8s\n", "round", "operation (ms)", "closed (ms)", "error (ms)", "retry (ms)", "#wrong");
    for (int i = 0; i < ROUNDS;) {
        struct round r = run_round(port, &seed);
        failed += !r.ok || r.wrong != 0;
        if (r.committed) {
            committed++;
            continue;
        }
        closed_ms[i] = r.closed_ms;
        error_ms[i] = r.error_ms;
        retry_ms[i] = r.retry_ms;
        printf("  %5d %14.1f %14.1f %14.1f %14.1f %8" PRIu64 "%s\n", ++i, r.operation_ms, r.closed_ms, r.error_ms,
               r.retry_ms, r.wrong, r.ok ? "" : "  FAILED");
        fflush(stdout);
    }
    print_distribution("until the victim's sockets close", closed_ms, "");
    print_distribution("until all survivors have the error", error_ms, " (at most 30)");
    print_distribution("until the retry is complete", retry_ms, " (at most 150)");
    printf("rounds besides in which the operation was complete at all survivors: %d\n", committed);
    bench_master_end(master);
    return failed != 0;
}
