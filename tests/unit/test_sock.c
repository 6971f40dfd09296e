/* test_sock.c - TCP sockets: what dials keeps nobody from listening at its port, and what waits in a socket is bounded.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/testing.h"

#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"
#include "net/tcp_estimate.h"

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

static void pair_close(struct pair *p)
{
    fds_close(p->dialled);
    fds_close(p->accepted);
    fds_close(p->listener);
}

/* A server that took it for a lack of descriptors turned away the one that had just come. */
TEST(without_descriptors_a_listener_that_nobody_waits_at_has_nothing)
{
    struct rlimit files, few;
    struct pair p;
    struct net_address from;
    struct err err = {.text = ""};
    int fd = -1, next = dup(STDERR_FILENO); /* the lowest that is free */
    pair_open(&p, 1);
    struct net_address at;
    EXPECT_EQ(sock_local(p.listener, &at), PCCL_OK);
    close(next);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    few = files;
    few.rlim_cur = (rlim_t)next;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_EQ(sock_accept(p.listener, &fd, &from, NULL), PCCL_ERR_AGAIN);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    int waits = -1;
    EXPECT_EQ(sock_dial(&at, &waits, NULL), PCCL_OK);
    EXPECT_EQ(poll(&(struct pollfd){.fd = p.listener, .events = POLLIN}, 1, 10000), 1);
    int taken = dup(STDERR_FILENO);
    few.rlim_cur = (rlim_t)next;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_EQ(sock_accept(p.listener, &fd, &from, &err), PCCL_ERR_SYSTEM); /* one waits, and stays */
    EXPECT(strstr(err.text, strerror(EMFILE)) != NULL);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT_EQ(sock_accept(p.listener, &fd, &from, NULL), PCCL_OK);
    close(taken);
    fds_close(fd);
    fds_close(waits);
    pair_close(&p);
}

static bool listens(uint16_t port)
{
    int fd = -1;
    bool ok = sock_listen_any(port, &fd, NULL) == PCCL_OK;
    fds_close(fd);
    return ok;
}

static bool port_of_a_dial_is_free(void)
{
    struct pair p;
    struct net_address local;
    pair_open(&p, 1);
    EXPECT_EQ(sock_local(p.dialled, &local), PCCL_OK);
    bool at_once = listens(local.port);
    fds_close(p.dialled); /* the first to close: the system remembers its port for a minute */
    EXPECT_EQ(poll(&(struct pollfd){.fd = p.accepted, .events = POLLIN}, 1, 10000), 1);
    fds_close(p.accepted);
    bool after = listens(local.port);
    fds_close(p.listener);
    return at_once && after;
}

/* Ports of which there are fixed ones, 48148 and 48150, lie among those that the system gives to whoever dials. */
TEST(port_of_who_has_dialled_is_free_for_who_listens_at_once_and_after)
{
    bool found = false;
    for (int i = 0; i < 32 && !found; i++) { /* another program may have had the same port within the last minute */
        found = port_of_a_dial_is_free();
    }
    EXPECT(found);
}

static int unsent_most(int fd)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;
    EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, &size), 0);
    return bytes;
}

TEST(a_packet_alone_is_tried_again_at_equal_intervals) /* heartbeats in a full queue were not heard for 12 s: each try came twice as late */
{
    struct pair p;
    int thin = 0;
    socklen_t size = sizeof thin;
    pair_open(&p, 2);
    sock_tune(p.dialled, 1000000000);
    EXPECT_EQ(getsockopt(p.dialled, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &thin, &size), 0);
    EXPECT_EQ(thin, 1);
    pair_close(&p);
}

TEST(beyond_a_host_little_waits_in_a_socket_to_be_sent) /* a grant stood behind 36 s of data */
{
    struct pair near, far;
    pair_open(&near, 1);
    pair_open(&far, 2);
    const int before = unsent_most(near.dialled);
    sock_tune_bulk(near.dialled, &(struct sock_bulk){.buffers = {SOCK_BUFFER, SOCK_BUFFER}});
    sock_tune_bulk(far.dialled, &(struct sock_bulk){.buffers = {SOCK_BUFFER_AUTO, SOCK_BUFFER_AUTO}});
    EXPECT_EQ(unsent_most(near.dialled), before);
    EXPECT_EQ(unsent_most(far.dialled), SOCK_UNSENT);
    pair_close(&near);
    pair_close(&far);
}

/* Bytes that come while nobody reads, up to `enough`. */
static int comes_unread(const struct pair *p, int enough)
{
    static unsigned char bytes[65536];
    int queued = 0;
    while (queued < enough) {
        size_t moved;
        pccl_status st = sock_moved(send(p->dialled, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL), &moved);
        EXPECT(st == PCCL_OK || st == PCCL_ERR_AGAIN);
        EXPECT_EQ(ioctl(p->accepted, FIONREAD, &queued), 0);
        if (st == PCCL_ERR_AGAIN && poll(&(struct pollfd){.fd = p->dialled, .events = POLLOUT}, 1, 2000) == 0) {
            break; /* its buffer is full, and the other end takes no more */
        }
    }
    return queued;
}

TEST(window_is_open_before_anything_is_read) /* sockets whose records waited for others stayed at 64 KiB a round trip: a first call took twice as long */
{
    const int wanted = 1 << 20;
    struct pair open;
    int least = -1;
    socklen_t size = sizeof least;
    pair_open(&open, 2);
    sock_open_window(open.accepted, wanted);
    EXPECT_EQ(getsockopt(open.accepted, SOL_SOCKET, SO_RCVLOWAT, &least, &size), 0);
    EXPECT_EQ(least, 1); /* each byte is told */
    EXPECT(comes_unread(&open, wanted / 4 * 3) >= wanted / 4 * 3);
    pair_close(&open);
}

