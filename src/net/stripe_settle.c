/* stripe_settle.c - how many sockets a stripe has: what each end wants, what is measured, and those that leave.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "net/fds.h"
#include "net/stripe.h"
#include "net/stripe_paths.h"
#include "net/tcp_estimate.h"
#include "net/tcp_info.h"

#define STRIPE_US INT64_C(1000)
#define STRIPE_SLOW 250e6 /* bytes per second: less than a line between near hosts for which one socket may be too few */
#define STRIPE_NEAR_NS INT64_C(1000000000)

/* Frees a socket with its descriptor.  With the lock, but where nobody else knows the stripe. */
void stripe_socket_close(struct stripe *s, struct stripe_socket *k)
{
    int rc = epoll_ctl(s->epoll, EPOLL_CTL_DEL, k->fd, NULL);
    (void)rc; /* a forked child may still hold it, so that closing alone would not take it out */
    fds_close(k->fd);
    free(k->tail);
    free(k);
}

static uint32_t present(const struct stripe *s)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        count += !s->socket[i]->leaving;
    }
    return count;
}

static void add_totals(struct stripe_totals *t, const struct tcp_numbers *n)
{
    t->acked += n->acked;
    t->retransmitted += n->retransmitted;
    t->busy_us += n->busy_us;
    t->window_us += n->window_us;
    t->buffer_us += n->buffer_us;
}

/* Those that have left in both directions. */
static void drop_left(struct stripe *s)
{
    for (uint32_t i = s->count; i-- > 1;) {
        struct stripe_socket *k = s->socket[i];
        if (!k->left_in || !k->left_out || !stripe_idle(s, k)) {
            continue;
        }
        struct tcp_numbers n;
        if (tcp_info_read(k->fd, &n)) {
            add_totals(&s->gone, &n);
        }
        pthread_mutex_lock(&s->lock);
        memmove(&s->socket[i], &s->socket[i + 1], (s->count - i - 1) * sizeof s->socket[0]);
        s->count--;
        stripe_socket_close(s, k);
        pthread_mutex_unlock(&s->lock);
        atomic_fetch_sub(&s->there, 1);
        atomic_fetch_sub(&s->config.budget->used, 1);
    }
}

/* The end that dials makes the number what the two ends want. */
static void want(struct stripe *s)
{
    uint32_t wanted = s->keep > s->theirs ? s->keep : s->theirs, here = present(s);
    wanted = wanted < s->config.most ? wanted : s->config.most;
    bool more = wanted > atomic_exchange(&s->wanted, wanted);
    for (uint32_t i = s->count; i-- > 1 && here > wanted;) {
        here -= !s->socket[i]->leaving;
        s->socket[i]->leaving = true;
    }
    if (more && s->config.wants != NULL) {
        s->config.wants(s->config.user);
    }
}

void stripe_settle(struct stripe *s)
{
    if (s->config.dials) {
        want(s);
    }
    stripe_say(s);
    drop_left(s);
}

/* ---- How fast ---- */

/* Not more than so many bytes per second; 0: as fast as it likes. */
static void bind_rate(const struct stripe_socket *k, uint64_t rate)
{
    uint64_t most = rate > 0 ? rate : UINT64_MAX;
    int rc = setsockopt(k->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof most);
    (void)rc; /* a system without it sends as its congestion control likes */
}

void stripe_bound(struct stripe *s, int64_t now)
{
    int64_t longest_us = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        struct stripe_socket *k = s->socket[i];
        struct tcp_numbers n;
        if (!tcp_info_read(k->fd, &n) || (n.rtt_us < STRIPE_FAR_US && !stripe_pace_full(&k->pace))) {
            continue;
        }
        uint64_t before = k->pace.rate;
        const struct stripe_look look = {.now = now, .acked = n.acked, .retransmitted = n.retransmitted, .estimate = tcp_estimate_bps(k->fd) / 8};
        if (stripe_pace_step(&k->pace, &look) != before) {
            bind_rate(k, k->pace.rate);
        }
        if (k->pace.restart && !sock_restart_congestion(k->fd)) {
            k->pace.rate = k->pace.fall.looks = 0; /* it goes on as it is */
            bind_rate(k, 0);
        }
        longest_us = n.rtt_us > longest_us ? n.rtt_us : longest_us;
    }
    s->pace_at = now + (longest_us > 0 ? longest_us * STRIPE_US : STRIPE_NEAR_NS);
}

/* What each carries changes with their number. */
static void bound_anew(struct stripe *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->socket[i]->pace.rate != 0) {
            bind_rate(s->socket[i], 0);
        }
        stripe_pace_anew(&s->socket[i]->pace);
    }
}

/* ---- How many ---------------------------------------------------------------------------------------------------------- */

void stripe_bound_unsent(struct stripe_socket *k, int bytes)
{
    sock_bound_unsent(k->fd, bytes);
    k->bound = bytes;
}

