/* transport_stripe.c - one stream of bytes over 1 to 64 TCP sockets, whose number changes while it is in use.
 *
 * The transport's descriptor is an epoll set of its sockets.  Sockets join from another thread and leave by a last record, LEAVE,
 * in either direction; the first one stays.  How many are wanted is the policy's, or fixed.
 *
 * Invariant: a socket that ends without LEAVE ends the stripe; its link then dials again.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "net/fds.h"
#include "net/stripe.h"
#include "net/stripe_paths.h"
#include "net/tcp_info.h"

enum { STRIPE_EVENTS = 32, STRIPE_UNSENT = 256 << 10, STRIPE_NUMBERS = 64, STRIPE_WINDOW = 1 << 20 };

/* ---- Sockets that come and go ------------------------------------------------------------------------------------------ */

/* What comes on one socket waits there for the records of the others.  The kernel lets a window grow with what is read, so it stays at 64 KiB
 * a round trip meanwhile: on a long path there is room for more from the start. */
static struct stripe_socket *socket_new(struct stripe *s, int fd, int unsent)
{
    struct stripe_socket *k = calloc(1, sizeof *k);
    if (k == NULL) {
        return NULL;
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = k};
    k->fd = fd;
    k->can_in = k->can_out = true;
    stripe_bound_unsent(k, unsent);
    if (tcp_info_trip_us(fd) >= STRIPE_FAR_US) {
        sock_open_window(fd, STRIPE_WINDOW);
    }
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(k);
        return NULL;
    }
    return k;
}

/* Those that have joined take part from now on. */
static void take_arrivals(struct stripe *s)
{
    pthread_mutex_lock(&s->lock);
    s->unsettled |= s->arrivals > 0;
    for (uint32_t i = 0; i < s->arrivals; i++) {
        s->socket[s->count++] = s->arrived[i]; /* there is room: what joins counts both */
    }
    s->arrivals = 0;
    pthread_mutex_unlock(&s->lock);
}

/* ---- The transport ----------------------------------------------------------------------------------------------------- */

static pccl_status stripe_hear(struct transport *t)
{
    struct stripe *s = t->stripe;
    struct epoll_event events[STRIPE_EVENTS];
    int count;
    do {
        count = epoll_wait(s->epoll, events, STRIPE_EVENTS, 0);
        for (int i = 0; i < count; i++) {
            struct stripe_socket *k = events[i].data.ptr;
            k->can_in |= (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
            k->can_out |= (events[i].events & EPOLLOUT) != 0;
            s->broken |= (events[i].events & (EPOLLHUP | EPOLLERR)) != 0 && !k->left_out; /* else LEAVE may be on its way: reading tells */
        }
    } while (count == STRIPE_EVENTS);
    take_arrivals(s);
    stripe_settle(s);
    return PCCL_OK;
}

static void stripe_finish(struct transport *t)
{
    shutdown(t->stripe->socket[0]->fd, SHUT_WR);
}

static void stripe_shutdown(struct transport *t)
{
    shutdown(t->stripe->socket[0]->fd, SHUT_RDWR); /* which breaks the stripe, here and there */
}

static void stripe_close(struct transport *t)
{
    struct stripe *s = t->stripe;
    take_arrivals(s);
    for (uint32_t i = 0; i < s->count; i++) {
        stripe_socket_close(s, s->socket[i]);
    }
    atomic_fetch_sub(&s->config.budget->used, atomic_load(&s->there) - 1);
    atomic_fetch_sub(&s->config.budget->far, s->far);
    fds_close(s->epoll);
    pthread_mutex_destroy(&s->lock);
    free(s);
    t->stripe = NULL;
    t->fd = -1;
}

static void stripe_begin(struct transport *t)
{
    (void)t; /* each socket has begun when it joins */
}

/* Of the slowest socket: a record waits for those before it. */
static int64_t stripe_rtt_ns(const struct transport *t)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < t->stripe->count; i++) {
        int64_t rtt = 2 * sock_away_ns(t->stripe->socket[i]->fd);
        longest = rtt > longest ? rtt : longest;
    }
    return longest;
}

static const struct transport_ops stripe_ops = {
    .send = stripe_send, .receive = stripe_receive, .finish = stripe_finish, .shutdown = stripe_shutdown, .close = stripe_close,
    .begin = stripe_begin, .hear = stripe_hear, .rtt_ns = stripe_rtt_ns,
};

/* Where its path is known, its policy begins there.  Of stripes that are made together the first ones know of the others by their
 * configuration alone. */
