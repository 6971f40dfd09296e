/* bench_peers.h - several peers on one machine: a master in this process, peers as processes started from this program.
 *
 * One idea: a peer is this program again with "peer" as first argument, so that a peer's life begins with main and it can
 * be killed; what it measures comes back over a pipe as records.  All processes read the same clock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_PEERS_H
#define PCCL_BENCH_PEERS_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pccl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BENCH_PEERS_MAX = 16, BENCH_PIPE = 9 };

struct bench_record {
    uint64_t kind, size;
    double value;
    uint64_t wrong;
};

static inline double bench_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline void bench_must(pcclResult_t result, const char *what)
{
    if (result != pcclSuccess) {
        fprintf(stderr, "%s: %s: %s\n", what, pcclGetResultString(result), pcclGetLastError());
        exit(1);
    }
}

/* A master in this process at a free port of 127.0.0.1; returns the port. */
static inline uint16_t bench_master_start(pcclMasterInstance_t **master)
{
    ccoip_socket_address_t at = {.inet = {.ipv4 = {{127, 0, 0, 1}}}};
    bench_must(pcclInit(), "initialise");
    bench_must(pcclCreateMaster(at, master), "create master");
    bench_must(pcclRunMaster(*master), "run master");
    bench_must(pcclGetMasterAddress(*master, &at), "master's address");
    return at.port;
}

static inline void bench_master_end(pcclMasterInstance_t *master)
{
    bench_must(pcclInterruptMaster(master), "interrupt master");
    bench_must(pcclMasterAwaitTermination(master), "await master");
    bench_must(pcclDestroyMaster(master), "destroy master");
}

/* Starts a peer: this program with arguments peer, port, world, index; its records can be read from *records. */
static inline pid_t bench_peer_start(uint16_t port, int world, int index, int *records)
{
    int ends[2];
    char text[3][16];
    snprintf(text[0], sizeof text[0], "%u", port);
    snprintf(text[1], sizeof text[1], "%d", world);
    snprintf(text[2], sizeof text[2], "%d", index);
    char name[] = "bench", role[] = "peer";
    char *args[] = {name, role, text[0], text[1], text[2], NULL};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        perror("pipe");
        exit(1);
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(ends[1], BENCH_PIPE) != BENCH_PIPE || fcntl(BENCH_PIPE, F_SETFD, 0) != 0) {
            _exit(127);
        }
        execv("/proc/self/exe", args);
        _exit(127);
    }
    close(ends[1]);
    *records = ends[0];
    return pid;
}

static inline void bench_tell(uint64_t kind, uint64_t size, double value, uint64_t wrong)
{
    struct bench_record r = {kind, size, value, wrong};
    if (write(BENCH_PIPE, &r, sizeof r) != (ssize_t)sizeof r) {
        exit(1);
    }
}

/* False: the peer has ended. */
static inline bool bench_hear(int records, struct bench_record *r)
{
    return read(records, r, sizeof *r) == (ssize_t)sizeof *r;
}

static inline int bench_world(const pcclComm_t *comm)
{
    int world = 0;
    bench_must(pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world), "world size");
    return world;
}

/* Connects and waits until `world` peers are accepted. */
static inline pcclComm_t *bench_join(uint16_t port, int world)
{
    pcclComm_t *comm = NULL;
    pcclCommCreateParams_t params = {
        .master_address = {.inet = {.ipv4 = {{127, 0, 0, 1}}}, .port = port},
        .p2p_connection_pool_size = 1,
    };
    bench_must(pcclInit(), "initialise");
    bench_must(pcclCreateCommunicator(&params, &comm), "create communicator");
    bench_must(pcclConnect(comm), "connect");
    while (bench_world(comm) < world) {
        bench_must(pcclUpdateTopology(comm), "update");
    }
    return comm;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; share 0.5 is the median. */
static inline double bench_quantile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof *values, bench_compare);
    size_t at = (size_t)(share * (double)count);
    return values[at < count ? at : count - 1];
}

#endif