/* What waits unsent in a socket is what the records of others wait for: as much as one round trip takes, no more. */
static void bound_unsent(struct stripe_socket *k, uint64_t window)
{
    int bytes = window < STRIPE_UNSENT_LEAST ? STRIPE_UNSENT_LEAST : window > SOCK_UNSENT ? SOCK_UNSENT : (int)window;
    if (bytes > k->bound + k->bound / 4 || bytes < k->bound - k->bound / 4) {
        stripe_bound_unsent(k, bytes);
    }
}

/* From now on records go over so many. */
static void use_sockets(struct stripe *s, uint32_t use, uint32_t keep)
{
    s->unsettled |= use != s->use || keep != s->keep;
    s->keep = keep;
    if (use != s->use) {
        s->use = use;
        bound_anew(s);
    }
}

/* A number that nothing was found out for is bounded by a share of the sockets that are left, so that later paths get some. */
static void bound_first(struct stripe *s)
{
    uint32_t used = atomic_load(&s->config.budget->used), most = s->config.budget->most;
    uint32_t share = used < most ? (most - used) / STRIPE_SHARE : 0;
    if (!s->found && s->policy.count > 1 + share) {
        s->policy.count = 1 + share;
    }
}

void stripe_start(struct stripe *s, uint32_t first)
{
    if (s->config.fixed == 0 && !s->answers_loss) {
        bound_first(s);
        first = first < s->policy.count ? first : s->policy.count;
        use_sockets(s, first, first);
    }
}

void stripe_sent(struct stripe *s, size_t bytes)
{
    if (s->begun >= STRIPE_BEGUN || s->config.fixed > 0 || bytes < STRIPE_DATA_LEAST) {
        return;
    }
    s->begun += bytes;
    if (s->begun >= STRIPE_BEGUN) {
        bound_first(s);
        use_sockets(s, s->policy.count, stripe_policy_keep(&s->policy));
    }
}

static bool settled_else(const struct stripe_settled *a, const struct stripe_settled *b)
{
    return a->count != b->count || a->not_before != b->not_before || a->fewer_at != b->fewer_at;
}

/* What the policy finds is known to the next stripe on this path. */
static void decide(struct stripe *s, const struct stripe_sample *sample)
{
    const struct stripe_settled before = stripe_policy_settled(&s->policy);
    uint32_t use = stripe_policy_step(&s->policy, sample);
    const struct stripe_settled after = stripe_policy_settled(&s->policy);
    if (s->config.paths != NULL && after.count > 0 && settled_else(&before, &after)) {
        stripe_paths_note(s->config.paths, s->config.path, s->config.lanes, &after);
    }
    use_sockets(s, use, stripe_policy_keep(&s->policy));
}

/* What its congestion window lets a socket send within that time, bytes. */
static double may_send(const struct tcp_numbers *n, int64_t span_ns)
{
    return n->rtt_us > 0 ? (double)n->window * (double)span_ns / ((double)n->rtt_us * STRIPE_US) : 0;
}

void stripe_measure(struct stripe *s, int64_t now)
{
    struct stripe_totals t = s->gone;
    uint64_t rtt_us = 0;
    struct stripe_hold hold = {.span_ns = now - s->looked_at, .answers_loss = s->answers_loss};
    bool full = false;
    for (uint32_t i = 0; i < s->count; i++) {
        struct tcp_numbers n;
        if (tcp_info_read(s->socket[i]->fd, &n)) {
            add_totals(&t, &n);
            rtt_us = i == 0 ? n.rtt_us : rtt_us;
            bound_unsent(s->socket[i], n.window);
            if (i < s->use) { /* others rest */
                hold.windows += may_send(&n, hold.span_ns);
                hold.used++;
                hold.idle += n.app_limited;
                full |= stripe_pace_full(&s->socket[i]->pace);
            }
        }
    }
    if (s->full_since != 0) {
        s->full_ns += now - s->full_since;
        s->full_since = now;
    }
    uint64_t busy_us = t.busy_us - s->looked.busy_us, window_us = t.window_us - s->looked.window_us;
    struct stripe_sample sample = {
        .now = now, .span_ns = hold.span_ns, .acked = t.acked - s->looked.acked, .lost = t.retransmitted - s->looked.retransmitted,
        .present = present(s), .full = full, .buffered = 2 * (t.buffer_us - s->looked.buffer_us) > busy_us,
    };
    hold.full_ns = s->full_ns;
    hold.acked = sample.acked;
    bool slow = s->near && (double)sample.acked * 1e9 < STRIPE_SLOW * (double)hold.span_ns;
    sample.limited = !slow && stripe_policy_held(&hold) && busy_us > 0 && 2 * window_us <= busy_us;
    s->looked = t;
    s->full_ns = 0;
    s->looked_at = now;
    s->look_at = now + stripe_policy_span((int64_t)rtt_us * STRIPE_US);
    if (s->config.fixed == 0 && s->begun >= STRIPE_BEGUN) {
        decide(s, &sample);
    }
}
