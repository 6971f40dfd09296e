/* bench_idle.c - what a world costs its members while nothing happens in it.
 *
 * One idea: every peer is in WORLDS worlds of a given size, does OPERATIONS small all-reduces in each, and looks at what is private
 * to its process, now and again until that stops to fall; what it held after the first world, with the library started, is taken
 * away.  Memory that two processes share (rings) is told beside it, half of it for each.
 * Usage: bench_idle [WORLDS]; by default 100 worlds of 4 peers.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

#include <poll.h>
#include <sys/resource.h>

enum { OPERATIONS = 1000, TAGS = 8, LOOK_MS = 3000, LOOKS = 8, STEADY_KIB = 64 };
enum kind { PRIVATE, SHARED, KINDS };

/* ---- a peer -------------------------------------------------------------------------------------------------------- */

struct held {
    double kib[KINDS];
};

/* Sums over the mappings of this process. */
static struct held look(void)
{
    struct held h = {0};
    char line[512];
    bool ours = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        long kib;
        if (strchr(line, '-') != NULL && strchr(line, ':') != NULL && line[0] != 'P' && line[0] != 'S') {
            ours = strstr(line, "memfd:pccl") != NULL;
        }
        if (sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
            h.kib[PRIVATE] += (double)kib;
        } else if (ours && sscanf(line, "Shared_Dirty: %ld", &kib) == 1) {
            h.kib[SHARED] += (double)kib / 2;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return h;
}

/* When what is not used has been given back. */
static struct held look_at_rest(void)
{
    struct held now = look();
    for (int i = 0; i < LOOKS; i++) {
        struct held before = now;
        poll(NULL, 0, LOOK_MS);
        now = look();
        if (i > 0 && now.kib[PRIVATE] + STEADY_KIB > before.kib[PRIVATE] && now.kib[SHARED] + STEADY_KIB > before.kib[SHARED]) {
            break;
        }
    }
    return now;
}

static void use(pcclComm_t *comm, uint64_t tag)
{
    float in[16] = {1}, out[16];
    pcclReduceDescriptor_t d = {.count = 16, .op = pcclSum, .tag = tag, .src_descriptor = {.datatype = pcclFloat}};
    bench_must(pcclAllReduce(in, out, &d, comm, NULL), "all-reduce");
}

static pcclComm_t *use_world(uint16_t port, int number, int size, int index)
{
    char name[24];
    snprintf(name, sizeof name, "world %d", number);
    pcclCommCreateParamsEx_t params = {
        .size = sizeof params, .master_address = {.inet = {.ipv4 = {{127, 0, 0, 1}}}, .port = port},
        .world = name, .world_size = (uint32_t)size, .rank = (uint32_t)index};
    pcclComm_t *comm = NULL;
    bench_must(pcclCreateCommunicatorEx(&params, &comm), "create communicator");
    bench_must(pcclConnect(comm), "connect");
    for (int i = 0; i < OPERATIONS; i++) {
        use(comm, (uint64_t)(i % TAGS));
    }
    return comm;
}

static int peer_main(uint16_t port, int size, int index)
{
    const char *worlds = getenv("BENCH_WORLDS");
    int count = worlds != NULL ? atoi(worlds) : 0;
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0) {
        most.rlim_cur = most.rlim_max;
        setrlimit(RLIMIT_NOFILE, &most);
    }
    bench_must(pcclInit(), "initialise");
    pcclComm_t *world = use_world(port, 0, size, index);
    struct held first = look_at_rest();
    for (int i = 1; i <= count; i++) {
        use_world(port, i, size, index);
    }
    struct held all = look_at_rest();
    for (int k = 0; k < KINDS; k++) {
        bench_tell((uint64_t)k, 0, (all.kib[k] - first.kib[k]) / count, 0);
    }
    use(world, 0); /* who ends before the others have looked takes their links along */
    return 0;
}

/* ---- the run ------------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    }
    enum { SIZE = 4 };
    int worlds = argc > 1 ? atoi(argv[1]) : 100, failed = 0, records[SIZE];
    if (worlds < 1 || argc > 2) {
        fprintf(stderr, "usage: bench_idle [WORLDS]\n");
        return 2;
    }
    char text[16];
    snprintf(text, sizeof text, "%d", worlds);
    setenv("BENCH_WORLDS", text, 1);
    pcclMasterInstance_t *master;
    uint16_t port = bench_master_start(&master);
    pid_t pids[SIZE];
    double kib[KINDS] = {0};
    for (int i = 0; i < SIZE; i++) {
        pids[i] = bench_peer_start(port, SIZE, i, &records[i]);
    }
    for (int i = 0; i < SIZE; i++) {
        struct bench_record r;
        int status = 0;
        while (bench_hear(records[i], &r)) {
            kib[r.kind] += r.value / SIZE;
        }
        waitpid(pids[i], &status, 0);
        failed += status != 0;
        close(records[i]);
    }
    bench_master_end(master);
    printf("# a peer in %d idle worlds of %d, after %d all-reduces in each: %.0f KiB private for a world, and its half of %.0f KiB "
           "shared\n", worlds, SIZE, OPERATIONS, kib[PRIVATE], 2 * kib[SHARED]);
    return failed != 0;
}
