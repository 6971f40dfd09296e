/* stripe_push.c - bytes into one socket of a stripe: a head, what was copied behind it, then what the caller still has.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/socket.h>

#include "net/stripe.h"

bool stripe_idle(const struct stripe *s, const struct stripe_socket *k)
{
    return k->out_at == k->out_used && k->tail_at == k->tail_used && s->open != k;
}

/* Sends what the socket owes and then, of the caller's parts, at most `most` bytes; *moved counts those. */
pccl_status stripe_push(struct stripe_socket *k, const struct iovec *parts, int count, size_t most, size_t *moved)
{
    struct iovec out[STRIPE_PARTS + 2];
    struct msghdr m = {.msg_iov = out};
    size_t bytes;
    *moved = 0;
    if (k->out_at < k->out_used) {
        out[m.msg_iovlen++] = (struct iovec){k->out_head + k->out_at, k->out_used - k->out_at};
    }
    if (k->tail_at < k->tail_used) {
        out[m.msg_iovlen++] = (struct iovec){k->tail + k->tail_at, k->tail_used - k->tail_at};
    }
    for (int i = 0; i < count && i < STRIPE_PARTS && most > 0; i++) {
        size_t n = parts[i].iov_len < most ? parts[i].iov_len : most;
        out[m.msg_iovlen++] = (struct iovec){parts[i].iov_base, n};
        most -= n;
    }
    if (m.msg_iovlen == 0) {
        return PCCL_OK;
    }
    pccl_status st = sock_moved(sendmsg(k->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT), &bytes);
    if (st != PCCL_OK) {
        k->can_out = k->can_out && st != PCCL_ERR_AGAIN;
        return st;
    }
    size_t head = k->out_used - k->out_at < bytes ? k->out_used - k->out_at : bytes;
    k->out_at += (uint32_t)head;
    bytes -= head;
    size_t tail = k->tail_used - k->tail_at < bytes ? k->tail_used - k->tail_at : bytes;
    k->tail_at += (uint32_t)tail;
    *moved = bytes - tail;
    if (k->tail_used > 0 && k->tail_at == k->tail_used) {
        free(k->tail);
        k->tail = NULL;
        k->tail_at = k->tail_used = 0;
    }
    return PCCL_OK;
}

/* Sends what it owes, as far as goes. */
static void flush(struct stripe *s, struct stripe_socket *k)
{
    size_t none;
    while (k->can_out && (k->out_at < k->out_used || k->tail_at < k->tail_used)) {
        pccl_status st = stripe_push(k, NULL, 0, 0, &none);
        if (st != PCCL_OK && st != PCCL_ERR_AGAIN) {
            s->broken = true;
            return;
        }
    }
}

void stripe_head(struct stripe_socket *k, const struct stripe_record *m)
{
    struct writer w;
    writer_init(&w, k->out_head, sizeof k->out_head);
    put_stripe_record(&w, m);
    k->out_at = 0;
    k->out_used = (uint32_t)w.used;
}

void stripe_say(struct stripe *s)
{
    s->unsettled = false;
    for (uint32_t i = 0; i < s->count; i++) {
        struct stripe_socket *k = s->socket[i];
        flush(s, k);
        bool wants = i == 0 && !s->config.dials && s->asked != s->keep, leaves = k->leaving && !k->left_out;
        if (!stripe_idle(s, k) && (wants || leaves)) {
            s->unsettled = true;
        } else if (wants) {
            s->asked = s->keep;
            stripe_head(k, &(struct stripe_record){.kind = STRIPE_WANT, .number = s->keep});
        } else if (leaves) {
            k->left_out = true;
            stripe_head(k, &(struct stripe_record){.kind = STRIPE_LEAVE});
        }
        flush(s, k);
    }
}
