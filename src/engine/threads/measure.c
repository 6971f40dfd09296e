/* measure.c - sends to itself over loopback, adds up a buffer.
 *
 * Its one idea: the least of a few tries is what the machine can do; the rest is what others did meanwhile.
 * Invariant: ends, whatever the sockets do: each wait is short, and a failure gives no costs at all.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "engine/threads/measure.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "core/pages.h"
#include "kernels/numeric.h"
#include "net/fds.h"
#include "net/sock.h"

enum { MEASURE_TRIES = 16, MEASURE_FEW = 3, MEASURE_SMALL = 64, MEASURE_BYTES = 2 << 20, MEASURE_WAIT_MS = 100 }; /* more than the nearer caches hold */

static bool wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, MEASURE_WAIT_MS) == 1;
}

/* Through both sockets; what the kernel does not take at once goes when some has been read. */
static bool pass(const int fd[2], unsigned char *from, size_t bytes)
{
    unsigned char *to = from + MEASURE_BYTES;
    size_t sent = 0, got = 0;
    while (got < bytes) {
        ssize_t n = sent < bytes ? send(fd[0], from + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
        n = recv(fd[1], to + got, bytes - got, MSG_DONTWAIT);
        if (n <= 0 && !wait_for(fd[1], POLLIN)) {
            return false;
        }
        got += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool pair_open(int fd[2])
{
    struct err err;
    struct net_address at = {.family = 4, .ip = {127, 0, 0, 1}}, from;
    int listener = -1;
    fd[0] = fd[1] = -1;
    if (sock_listen(&at, &listener, &err) != PCCL_OK) {
        return false;
    }
    bool good = sock_local(listener, &at) == PCCL_OK && sock_dial(&at, &fd[0], &err) == PCCL_OK && wait_for(fd[0], POLLOUT) &&
                sock_connected(fd[0], &at, &err) == PCCL_OK && wait_for(listener, POLLIN) &&
                sock_accept(listener, &fd[1], &from, &err) == PCCL_OK;
    fds_close(listener);
    for (int i = 0; i < 2 && good; i++) {
        sock_tune(fd[i], CLOCK_S);
        sock_tune_bulk(fd[i], &(struct sock_bulk){.buffers = {SOCK_BUFFER, SOCK_BUFFER}});
    }
    return good;
}

static int64_t pass_ns(const int fd[2], unsigned char *buffer, size_t bytes, int tries)
{
    int64_t least = CLOCK_NEVER;
    for (int i = 0; i < tries; i++) {
        int64_t start = clock_now_ns();
        if (!pass(fd, buffer, bytes)) {
            return CLOCK_NEVER;
        }
        int64_t took = clock_now_ns() - start;
        least = took < least ? took : least;
    }
    return least;
}

static int64_t fold_ns(unsigned char *buffer)
{
    struct numeric n;
    int64_t least = CLOCK_NEVER;
    if (!numeric_init(&n, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_F32, kernels_get())) {
        return least;
    }
    for (int i = 0; i < MEASURE_FEW; i++) {
        int64_t start = clock_now_ns();
        numeric_fold_plain(&n, buffer, buffer, buffer + MEASURE_BYTES, MEASURE_BYTES / sizeof(float));
        int64_t took = clock_now_ns() - start;
        least = took < least ? took : least;
    }
    return least;
}

static uint32_t cut(int64_t value)
{
    return value < 1 ? 1 : value > COSTS_MOST ? COSTS_MOST : (uint32_t)value;
}

struct costs measure_costs(void)
{
    struct costs c = {0};
    int fd[2];
    unsigned char *buffer = pages_new((size_t)2 * MEASURE_BYTES);
    bool open = pair_open(fd);
    if (buffer != NULL && open) {
        int64_t small = pass_ns(fd, buffer, MEASURE_SMALL, MEASURE_TRIES);
        int64_t large = pass_ns(fd, buffer, MEASURE_BYTES, MEASURE_FEW), fold = fold_ns(buffer);
        if (small != CLOCK_NEVER && large != CLOCK_NEVER && fold != CLOCK_NEVER) {
            c = (struct costs){.delay_ns = cut(small), .message_ns = cut(small),
                               .byte_ps = cut((large - small) * 1000 / MEASURE_BYTES), .fold_ps = cut(fold * 1000 / MEASURE_BYTES)};
        }
    }
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0) {
            fds_close(fd[i]);
        }
    }
    pages_free(buffer, (size_t)2 * MEASURE_BYTES);
    return c;
}
