/* bench_window.c - operations on windows beside a message that does the same, in one run of two processes.
 *
 * One idea: the limit of a put is a send of the same bytes to a receive that is there already; rounds of each are taken in turn, and
 * medians compared.  Memory of the program goes by messages, memory of the library's own is mapped.
 * Usage: bench_window [ROUNDS]; by default 15.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

enum { ROUNDS_MOST = 1000, SIZES = 4, SEND = 0, PUT, PUT_MANY, GET, ADD, MAPPED_PUT, MAPPED_ADD, KINDS };
static const size_t sizes[SIZES] = {8, 64 << 10, 1 << 20, 16 << 20};
static const char *const names[KINDS] = {"send", "put", "put, 16 at a time", "get", "fetch and add", "put, mapped", "fetch and add, mapped"};

struct two {
    pcclComm_t *comm;
    pcclWindow_t *window, *mapped;
    unsigned char *buffer;
    uint32_t rank;
};

static int repeats(size_t bytes)
{
    return bytes < 4096 ? 400 : bytes < (1 << 20) ? 100 : bytes < (16 << 20) ? 20 : 4;
}

static void puts_many(struct two *t, size_t bytes, int count)
{
    enum { MOST = 16 };
    pcclAsyncOp_t op[MOST];
    for (int i = 0; i < count; i += MOST) {
        for (int k = 0; k < MOST; k++) {
            bench_must(pcclPut(t->buffer, bytes, 1, 0, t->window, &op[k]), "put");
        }
        for (int k = 0; k < MOST; k++) {
            bench_must(pcclAwaitAsync(&op[k], NULL), "await");
        }
    }
}

/* us for one. */
static double measure(struct two *t, int kind, size_t bytes)
{
    int count = repeats(bytes);
    uint64_t one = 1, was;
    count = kind == PUT_MANY && count < 16 ? 16 : count;
    bench_must(pcclBarrier(t->comm, NULL), "barrier");
    double begin = bench_now_us();
    if (kind == PUT_MANY && t->rank == 0) {
        puts_many(t, bytes, count);
        count = (count + 15) / 16 * 16;
    }
    for (int i = 0; i < count && kind != PUT_MANY; i++) {
        if (kind == SEND) {
            bench_must(t->rank == 0 ? pcclSend(t->buffer, bytes, pcclUint8, 1, 1, t->comm, NULL)
                                    : pcclReceive(t->buffer, bytes, pcclUint8, 0, 1, NULL, t->comm, NULL), "message");
        } else if (t->rank == 0) {
            bench_must(kind == PUT          ? pcclPut(t->buffer, bytes, 1, 0, t->window, NULL)
                       : kind == GET        ? pcclGet(t->buffer, bytes, 1, 0, t->window, NULL)
                       : kind == ADD        ? pcclFetchAdd(&was, &one, pcclUint64, 1, 0, t->window, NULL)
                       : kind == MAPPED_PUT ? pcclPut(t->buffer, bytes, 1, 0, t->mapped, NULL)
                                            : pcclFetchAdd(&was, &one, pcclUint64, 1, 0, t->mapped, NULL), names[kind]);
        }
    }
    double us = (bench_now_us() - begin) / count;
    bench_must(pcclBarrier(t->comm, NULL), "barrier");
    return us;
}

static int peer_main(uint16_t port, int rounds)
{
    struct two t = {.comm = bench_join(port, 2), .buffer = calloc(1, sizes[SIZES - 1])};
    pcclPeerInfo_t me;
    bench_must(pcclGetSelf(t.comm, &me), "self");
    t.rank = me.rank;
    pcclWindowParams_t params = {.size = sizeof params, .memory = calloc(1, sizes[SIZES - 1]), .bytes = sizes[SIZES - 1], .rights = pcclWindowAll};
    bench_must(pcclCreateWindow(&params, t.comm, &t.window), "window");
    params.memory = NULL;
    bench_must(pcclCreateWindow(&params, t.comm, &t.mapped), "window");
    for (int round = 0; round < rounds; round++) {
        for (int s = 0; s < SIZES; s++) {
            for (int kind = 0; kind < KINDS; kind++) {
                bool number = kind == ADD || kind == MAPPED_ADD;
                double us = number && s > 0 ? 0 : measure(&t, kind, sizes[s]);
                if (t.rank == 0) {
                    bench_tell((uint64_t)kind, sizes[s], us, 0);
                }
            }
        }
    }
    bench_must(pcclDestroyWindow(t.window), "destroy");
    bench_must(pcclDestroyWindow(t.mapped), "destroy");
    bench_must(pcclDestroyCommunicator(t.comm), "destroy");
    return 0;
}

int main(int argc, char **argv)
{
    static double us[KINDS][SIZES][ROUNDS_MOST];
    if (argc > 4 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]));
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 15, pipes[2], done[KINDS][SIZES] = {{0}};
    rounds = rounds < 1 ? 1 : rounds < ROUNDS_MOST ? rounds : ROUNDS_MOST;
    pcclMasterInstance_t *master;
    uint16_t port = bench_master_start(&master);
    pid_t pid[2];
    for (int i = 0; i < 2; i++) {
        pid[i] = bench_peer_start(port, rounds, i, &pipes[i]);
    }
    struct bench_record r;
    for (int i = 0; i < 2; i++) {
        while (bench_hear(pipes[i], &r)) {
            for (int s = 0; s < SIZES; s++) {
                if (sizes[s] == r.size) {
                    us[r.kind][s][done[r.kind][s]++] = r.value;
                }
            }
        }
        waitpid(pid[i], NULL, 0);
    }
    printf("%-24s", "us, median");
    for (int s = 0; s < SIZES; s++) {
        printf("%12zu B", sizes[s]);
    }
    printf("\n");
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%-24s", names[kind]);
        for (int s = 0; s < SIZES; s++) {
            double median = bench_quantile(us[kind][s], (size_t)done[kind][s], 0.5);
            if (median > 0) {
                printf("%14.2f", median);
            } else {
                printf("%14s", "");
            }
        }
        printf("\n");
    }
    bench_master_end(master);
    return 0;
}
