/* wake.c - how anybody gets the service thread's attention, and how those are told who wait for any of several operations.
 *
 * Its one idea: the timer is set for the earliest time that anybody has named; the thread looks at everything when it fires.
 * SPDX-License-Identifier: MIT */
#include <sys/timerfd.h>

#include "core/clock.h"
#include "engine/engine.h"

void engine_arm(struct engine *e, int64_t when)
{
    if (when >= atomic_load(&e->armed)) {
        return;
    }
    pthread_mutex_lock(&e->arm_lock);
    if (when < atomic_load(&e->armed)) {
        atomic_store(&e->armed, when);
        int64_t at = when > 0 ? when : 1; /* 0 would switch it off */
        struct itimerspec spec = {.it_value = {.tv_sec = at / CLOCK_S, .tv_nsec = at % CLOCK_S}};
        if (timerfd_settime(e->timer.fd, TFD_TIMER_ABSTIME, &spec, NULL) != 0) {
            loop_wake(&e->service);
        }
    }
    pthread_mutex_unlock(&e->arm_lock);
}

void engine_run(struct engine *e, void (*run)(void *), void *argument)
{
    struct engine_job job = {.run = run, .argument = argument};
    pthread_mutex_lock(&e->arm_lock);
    list_append(&e->jobs, &job.all);
    loop_wake(&e->service);
    while (!job.done) {
        pthread_cond_wait(&e->job_done, &e->arm_lock);
    }
    pthread_mutex_unlock(&e->arm_lock);
}

void engine_any_ended(struct engine *e)
{
    pthread_mutex_lock(&e->any_lock);
    e->any_count++;
    pthread_cond_broadcast(&e->any_cond);
    pthread_mutex_unlock(&e->any_lock);
}
