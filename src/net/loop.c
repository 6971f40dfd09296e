/* loop.c - epoll and an eventfd.
 * SPDX-License-Identifier: MIT */
#include "net/loop.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/fds.h"

pccl_status loop_open(struct loop *loop, struct err *err)
{
    loop->at = loop->count = loop->looks = 0;
    list_init(&loop->polled);
    atomic_init(&loop->any_polled, false);
    atomic_init(&loop->woken, false);
    loop->wake = -1;
    loop->epoll = fds_own(epoll_create1(EPOLL_CLOEXEC));
    if (loop->epoll < 0) {
        return err_errno(err, "open epoll set");
    }
    loop->wake = fds_own(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (loop->wake < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) != 0) {
        pccl_status st = err_errno(err, "open eventfd");
        loop_close(loop);
        return st;
    }
    return PCCL_OK;
}

void loop_close(struct loop *loop)
{
    fds_close(loop->wake);
    fds_close(loop->epoll);
    loop->wake = loop->epoll = -1;
}

pccl_status loop_add(struct loop *loop, struct source *source, uint32_t events, struct err *err)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) != 0) {
        return err_errno(err, "watch descriptor");
    }
    return PCCL_OK;
}

void loop_change(struct loop *loop, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    int rc = epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
    (void)rc; /* fails only after a removal, when nobody listens any more */
}

void loop_remove(struct loop *loop, struct source *source)
{
    int rc = epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
    (void)rc;
    for (int i = loop->at; i < loop->count; i++) {
        if (loop->batch[i].data.ptr == source) {
            loop->batch[i].events = 0;
        }
    }
}

static void loop_woken(struct loop *loop)
{
    uint64_t value;
    ssize_t rc = read(loop->wake, &value, sizeof value);
    (void)rc;
    atomic_store(&loop->woken, false); /* after the read: a wake-up from here on is a new one */
}

void loop_look_at(struct loop *loop, struct polled *p)
{
    if (list_empty(&p->all)) {
        p->idle = 0;
        list_append(&loop->polled, &p->all);
        atomic_store(&loop->any_polled, true);
    }
}

void loop_look_away(struct loop *loop, struct polled *p)
{
    list_remove(&p->all);
    atomic_store(&loop->any_polled, !list_empty(&loop->polled));
}

bool loop_rest(struct loop *loop)
{
    LIST_FOR_EACH(l, after, &loop->polled) {
        struct polled *p = LIST_ENTRY(l, struct polled, all);
        if (p->rest(p)) {
            loop_look_away(loop, p);
        }
    }
    return list_empty(&loop->polled);
}

static int loop_look(struct loop *loop)
{
    int served = 0;
    LIST_FOR_EACH(l, after, &loop->polled) {
        struct polled *p = LIST_ENTRY(l, struct polled, all);
        uint32_t idle = p->idle;
        p->idle = 0; /* before it may go */
        if (p->look(p)) {
            served++;
        } else if (idle < LOOP_IDLE || !p->rest(p)) {
            p->idle = idle + 1;
        } else {
            loop_look_away(loop, p);
        }
    }
    return served;
}

int loop_poll(struct loop *loop, int64_t timeout_ns)
{
    int timeout_ms = -1, looked = loop_look(loop);
    if (looked > 0 && ++loop->looks < LOOP_LOOKS) {
        return looked;
    }
    loop->looks = 0;
    if (looked > 0 || (timeout_ns != 0 && !loop_rest(loop))) {
        timeout_ns = 0;
    }
    if (timeout_ns >= 0) {
        int64_t ms = timeout_ns / CLOCK_MS + (timeout_ns % CLOCK_MS != 0);
        timeout_ms = ms > INT32_MAX ? INT32_MAX : (int)ms;
    }
    int count = epoll_wait(loop->epoll, loop->batch, LOOP_BATCH, timeout_ms);
    if (count < 0) {
        return looked; /* interrupted by a signal of the program */
    }
    loop->count = count;
    for (loop->at = 0; loop->at < loop->count; loop->at++) {
        struct source *source = loop->batch[loop->at].data.ptr;
        if (source == NULL) {
            loop_woken(loop);
        } else if (loop->batch[loop->at].events != 0) {
            source->ready(source, loop->batch[loop->at].events);
        }
    }
    loop->count = 0;
    return looked + count;
}

void loop_wake(struct loop *loop)
{
    if (!atomic_exchange(&loop->woken, true)) {
        int saved = errno;
        uint64_t one = 1;
        ssize_t rc = write(loop->wake, &one, sizeof one);
        (void)rc;
        errno = saved;
    }
}
