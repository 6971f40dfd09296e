/* clock.c - reads the monotonic clock.
 *
 * One idea: wall-clock time never decides anything here, so a stepped or slewed date cannot make a peer look dead.
 * Invariant: the values of one process never decrease.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"

#include <time.h>

int64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail with this clock and a valid pointer */
    return (int64_t)now.tv_sec * CLOCK_S + now.tv_nsec;
}
