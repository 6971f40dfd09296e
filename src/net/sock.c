/* sock.c - stream sockets.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* accept4 */
#include "net/sock.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mutant.h"
#include "net/addr.h"
#include "net/fds.h"
#include "net/tcp_info.h"

enum { SOCK_BACKLOG = 65535 }; /* as much as the system allows: who is dropped calls again after a second */

static void sock_option(int fd, int level, int name, int value)
{
    int rc = setsockopt(fd, level, name, &value, sizeof value);
    (void)rc; /* options are advice: a system without one is slower, not wrong */
}

static pccl_status sock_open(const struct net_address *a, int *fd_out, struct err *err)
{
    int fd = fds_own(socket(a->family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        bool want = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
        pccl_status st = err_errno(err, "open socket");
        return want ? PCCL_ERR_NOMEM : st;
    }
    *fd_out = fd;
    return PCCL_OK;
}

/* What to do where one cannot listen. */
static const char *listen_remedy(const struct net_address *at)
{
    switch (errno) {
    case EADDRINUSE:
        return ": another process listens there: end it, or take another port";
    case EADDRNOTAVAIL:
        return ": no interface of this host has that address: take one that has, or none for all";
    case EACCES:
        return at->port < 1024 ? ": ports below 1024 are for root: take a higher one" : "";
    case EINVAL: /* a link-local one, whose scope addresses do not carry here */
        return at->family == 6 ? ": take an address that is not link-local" : "";
    default:
        return "";
    }
}

pccl_status sock_listen(const struct net_address *at, int *fd_out, struct err *err)
{
    int fd = -1;
    char text[ADDR_TEXT];
    struct sockaddr_storage ss;
    socklen_t size = addr_to_system(at, &ss);
    pccl_status st = sock_open(at, &fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    sock_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (at->family == 6) {
        sock_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, addr_is_any(at) ? 0 : 1);
    }
    if (bind(fd, (struct sockaddr *)&ss, size) != 0 || listen(fd, SOCK_BACKLOG) != 0) {
        const char *remedy = listen_remedy(at);
        st = err_set(err, PCCL_ERR_SYSTEM, "listen at %s: %s%s", addr_format(at, text), strerror(errno), remedy);
        fds_close(fd);
        return st;
    }
    *fd_out = fd;
    return PCCL_OK;
}

pccl_status sock_listen_any(uint16_t port, int *fd_out, struct err *err)
{
    struct net_address six = {.family = 6, .port = port}, four = {.family = 4, .port = port};
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0) {
        return sock_listen(&four, fd_out, err);
    }
    close(probe);
    return sock_listen(&six, fd_out, err);
}

/* accept4 looks for a free descriptor first: without one it says so even when no connection waits. */
static bool sock_none_waits(int listener)
{
    int cause = errno;
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    bool none = cause == EAGAIN || cause == EWOULDBLOCK ||
                ((cause == EMFILE || cause == ENFILE) && poll(&ready, 1, 0) == 0);
    errno = cause;
    return none;
}

