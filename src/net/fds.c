/* fds.c - the record of owned descriptors.
 *
 * One of the few mutable globals: a fork has no argument through which it could be reached.
 * SPDX-License-Identifier: MIT */
#include "net/fds.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic uint64_t fds_owned[FDS_MOST / 64];
static _Atomic int fds_highest; /* no owned number is above */
static pthread_once_t fds_once = PTHREAD_ONCE_INIT;

/* In the child after a fork: close only, no shutdown, no lock. */
static void fds_drop_all(void)
{
    int highest = atomic_load_explicit(&fds_highest, memory_order_relaxed);
    for (int fd = 0; fd <= highest; fd++) {
        if ((atomic_load_explicit(&fds_owned[fd / 64], memory_order_relaxed) >> (fd % 64) & 1) != 0) {
            fds_close(fd);
        }
    }
}

static void fds_first(void)
{
    int rc = pthread_atfork(NULL, NULL, fds_drop_all);
    (void)rc; /* no memory for the handler: a child would keep descriptors, nothing else */
}

int fds_own(int fd)
{
    if (fd < 0) {
        return fd;
    }
    pthread_once(&fds_once, fds_first);
    if (fd >= FDS_MOST) {
        close(fd);
        errno = EMFILE;
        return -1;
    }
    atomic_fetch_or_explicit(&fds_owned[fd / 64], UINT64_C(1) << (fd % 64), memory_order_relaxed);
    int highest = atomic_load_explicit(&fds_highest, memory_order_relaxed);
    while (fd > highest && !atomic_compare_exchange_weak(&fds_highest, &highest, fd)) {
    }
    return fd;
}

void fds_close(int fd)
{
    if (fd < 0) {
        return;
    }
    /* First off the record: a child forked in between then keeps one descriptor too many for a moment, and never closes
     * a number that somebody else has been given meanwhile. */
    atomic_fetch_and_explicit(&fds_owned[fd / 64], ~(UINT64_C(1) << (fd % 64)), memory_order_relaxed);
    close(fd);
}