static int buffer_of(int fd, int option)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;
    EXPECT_EQ(getsockopt(fd, SOL_SOCKET, option, &bytes, &size), 0);
    return bytes;
}

/* A size that is set ends the kernel's tuning: 4 MiB ended at 400 Mb/s where the kernel alone went to 900. */
TEST(beyond_a_host_a_buffer_is_set_only_where_it_becomes_larger_than_the_kernel_makes_it)
{
    const int asked = 65536;
    struct pair p[4];
    for (int i = 0; i < 4; i++) {
        pair_open(&p[i], i == 3 ? 1 : 2);
    }
    const int before = buffer_of(p[0].dialled, SO_SNDBUF), inbound = buffer_of(p[0].dialled, SO_RCVBUF);
    struct sock_bulk bulk = {.buffers = {asked, asked}, .tuned = {2 * asked, 2 * asked}, .most = {asked, asked}};
    sock_tune_bulk(p[0].dialled, &bulk); /* the kernel goes as far by itself */
    EXPECT_EQ(buffer_of(p[0].dialled, SO_SNDBUF), before);
    EXPECT_EQ(buffer_of(p[0].dialled, SO_RCVBUF), inbound);
    bulk.tuned = (struct sock_buffers){asked, asked}; /* it does not */
    sock_tune_bulk(p[1].dialled, &bulk);
    EXPECT_EQ(buffer_of(p[1].dialled, SO_SNDBUF), 2 * asked);
    EXPECT_EQ(buffer_of(p[1].dialled, SO_RCVBUF), 2 * asked);
    bulk.most = (struct sock_buffers){asked / 2, asked / 2}; /* it would give less than it takes by itself */
    sock_tune_bulk(p[2].dialled, &bulk);
    EXPECT_EQ(buffer_of(p[2].dialled, SO_SNDBUF), before);
    bulk.tuned = bulk.most = (struct sock_buffers){1 << 30, 1 << 30}; /* within a host nothing has to be tuned */
    sock_tune_bulk(p[3].dialled, &bulk);
    EXPECT_EQ(buffer_of(p[3].dialled, SO_SNDBUF), 2 * asked);
    for (int i = 0; i < 4; i++) {
        pair_close(&p[i]);
    }
}

/* With one lost packet in a thousand the congestion control is worth a factor of a hundred; on loopback BBR halves the rate, and within a site
 * it loses a tenth. */
TEST(congestion_control_is_as_named_beyond_a_host_and_left_within_it)
{
    char name[SOCK_CONGESTION_NAME], within[SOCK_CONGESTION_NAME], given[SOCK_CONGESTION_NAME];
    struct pair here, near, named;
    pair_open(&here, 1);
    pair_open(&near, 2);
    pair_open(&named, 2);
    struct sock_bulk bulk = {.buffers = {SOCK_BUFFER_AUTO, SOCK_BUFFER_AUTO}, .congestion = "reno"}; /* every kernel has it */
    EXPECT_EQ(sock_congestion_refused("reno"), 0);
    EXPECT(!sock_is_near(here.dialled) && sock_is_near(near.dialled));
    sock_congestion(here.dialled, within);
    sock_congestion(near.dialled, given);
    sock_tune_bulk(here.dialled, &bulk);
    sock_tune_bulk(near.dialled, &bulk);
    bulk.near_too = true;
    sock_tune_bulk(named.dialled, &bulk);
    sock_congestion(here.dialled, name);
    EXPECT_STR(name, within);
    sock_congestion(near.dialled, name);
    EXPECT(strncmp(given, "bbr", 3) == 0 ? strncmp(name, "bbr", 3) != 0 : strcmp(name, given) == 0);
    sock_congestion(named.dialled, name);
    EXPECT_STR(name, "reno");
    EXPECT_EQ(sock_congestion_refused("no-such-one"), ENOENT);
    pair_close(&here);
    pair_close(&near);
    pair_close(&named);
}

TEST(congestion_control_begins_anew) /* BBR would find a path out again by a quarter each round trip */
{
    char name[SOCK_CONGESTION_NAME];
    struct pair p;
    if (sock_congestion_refused("bbr") != 0) {
        TEST_SKIP("BBR is not there");
    }
    pair_open(&p, 2);
    EXPECT_EQ(setsockopt(p.dialled, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3), 0);
    for (int i = 0; i < 100; i++) {
        unsigned char byte = 1;
        EXPECT_EQ(send(p.dialled, &byte, 1, 0), 1);
        EXPECT_EQ(poll(&(struct pollfd){.fd = p.accepted, .events = POLLIN}, 1, 10000), 1);
        EXPECT_EQ(recv(p.accepted, &byte, 1, 0), 1);
        EXPECT_EQ(send(p.accepted, &byte, 1, 0), 1); /* with the acknowledgement */
        EXPECT_EQ(poll(&(struct pollfd){.fd = p.dialled, .events = POLLIN}, 1, 10000), 1);
        EXPECT_EQ(recv(p.dialled, &byte, 1, 0), 1);
    }
    EXPECT(tcp_estimate_bps(p.dialled) > 0);
    EXPECT(sock_restart_congestion(p.dialled));
    EXPECT_EQ(tcp_estimate_bps(p.dialled), 0);
    sock_congestion(p.dialled, name);
    EXPECT_STR(name, "bbr");
    pair_close(&p);
}

TEST(limits_of_the_kernel_are_read) /* unknown ones would have every size set */
{
    struct sock_bulk bulk = {.tuned = {0, 0}};
    sock_read_limits(&bulk);
    EXPECT(bulk.tuned.send > 0 && bulk.tuned.receive > 0);
    EXPECT(bulk.most.send >= 0 && bulk.most.receive >= 0); /* in a network name space of its own there are none */
}
