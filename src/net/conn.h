/* conn.h - a framed connection that never blocks.
 *
 * Receiving belongs to the thread that polls its loop: conn_receive, then conn_next for each whole frame.  Sending is open to
 * all threads: conn_append puts bytes into the queue, conn_flush tries to send and otherwise asks the loop to call when
 * there is room.  A connection may have a queue before it has a socket.
 *
 * Invariant: bytes leave in the order of the appends.  The socket is closed with the last reference, so that nobody ever
 * writes to a number that has been given to somebody else.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_CONN_H
#define PCCL_NET_CONN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bounds.h"
#include "core/status.h"
#include "net/loop.h"
#include "net/transport.h"
#include "wire/frame.h"

struct carry;

struct conn {
    struct source source;      /* source.ready and user are the owner's */
    void *user;                /* borrowed */
    struct transport transport;
    atomic_uint refs;
    bool single;               /* reads no further than one frame: until the connection is handed on */
    uint32_t most;             /* payload bytes accepted in a frame, below the limit of its type */
    unsigned char *in;         /* owned: bytes received, frames from in_at on */
    size_t in_at, in_used, in_capacity;
    bool in_filled; /* by one read: there may be more */
    _Atomic uint64_t tx_bytes, rx_bytes;
    struct carry *_Atomic carry; /* owned: memory that it moves to, or has moved to; null: none */
    pthread_mutex_t lock;      /* of what follows */
    struct loop *loop;         /* borrowed; null: not watched */
    unsigned char *out;        /* owned: the queue, bytes from out_at on */
    size_t out_at, out_used, out_capacity;
    const void *lent;          /* borrowed: follows the queue */
    size_t lent_bytes;
    bool open;                 /* has a socket */
    bool armed;                /* the loop calls when there is room */
    bool broken;               /* nothing more can be sent */
    bool finishing, finished;  /* the sending direction ends with the queue; has ended */
};

/* With one reference; null: no memory. */
struct conn *conn_new(void);
struct conn *conn_ref(struct conn *c);
void conn_unref(struct conn *c);

/* Takes a connected socket; takes a transport. */
void conn_open_take(struct conn *c, int fd);
void conn_open_transport(struct conn *c, const struct transport *t);

/* Moves the socket to a transport of the caller's, or to a connection that has none yet; `c` loses one reference. */
void conn_give_transport(struct conn *c, struct transport *to);
void conn_give_socket(struct conn *c, struct conn *to);

/* From now on ready(&c->source, events) is called by the loop's thread: EPOLLIN: receive; EPOLLOUT: flush; EPOLLHUP,
 * EPOLLERR: receive, which then says CLOSED.  The loop holds no reference: detach before the last one goes. */
pccl_status conn_attach(struct conn *c, struct loop *loop, void (*ready)(struct source *, uint32_t), void *user,
                        struct err *err) PCCL_MUST_CHECK;
void conn_detach(struct conn *c);
struct conn *conn_of(struct source *source);

/* Reads what has arrived.  AGAIN: nothing; CLOSED: the stream has ended (frames received before are still there);
 * PROTOCOL, NOMEM: end it. */
pccl_status conn_receive(struct conn *c) PCCL_MUST_CHECK;

/* The next whole frame; its payload is valid until the next conn_receive.  AGAIN: there is none; PROTOCOL: the bytes are
 * no frame, or a longer one than allowed. */
pccl_status conn_next(struct conn *c, struct frame_header *header, const void **payload) PCCL_MUST_CHECK;

/* After PROTOCOL: the version in which the other end speaks this protocol; 0: it speaks something else. */
uint8_t conn_other_version(const struct conn *c);

/* Adds bytes, and more bytes behind them (data may be null), as one piece.  AGAIN: the queue would pass CONN_QUEUE_BYTES: the
 * other end does not read; NOMEM.  On a broken connection it does nothing. */
enum { CONN_QUEUE_BYTES = BOUNDS_OPS * (BOUNDS_EAGER_BYTES + 4096) + (4 << 20) }; /* all that a member may have under way, and words about it */
pccl_status conn_append(struct conn *c, const void *bytes, size_t size, const void *data, size_t data_size);
/* The same, but `data` stays where it is until this thread has called conn_flush, which copies what does not go. */
pccl_status conn_lend(struct conn *c, const void *bytes, size_t size, const void *data, size_t data_size);

/* Sends what goes.  AGAIN: some is left and will be sent by the loop's thread; CLOSED. */
pccl_status conn_flush(struct conn *c);

/* Has the loop's thread send it, with whatever is appended until it comes to that: for who has more to say. */
void conn_leave(struct conn *c);

/* By the thread that polls: gives back what holds nothing, buffers and memory that is shared; of many connections few have something
 * to say at a time. */
void conn_rest(struct conn *c);

/* Moves a connection that a loop watches into shared memory: takes the transport (closed if that fails).  `first`: this end moves at
 * once; the other follows when it reads that, so it must have been called there by then. */
pccl_status conn_share(struct conn *c, const struct transport *t, bool first) PCCL_MUST_CHECK;
/* Whether what is said now goes through shared memory. */
bool conn_shares(struct conn *c);

size_t conn_queued(struct conn *c); /* bytes not sent */

/* Sends what is queued, then tells the other end that nothing more comes. */
void conn_finish(struct conn *c);

/* Ends both directions: the other end sees it, and our loop calls ready, where conn_receive says CLOSED. */
void conn_shutdown(struct conn *c);

#endif
