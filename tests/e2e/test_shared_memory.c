/* test_shared_memory.c - peers of one host share memory, can be kept from it, and survive its lies.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdlib.h>

#include "net/shm_ring.h"
#include "tests/e2e/cluster.h"
#include "tests/spawn.h"

enum { COUNT = 300000, TRIES = 50, POOL = 2 };

/* Until it succeeds; the outcome is the same at all, so they stay in step. */
static void reduce(struct cluster_peer *p, void *context)
{
    float *x = malloc(COUNT * sizeof *x), *y = calloc(COUNT, sizeof *y);
    pcclReduceDescriptor_t d = cluster_floats(COUNT, 4);
    int failures = 0;
    size_t wrong = 0;
    pcclResult_t rc;
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = (float)((i + (size_t)p->index) % 50);
    }
    while ((rc = pcclAllReduce(x, y, &d, p->comm, NULL)) == pcclRankConnectionLost && failures < TRIES) {
        failures++;
    }
    EXPECT_EQ(rc, pcclSuccess);
    EXPECT(failures <= *(const int *)context);
    for (size_t i = 0; i < COUNT; i++) {
        float want = 0;
        for (int k = 0; k < p->cluster->count; k++) {
            want += (float)((i + (size_t)k) % 50);
        }
        wrong += y[i] != want;
    }
    EXPECT_EQ(wrong, 0);
    free(x);
    free(y);
}

/* All data connections of a peer are of that kind, for that reason (null: any); control links, too, if it is TCP. */
static void expect_kind(struct cluster *c, pcclTransportKind_t kind, const char *why)
{
    for (int i = 0; i < c->count; i++) {
        pcclTransport_t t[64];
        size_t count = 0, data = 0;
        EXPECT_EQ(pcclGetTransports(c->peer[i].comm, t, 64, &count), pcclSuccess);
        for (size_t k = 0; k < count; k++) {
            data += t[k].lane != UINT32_MAX;
            EXPECT(t[k].kind == kind || (t[k].lane == UINT32_MAX && t[k].kind == pcclTransportTcp));
            EXPECT(t[k].lane == UINT32_MAX || why == NULL || strstr(t[k].reason, why) == t[k].reason);
        }
        EXPECT_EQ(data, (size_t)(c->count - 1) * POOL);
    }
}

/* Small reduces, each by itself, until the control links of this peer share memory; a count tells how many there are. */
static void reduce_until_shared(struct cluster_peer *p, void *context)
{
    pcclReduceDescriptor_t d = cluster_floats(1, 9);
    size_t links = 0, shared = 0, most = (size_t)p->cluster->count - 1;
    float all = 0;
    for (int i = 0; i < 100000 && all < (float)p->cluster->count; i++) {
        pcclTransport_t t[64];
        size_t count = 0;
        EXPECT_EQ(pcclGetTransports(p->comm, t, 64, &count), pcclSuccess);
        links = shared = 0;
        for (size_t k = 0; k < count; k++) {
            links += t[k].lane == UINT32_MAX;
            shared += t[k].lane == UINT32_MAX && t[k].kind == pcclTransportSharedMemory;
        }
        float mine = shared == most; /* all go on until all are there */
        EXPECT_EQ(pcclAllReduce(&mine, &all, &d, p->comm, NULL), pcclSuccess);
    }
    EXPECT_EQ(links, most);
    EXPECT_EQ(shared, most);
    (void)context;
}

/* More than it takes for a control link to move. */
static void reduce_some(struct cluster_peer *p, void *context)
{
    pcclReduceDescriptor_t d = cluster_floats(1, 9);
    (void)context;
    for (int i = 0; i < 200; i++) {
        float mine = 1, all = 0;
        EXPECT_EQ(pcclAllReduce(&mine, &all, &d, p->comm, NULL), pcclSuccess);
        EXPECT(all == (float)p->cluster->count);
    }
}

/* Mappings of shared memory in this process; scribbles over the words of those with rings of so many bytes, 0: of none. */
static int mappings(uint32_t scribble)
{
    char line[512];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned long long from, to;
        if (strstr(line, "memfd:pccl") == NULL || sscanf(line, "%llx-%llx", &from, &to) != 2) {
            continue;
        }
        /* Neighbouring mappings of different files are never one line. */
        found++;
        union {
            uintptr_t number;
            struct shm_words *words;
            unsigned char *bytes;
        } at = {.number = (uintptr_t)from}, second = {.number = (uintptr_t)from + SHM_RING_WORDS};
        if (scribble != 0 && to - from == shm_ring_total(scribble)) {
            atomic_store(&at.words->written, UINT64_MAX / 3);
            atomic_store(&second.words->written, UINT64_MAX / 5);
            atomic_store(&at.words->taken, UINT64_MAX / 7);
            atomic_store(&second.words->taken, 1);
        }
    }
    fclose(f);
    return found;
}

