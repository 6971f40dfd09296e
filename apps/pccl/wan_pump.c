/* wan_pump.c - see wan_pump.h.
 *
 * One idea: due packets go first; then each device that has something is read a few times; and only a turn that found nothing sleeps, until
 * the next packet is due.  Time is read once for each packet, since that is when it entered the network.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_pump.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "pccl/wan_frame.h"

enum { READS = 8, STEPS = 64, READY_MOST = 64, SLEEP_MS = 100, PRIORITY = 10 };

struct wan_pump {
    struct wan_flow *flow;          /* borrowed */
    const struct wan_space *spaces; /* borrowed */
    unsigned count;
    int ready, wake;       /* owned; epoll of the devices; an eventfd that ends a sleep */
    atomic_uint wanted;    /* those who wait for the lock */
    atomic_bool stops;
    pthread_mutex_t lock;
    pthread_cond_t free;
    pthread_t thread;
    bool is_first;
    uint8_t buffer[WAN_PACKET_MOST];
};

static bool write_device(void *user, unsigned to, const uint8_t *bytes, size_t size, int64_t *at_ns)
{
    const struct wan_pump *p = user;
    *at_ns = clock_now_ns();
    return write(p->spaces[to].device, bytes, size) == (ssize_t)size;
}

static unsigned write_due(struct wan_pump *p)
{
    const struct wan_output out = {.write = write_device, .user = p};
    return wan_flow_run(p->flow, clock_now_ns(), STEPS, &out);
}

/* What has come to a few devices; how many packets. */
static unsigned read_devices(struct wan_pump *p)
{
    struct epoll_event events[READY_MOST];
    int n = epoll_wait(p->ready, events, READY_MOST, 0);
    unsigned done = 0;
    for (int i = 0; i < n; i++) {
        unsigned host = events[i].data.u32;
        for (int reads = 0; reads < READS; reads++) {
            ssize_t size = read(p->spaces[host].device, p->buffer, sizeof p->buffer);
            if (size <= 0) {
                break;
            }
            wan_flow_take(p->flow, host, p->buffer, (size_t)size, clock_now_ns());
            done++;
        }
        (void)write_due(p);
    }
    return done;
}

/* Until a packet comes, one is due, or somebody wants the lock. */
static void sleep_until_due(struct wan_pump *p)
{
    struct pollfd fds[2] = {{.fd = p->ready, .events = POLLIN}, {.fd = p->wake, .events = POLLIN}};
    int64_t next = wan_flow_next(p->flow), most = SLEEP_MS * CLOCK_MS;
    int64_t wait = next == INT64_MAX ? most : next - clock_now_ns();
    wait = wait < 0 ? 0 : wait < most ? wait : most;
    struct timespec t = {.tv_nsec = wait};
    uint64_t count;
    pthread_mutex_unlock(&p->lock);
    if (ppoll(fds, 2, &t, NULL) > 0 && fds[1].revents != 0) {
        (void)!read(p->wake, &count, sizeof count);
    }
    pthread_mutex_lock(&p->lock);
}

static void *pump_thread(void *user)
{
    struct wan_pump *p = user;
    struct sched_param first = {.sched_priority = PRIORITY};
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    pthread_mutex_lock(&p->lock);
    p->is_first = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
    while (!atomic_load(&p->stops)) {
        unsigned done = write_due(p);
        done += read_devices(p);
        if (done == 0) {
            sleep_until_due(p);
        }
        while (atomic_load(&p->wanted) > 0) {
            pthread_cond_wait(&p->free, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void wan_pump_lock(struct wan_pump *p)
{
    uint64_t one = 1;
    atomic_fetch_add(&p->wanted, 1);
    (void)!write(p->wake, &one, sizeof one);
    pthread_mutex_lock(&p->lock);
}

void wan_pump_unlock(struct wan_pump *p)
{
    atomic_fetch_sub(&p->wanted, 1);
    pthread_cond_signal(&p->free);
    pthread_mutex_unlock(&p->lock);
}

bool wan_pump_is_first(const struct wan_pump *p)
{
    return p->is_first;
}

static void pump_free(struct wan_pump *p)
{
    if (p->ready >= 0) {
        close(p->ready);
    }
    if (p->wake >= 0) {
        close(p->wake);
    }
    pthread_cond_destroy(&p->free);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

struct wan_pump *wan_pump_start(struct wan_flow *f, const struct wan_space *spaces, unsigned count, char error[WAN_ERROR])
{
    struct wan_pump *p = calloc(1, sizeof *p);
    if (p == NULL) {
        snprintf(error, WAN_ERROR, "no memory for the emulator");
        return NULL;
    }
    p->flow = f;
    p->spaces = spaces;
    p->count = count;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->free, NULL);
    p->ready = epoll_create1(EPOLL_CLOEXEC);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = p->ready >= 0 && p->wake >= 0;
    for (unsigned i = 0; ok && i < count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        ok = epoll_ctl(p->ready, EPOLL_CTL_ADD, spaces[i].device, &e) == 0;
    }
    int rc = ok ? pthread_create(&p->thread, NULL, pump_thread, p) : errno;
    if (rc != 0) {
        snprintf(error, WAN_ERROR, "start the emulator: %s", strerror(rc));
        pump_free(p);
        return NULL;
    }
    return p;
}

void wan_pump_stop(struct wan_pump *p)
{
    uint64_t one = 1;
    atomic_store(&p->stops, true);
    (void)!write(p->wake, &one, sizeof one);
    pthread_join(p->thread, NULL);
    pump_free(p);
}
