/* distant_sockets.c - what plain sockets need between hosts of an emulated network for the bytes of an all-reduce, for bench/wan/distant.py.
 *
 * One idea: the least that any all-reduce moves, 2(n-1)/n of the buffer out of each host and into it, in equal parts to and from every
 * other host, at once and both ways.  Whichever socket of a pair has room takes the next bytes, so a slow one carries less.
 * What is received is thrown away.  TURNS repeats that in one call: with 4 bytes and two turns it is a round trip.
 * Usage: distant_sockets BYTES CALLS BUDGET_S IDLE_S SOCKETS CONGESTION TURNS ADDRESS..., of each host; a line of JSON for each call.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wan/distant.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { PORT = 47200, BLOCK = 256 << 10, EVENTS = 64, SOCKETS_MOST = 64 };

struct pair {
    size_t to_send, to_receive;
};

struct end {
    int fd, other; /* the rank there */
    bool waits;    /* for room */
};

struct plain {
    struct distant d;
    struct pair pairs[DISTANT_MOST];
    struct end *ends; /* owned */
    int end_count, sockets, turns, poller;
    size_t part, left; /* of a pair and direction; of all pairs, both directions */
    char *block;       /* owned */
};

static void check(bool ok, const char *what)
{
    if (!ok) {
        distant_fail(what, strerror(errno));
    }
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static int open_socket(const char *congestion)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    check(fd >= 0, "socket");
    check(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "reuse");
    check(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) == 0, congestion);
    check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "no delay");
    return fd;
}

static void await(int fd, short what)
{
    struct pollfd p = {.fd = fd, .events = what};
    while (poll(&p, 1, -1) < 0) {
        check(errno == EINTR, "poll");
    }
}

static void add_end(struct plain *p, int fd, int other)
{
    p->ends[p->end_count++] = (struct end){.fd = fd, .other = other};
}

/* Says over each new connection which rank is at this end. */
static void dial(struct plain *p, const char *const *addresses, const char *congestion)
{
    int first = p->end_count;
    for (int other = 0; other < p->d.rank; other++) {
        for (int i = 0; i < p->sockets; i++) {
            struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
            int fd = open_socket(congestion);
            check(inet_pton(AF_INET, addresses[other], &at.sin_addr) == 1, addresses[other]);
            check(connect(fd, (const struct sockaddr *)(const void *)&at, sizeof at) == 0 || errno == EINPROGRESS, "connect");
            add_end(p, fd, other);
        }
    }
    unsigned char rank = (unsigned char)p->d.rank;
    for (int i = first; i < p->end_count; i++) {
        await(p->ends[i].fd, POLLOUT);
        check(send(p->ends[i].fd, &rank, 1, MSG_NOSIGNAL) == 1, addresses[p->ends[i].other]);
    }
}

static void answer(struct plain *p, int listener)
{
    int first = p->end_count, count = (p->d.world - 1 - p->d.rank) * p->sockets;
    for (int i = 0; i < count; i++) {
        await(listener, POLLIN);
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        check(fd >= 0, "accept");
        add_end(p, fd, -1);
    }
    for (int i = first; i < p->end_count; i++) {
        unsigned char rank;
        await(p->ends[i].fd, POLLIN);
        check(recv(p->ends[i].fd, &rank, 1, 0) == 1 && rank < p->d.world, "rank");
        p->ends[i].other = rank;
    }
}

/* Each rank dials those below it. */
static void connect_all(struct plain *p, char **addresses, const char *congestion)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_ANY)};
    int listener = open_socket(congestion);
    check(bind(listener, (const struct sockaddr *)(const void *)&at, sizeof at) == 0 && listen(listener, 4096) == 0, "listen");
    p->ends = distant_memory((size_t)(p->d.world * p->sockets) * sizeof *p->ends);
    p->poller = epoll_create1(EPOLL_CLOEXEC);
    check(p->poller >= 0, "poller");
    distant_meet(&p->d);
    dial(p, (const char *const *)addresses, congestion);
    answer(p, listener);
    close(listener);
    for (int i = 0; i < p->end_count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &p->ends[i]};
        check(epoll_ctl(p->poller, EPOLL_CTL_ADD, p->ends[i].fd, &e) == 0, "watch");
    }
}