static void start_sharing(struct cluster *c, int count)
{
    unsetenv("PCCL_SHM_DISABLE"); /* whatever this program is started with */
    cluster_start(c, count, NULL, POOL);
}

TEST(peers_of_one_host_share_memory_and_say_so)
{
    struct cluster c;
    int failures = 0;
    start_sharing(&c, 3);
    cluster_run(&c, reduce, &failures);
    expect_kind(&c, pcclTransportSharedMemory, NULL);
    EXPECT_EQ(mappings(0), 3 * 2 * POOL); /* both ends of every pair are in this process */
    cluster_stop(&c);
    EXPECT_EQ(mappings(0), 0);
}

TEST(PCCL_SHM_DISABLE_keeps_them_to_tcp)
{
    struct cluster c;
    int failures = 0;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    cluster_start(&c, 3, NULL, POOL);
    cluster_run(&c, reduce, &failures);
    expect_kind(&c, pcclTransportTcp, "shared memory is off here");
    EXPECT_EQ(mappings(0), 0);
    cluster_stop(&c);
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(a_word_of_the_variable_that_is_none_is_told)
{
    struct cluster c;
    setenv("PCCL_SHM_DISABLE", "yes", 1);
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    EXPECT(pcclConnect(c.peer[0].comm) != pcclSuccess);
    EXPECT(strstr(pcclGetLastError(), "PCCL_SHM_DISABLE 'yes': expected 0 or 1") != NULL);
    unsetenv("PCCL_SHM_DISABLE");
    cluster_stop(&c);
}

/* A number from the environment: each good value runs, each bad one is refused with what was expected. */
static void try_number(const char *name, const char *const *good, const char *const *bad, const char *expected)
{
    for (; *good != NULL; good++) {
        struct cluster c;
        setenv(name, *good, 1);
        cluster_start(&c, 2, NULL, 1);
        cluster_run(&c, reduce_some, NULL);
        cluster_stop(&c);
    }
    for (; *bad != NULL; bad++) {
        struct cluster c;
        char text[120];
        setenv(name, *bad, 1);
        cluster_master(&c);
        cluster_create(&c, 0, 0, 1, 0);
        EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
        snprintf(text, sizeof text, "%s '%.20s': expected %s", name, *bad, expected);
        EXPECT(strstr(pcclGetLastError(), text) != NULL);
        cluster_stop(&c);
    }
    unsetenv(name);
}

TEST(PCCL_SPIN_US_may_be_nothing_or_much_and_nothing_else)
{
    static const char *const good[] = {"0", "1000000", "", NULL}, *const bad[] = {"1000001", "-1", "5us", " 1", "99999999999999999999999", NULL};
    try_number("PCCL_SPIN_US", good, bad, "0 to 1000000 microseconds");
}

TEST(PCCL_STAGING_BYTES_may_be_nothing_or_much_and_nothing_else)
{
    static const char *const good[] = {"0", "1099511627776", "", NULL}, *const bad[] = {"1099511627777", "-1", "1G", " 1", NULL};
    try_number("PCCL_STAGING_BYTES", good, bad, "0 to 1099511627776 bytes");
}

/* KiB of shared memory that this process has touched. */
static long resident(void)
{
    char line[512];
    long all = 0, kib;
    bool ours = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
            ours = strstr(line, "memfd:pccl") != NULL;
        } else if (ours && sscanf(line, "Rss: %ld", &kib) == 1) {
            all += kib;
        }
    }
    fclose(f);
    return all;
}

TEST(peers_that_are_idle_give_the_memory_back) /* of hundreds of worlds in a process few work at a time */
{
    struct cluster c;
    int most = 0;
    start_sharing(&c, 3);
    for (int round = 0; round < 2; round++) {
        cluster_run(&c, reduce_until_shared, NULL);
        cluster_run(&c, reduce, &most);
        EXPECT(round > 0 || resident() > 1000);
        long least = 16 * mappings(0); /* two pages of words each, two for signs of life */
        int64_t by = spawn_now_ms() + SPAWN_PATIENCE_MS;
        while (resident() > least && spawn_now_ms() < by) {
            sched_yield();
        }
        EXPECT(resident() <= least);
    }
    cluster_stop(&c);
}

