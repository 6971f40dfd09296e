/* stripe_receive.c - records of several sockets become one stream of bytes again.
 *
 * The record that is next is received in place, with the head behind it.  A socket whose record comes later is read no further than
 * that record's head: what follows waits in the kernel, whose window then holds its sender back.
 * SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/socket.h>

#include "net/stripe.h"

enum { RECEIVE_PARTS = 8 };

/* A head is complete.  False: the other end breaks the rules. */
static bool take_head(struct stripe *s, struct stripe_socket *k)
{
    struct stripe_record m;
    struct reader r;
    reader_init(&r, k->in_head, sizeof k->in_head);
    k->in_used = 0;
    if (!get_stripe_record(&r, &m)) {
        return false;
    }
    if (m.kind == STRIPE_LEAVE) {
        k->left_in = k->leaving = true; /* answered alike */
        s->unsettled = true;
        return k != s->socket[0];
    }
    if (m.kind == STRIPE_WANT) {
        s->theirs = m.number;
        s->unsettled = true;
        return s->config.dials && k == s->socket[0];
    }
    if ((int32_t)(m.number - s->next_in) < 0) {
        return false;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->socket[i]->held && s->socket[i]->in_number == m.number) {
            return false;
        }
    }
    k->held = true;
    k->in_number = m.number;
    k->in_left = m.length;
    return true;
}

/* Reads heads of a socket until one of data has come. */
static pccl_status read_head(struct stripe *s, struct stripe_socket *k)
{
    while (!k->held && !k->left_in) {
        size_t n;
        pccl_status st = sock_moved(recv(k->fd, k->in_head + k->in_used, STRIPE_HEAD_BYTES - k->in_used, MSG_DONTWAIT), &n);
        if (st != PCCL_OK) {
            k->can_in = k->can_in && st != PCCL_ERR_AGAIN;
            return st;
        }
        k->in_used += (uint32_t)n;
        if (k->in_used == STRIPE_HEAD_BYTES && !take_head(s, k)) {
            return PCCL_ERR_PROTOCOL;
        }
    }
    return PCCL_OK;
}

/* Finds the socket of the next record.  AGAIN: it has not come. */
static pccl_status find_next(struct stripe *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        struct stripe_socket *k = s->socket[i];
        if (k->held && k->in_number == s->next_in) {
            s->current = k;
            return PCCL_OK;
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        struct stripe_socket *k = s->socket[i];
        if (k->held || k->left_in || !k->can_in) {
            continue;
        }
        pccl_status st = read_head(s, k);
        if (st != PCCL_OK && st != PCCL_ERR_AGAIN) {
            return st;
        }
        if (k->held && k->in_number == s->next_in) {
            s->current = k;
            return PCCL_OK;
        }
    }
    return PCCL_ERR_AGAIN;
}

/* One read of the current record, from *moved on, and of the head behind it. */
static pccl_status read_record(struct stripe *s, const struct iovec *parts, int count, size_t *moved)
{
    struct iovec in[RECEIVE_PARTS + 1];
    struct msghdr m = {.msg_iov = in};
    struct stripe_socket *k = s->current;
    size_t skip = *moved, left = k->in_left, bytes;
    for (int i = 0; i < count && left > 0 && m.msg_iovlen < RECEIVE_PARTS; i++) {
        size_t here = parts[i].iov_len;
        if (skip >= here) {
            skip -= here;
            continue;
        }
        size_t n = here - skip < left ? here - skip : left;
        in[m.msg_iovlen++] = (struct iovec){(unsigned char *)parts[i].iov_base + skip, n};
        skip = 0;
        left -= n;
    }
    size_t payload = k->in_left - left;
    if (left == 0) {
        in[m.msg_iovlen++] = (struct iovec){k->in_head, STRIPE_HEAD_BYTES};
    }
    pccl_status st = k->can_in ? sock_moved(recvmsg(k->fd, &m, MSG_DONTWAIT), &bytes) : PCCL_ERR_AGAIN;
    if (st != PCCL_OK) {
        k->can_in = k->can_in && st != PCCL_ERR_AGAIN;
        return st;
    }
    payload = bytes < payload ? bytes : payload;
    *moved += payload;
    k->in_left -= (uint32_t)payload;
    if (k->in_left > 0) {
        return PCCL_OK;
    }
    k->held = false;
    s->current = NULL;
    s->next_in++;
    k->in_used = (uint32_t)(bytes - payload);
    return k->in_used < STRIPE_HEAD_BYTES || take_head(s, k) ? PCCL_OK : PCCL_ERR_PROTOCOL;
}

pccl_status stripe_receive(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct stripe *s = t->stripe;
    size_t offered = 0;
    pccl_status st = s->broken ? PCCL_ERR_CLOSED : PCCL_OK;
    *moved = 0;
    for (int i = 0; i < count && i < RECEIVE_PARTS; i++) {
        offered += parts[i].iov_len;
    }
    while (st == PCCL_OK && *moved < offered) {
        st = s->current != NULL ? PCCL_OK : find_next(s);
        if (st == PCCL_OK) {
            st = read_record(s, parts, count, moved);
        }
    }
    if (s->unsettled) {
        stripe_settle(s);
    }
    if (st != PCCL_OK && st != PCCL_ERR_AGAIN) {
        s->broken = true; /* said with the next call, if this one has moved something */
    }
    return *moved > 0 ? PCCL_OK : st;
}
