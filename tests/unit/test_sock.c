/* test_sock.c - ports of TCP sockets: what dials keeps nobody from listening.
 * SPDX-License-Identifier: MIT */
#include <poll.h>
#include <unistd.h>

#include "tests/testing.h"

#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"

/* A connection over loopback, to who listens there. */
struct pair {
    int listener, dialled, accepted;
};

static void pair_open(struct pair *p)
{
    struct net_address at = {.family = 4, .ip = {127, 0, 0, 1}}, from;
    *p = (struct pair){-1, -1, -1};
    EXPECT_EQ(sock_listen(&at, &p->listener, NULL), PCCL_OK);
    EXPECT_EQ(sock_local(p->listener, &at), PCCL_OK);
    EXPECT_EQ(sock_dial(&at, &p->dialled, NULL), PCCL_OK);
    EXPECT_EQ(poll(&(struct pollfd){.fd = p->listener, .events = POLLIN}, 1, 10000), 1);
    EXPECT_EQ(sock_accept(p->listener, &p->accepted, &from, NULL), PCCL_OK);
}

static void expect_listens(uint16_t port)
{
    int fd = -1;
    struct err err = {.text = ""};
    EXPECT_EQ(sock_listen_any(port, &fd, &err), PCCL_OK);
    EXPECT_STR(err.text, "");
    fds_close(fd);
}

/* Ports of which there are fixed ones, 48148 and 48150, lie among those that the system gives to whoever dials. */
TEST(port_of_who_has_dialled_is_free_for_who_listens_at_once_and_after)
{
    struct pair p;
    struct net_address local;
    pair_open(&p);
    EXPECT_EQ(sock_local(p.dialled, &local), PCCL_OK);
    expect_listens(local.port);
    fds_close(p.dialled); /* the first to close: the system remembers its port for a minute */
    EXPECT_EQ(poll(&(struct pollfd){.fd = p.accepted, .events = POLLIN}, 1, 10000), 1);
    fds_close(p.accepted);
    expect_listens(local.port);
    fds_close(p.listener);
}
