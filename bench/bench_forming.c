/* bench_forming.c - how a world of a given size comes to be, and what its links cost: all its members in this process, on real sockets.
 *
 * One idea: who is admitted makes a control link to each other member, so a world of N has N (N - 1) / 2 of them; the time until all are
 * connected, the descriptors and the memory of a link tell up to where that is the right thing.  An all-reduce of one float of all
 * members comes behind, for the first time and again, as the median of OPERATIONS.
 * Usage: bench_forming [MEMBERS...]; by default 8 32 128; PCCL_SHM_DISABLE=1 for links over TCP.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench_peers.h"

#include <dirent.h>
#include <sys/resource.h>

enum { MEMBERS_MOST = 1024, OPERATIONS = 21 };

static pcclComm_t *comm[MEMBERS_MOST];
static pcclAsyncOp_t connecting[MEMBERS_MOST];

static long descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    long count = -3; /* itself, and the two of a folder */
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static long resident_kib(void)
{
    long pages = 0, all;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%ld %ld", &all, &pages) != 2) {
        pages = 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double form(uint16_t port, int members)
{
    char name[24];
    snprintf(name, sizeof name, "forming %d", members);
    double begin = bench_now_us();
    for (int i = 0; i < members; i++) {
        pcclCommCreateParamsEx_t params = {
            .size = sizeof params, .master_address = {.inet = {.ipv4 = {{127, 0, 0, 1}}}, .port = port},
            .world = name, .world_size = (uint32_t)members, .rank = (uint32_t)i};
        bench_must(pcclCreateCommunicatorEx(&params, &comm[i]), "create communicator");
        bench_must(pcclConnectAsync(comm[i], &connecting[i]), "connect");
    }
    for (int i = 0; i < members; i++) {
        bench_must(pcclAwaitAsync(&connecting[i], NULL), "await connected");
    }
    return bench_now_us() - begin;
}

static double sum_up(int members)
{
    static pcclAsyncReduceOp_t handle[MEMBERS_MOST];
    static float in[MEMBERS_MOST], out[MEMBERS_MOST];
    pcclReduceDescriptor_t what = {.count = 1, .op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};
    double begin = bench_now_us();
    for (int i = 0; i < members; i++) {
        in[i] = (float)i;
        bench_must(pcclAllReduceAsync(&in[i], &out[i], &what, comm[i], &handle[i]), "launch");
    }
    for (int i = 0; i < members; i++) {
        bench_must(pcclAwaitAsyncReduce(&handle[i], NULL), "await");
        if (out[i] != (float)(members * (members - 1) / 2)) {
            fprintf(stderr, "rank %d of %d got %g\n", i, members, (double)out[i]);
            exit(1);
        }
    }
    return bench_now_us() - begin;
}

static void measure(uint16_t port, int members)
{
    double again[OPERATIONS];
    long fds = descriptors(), kib = resident_kib(), links = (long)members * (members - 1) / 2;
    double formed = form(port, members);
    fds = descriptors() - fds;
    kib = resident_kib() - kib;
    double first = sum_up(members);
    for (int k = 0; k < OPERATIONS; k++) {
        again[k] = sum_up(members);
    }
    printf("%8d %9ld %11.1f %10.1f %12ld %10.1f %10.2f %10.2f\n", members, links, formed / 1e3, formed / (double)links, fds,
           (double)kib / (double)links, first / 1e3, bench_quantile(again, OPERATIONS, 0.5) / 1e3);
    fflush(stdout);
    for (int i = 0; i < members; i++) {
        bench_must(pcclDestroyCommunicator(comm[i]), "destroy");
    }
}

int main(int argc, char **argv)
{
    static const int usual[] = {8, 32, 128};
    struct rlimit most;
    pcclMasterInstance_t *master;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0) {
        most.rlim_cur = most.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &most);
    }
    for (int i = 1; i < argc; i++) {
        if (atoi(argv[i]) < 2 || atoi(argv[i]) > MEMBERS_MOST) {
            fprintf(stderr, "usage: %s [MEMBERS, 2 to %d]...\n", argv[0], MEMBERS_MOST);
            return 2;
        }
    }
    uint16_t port = bench_master_start(&master);
    printf(" members     links   formed ms    us/link  descriptors   KiB/link   first ms   again ms\n");
    for (int i = 0; i < (argc > 1 ? argc - 1 : 3); i++) {
        measure(port, argc > 1 ? atoi(argv[i + 1]) : usual[i]);
    }
    bench_master_end(master);
    return 0;
}
