/* bench_links.c - the plain links of a benchmark.
 *
 * A ring has one writer and one reader, each with a counter of its own on a cache line of its own; a piece is as large as
 * what stays in cache on its way.  What is lent from a TCP connection lies in a staging buffer of that connection.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/bench_links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pccl/bench_wan.h"

enum { RING_BYTES = 512 << 10, RING_PIECE = 64 << 10, STAGING_BYTES = 256 << 10 };

struct ring {
    _Alignas(64) _Atomic uint64_t head; /* written so far */
    _Alignas(64) _Atomic uint64_t tail; /* read so far */
    _Alignas(64) unsigned char data[RING_BYTES];
};

struct staging {
    unsigned char *data; /* owned */
    size_t size;         /* bytes in it that have not been given back; they begin at data */
};

struct bench_links {
    unsigned world, rank;
    struct ring *rings; /* owned: world * world of them, from * world + to; null: TCP */
    int fds[BENCH_LINKS_MOST][BENCH_LINKS_MOST]; /* owned: [a][b] is a's end of the connection with b; -1: none */
    struct staging staging[BENCH_LINKS_MOST];
};

static int new_socket(const struct bench_wan *wan, unsigned rank)
{
    return wan != NULL ? bench_wan_socket(wan, rank) : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static bool connect_pair(int listener, const struct sockaddr_in *at, int *one, int *other)
{
    int on = 1;
    const struct sockaddr *address = (const struct sockaddr *)(const void *)at;
    if (*one < 0 || connect(*one, address, sizeof *at) != 0 || (*other = accept(listener, NULL, NULL)) < 0) {
        return false;
    }
    int ends[2] = {*one, *other};
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (at->sin_addr.s_addr == htonl(INADDR_LOOPBACK)) { /* as the library does; beyond a host it leaves the choice to the system */
            setsockopt(ends[i], IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
        }
    }
    return true;
}

/* Of one rank with all before it. */
static bool connect_rank(struct bench_links *l, unsigned rank, const struct bench_wan *wan)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(wan != NULL ? bench_wan_address(wan, rank) : INADDR_LOOPBACK)};
    struct sockaddr *address = (struct sockaddr *)(void *)&at;
    socklen_t size = sizeof at;
    int listener = new_socket(wan, rank);
    bool ok = listener >= 0 && bind(listener, address, size) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, address, &size) == 0;
    for (unsigned a = 0; ok && a < rank; a++) {
        l->fds[a][rank] = new_socket(wan, a);
        ok = connect_pair(listener, &at, &l->fds[a][rank], &l->fds[rank][a]);
    }
    if (listener >= 0) {
        close(listener);
    }
    return ok;
}

static bool connect_all(struct bench_links *l, const struct bench_wan *wan)
{
    bool ok = true;
    for (unsigned rank = 1; ok && rank < l->world; rank++) {
        ok = connect_rank(l, rank, wan);
    }
    return ok;
}

struct bench_links *bench_links_open(unsigned world, bool shared_memory, const struct bench_wan *wan)
{
    struct bench_links *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return NULL;
    }
    memset(l->fds, 0xFF, sizeof l->fds);
    l->world = world;
    bool ok;
    if (shared_memory) {
        l->rings = mmap(NULL, (size_t)world * world * sizeof(struct ring), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        l->rings = l->rings == MAP_FAILED ? NULL : l->rings;
        ok = l->rings != NULL;
    } else {
        ok = connect_all(l, wan);
    }
    if (!ok) {
        fprintf(stderr, "pccl bench: plain links for the limit: %s\n", strerror(errno));
        bench_links_close(l);
        return NULL;
    }
    return l;
}

void bench_links_close(struct bench_links *l)
{
    if (l == NULL) {
        return;
    }
    if (l->rings != NULL) {
        munmap(l->rings, (size_t)l->world * l->world * sizeof(struct ring));
    }
    for (unsigned a = 0; a < l->world; a++) {
        for (unsigned b = 0; b < l->world; b++) {
            if (l->fds[a][b] >= 0) {
                close(l->fds[a][b]);
            }
        }
        free(l->staging[a].data);
    }
    free(l);
}

