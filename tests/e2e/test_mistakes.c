/* test_mistakes.c - what programs get wrong at first: the answer names the argument and its value, and nothing breaks.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/cluster.h"

static bool says(const char *part)
{
    return strstr(pcclGetLastError(), part) != NULL;
}

TEST(a_port_alone_is_no_host) /* the resolver reads 5000 as the address 0.0.19.136, which nobody has */
{
    ccoip_socket_address_t a = {.port = 7};
    EXPECT_EQ(pcclParseAddress("5000", 1, &a), pcclInvalidArgument);
    EXPECT(says("'5000'") && says("host:port"));
    EXPECT_EQ(pcclParseAddress("5000:1", 1, &a), pcclInvalidArgument);
    EXPECT_EQ(a.port, 7);
    EXPECT_EQ(pcclParseAddress("127.0.0.1", 9, &a), pcclSuccess);
    EXPECT_EQ(a.port, 9);
}

TEST(null_pointers_are_named) /* "null pointer" of four arguments */
{
    ccoip_socket_address_t a;
    pcclAsyncReduceOp_t handle = {NULL, 1};
    size_t index = 0;
    EXPECT_EQ(pcclParseAddress(NULL, 1, &a), pcclInvalidArgument);
    EXPECT(says("text is null"));
    EXPECT_EQ(pcclParseAddress("127.0.0.1", 1, NULL), pcclInvalidArgument);
    EXPECT(says("address_out is null"));
    EXPECT_EQ(pcclGetMasterAddress(NULL, &a), pcclInvalidArgument);
    EXPECT(says("master_instance is null"));
    EXPECT_EQ(pcclTestAsyncReduce(&handle, NULL), pcclInvalidArgument);
    EXPECT(says("done_out is null"));
    EXPECT_EQ(pcclWaitAnyAsyncReduce(&handle, 0, 0, &index), pcclInvalidArgument);
    EXPECT(says("count is 0"));
}

TEST(a_master_address_that_was_never_filled_in_says_how) /* the result of pcclParseAddress was not looked at */
{
    pcclCommCreateParams_t params = {.peer_group = 0};
    pcclComm_t *comm = NULL;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclInvalidArgument);
    EXPECT(says("port 0") && says("pcclParseAddress"));
    params.master_address.inet.protocol = (ccoip_inet_protocol_t)7;
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclInvalidArgument);
    EXPECT(says("protocol 7"));
    EXPECT(comm == NULL);
}

TEST(an_option_out_of_range_is_told_the_range)
{
    pcclCommCreateParams_t params = {.master_address = {.port = 1}};
    pcclComm_t *comm = NULL;
    uint64_t value = 0;
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_STALL_TIMEOUT_MS, 49), pcclInvalidArgument);
    EXPECT(says("option 2") && says("49 ms") && says("50 to 4294967295"));
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 0), pcclInvalidArgument);
    EXPECT(says("0 ms") && says("1 to 4294967295"));
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_VOTE_DEADLINE_MS, UINT64_MAX), pcclInvalidArgument);
    EXPECT_EQ(pcclGetOption(comm, PCCL_OPTION_VOTE_DEADLINE_MS, NULL), pcclInvalidArgument);
    EXPECT(says("value_out is null"));
    EXPECT_EQ(pcclGetOption(comm, PCCL_OPTION_STALL_TIMEOUT_MS, &value), pcclSuccess);
    EXPECT_EQ(value, 10000);
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
}

static void odd_operations(struct cluster_peer *p, void *context)
{
    (void)context;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    unsigned char raw[64] = {0};
    pcclReduceInfo_t info = {0};
    pcclReduceDescriptor_t d = cluster_floats(0, 1);
    EXPECT_EQ(pcclAllReduce(NULL, NULL, &d, p->comm, &info), pcclSuccess);
    EXPECT_EQ(info.local_world_size, 2);
    /* beyond any address space: a plan could not number its frames, and would be empty */
    const size_t counts[] = {(size_t)1 << 46, (size_t)1 << 50, SIZE_MAX / 4, SIZE_MAX / 2, SIZE_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        d = cluster_floats(counts[i], 2);
        EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, NULL), pcclInvalidArgument);
        EXPECT(says("count"));
    }
    d = cluster_floats(4, 2);
    d.src_descriptor.distribution_hint = (pcclDistributionHint_t)9;
    EXPECT_EQ(pcclAllReduce(x, y, &d, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("distribution hint 9"));
    d = cluster_floats(4, 3);
    memcpy(raw + 1, x, sizeof x);
    EXPECT_EQ(pcclAllReduce(raw + 1, raw + 33, &d, p->comm, NULL), pcclSuccess);
    memcpy(y, raw + 33, sizeof y);
    for (int i = 0; i < 4; i++) {
        EXPECT(y[i] == 2 * x[i]);
    }
    pcclAsyncReduceOp_t handle;
    d = cluster_floats(4, 4);
    EXPECT_EQ(pcclAllReduceAsync(x, y, &d, p->comm, &handle), pcclSuccess);
    EXPECT_EQ(pcclAllReduce(x, raw, &d, p->comm, NULL), pcclInvalidArgument);
    EXPECT(says("tag 4: the tag is in flight: await it first, or use another tag"));
    EXPECT_EQ(pcclAwaitAsyncReduce(&handle, NULL), pcclSuccess);
    EXPECT_EQ(pcclConnect(p->comm), pcclInvalidUsage);
    EXPECT(!says("connect first"));
}

TEST(counts_and_buffers_at_the_edges)
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, odd_operations, NULL);
    cluster_stop(&c);
}

TEST(destroyed_communicators_are_known_as_such) /* a second destroy frees what is freed */
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    pcclComm_t *gone = c.peer[1].comm;
    EXPECT_EQ(pcclDestroyCommunicator(gone), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(gone), pcclInvalidUsage);
    EXPECT_EQ(pcclConnect(gone), pcclInvalidUsage);
    EXPECT(says("destroyed"));
    int size = 0;
    EXPECT_EQ(pcclGetAttribute(gone, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size), pcclInvalidUsage);
    c.peer[1].comm = NULL;
    cluster_stop(&c);
}

/* Something listens there that is no master: it takes the connection and says nothing. */
TEST(an_address_where_no_master_answers_is_named)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    EXPECT(bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 8) == 0);
    EXPECT(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    pcclCommCreateParams_t params = {.master_address = {.inet = {.protocol = inetIPv4, .ipv4 = {{127, 0, 0, 1}}},
                                                        .port = ntohs(at.sin_port)}};
    pcclComm_t *comm = NULL;
    char name[32];
    snprintf(name, sizeof name, "127.0.0.1:%u", ntohs(at.sin_port));
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicator(&params, &comm), pcclSuccess);
    EXPECT_EQ(pcclSetOption(comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 200), pcclSuccess);
    EXPECT_EQ(pcclConnect(comm), pcclMasterConnectionFailed);
    EXPECT(says(name));
    EXPECT_EQ(pcclDestroyCommunicator(comm), pcclSuccess);
    close(fd);
}
