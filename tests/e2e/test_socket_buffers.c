/* test_socket_buffers.c - the sizes of socket buffers and the congestion control, by the environment and by a communicator, as the sockets of this process tell.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/testing.h"

#include "tests/e2e/cluster.h"
#include "tests/spawn.h"

enum { COUNT = 2, POOL = 2, DATA = COUNT * POOL, ELEMENTS = 1000 };

static void reduce(struct cluster_peer *p, void *context)
{
    float in[ELEMENTS], out[ELEMENTS];
    pcclReduceDescriptor_t how = {.count = ELEMENTS, .op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};
    (void)context;
    for (int i = 0; i < ELEMENTS; i++) {
        in[i] = (float)i;
    }
    EXPECT_EQ(pcclAllReduce(in, out, &how, p->comm, NULL), pcclSuccess);
    EXPECT(out[ELEMENTS - 1] == COUNT * (float)(ELEMENTS - 1));
}

/* Connected TCP sockets of this process with such a buffer.  The kernel doubles what is asked for. */
static int sockets_with(int option, int bytes)
{
    int count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage to;
        socklen_t size = sizeof to;
        int has = 0;
        if (getpeername(fd, (struct sockaddr *)&to, &size) == 0 && to.ss_family != AF_UNIX) {
            size = sizeof has;
            EXPECT_EQ(getsockopt(fd, SOL_SOCKET, option, &has, &size), 0);
            count += has == 2 * bytes;
        }
    }
    return count;
}

static void expect_buffers(int send, int receive)
{
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    while ((sockets_with(SO_SNDBUF, send) != DATA || sockets_with(SO_RCVBUF, receive) != DATA) && spawn_now_ms() < until) {
        sched_yield(); /* the last ones may just be on their way */
    }
    EXPECT_EQ(sockets_with(SO_SNDBUF, send), DATA);
    EXPECT_EQ(sockets_with(SO_RCVBUF, receive), DATA);
}

TEST(environment_says_how_large_they_are)
{
    struct cluster c;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    setenv("PCCL_SOCKET_SNDBUF", "70000", 1);
    setenv("PCCL_SOCKET_RCVBUF", "98304", 1);
    cluster_start(&c, COUNT, NULL, POOL);
    cluster_run(&c, reduce, NULL);
    expect_buffers(70000, 98304);
    cluster_stop(&c);
    unsetenv("PCCL_SOCKET_SNDBUF");
    unsetenv("PCCL_SOCKET_RCVBUF");
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(communicator_says_it_before_the_environment)
{
    struct cluster c;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    setenv("PCCL_SOCKET_SNDBUF", "70000", 1);
    setenv("PCCL_SOCKET_RCVBUF", "98304", 1);
    cluster_master(&c);
    for (int i = 0; i < COUNT; i++) {
        cluster_create_ex(&c, i, (pcclCommCreateParamsEx_t){.p2p_connection_pool_size = POOL, .socket_send_bytes = 32768});
    }
    cluster_connect(&c);
    cluster_run(&c, reduce, NULL);
    expect_buffers(32768, 98304);
    cluster_stop(&c);
    unsetenv("PCCL_SOCKET_SNDBUF");
    unsetenv("PCCL_SOCKET_RCVBUF");
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(kernel_tunes_them_where_it_is_left_to_it)
{
    struct cluster c;
    setenv("PCCL_SHM_DISABLE", "1", 1);
    setenv("PCCL_SOCKET_RCVBUF", "-1", 1);
    cluster_master(&c);
    for (int i = 0; i < COUNT; i++) {
        cluster_create_ex(&c, i, (pcclCommCreateParamsEx_t){.p2p_connection_pool_size = POOL, .socket_send_bytes = 50000});
    }
    cluster_connect(&c);
    cluster_run(&c, reduce, NULL);
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    while (sockets_with(SO_SNDBUF, 50000) != DATA && spawn_now_ms() < until) {
        sched_yield();
    }
    EXPECT_EQ(sockets_with(SO_SNDBUF, 50000), DATA);
    EXPECT_EQ(sockets_with(SO_RCVBUF, 4 << 20), 0);
    cluster_stop(&c);
    unsetenv("PCCL_SOCKET_RCVBUF");
    unsetenv("PCCL_SHM_DISABLE");
}

TEST(sizes_that_are_none_are_told_with_what_may_be_said)
{
    static const char *const wrong[] = {"4095", "1073741825", "0", "-2", "1M", "99999999999999999999"};
    struct cluster c;
    pcclComm_t *comm = NULL;
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv(i % 2 == 0 ? "PCCL_SOCKET_SNDBUF" : "PCCL_SOCKET_RCVBUF", wrong[i], 1);
        EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
        EXPECT(strstr(pcclGetLastError(), i % 2 == 0 ? "PCCL_SOCKET_SNDBUF '" : "PCCL_SOCKET_RCVBUF '") != NULL);
        EXPECT(strstr(pcclGetLastError(), "expected 4096 to 1073741824 bytes, or -1") != NULL);
        unsetenv("PCCL_SOCKET_SNDBUF");
        unsetenv("PCCL_SOCKET_RCVBUF");
    }
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclSuccess);
    pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = c.address, .socket_send_bytes = 1};
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "socket_send_bytes 1: expected 4096 to 1073741824 bytes") != NULL);
    params = (pcclCommCreateParamsEx_t){.size = sizeof params, .master_address = c.address, .socket_receive_bytes = -2};
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "socket_receive_bytes -2: expected") != NULL);
    cluster_stop(&c);
}

static char heard[512];

static void hear(pcclLogLevel_t level, const char *message, void *user)
{
    (void)user;
    if (level == pcclLogWarn && strstr(message, "PCCL_TCP_CONGESTION") != NULL) {
        snprintf(heard, sizeof heard, "%s", message);
    }
}

TEST(congestion_control_that_cannot_be_had_is_told_with_the_reason_and_costs_no_connection)
{
    struct cluster c;
    EXPECT_EQ(pcclSetLogCallback(hear, pcclLogWarn, NULL), pcclSuccess);
    setenv("PCCL_TCP_CONGESTION", "no-such-one", 1);
    cluster_start(&c, COUNT, NULL, POOL);
    cluster_run(&c, reduce, NULL);
    cluster_stop(&c);
    EXPECT_STR(heard, "PCCL_TCP_CONGESTION 'no-such-one' cannot be used, so data to other hosts goes by the system's default congestion control: "
                      "this kernel has none of that name: load its module (as root: modprobe tcp_NAME)");
    EXPECT_EQ(pcclSetLogCallback(NULL, pcclLogNone, NULL), pcclSuccess);
    setenv("PCCL_TCP_CONGESTION", "longer-than-the-kernel-takes", 1);
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "PCCL_TCP_CONGESTION 'longer-than-the-kernel-takes': expected the name of a TCP congestion control") != NULL);
    unsetenv("PCCL_TCP_CONGESTION");
    cluster_stop(&c);
}
