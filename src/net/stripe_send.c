/* stripe_send.c - a stream of bytes goes out as numbered records, each on a socket that has room.
 *
 * A record's bytes leave from the caller's memory.  What a full socket does not take of a record is copied behind it, so that the
 * next record can go on another one; with a single socket nothing is copied: the caller comes back with the rest.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "net/stripe.h"

enum { SEND_PARTS = STRIPE_PARTS, SEND_RECORD_LEAST = 16 << 10, SEND_RECORD_SHARED = 64 << 10 };

/* Whether the next record may go there. */
static bool takes(const struct stripe *s, const struct stripe_socket *k)
{
    return !k->leaving && k->can_out && stripe_idle(s, k);
}

/* The socket that takes the next record; null: none does. */
static struct stripe_socket *pick(struct stripe *s)
{
    uint32_t used = s->use < s->count ? s->use : s->count;
    for (uint32_t i = 0; i < used; i++) {
        struct stripe_socket *k = s->socket[(s->turn + i) % used];
        if (takes(s, k)) {
            s->turn = (s->turn + i + 1) % used;
            return k;
        }
    }
    return NULL;
}

static bool others_take(const struct stripe *s, const struct stripe_socket *k)
{
    for (uint32_t i = 0; i < s->use && i < s->count; i++) {
        if (s->socket[i] != k && takes(s, s->socket[i])) {
            return true;
        }
    }
    return false;
}

/* Copies the rest of the open record behind its socket: the caller has not more than that sent by it.  False: no memory. */
static bool put_behind(struct stripe *s, const struct iovec *parts, int count)
{
    struct stripe_socket *k = s->open;
    unsigned char *to = malloc(s->open_left);
    uint32_t used = 0;
    if (to == NULL) {
        return false;
    }
    for (int i = 0; i < count && used < s->open_left; i++) {
        size_t n = parts[i].iov_len < s->open_left - used ? parts[i].iov_len : s->open_left - used;
        memcpy(to + used, parts[i].iov_base, n);
        used += (uint32_t)n;
    }
    k->tail = to;
    k->tail_at = 0;
    k->tail_used = used;
    s->open_left -= used;
    s->open = s->open_left > 0 ? s->open : NULL; /* the caller always has all of it */
    return true;
}

/* The open record goes on.  AGAIN: its socket is full and nothing else can be done. */
static pccl_status go_on(struct stripe *s, const struct iovec *parts, int count, size_t *moved)
{
    struct stripe_socket *k = s->open;
    pccl_status st = PCCL_ERR_AGAIN;
    *moved = 0;
    if (k->can_out) {
        st = stripe_push(k, parts, count, s->open_left, moved);
        s->open_left -= (uint32_t)*moved;
        if (s->open_left == 0) {
            s->open = NULL;
        }
    }
    if (st == PCCL_ERR_AGAIN && others_take(s, k)) {
        uint32_t left = s->open_left;
        if (put_behind(s, parts, count)) {
            *moved = left - s->open_left;
            st = PCCL_OK;
        }
    }
    return st;
}

/* Bytes of a record: many sockets get small ones, so that none holds much of what the others have to wait for. */
static uint32_t record_most(const struct stripe *s)
{
    uint32_t used = s->use < s->count ? s->use : s->count, most;
    if (used <= 1) {
        return STRIPE_RECORD_MOST;
    }
    most = SOCK_UNSENT / used / 4;
    return most < SEND_RECORD_LEAST ? SEND_RECORD_LEAST : most > SEND_RECORD_SHARED ? SEND_RECORD_SHARED : most;
}

static pccl_status next_record(struct stripe *s, const struct iovec *parts, int count, size_t *moved)
{
    size_t bytes = 0;
    for (int i = 0; i < count && i < SEND_PARTS; i++) {
        bytes += parts[i].iov_len;
    }
    uint32_t most = record_most(s), length = bytes < most ? (uint32_t)bytes : most;
    *moved = 0;
    for (struct stripe_socket *k = pick(s); k != NULL && length > 0; k = pick(s)) {
        stripe_head(k, &(struct stripe_record){.kind = STRIPE_DATA, .number = s->next_out, .length = length});
        pccl_status st = stripe_push(k, parts, count, length, moved);
        if (st == PCCL_ERR_AGAIN) {
            k->out_at = k->out_used = 0; /* nothing of it has left */
            continue;
        }
        if (st != PCCL_OK) {
            return st;
        }
        s->next_out++;
        if (*moved < length) {
            s->open = k;
            s->open_left = length - (uint32_t)*moved;
        }
        return PCCL_OK;
    }
    return PCCL_ERR_AGAIN;
}

/* Counts for how long the sockets have held the caller back. */
static void count_full(struct stripe *s, bool full, int64_t now)
{
    if (s->full_since != 0) {
        s->full_ns += now - s->full_since;
    }
    s->full_since = full ? now : 0;
}

pccl_status stripe_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct stripe *s = t->stripe;
    int64_t now = clock_now_ns();
    *moved = 0;
    if (now >= s->look_at) {
        stripe_measure(s, now);
    }
    if (now >= s->pace_at) {
        stripe_bound(s, now);
    }
    if (s->unsettled) {
        stripe_settle(s);
    }
    if (s->broken) {
        return PCCL_ERR_CLOSED;
    }
    pccl_status st = PCCL_ERR_AGAIN;
    if (s->open != NULL) {
        st = go_on(s, parts, count, moved);
    } else {
        st = next_record(s, parts, count, moved);
    }
    count_full(s, st == PCCL_ERR_AGAIN, now);
    stripe_sent(s, *moved);
    s->broken |= st != PCCL_OK && st != PCCL_ERR_AGAIN;
    return st;
}
