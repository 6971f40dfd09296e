/* transport_tcp.c - bytes over a TCP socket.
 * SPDX-License-Identifier: MIT */
#include <sys/socket.h>

#include "net/fds.h"
#include "net/sock.h"
#include "net/transport.h"

static pccl_status tcp_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    return sock_moved(sendmsg(t->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT), moved);
}

static pccl_status tcp_receive(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    return sock_moved(recvmsg(t->fd, &m, MSG_DONTWAIT), moved);
}

static void tcp_finish(struct transport *t)
{
    shutdown(t->fd, SHUT_WR);
}

static void tcp_shutdown(struct transport *t)
{
    shutdown(t->fd, SHUT_RDWR);
}

static void tcp_close(struct transport *t)
{
    fds_close(t->fd);
    t->fd = -1;
}

static void tcp_begin(struct transport *t)
{
    sock_tune_bulk(t->fd, &t->bulk);
}

static int64_t tcp_rtt_ns(const struct transport *t)
{
    return 2 * sock_away_ns(t->fd);
}

static const struct transport_ops tcp_ops = {
    .send = tcp_send, .receive = tcp_receive, .finish = tcp_finish, .shutdown = tcp_shutdown, .close = tcp_close, .begin = tcp_begin,
    .rtt_ns = tcp_rtt_ns,
};

void transport_tcp_take(struct transport *t, int fd, const struct sock_bulk *bulk)
{
    *t = (struct transport){.ops = &tcp_ops, .fd = fd, .bulk = *bulk};
}
