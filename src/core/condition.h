/* condition.h - conditions that are waited for until a time of clock_now_ns.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_CONDITION_H
#define PCCL_CORE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "core/clock.h"

static inline void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* Waits once, with the lock; false: the deadline has passed. */
static inline bool cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline)
{
    struct timespec at = {.tv_sec = deadline / CLOCK_S, .tv_nsec = deadline % CLOCK_S};
    return (deadline == CLOCK_NEVER ? pthread_cond_wait(cond, lock) : pthread_cond_timedwait(cond, lock, &at)) == 0;
}

#endif
