/* test_transports.c - what carries data between two communicators, and why: told the same at both ends, and to the log once.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/e2e/cluster.h"

enum { ELEMENTS = 100000, POOL = 2, ROUNDS = 4 };

#define OFF_HERE "shared memory is off here (PCCL_SHM_DISABLE, shm_disable)"
#define OFF_THERE "shared memory is off there (PCCL_SHM_DISABLE, shm_disable)"

/* Lines of the log about data, and those of them that have `log_part`. */
static atomic_int log_lines, log_parts;
static const char *log_part;

static void log_count(pcclLogLevel_t level, const char *message, void *user)
{
    (void)user;
    if (level == pcclLogInfo && strstr(message, ": data goes ") != NULL) {
        atomic_fetch_add(&log_lines, 1);
        atomic_fetch_add(&log_parts, strstr(message, log_part) != NULL);
    }
}

/* Whatever this program is started with. */
static void forget_environment(void)
{
    unsetenv("PCCL_SHM_DISABLE");
    unsetenv("PCCL_NET");
}

static void log_start(const char *part)
{
    log_part = part;
    atomic_store(&log_lines, 0);
    atomic_store(&log_parts, 0);
    EXPECT_EQ(pcclSetLogCallback(log_count, pcclLogInfo, NULL), pcclSuccess);
}

static void reduce(struct cluster_peer *p, void *context)
{
    float *x = malloc(ELEMENTS * sizeof *x);
    (void)context;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        pcclReduceDescriptor_t d = cluster_floats(ELEMENTS, round);
        size_t wrong = 0;
        for (size_t i = 0; i < ELEMENTS; i++) {
            x[i] = (float)(i % 100) + (float)p->index;
        }
        EXPECT_EQ(pcclAllReduce(x, x, &d, p->comm, NULL), pcclSuccess);
        for (size_t i = 0; i < ELEMENTS; i++) {
            wrong += x[i] != 2 * (float)(i % 100) + 1;
        }
        EXPECT_EQ(wrong, 0);
    }
    free(x);
}

/* All data connections of that peer are of this kind, for this reason. */
static void expect_reason(const struct cluster *c, int peer, pcclTransportKind_t kind, const char *provider, const char *reason)
{
    pcclTransport_t t[64];
    size_t count = 0, data = 0;
    EXPECT_EQ(pcclGetTransports(c->peer[peer].comm, t, 64, &count), pcclSuccess);
    for (size_t k = 0; k < count; k++) {
        if (t[k].lane == UINT32_MAX) {
            EXPECT_EQ(t[k].provider[0], 0);
            EXPECT(t[k].reason[0] != 0);
            continue;
        }
        data++;
        EXPECT_EQ(t[k].kind, kind);
        EXPECT(strncmp(t[k].provider, provider, strlen(provider)) == 0 && (provider[0] == 0) == (t[k].provider[0] == 0));
        EXPECT(strcmp(t[k].reason, reason) == 0);
        if (strcmp(t[k].reason, reason) != 0) {
            fprintf(stderr, "peer %d: '%s', not '%s'\n", peer, t[k].reason, reason);
        }
    }
    EXPECT_EQ(data, POOL);
}

/* Two communicators with these parameters, which have reduced. */
static void start(struct cluster *c, pcclCommCreateParamsEx_t first, pcclCommCreateParamsEx_t second)
{
    first.p2p_connection_pool_size = second.p2p_connection_pool_size = POOL;
    cluster_master(c);
    cluster_create_ex(c, 0, first);
    cluster_create_ex(c, 1, second);
    cluster_connect(c);
    cluster_run(c, reduce, NULL);
}

static void stop(struct cluster *c)
{
    cluster_stop(c);
    EXPECT_EQ(pcclSetLogCallback(NULL, pcclLogNone, NULL), pcclSuccess);
}

TEST(who_may_not_share_memory_is_told_at_both_ends) /* whichever of them dials */
{
    forget_environment();
    for (int off = 0; off < 2; off++) {
        struct cluster c;
        pcclCommCreateParamsEx_t both[2] = {0};
        both[off].shm_disable = 1;
        log_start("data goes over TCP: shared memory is off ");
        start(&c, both[0], both[1]);
        expect_reason(&c, off, pcclTransportTcp, "", OFF_HERE "; no fabric");
        expect_reason(&c, 1 - off, pcclTransportTcp, "", OFF_THERE "; no fabric");
        EXPECT_EQ(atomic_load(&log_lines), 2); /* one of each end, however many operations and connections */
        EXPECT_EQ(atomic_load(&log_parts), 2);
        stop(&c);
    }
}