/* ---- a transfer -------------------------------------------------------------------------------------------------- */

static void watch(const struct plain *p, struct end *e, bool room)
{
    if (e->waits != room) {
        struct epoll_event event = {.events = EPOLLIN | (room ? EPOLLOUT : 0u), .data.ptr = e};
        check(epoll_ctl(p->poller, EPOLL_CTL_MOD, e->fd, &event) == 0, "watch");
        e->waits = room;
    }
}

/* One write at most, so that all sockets get their turn. */
static void give(struct plain *p, struct end *e)
{
    struct pair *pair = &p->pairs[e->other];
    if (pair->to_send > 0) {
        ssize_t n = send(e->fd, p->block, pair->to_send < BLOCK ? pair->to_send : BLOCK, MSG_NOSIGNAL);
        check(n >= 0 || errno == EAGAIN || errno == EINTR, "send");
        pair->to_send -= n > 0 ? (size_t)n : 0;
        p->left -= n > 0 ? (size_t)n : 0;
    }
    watch(p, e, pair->to_send > 0);
}

/* Not what belongs to the next turn. */
static void take(struct plain *p, struct end *e)
{
    struct pair *pair = &p->pairs[e->other];
    if (pair->to_receive > 0) {
        ssize_t n = recv(e->fd, p->block, pair->to_receive < BLOCK ? pair->to_receive : BLOCK, 0);
        check(n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)), "receive");
        pair->to_receive -= n > 0 ? (size_t)n : 0;
        p->left -= n > 0 ? (size_t)n : 0;
    }
}

static void transfer(struct plain *p)
{
    struct epoll_event events[EVENTS];
    for (int r = 0; r < p->d.world; r++) {
        p->pairs[r] = (struct pair){.to_send = p->part, .to_receive = p->part};
    }
    p->left = 2 * p->part * (size_t)(p->d.world - 1);
    for (int i = 0; i < p->end_count; i++) {
        give(p, &p->ends[i]);
    }
    while (p->left > 0) {
        int n = epoll_wait(p->poller, events, EVENTS, -1);
        check(n >= 0 || errno == EINTR, "wait");
        for (int i = 0; i < n; i++) {
            struct end *e = events[i].data.ptr;
            if ((events[i].events & ~(unsigned)EPOLLOUT) != 0) {
                take(p, e);
            }
            if ((events[i].events & EPOLLOUT) != 0) {
                give(p, e);
            }
        }
    }
}

static void call(void *context)
{
    struct plain *p = context;
    for (int turn = 0; turn < p->turns; turn++) {
        transfer(p);
    }
}

static void begin(void *context)
{
    (void)context;
}

/* What was received is not looked at; all of it was. */
static long wrong(void *context)
{
    const struct plain *p = context;
    return (long)p->left;
}

int main(int argc, char **argv)
{
    static struct plain p;
    int words = argc - 8; /* the hosts' addresses */
    distant_begin(&p.d, argc, argv, 3 + (words > 0 ? words : 0));
    p.sockets = argc > 5 ? atoi(argv[5]) : 0;
    p.turns = argc > 7 ? atoi(argv[7]) : 0;
    if (p.sockets < 1 || p.sockets > SOCKETS_MOST || p.turns < 1 || words != p.d.world) {
        distant_fail("usage", "distant_sockets BYTES CALLS BUDGET_S IDLE_S SOCKETS CONGESTION TURNS ADDRESS..., an address for each host");
    }
    p.part = 2 * p.d.bytes / (size_t)p.d.world;
    p.block = distant_memory(BLOCK);
    connect_all(&p, argv + 8, argv[6]);
    distant_measure(&p.d, &(struct distant_calls){.begin = begin, .call = call, .wrong = wrong, .context = &p});
    distant_end(&p.d);
    for (int i = 0; i < p.end_count; i++) {
        close(p.ends[i].fd);
    }
    close(p.poller);
    free(p.ends);
    free(p.block);
    return 0;
}