static void resume(struct stripe *s)
{
    const struct stripe_config *c = &s->config;
    struct stripe_settled found = {.count = 0};
    char congestion[SOCK_CONGESTION_NAME];
    sock_congestion(s->socket[0]->fd, congestion);
    s->answers_loss = stripe_policy_answers_loss(congestion);
    s->near = s->answers_loss && sock_is_near(s->socket[0]->fd);
    if (c->paths != NULL) {
        stripe_paths_find(c->paths, c->path, c->lanes, &found);
    }
    s->found = found.count > 0;
    struct stripe_first first = {.answers_loss = s->answers_loss, .rtt_us = tcp_info_trip_us(s->socket[0]->fd), .lanes = c->lanes};
    s->far = first.rtt_us >= STRIPE_FAR_US;
    uint32_t far = atomic_fetch_add(&c->budget->far, s->far) + s->far;
    first.stripes = c->stripes > far ? c->stripes : far;
    if (s->found) {
        stripe_policy_resume(&s->policy, c->most, &found, s->looked_at);
    } else {
        stripe_policy_begin(&s->policy, c->most, &first, s->looked_at);
    }
    s->use = s->keep = c->fixed > 0 ? c->fixed : 1;
    if ((c->fixed > 0 ? c->fixed : s->policy.count) > 1) {
        stripe_bound_unsent(s->socket[0], STRIPE_UNSENT_LEAST);
    }
    stripe_start(s, stripe_policy_first(&first));
}

pccl_status transport_stripe_take(struct transport *t, const struct stripe_config *config)
{
    struct stripe *s = calloc(1, sizeof *s);
    int epoll = s != NULL ? fds_own(epoll_create1(EPOLL_CLOEXEC)) : -1;
    if (epoll < 0) {
        free(s);
        return PCCL_ERR_NOMEM;
    }
    s->epoll = epoll;
    s->config = *config;
    s->socket[0] = socket_new(s, t->fd, STRIPE_UNSENT);
    if (s->socket[0] == NULL) {
        fds_close(epoll);
        free(s);
        return PCCL_ERR_NOMEM;
    }
    s->count = s->asked = s->theirs = 1;
    atomic_init(&s->there, 1);
    atomic_init(&s->wanted, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->looked_at = clock_now_ns();
    resume(s);
    s->look_at = s->looked_at + stripe_policy_span(0);
    s->unsettled = true; /* more may be wanted at once */
    t->stripe = s;
    t->fd = epoll;
    t->ops = &stripe_ops;
    return PCCL_OK;
}

bool transport_stripe_admit(struct transport *t, uint64_t token, uint32_t number)
{
    struct stripe *s = t->stripe;
    bool good = false;
    if (s == NULL || s->config.dials || token != s->config.token || number == 0) {
        return false;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t behind = s->highest - number;
    if (number > s->highest) {
        uint32_t ahead = number - s->highest;
        s->joined = ahead < STRIPE_NUMBERS ? s->joined << ahead | 1 : 1;
        s->highest = number;
        good = true;
    } else if (behind < STRIPE_NUMBERS && (s->joined >> behind & 1) == 0) {
        s->joined |= UINT64_C(1) << behind;
        good = true;
    }
    good = good && s->count + s->arrivals < s->config.most && atomic_load(&s->config.budget->used) < s->config.budget->most;
    pthread_mutex_unlock(&s->lock);
    return good;
}

bool transport_stripe_add(struct transport *t, int fd)
{
    struct stripe *s = t->stripe;
    bool good = false;
    pthread_mutex_lock(&s->lock);
    if (s->count + s->arrivals < STRIPE_SOCKETS) {
        struct stripe_socket *k = socket_new(s, fd, STRIPE_UNSENT_LEAST);
        good = k != NULL;
        if (good) {
            s->arrived[s->arrivals++] = k;
            atomic_fetch_add(&s->there, 1);
            atomic_fetch_add(&s->config.budget->used, 1);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return good;
}

uint32_t transport_stripe_missing(const struct transport *t)
{
    const struct stripe *s = t->stripe;
    uint32_t wanted = atomic_load(&s->wanted), there = atomic_load(&s->there);
    uint32_t used = atomic_load(&s->config.budget->used), most = s->config.budget->most;
    uint32_t missing = wanted > there ? wanted - there : 0, left = used < most ? most - used : 0;
    return missing < left ? missing : left;
}

uint64_t transport_stripe_token(const struct transport *t)
{
    return t->stripe != NULL ? t->stripe->config.token : 0;
}

int transport_stripe_first(const struct transport *t)
{
    return t->stripe->socket[0]->fd;
}

static void look_at(struct transport_tcp *out, int fd)
{
    struct tcp_numbers n;
    if (tcp_info_read(fd, &n)) {
        out->rate += n.rate;
        out->retransmitted += n.retransmitted;
        out->filled |= !n.app_limited && n.rate > 0;
    }
    if (out->sockets++ == 0) {
        out->rtt_us = n.rtt_us;
        out->least_rtt_us = n.least_rtt_us;
        sock_congestion(fd, out->congestion);
    }
}

void transport_tcp_look(const struct transport *t, struct transport_tcp *out)
{
    struct stripe *s = t->stripe;
    *out = (struct transport_tcp){.sockets = 0};
    if (s == NULL) {
        look_at(out, t->fd);
        return;
    }
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->count; i++) {
        look_at(out, s->socket[i]->fd);
    }
    pthread_mutex_unlock(&s->lock);
}