TEST(who_shares_memory_is_told_why)
{
    struct cluster c;
    forget_environment();
    log_start("data goes through shared memory: one user on one host");
    start(&c, (pcclCommCreateParamsEx_t){0}, (pcclCommCreateParamsEx_t){.shm_disable = -1});
    expect_reason(&c, 0, pcclTransportSharedMemory, "", "one user on one host");
    expect_reason(&c, 1, pcclTransportSharedMemory, "", "one user on one host");
    EXPECT_EQ(atomic_load(&log_lines), 2);
    EXPECT_EQ(atomic_load(&log_parts), 2);
    stop(&c);
}

TEST(a_communicator_shares_memory_whatever_the_environment_says)
{
    struct cluster c;
    forget_environment();
    setenv("PCCL_SHM_DISABLE", "1", 1);
    start(&c, (pcclCommCreateParamsEx_t){.shm_disable = -1}, (pcclCommCreateParamsEx_t){.shm_disable = -1});
    expect_reason(&c, 0, pcclTransportSharedMemory, "", "one user on one host");
    expect_reason(&c, 1, pcclTransportSharedMemory, "", "one user on one host");
    cluster_stop(&c);
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(what_the_first_communicator_was_started_without_is_told) /* the process would have to start anew */
{
    struct cluster c;
    forget_environment();
    setenv("PCCL_SHM_DISABLE", "1", 1);
    cluster_master(&c);
    cluster_create_ex(&c, 0, (pcclCommCreateParamsEx_t){.net = "Socket"});
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclSuccess);
    cluster_create_ex(&c, 1, (pcclCommCreateParamsEx_t){.shm_disable = -1});
    EXPECT_EQ(pcclConnect(c.peer[1].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "shm_disable -1: this process shares no memory") != NULL);
    cluster_create_ex(&c, 2, (pcclCommCreateParamsEx_t){.net = "OFI"});
    EXPECT_EQ(pcclConnect(c.peer[2].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "net OFI: this process runs without libfabric") != NULL);
    cluster_stop(&c);
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(words_that_are_none_are_refused_at_creation)
{
    pcclCommCreateParamsEx_t params = {.size = sizeof params, .shm_disable = 2};
    pcclComm_t *comm = NULL;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclParseAddress("127.0.0.1:1", 1, &params.master_address), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "shm_disable 2: expected 1, 0 or -1") != NULL);
    params.shm_disable = -2;
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    params.shm_disable = 0;
    params.net = "IB";
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "net 'IB': expected Socket or OFI") != NULL);
}

/* Whether a communicator of this process has libfabric. */
static bool fabric_here(void)
{
    struct cluster c;
    cluster_master(&c);
    cluster_create_ex(&c, 0, (pcclCommCreateParamsEx_t){.net = "OFI"});
    bool here = pcclConnect(c.peer[0].comm) == pcclSuccess;
    if (!here) {
        printf("# %s\n", pcclGetLastError());
        test_skipped = "no libfabric here";
    }
    cluster_stop(&c);
    return here;
}

TEST(the_fabric_is_named_with_its_provider_and_whoever_does_without_it)
{
    const pcclCommCreateParamsEx_t with = {.shm_disable = 1, .net = "OFI"}, without = {.shm_disable = 1, .net = "Socket"};
    struct cluster c;
    forget_environment();
    setenv("FI_PROVIDER", "tcp", 1);
    setenv("FI_TCP_IFACE", "lo", 1);
    if (!fabric_here()) {
        return;
    }
    log_start("data goes through libfabric, provider tcp");
    start(&c, with, with);
    expect_reason(&c, 0, pcclTransportFabric, "tcp", OFF_HERE "; both ends have this provider");
    expect_reason(&c, 1, pcclTransportFabric, "tcp", OFF_HERE "; both ends have this provider");
    EXPECT_EQ(atomic_load(&log_lines), 2);
    EXPECT_EQ(atomic_load(&log_parts), 2);
    stop(&c);
    setenv("PCCL_NET", "OFI", 1); /* one that says nothing may come, so that the process has it in either order */
    for (int off = 0; off < 2; off++) {
        log_start("; the fabric is off ");
        start(&c, off == 0 ? without : with, off == 0 ? with : without);
        expect_reason(&c, off, pcclTransportTcp, "", OFF_HERE "; the fabric is off here (PCCL_NET, net)");
        expect_reason(&c, 1 - off, pcclTransportTcp, "", OFF_HERE "; the fabric is off there (PCCL_NET, net)");
        EXPECT_EQ(atomic_load(&log_lines), 2);
        EXPECT_EQ(atomic_load(&log_parts), 2);
        stop(&c);
    }
    unsetenv("PCCL_NET");
}