TEST(lies_in_shared_memory_break_the_link_and_tcp_takes_over) /* nobody dies of them, no sum is wrong */
{
    struct cluster c;
    int failures = 0;
    start_sharing(&c, 2);
    cluster_run(&c, reduce, &failures);
    expect_kind(&c, pcclTransportSharedMemory, NULL);
    EXPECT_EQ(mappings(SHM_RING_BYTES), 2 * POOL);
    failures = TRIES;
    cluster_run(&c, reduce, &failures);
    expect_kind(&c, pcclTransportTcp, "a connection through shared memory broke");
    EXPECT_EQ(mappings(0), 0);
    cluster_stop(&c);
}

TEST(control_links_that_are_used_move_to_memory) /* small operations are latency, and a system call is most of it */
{
    struct cluster c;
    start_sharing(&c, 3);
    cluster_run(&c, reduce_until_shared, NULL);
    int failures = 0;
    cluster_run(&c, reduce, &failures);
    expect_kind(&c, pcclTransportSharedMemory, NULL);
    EXPECT_EQ(mappings(0), 3 * 2 * (1 + POOL));
    cluster_stop(&c);
    EXPECT_EQ(mappings(0), 0);
}

static void expect_control_links_by_tcp(struct cluster_peer *p)
{
    pcclTransport_t t[64];
    size_t count = 0, links = 0;
    EXPECT_EQ(pcclGetTransports(p->comm, t, 64, &count), pcclSuccess);
    for (size_t k = 0; k < count; k++) {
        links += t[k].lane == UINT32_MAX;
        EXPECT(t[k].lane != UINT32_MAX || t[k].kind == pcclTransportTcp);
    }
    EXPECT_EQ(links, (size_t)p->cluster->count - 1);
}

static void last_leaves(struct cluster_peer *p, void *context)
{
    const int others = p->cluster->count - 1;
    (void)context;
    if (p->index == others) {
        EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
        return;
    }
    while (cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) > others) {
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    }
}

static void last_joins(struct cluster_peer *p, void *context)
{
    (void)context;
    if (p->index == p->cluster->count - 1) {
        EXPECT_EQ(pcclConnect(p->comm), pcclSuccess);
    }
    while (cluster_size(p->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < p->cluster->count) {
        EXPECT_EQ(pcclUpdateTopology(p->comm), pcclSuccess);
    }
}

TEST(control_links_that_only_live_take_no_memory) /* an idle world for days says many a PING */
{
    struct cluster c;
    start_sharing(&c, 3);
    for (int round = 0; round < 10; round++) { /* the two that stay say PING with every view, and nothing else */
        cluster_run(&c, last_leaves, NULL);
        cluster_run(&c, last_joins, NULL);
    }
    for (int i = 0; i < 2; i++) {
        expect_control_links_by_tcp(&c.peer[i]);
    }
    cluster_stop(&c);
}

TEST(lies_in_the_memory_of_a_control_link_break_it_and_tcp_takes_over)
{
    struct cluster c;
    int failures = TRIES;
    start_sharing(&c, 2);
    cluster_run(&c, reduce_until_shared, NULL);
    EXPECT_EQ(mappings(SHM_RING_CONTROL_BYTES), 2 * (1 + POOL));
    cluster_run(&c, reduce, &failures);
    cluster_run(&c, reduce_some, NULL);
    for (int i = 0; i < 2; i++) {
        pcclTransport_t t[64];
        size_t count = 0;
        EXPECT_EQ(pcclGetTransports(c.peer[i].comm, t, 64, &count), pcclSuccess);
        EXPECT(count > 0 && t[0].lane == UINT32_MAX && t[0].kind == pcclTransportTcp);
    }
    cluster_stop(&c);
}

static void leave_and_join(struct cluster_peer *p, void *context)
{
    EXPECT_EQ(pcclLeave(p->comm), pcclSuccess);
    EXPECT_EQ(cluster_join(p->comm, p->cluster->count), pcclSuccess);
    reduce(p, context);
}

TEST(memory_and_descriptors_stay_flat_when_peers_come_and_go)
{
    struct cluster c;
    int failures = TRIES;
    long before = spawn_entries("/proc/self/fd");
    start_sharing(&c, 3);
    cluster_run(&c, reduce, &failures);
    long most = spawn_entries("/proc/self/fd");
    for (int round = 0; round < 5; round++) {
        cluster_run(&c, leave_and_join, &failures);
        EXPECT(mappings(0) <= 3 * 2 * POOL);
    }
    EXPECT(spawn_entries("/proc/self/fd") <= most);
    cluster_stop(&c);
    EXPECT_EQ(spawn_entries("/proc/self/fd"), before);
    EXPECT_EQ(mappings(0), 0);
}
