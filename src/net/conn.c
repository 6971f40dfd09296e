/* conn.c - framed connections.
 * SPDX-License-Identifier: MIT */
#include "net/conn.h"

#include <stdlib.h>
#include <string.h>

#include "core/list.h"
#include "core/pages.h"
#include "net/carry.h"

enum {
    CONN_READ_BYTES = 64 << 10, /* room for one read of a connection that is used: pages of their own, which leave no hole in the heap */
    CONN_FIRST_BYTES = 256,     /* of the rest, most say signs of life only; and of what is queued */
    CONN_LEAVE_BYTES = 64 << 10, /* a queue as long as this is sent by whoever appends, if nobody else does */
    CONN_KEEP_BYTES = 1 << 20,  /* an empty queue larger than this is given back */
};

struct conn *conn_new(void)
{
    struct conn *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->source.fd = -1;
    c->transport.fd = -1;
    c->most = UINT32_MAX;
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

struct conn *conn_ref(struct conn *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

/* Of so many bytes; null: no memory. */
static unsigned char *conn_in_new(size_t bytes)
{
    return bytes < CONN_READ_BYTES ? malloc(bytes) : pages_new(bytes);
}

static void conn_in_free(struct conn *c)
{
    if (c->in_capacity < CONN_READ_BYTES) {
        free(c->in);
    } else {
        pages_free(c->in, c->in_capacity);
    }
}

void conn_unref(struct conn *c)
{
    if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (c->open) {
        c->transport.ops->close(&c->transport);
    }
    if (c->carry != NULL) {
        carry_free(c->carry);
    }
    pthread_mutex_destroy(&c->lock);
    conn_in_free(c);
    free(c->out);
    free(c);
}

void conn_open_transport(struct conn *c, const struct transport *t)
{
    pthread_mutex_lock(&c->lock);
    c->transport = *t;
    c->source.fd = t->fd;
    c->open = true;
    pthread_mutex_unlock(&c->lock);
}

void conn_open_take(struct conn *c, int fd)
{
    struct transport t;
    transport_tcp_take(&t, fd, &(struct sock_bulk){.buffers = {SOCK_BUFFER_AUTO, SOCK_BUFFER_AUTO}}); /* its messages are short */
    conn_open_transport(c, &t);
}

void conn_give_transport(struct conn *c, struct transport *to)
{
    pthread_mutex_lock(&c->lock);
    *to = c->transport;
    c->transport = (struct transport){.fd = -1};
    c->open = false;
    pthread_mutex_unlock(&c->lock);
    conn_unref(c);
}

void conn_give_socket(struct conn *c, struct conn *to)
{
    struct transport t;
    conn_give_transport(c, &t);
    pthread_mutex_lock(&to->lock);
    to->transport = t;
    to->source.fd = t.fd;
    to->open = true;
    pthread_mutex_unlock(&to->lock);
}

struct conn *conn_of(struct source *source)
{
    return LIST_ENTRY(source, struct conn, source);
}

/* Bytes that have not been sent. */
static size_t conn_left(const struct conn *c)
{
    return c->out_used - c->out_at + c->lent_bytes;
}

pccl_status conn_attach(struct conn *c, struct loop *loop, void (*ready)(struct source *, uint32_t), void *user,
                        struct err *err)
{
    pthread_mutex_lock(&c->lock);
    c->source.ready = ready;
    c->user = user;
    c->loop = loop;
    c->armed = conn_left(c) > 0;
    pccl_status st = loop_add(loop, &c->source, EPOLLIN | (c->armed ? EPOLLOUT : 0), err);
    if (st != PCCL_OK) {
        c->loop = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

void conn_detach(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->loop != NULL) {
        if (c->carry != NULL) {
            carry_unwatch(c->carry);
        }
        loop_remove(c->loop, &c->source);
        c->loop = NULL;
        c->armed = false;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Bytes that the frame at in_at takes in all, as far as it is known; 0: no frame. */
static size_t conn_frame_bytes(const struct conn *c)
{
    struct frame_header h;
    if (c->in_used - c->in_at < FRAME_HEADER_BYTES) {
        return FRAME_HEADER_BYTES;
    }
    if (!frame_get(c->in + c->in_at, &h) || h.length > c->most) {
        return 0;
    }
    return FRAME_HEADER_BYTES + (size_t)h.length;
}

/* Moves what is left to the front and makes room for `want` bytes from in_at on. */
static bool conn_make_room(struct conn *c, size_t want)
{
    if (c->in_at > 0) {
        memmove(c->in, c->in + c->in_at, c->in_used - c->in_at);
        c->in_used -= c->in_at;
        c->in_at = 0;
    }
    if (want > c->in_capacity) {
        unsigned char *grown = conn_in_new(want);
        if (grown == NULL) {
            return false;
        }
        if (c->in_used > 0) {
            memcpy(grown, c->in, c->in_used);
        }
        conn_in_free(c);
        c->in = grown;
        c->in_capacity = want;
    }
    return true;
}

pccl_status conn_receive(struct conn *c)
{
    size_t frame = c->in_used > c->in_at ? conn_frame_bytes(c) : FRAME_HEADER_BYTES;
    if (frame == 0) {
        return PCCL_ERR_PROTOCOL;
    }
    if (c->single && c->in_used - c->in_at >= frame && frame > FRAME_HEADER_BYTES) {
        return PCCL_ERR_AGAIN; /* the one frame is here */
    }
    size_t least = c->in_filled ? CONN_READ_BYTES : CONN_FIRST_BYTES;
    size_t want = c->single || frame > least ? frame : least;
    if (!conn_make_room(c, want)) {
        return PCCL_ERR_NOMEM;
    }
    size_t moved;
    struct iovec part = {c->in + c->in_used, (c->single ? frame : c->in_capacity) - c->in_used};
    if (part.iov_len == 0) {
        return PCCL_OK; /* whole frames wait to be taken */
    }
    pccl_status st = carry_receive(c->carry, &c->transport, &part, &moved);
    c->in_used += moved;
    c->in_filled = c->in_filled || moved == part.iov_len;
    atomic_fetch_add_explicit(&c->rx_bytes, moved, memory_order_relaxed);
    return st;
}

static bool conn_out_room(struct conn *c, size_t size)
{
    if (c->out_at == c->out_used) {
        c->out_at = c->out_used = 0;
    }
    if (c->out_capacity - c->out_used >= size) {
        return true;
    }
    size_t left = c->out_used - c->out_at;
    if (c->out_at > 0) {
        memmove(c->out, c->out + c->out_at, left);
        c->out_at = 0;
        c->out_used = left;
        if (c->out_capacity - left >= size) {
            return true;
        }
    }
    size_t capacity = c->out_capacity < CONN_FIRST_BYTES ? CONN_FIRST_BYTES : c->out_capacity;
    while (capacity - left < size) {
        capacity *= 2;
    }
    unsigned char *grown = realloc(c->out, capacity);
    if (grown == NULL) {
        return false;
    }
    c->out = grown;
    c->out_capacity = capacity;
    return true;
}

static void conn_put(struct conn *c, const void *bytes, size_t size)
{
    if (size > 0) {
        memcpy(c->out + c->out_used, bytes, size);
        c->out_used += size;
    }
}

/* Room for so much behind what was lent, which is in the queue from now on. */
static bool conn_keep_lent(struct conn *c, size_t size)
{
    if (!conn_out_room(c, c->lent_bytes + size)) {
        return false;
    }
    conn_put(c, c->lent, c->lent_bytes);
    c->lent_bytes = 0;
    return true;
}

static pccl_status conn_append_locked(struct conn *c, const void *bytes, size_t size, const void *data, size_t data_size)
{
    if (c->broken) {
        return PCCL_OK; /* whoever polls finds out and says so once */
    }
    if (conn_left(c) + size + data_size > CONN_QUEUE_BYTES) {
        return PCCL_ERR_AGAIN;
    }
    if (!conn_keep_lent(c, size + data_size)) {
        return PCCL_ERR_NOMEM;
    }
    conn_put(c, bytes, size);
    conn_put(c, data, data_size);
    return PCCL_OK;
}

pccl_status conn_append(struct conn *c, const void *bytes, size_t size, const void *data, size_t data_size)
{
    pthread_mutex_lock(&c->lock);
    pccl_status st = conn_append_locked(c, bytes, size, data, data_size);
    pthread_mutex_unlock(&c->lock);
    return st;
}

pccl_status conn_lend(struct conn *c, const void *bytes, size_t size, const void *data, size_t data_size)
{
    pthread_mutex_lock(&c->lock);
    bool fits = conn_left(c) + size + data_size <= CONN_QUEUE_BYTES;
    pccl_status st = fits ? conn_append_locked(c, bytes, size, NULL, 0) : PCCL_ERR_AGAIN;
    if (st == PCCL_OK && !c->broken) {
        c->lent = data;
        c->lent_bytes = data_size;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

static void conn_arm(struct conn *c, bool armed)
{
    if (c->armed != armed && c->loop != NULL) {
        c->armed = armed;
        loop_change(c->loop, &c->source, EPOLLIN | (armed ? EPOLLOUT : 0));
    }
}

/* The first `left` bytes of what is to go. */
static int conn_parts(const struct conn *c, size_t left, struct iovec part[2])
{
    size_t queued = c->out_used - c->out_at, first = left < queued ? left : queued;
    int parts = 0;
    if (first > 0) {
        part[parts++] = (struct iovec){c->out + c->out_at, first};
    }
    if (left > first) {
        part[parts++] = (struct iovec){(void *)(uintptr_t)c->lent, left - first};
    }
    return parts;
}

pccl_status conn_flush(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    pccl_status st = c->broken ? PCCL_ERR_CLOSED : PCCL_OK;
    bool by_socket = true; /* else a bell tells of room */
    while (c->open && !c->broken && conn_left(c) > 0) {
        size_t moved, left = conn_left(c), queued = c->out_used - c->out_at;
        struct transport *t = carry_sender(c->carry, &c->transport, &left);
        struct iovec part[2];
        int parts = conn_parts(c, left, part);
        by_socket = t == &c->transport;
        st = t->ops->send(t, part, parts, &moved);
        if (st == PCCL_ERR_AGAIN && !by_socket && t->ops->room(t, true)) {
            continue;
        }
        if (st != PCCL_OK) {
            break;
        }
        queued = moved < queued ? moved : queued;
        c->out_at += queued;
        if (moved > queued) { /* nothing is added to no place: none may be lent */
            c->lent = (const unsigned char *)c->lent + (moved - queued);
            c->lent_bytes -= moved - queued;
        }
        carry_moved(c->carry, moved);
        atomic_fetch_add_explicit(&c->tx_bytes, moved, memory_order_relaxed);
    }
    c->lent_bytes = c->broken ? 0 : c->lent_bytes;
    st = conn_keep_lent(c, 0) ? st : PCCL_ERR_NOMEM;
    if (st != PCCL_OK && st != PCCL_ERR_AGAIN) {
        if (st != PCCL_ERR_CLOSED) {
            c->transport.ops->shutdown(&c->transport); /* whoever polls finds out */
        }
        c->broken = true;
        c->out_at = c->out_used;
    }
    if (c->open) {
        conn_arm(c, by_socket && c->out_at < c->out_used);
    }
    if (c->open && c->finishing && !c->finished && c->out_at == c->out_used) {
        c->finished = true;
        c->transport.ops->finish(&c->transport);
    }
    if (c->out_at == c->out_used && c->out_capacity > CONN_KEEP_BYTES) {
        free(c->out);
        c->out = NULL;
        c->out_at = c->out_used = c->out_capacity = 0;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

void conn_leave(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    bool left = c->loop != NULL && !carry_sends(c->carry) && !c->broken && conn_left(c) < CONN_LEAVE_BYTES; /* memory costs less than telling it */
    if (left) {
        conn_arm(c, true);
    }
    pthread_mutex_unlock(&c->lock);
    if (!left) {
        conn_flush(c);
    }
}

void conn_rest(struct conn *c)
{
    if (c->in_at == c->in_used) {
        conn_in_free(c);
        c->in = NULL;
        c->in_at = c->in_used = c->in_capacity = 0;
        c->in_filled = false;
    }
    pthread_mutex_lock(&c->lock);
    if (c->out_at == c->out_used) {
        free(c->out);
        c->out = NULL;
        c->out_at = c->out_used = c->out_capacity = 0;
    }
    carry_spare(c->carry);
    pthread_mutex_unlock(&c->lock);
}

size_t conn_queued(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    size_t queued = c->broken ? 0 : conn_left(c);
    pthread_mutex_unlock(&c->lock);
    return queued;
}

void conn_finish(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    c->finishing = true;
    pthread_mutex_unlock(&c->lock);
    conn_flush(c);
}

void conn_shutdown(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->open) {
        c->transport.ops->shutdown(&c->transport);
    }
    c->broken = true;
    pthread_mutex_unlock(&c->lock);
}

/* ---- Shared memory ---------------------------------------------------------------------------------------------------- */

/* With conn.lock: what is appended from now on goes through memory. */
static pccl_status conn_say_switch(struct conn *c, struct carry *y)
{
    unsigned char frame[FRAME_HEADER_BYTES];
    frame_put(frame, &(struct frame_header){.type = FRAME_SWITCH});
    pccl_status st = conn_append_locked(c, frame, sizeof frame, NULL, 0);
    if (st == PCCL_OK) {
        carry_out(y, c->out_used - c->out_at);
        conn_arm(c, true); /* sent by the loop's thread */
    }
    return st;
}

static void conn_told(struct carry *y)
{
    struct conn *c = y->user;
    if (conn_queued(c) > 0) {
        conn_flush(c);
    }
    if (y->ended && !y->in) {
        pthread_mutex_lock(&c->lock);
        bool moved = y->out;
        pthread_mutex_unlock(&c->lock);
        carry_unwatch(y);
        if (moved) {
            conn_shutdown(c);
        } /* else the other end has given it up before it said anything: the socket goes on */
    } else if (y->in && (y->ended || carry_has(y))) {
        c->source.ready(&c->source, EPOLLIN);
    }
}

pccl_status conn_share(struct conn *c, const struct transport *t, bool first)
{
    struct transport own = *t;
    pthread_mutex_lock(&c->lock);
    pccl_status st = c->loop == NULL || c->broken || c->carry != NULL ? PCCL_ERR_CLOSED : PCCL_OK;
    if (st != PCCL_OK) {
        own.ops->close(&own);
    } else {
        struct carry *y = carry_new(t, c->loop, conn_told, c);
        c->carry = y;
        st = y == NULL ? PCCL_ERR_CLOSED : first ? conn_say_switch(c, y) : PCCL_OK;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

bool conn_shares(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    bool shares = carry_sends(c->carry);
    pthread_mutex_unlock(&c->lock);
    return shares;
}

/* SWITCH has been read, and nothing behind it. */
static pccl_status conn_switch(struct conn *c)
{
    struct carry *y = c->carry;
    pccl_status st = PCCL_OK;
    if (y == NULL || y->in) {
        return PCCL_ERR_PROTOCOL;
    }
    carry_in(y);
    pthread_mutex_lock(&c->lock);
    if (!y->out) {
        st = conn_say_switch(c, y);
    }
    pthread_mutex_unlock(&c->lock);
    return st == PCCL_OK ? PCCL_ERR_AGAIN : st;
}

/* ---- Frames that have come ------------------------------------------------------------------------------------------- */

pccl_status conn_next(struct conn *c, struct frame_header *header, const void **payload)
{
    if (c->in_used - c->in_at < FRAME_HEADER_BYTES) {
        return PCCL_ERR_AGAIN;
    }
    size_t bytes = conn_frame_bytes(c);
    if (bytes == 0) {
        return PCCL_ERR_PROTOCOL;
    }
    if (c->in_used - c->in_at < bytes) {
        return PCCL_ERR_AGAIN;
    }
    bool ok = frame_get(c->in + c->in_at, header);
    *payload = c->in + c->in_at + FRAME_HEADER_BYTES;
    c->in_at += bytes;
    if (ok && header->type == FRAME_SWITCH) {
        return c->in_at == c->in_used ? conn_switch(c) : PCCL_ERR_PROTOCOL;
    }
    return ok ? PCCL_OK : PCCL_ERR_PROTOCOL;
}

uint8_t conn_other_version(const struct conn *c)
{
    return c->in_used - c->in_at < FRAME_HEADER_BYTES ? 0 : frame_other_version(c->in + c->in_at);
}