/* `from` may be null. */
static pccl_status sock_take(int listener, struct sockaddr_storage *from, int *fd_out, struct err *err)
{
    socklen_t size = sizeof *from;
    int fd = fds_own(accept4(listener, (struct sockaddr *)from, from == NULL ? NULL : &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd < 0) {
        return sock_none_waits(listener) ? PCCL_ERR_AGAIN : err_errno(err, "accept connection");
    }
    *fd_out = fd;
    return PCCL_OK;
}

pccl_status sock_accept(int listener, int *fd_out, struct net_address *from, struct err *err)
{
    struct sockaddr_storage ss;
    pccl_status st = sock_take(listener, &ss, fd_out, err);
    if (st == PCCL_OK && !addr_from_system(from, &ss)) {
        fds_close(*fd_out);
        *fd_out = -1;
        return err_set(err, PCCL_ERR_PROTOCOL, "accept connection: unknown address family");
    }
    return st;
}

pccl_status sock_moved(ssize_t n, size_t *moved)
{
    *moved = n > 0 ? (size_t)n : 0;
    if (n > 0) {
        return PCCL_OK;
    }
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? PCCL_ERR_AGAIN : PCCL_ERR_CLOSED;
}

static socklen_t sock_host_name(const uint64_t name[2], struct sockaddr_un *out)
{
    char text[64];
    int length = snprintf(text, sizeof text, "pccl-%016" PRIx64 "%016" PRIx64, name[0], name[1]);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, text, (size_t)length); /* a leading zero: not in the file system */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static pccl_status sock_open_host(int *fd_out, struct err *err)
{
    int fd = fds_own(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return err_errno(err, "open Unix socket");
    }
    *fd_out = fd;
    return PCCL_OK;
}

pccl_status sock_listen_host(const uint64_t name[2], int *fd_out, struct err *err)
{
    struct sockaddr_un at;
    socklen_t size = sock_host_name(name, &at);
    int fd = -1;
    pccl_status st = sock_open_host(&fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    if (bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, SOCK_BACKLOG) != 0) {
        st = err_errno(err, "listen at a Unix socket");
        fds_close(fd);
        return st;
    }
    *fd_out = fd;
    return PCCL_OK;
}

pccl_status sock_accept_host(int listener, int *fd_out, struct err *err)
{
    return sock_take(listener, NULL, fd_out, err);
}

pccl_status sock_dial_host(const uint64_t name[2], int *fd_out, struct err *err)
{
    struct sockaddr_un to;
    socklen_t size = sock_host_name(name, &to);
    int fd = -1;
    pccl_status st = sock_open_host(&fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    if (connect(fd, (struct sockaddr *)&to, size) != 0) {
        st = err_errno(err, "connect to the peer's Unix socket");
        fds_close(fd);
        return st;
    }
    *fd_out = fd;
    return PCCL_OK;
}

pccl_status sock_dial(const struct net_address *to, int *fd_out, struct err *err)
{
    int fd = -1;
    char text[ADDR_TEXT];
    struct sockaddr_storage ss;
    socklen_t size = addr_to_system(to, &ss);
    pccl_status st = sock_open(to, &fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    sock_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    sock_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* the port that it gets may be the one where this host is to listen next */
    if (connect(fd, (struct sockaddr *)&ss, size) != 0 && errno != EINPROGRESS) {
        st = err_set(err, PCCL_ERR_SYSTEM, "connect to %s: %s", addr_format(to, text), strerror(errno));
        fds_close(fd);
        return st;
    }
    *fd_out = fd;
    return PCCL_OK;
}

bool sock_refused(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    return poll(&p, 1, 0) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == ECONNREFUSED;
}

pccl_status sock_connected(int fd, const struct net_address *to, struct err *err)
{
    char text[ADDR_TEXT];
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error == 0) {
        /* A port of our own range may have been picked as the source port: connected to itself. */
        struct net_address local, remote;
        if (sock_local(fd, &local) == PCCL_OK && sock_remote(fd, &remote) == PCCL_OK && addr_equal(&local, &remote)) {
            error = ECONNREFUSED;
        }
    }
    if (error != 0) {
        return err_set(err, error == ECONNREFUSED ? PCCL_ERR_CLOSED : PCCL_ERR_SYSTEM, "connect to %s: %s", addr_format(to, text),
                       strerror(error));
    }
    return PCCL_OK;
}

pccl_status sock_local(int fd, struct net_address *out)
{
    struct sockaddr_storage ss;
    socklen_t size = sizeof ss;
    return getsockname(fd, (struct sockaddr *)&ss, &size) == 0 && addr_from_system(out, &ss) ? PCCL_OK : PCCL_ERR_SYSTEM;
}

pccl_status sock_remote(int fd, struct net_address *out)
{
    struct sockaddr_storage ss;
    socklen_t size = sizeof ss;
    return getpeername(fd, (struct sockaddr *)&ss, &size) == 0 && addr_from_system(out, &ss) ? PCCL_OK : PCCL_ERR_SYSTEM;
}

bool sock_within_host(int fd)
{
    struct net_address local, remote;
    return sock_local(fd, &local) == PCCL_OK && sock_remote(fd, &remote) == PCCL_OK && address_same_host(&local, &remote);
}

static int sock_set_congestion(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0 ? 0 : errno;
}

void sock_tune(int fd, int64_t timeout_ns)
{
    sock_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    sock_option(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
    if (!MUTANT(NO_USER_TIMEOUT)) {
        sock_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(timeout_ns / CLOCK_MS));
    }
    sock_option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1); /* a heartbeat that is lost again and again is tried as often as at first */
    sock_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    sock_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
    sock_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    sock_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    if (sock_within_host(fd)) {
        int rc = sock_set_congestion(fd, "cubic");
        (void)rc;
    }
}

int64_t sock_away_ns(int fd)
{
    struct net_address local, remote;
    struct tcp_info info = {.tcpi_rtt = 0};
    socklen_t size = sizeof info;
    bool here = sock_local(fd, &local) != PCCL_OK || sock_remote(fd, &remote) != PCCL_OK || address_same_host(&local, &remote);
    return here || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ? 0 : (int64_t)info.tcpi_rtt * 500; /* half, of microseconds */
}

void sock_reset_on_close(int fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    int rc = setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    (void)rc; /* else it drains */
}

bool sock_buffer_good(int64_t bytes)
{
    return bytes == SOCK_BUFFER_AUTO || (bytes >= SOCK_BUFFER_LEAST && bytes <= SOCK_BUFFER_MOST);
}

/* The last number of a line of numbers; 0: there is none. */
static int sock_limit(const char *path)
{
    int last = 0, number;
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    while (fscanf(f, "%d", &number) == 1) {
        last = number;
    }
    fclose(f);
    return last;
}

/* What a socket gets if it asks for so much, or for nothing.  The kernel doubles a size that it is asked for, as its limits of tuning count
 * it. */
static int64_t granted(int bytes, int tuned, int most)
{
    int64_t gets = bytes == SOCK_BUFFER_AUTO ? 0 : 2 * (int64_t)(most > 0 && bytes > most ? most : bytes);
    return gets > tuned ? gets : tuned;
}

uint64_t sock_window_most(const struct sock_bulk *bulk)
{
    return (uint64_t)granted(bulk->buffers.receive, bulk->tuned.receive, bulk->most.receive) / 2;
}

void sock_read_limits(struct sock_bulk *bulk)
{
    bulk->tuned.send = sock_limit("/proc/sys/net/ipv4/tcp_wmem");
    bulk->tuned.receive = sock_limit("/proc/sys/net/ipv4/tcp_rmem");
    bulk->most.send = sock_limit("/proc/sys/net/core/wmem_max");
    bulk->most.receive = sock_limit("/proc/sys/net/core/rmem_max");
}

int sock_congestion_refused(const char *name)
{
    int fd = fds_own(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int why = fd < 0 ? errno : sock_set_congestion(fd, name);
    fds_close(fd);
    return why;
}

void sock_congestion(int fd, char name[SOCK_CONGESTION_NAME])
{
    socklen_t size = SOCK_CONGESTION_NAME;
    memset(name, 0, SOCK_CONGESTION_NAME);
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) {
        name[0] = '\0';
    }
    name[SOCK_CONGESTION_NAME - 1] = '\0';
}

static void sock_buffer(int fd, int option, int bytes, int tuned, int most)
{
    if (granted(bytes, tuned, most) > tuned) {
        sock_option(fd, SOL_SOCKET, option, bytes);
    }
}

bool sock_restart_congestion(int fd)
{
    char name[SOCK_CONGESTION_NAME];
    sock_congestion(fd, name);
    /* The same one again would change nothing, and a system may have one in use that a process may not choose. */
    if (name[0] == '\0' || sock_congestion_refused(name) != 0 || sock_set_congestion(fd, "reno") != 0) {
        return false;
    }
    bool good = sock_set_congestion(fd, name) == 0;
    if (!good) {
        (void)sock_set_congestion(fd, "cubic");
    }
    return good;
}

void sock_open_window(int fd, int bytes)
{
    const int one = 1;
    int rc = setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes); /* Linux makes room for that, and keeps it */
    rc = setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    (void)rc;
}

