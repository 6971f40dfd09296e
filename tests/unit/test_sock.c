/* test_sock.c - TCP sockets: what dials keeps nobody from listening at its port, and what waits in a socket is bounded.
 * SPDX-License-Identifier: MIT */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/testing.h"

#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"

/* A connection over loopback from 127.0.0.1, to who listens at 127.0.0.`host`. */
struct pair {
    int listener, dialled, accepted;
};

static void pair_open(struct pair *p, uint8_t host)
{
    struct net_address at = {.family = 4, .ip = {127, 0, 0, host}}, from;
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
    pair_open(&p, 1);
    EXPECT_EQ(sock_local(p.dialled, &local), PCCL_OK);
    expect_listens(local.port);
    fds_close(p.dialled); /* the first to close: the system remembers its port for a minute */
    EXPECT_EQ(poll(&(struct pollfd){.fd = p.accepted, .events = POLLIN}, 1, 10000), 1);
    fds_close(p.accepted);
    expect_listens(local.port);
    fds_close(p.listener);
}

static int unsent_most(int fd)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;
    EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, &size), 0);
    return bytes;
}

TEST(beyond_a_host_little_waits_in_a_socket_to_be_sent) /* a grant stood behind 36 s of data */
{
    struct pair near, far;
    pair_open(&near, 1);
    pair_open(&far, 2);
    const int before = unsent_most(near.dialled);
    sock_tune_bulk(near.dialled, (struct sock_buffers){SOCK_BUFFER, SOCK_BUFFER});
    sock_tune_bulk(far.dialled, (struct sock_buffers){SOCK_BUFFER_AUTO, SOCK_BUFFER_AUTO});
    EXPECT_EQ(unsent_most(near.dialled), before);
    EXPECT_EQ(unsent_most(far.dialled), SOCK_UNSENT);
    for (int i = 0; i < 2; i++) {
        const struct pair *p = i == 0 ? &near : &far;
        fds_close(p->dialled);
        fds_close(p->accepted);
        fds_close(p->listener);
    }
}
