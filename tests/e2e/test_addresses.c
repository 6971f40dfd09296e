/* test_addresses.c - which addresses a peer tells the others: what the environment says, and its communicator.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

static void reduce_ones(struct cluster_peer *p, uint64_t tag, uint32_t want)
{
    float ones[5000], sum[5000];
    for (int i = 0; i < 5000; i++) {
        ones[i] = 1;
    }
    pcclReduceDescriptor_t d = cluster_floats(5000, tag);
    pcclReduceInfo_t info = {0};
    EXPECT_EQ(pcclAllReduce(ones, sum, &d, p->comm, &info), pcclSuccess);
    EXPECT_EQ(info.local_world_size, want);
    EXPECT(sum[0] == (float)want && sum[4999] == (float)want);
}

static void name_loopback_two(struct cluster_peer *p, void *context)
{
    (void)context;
    pcclPeerInfo_t members[2];
    size_t count = 0;
    EXPECT_EQ(pcclGetMembers(p->comm, members, 2, &count), pcclSuccess);
    EXPECT_EQ(count, 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(members[i].rank, i);
        EXPECT_EQ(members[i].address.inet.ipv4.data[3], 2);
    }
    reduce_ones(p, 5, 2);
}

TEST(the_environment_names_the_address_that_others_dial_and_a_wrong_one_is_named)
{
    struct cluster c;
    setenv("PCCL_ADVERTISE", "127.0.0.2", 1);
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, name_loopback_two, NULL);
    cluster_stop(&c);
    setenv("PCCL_ADVERTISE", "here:there", 1);
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "PCCL_ADVERTISE") != NULL);
    setenv("PCCL_ADVERTISE", "", 1);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclSuccess);
    cluster_stop(&c);
    unsetenv("PCCL_ADVERTISE");
}

static void expect_first_address(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t members[2];
    size_t count = 0;
    EXPECT_EQ(pcclGetMembers(p->comm, members, 2, &count), pcclSuccess);
    EXPECT_EQ(count, 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(members[i].address.inet.ipv4.data[0], 127);
        EXPECT_EQ(members[i].address.inet.ipv4.data[3], 1);
    }
    reduce_ones(p, 5, 2);
    (void)context;
}

TEST(interfaces_are_chosen_by_the_environment_or_the_communicator_and_a_name_that_none_has_is_told)
{
    struct cluster c;
    setenv("PCCL_SOCKET_IFNAME", "=lo", 1);
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, expect_first_address, NULL);
    cluster_stop(&c);
    setenv("PCCL_SOCKET_IFNAME", "nobody,=x", 1);
    cluster_master(&c);
    cluster_create(&c, 0, 0, 1, 0);
    EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "PCCL_SOCKET_IFNAME 'nobody,=x': no interface") != NULL);
    EXPECT(strstr(pcclGetLastError(), "lo") != NULL);
    cluster_create_ex(&c, 1, (pcclCommCreateParamsEx_t){.socket_ifname = "lo"}); /* before what the environment says */
    EXPECT_EQ(pcclConnect(c.peer[1].comm), pcclSuccess);
    cluster_create_ex(&c, 2, (pcclCommCreateParamsEx_t){.socket_ifname = "=nobody"});
    EXPECT_EQ(pcclConnect(c.peer[2].comm), pcclMasterConnectionFailed);
    EXPECT(strstr(pcclGetLastError(), "socket_ifname '=nobody': no interface") != NULL);
    cluster_stop(&c);
    unsetenv("PCCL_SOCKET_IFNAME");
    char longest[200];
    pcclComm_t *comm = NULL;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = c.address, .socket_ifname = longest};
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclCreateCommunicatorEx(&params, &comm), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "socket_ifname is 199 bytes long, at most 127") != NULL);
}