void sock_bound_unsent(int fd, int bytes)
{
    sock_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

bool sock_is_near(int fd)
{
    uint32_t rtt_us = sock_within_host(fd) ? 0 : tcp_info_trip_us(fd);
    return rtt_us > 0 && rtt_us < SOCK_NEAR_US;
}

/* Where that is the system's default. */
static void leave_bbr(int fd)
{
    char name[SOCK_CONGESTION_NAME];
    sock_congestion(fd, name);
    if (strncmp(name, "bbr", 3) == 0 && sock_set_congestion(fd, "cubic") != 0) {
        (void)sock_set_congestion(fd, "reno"); /* every kernel has it */
    }
}

void sock_tune_bulk(int fd, const struct sock_bulk *bulk)
{
    if (sock_within_host(fd)) {
        sock_buffer(fd, SO_SNDBUF, bulk->buffers.send, 0, 0);
        sock_buffer(fd, SO_RCVBUF, bulk->buffers.receive, 0, 0);
        return;
    }
    sock_buffer(fd, SO_SNDBUF, bulk->buffers.send, bulk->tuned.send, bulk->most.send);
    sock_buffer(fd, SO_RCVBUF, bulk->buffers.receive, bulk->tuned.receive, bulk->most.receive);
    sock_bound_unsent(fd, SOCK_UNSENT);
    if (!bulk->near_too && sock_is_near(fd)) {
        leave_bbr(fd);
    } else if (bulk->congestion[0] != '\0') {
        int rc = sock_set_congestion(fd, bulk->congestion);
        (void)rc; /* tried when the process connected first */
    }
}