const char *bench_links_name(const struct bench_links *l)
{
    return l->rings != NULL ? "shm" : "tcp";
}

static struct ring *ring_of(struct bench_links *l, unsigned from, unsigned to)
{
    return &l->rings[from * l->world + to];
}

bool bench_links_begin(struct bench_links *l, unsigned rank)
{
    l->rank = rank;
    for (unsigned peer = 0; peer < l->world; peer++) {
        if (l->rings != NULL) { /* back to the start, so that an element never lies across the end; each its own counter */
            atomic_store(&ring_of(l, rank, peer)->head, 0);
            atomic_store(&ring_of(l, peer, rank)->tail, 0);
        } else if (peer != rank && l->staging[peer].data == NULL &&
                   (l->staging[peer].data = malloc(STAGING_BYTES)) == NULL) {
            return false;
        }
    }
    return true;
}

/* What a call on a socket that is not ready says is no error. */
static long moved(ssize_t n)
{
    return n > 0 ? n : n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

long bench_links_send(struct bench_links *l, unsigned to, const void *data, size_t bytes)
{
    if (l->rings == NULL) {
        return moved(send(l->fds[l->rank][to], data, at_most(bytes, STAGING_BYTES), MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    struct ring *r = ring_of(l, l->rank, to);
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    size_t room = RING_BYTES - (size_t)(head - atomic_load_explicit(&r->tail, memory_order_acquire));
    size_t n = at_most(at_most(bytes, room), at_most(RING_PIECE, RING_BYTES - head % RING_BYTES));
    memcpy(r->data + head % RING_BYTES, data, n);
    atomic_store_explicit(&r->head, head + n, memory_order_release);
    return (long)n;
}

static long lend_from_ring(struct ring *r, size_t bytes, const unsigned char **data)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t there = (size_t)(atomic_load_explicit(&r->head, memory_order_acquire) - tail);
    *data = r->data + tail % RING_BYTES;
    return (long)at_most(at_most(bytes, there), at_most(RING_PIECE, RING_BYTES - tail % RING_BYTES));
}

long bench_links_receive(struct bench_links *l, unsigned from, void *data, size_t bytes)
{
    if (l->rings == NULL) {
        return moved(recv(l->fds[l->rank][from], data, at_most(bytes, STAGING_BYTES), MSG_DONTWAIT));
    }
    const unsigned char *lent;
    long n = lend_from_ring(ring_of(l, from, l->rank), bytes, &lent);
    memcpy(data, lent, (size_t)n);
    bench_links_return(l, from, (size_t)n);
    return n;
}

long bench_links_lend(struct bench_links *l, unsigned from, size_t element, size_t bytes, const unsigned char **data)
{
    if (l->rings != NULL) {
        return lend_from_ring(ring_of(l, from, l->rank), bytes, data);
    }
    struct staging *s = &l->staging[from];
    size_t room = at_most(bytes, STAGING_BYTES) - s->size;
    long n = room > 0 ? moved(recv(l->fds[l->rank][from], s->data + s->size, room, MSG_DONTWAIT)) : 0;
    if (n < 0) {
        return -1;
    }
    s->size += (size_t)n;
    *data = s->data;
    return (long)(s->size - s->size % element);
}

void bench_links_return(struct bench_links *l, unsigned from, size_t bytes)
{
    if (l->rings != NULL) {
        struct ring *r = ring_of(l, from, l->rank);
        atomic_store_explicit(&r->tail, atomic_load_explicit(&r->tail, memory_order_relaxed) + bytes, memory_order_release);
        return;
    }
    struct staging *s = &l->staging[from]; /* what is left is part of an element */
    s->size -= bytes;
    memmove(s->data, s->data + bytes, s->size);
}
