/* transport_fabric.c - a stream of bytes through a port of libfabric.
 *
 * The TCP connection that carried the greeting stays: one byte on it says that this end has opened its side, so that messages find
 * it; its end is the end of the stream, and the sign of life.  HELLO, the first message, and the answer to it show that the way through
 * the fabric is good, there and back, before anything is trusted to it; a way that is not ends the stream, and the next one is TCP.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "net/fabric_port.h"
#include "net/fds.h"
#include "net/sock.h"

static bool fabric_over(const struct fabric *f)
{
    return f->broken || f->ended;
}

static bool fabric_stream_good(const struct transport *t)
{
    return t->fabric->good;
}

static pccl_status fabric_stream_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct fabric *f = t->fabric;
    *moved = 0;
    if (fabric_over(f)) {
        return PCCL_ERR_CLOSED;
    }
    if (!f->good || f->credit == 0) {
        return PCCL_ERR_AGAIN; /* a message tells of room */
    }
    struct fabric_buffer *b = fabric_take_buffer(f->port);
    if (b == NULL) {
        fabric_wait(f);
        return PCCL_ERR_AGAIN;
    }
    for (int i = 0; i < count; i++) {
        size_t room = FABRIC_BUFFER_BYTES - b->used;
        size_t n = parts[i].iov_len < room ? parts[i].iov_len : room;
        if (n > 0) {
            memcpy(b->bytes + b->used, parts[i].iov_base, n);
        }
        b->used += (uint32_t)n;
    }
    size_t bytes = b->used - FABRIC_HEAD_BYTES;
    pccl_status st = fabric_send(f, FABRIC_BYTES, b);
    if (st != PCCL_OK) {
        fabric_give_buffer(f->port, b);
        return st;
    }
    f->credit--;
    *moved = bytes;
    return PCCL_OK;
}

static pccl_status fabric_stream_receive(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct fabric *f = t->fabric;
    *moved = 0;
    for (int i = 0; i < count; i++) {
        unsigned char *to = parts[i].iov_base;
        for (size_t left = parts[i].iov_len; left > 0 && !list_empty(&f->arrived);) {
            struct fabric_buffer *b = LIST_ENTRY(f->arrived.next, struct fabric_buffer, all);
            size_t n = b->used - b->at < left ? b->used - b->at : left;
            memcpy(to, b->bytes + b->at, n);
            b->at += (uint32_t)n;
            to += n;
            left -= n;
            *moved += n;
            if (b->at == b->used) {
                fabric_was_read(f, b);
            }
        }
    }
    fabric_say(f);
    return *moved > 0 ? PCCL_OK : fabric_over(f) ? PCCL_ERR_CLOSED : PCCL_ERR_AGAIN;
}

static void fabric_stream_finish(struct transport *t)
{
    shutdown(t->fd, SHUT_WR);
}

static void fabric_stream_shutdown(struct transport *t)
{
    shutdown(t->fd, SHUT_RDWR);
}

static void fabric_stream_close(struct transport *t)
{
    fds_close(t->fd);
    t->fd = -1;
    fabric_leave(t->fabric);
    t->fabric = NULL;
}

static void fabric_stream_begin(struct transport *t)
{
    (void)t; /* the socket carries nothing that is large */
}

static bool fabric_stream_open(struct transport *t, void (*told)(void *user), void *user)
{
    size_t moved;
    t->fabric->told = told;
    t->fabric->user = user;
    return fabric_enter(t->fabric) && sock_moved(send(t->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT), &moved) == PCCL_OK;
}

static pccl_status fabric_stream_hear(struct transport *t)
{
    struct fabric *f = t->fabric;
    for (;;) {
        unsigned char said[2];
        size_t bytes;
        pccl_status st = sock_moved(recv(t->fd, said, sizeof said, MSG_DONTWAIT), &bytes);
        if (st != PCCL_OK) {
            f->ended |= st == PCCL_ERR_CLOSED;
            fabric_say(f);
            return st == PCCL_ERR_AGAIN ? PCCL_OK : st;
        }
        if (bytes > 1 || f->lives) {
            return PCCL_ERR_PROTOCOL; /* it says that once */
        }
        f->lives = true;
        f->lives_at = clock_now_ns();
    }
}

bool transport_fabric_failed(const struct transport *t)
{
    return t->fabric->broken || !t->fabric->good;
}

static const struct transport_ops fabric_ops = {
    .send = fabric_stream_send, .receive = fabric_stream_receive, .finish = fabric_stream_finish, .shutdown = fabric_stream_shutdown,
    .close = fabric_stream_close, .begin = fabric_stream_begin, .open = fabric_stream_open, .good = fabric_stream_good, .hear = fabric_stream_hear,
};

pccl_status transport_fabric_take(struct transport *t, struct fabric_port *port, const struct fabric_end *ours,
                                  const struct fabric_end *theirs)
{
    struct fabric *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return PCCL_ERR_NOMEM;
    }
    f->port = port;
    f->ours = *ours;
    f->theirs = *theirs;
    list_init(&f->by_key);
    list_init(&f->owing);
    list_init(&f->closing);
    list_init(&f->early);
    list_init(&f->arrived);
    t->ops = &fabric_ops;
    t->fabric = f;
    return PCCL_OK;
}
