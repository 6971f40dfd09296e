/* transport.h - the seam between a connection and what carries its bytes.
 *
 * A stream of bytes in each direction, reliable and ordered, with a descriptor that tells when it is ready: a TCP socket,
 * memory that two processes of one host share, or a connection through libfabric.  TLS comes behind the same few functions.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_TRANSPORT_H
#define PCCL_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/status.h"
#include "net/sock.h"

struct transport;
struct shm;
struct fabric;

struct transport_ops {
    /* Moves as much as goes without waiting; *moved > 0 with PCCL_OK.  AGAIN: nothing now; CLOSED: the stream has ended. */
    pccl_status (*send)(struct transport *t, struct iovec *parts, int count, size_t *moved);
    pccl_status (*receive)(struct transport *t, struct iovec *parts, int count, size_t *moved);
    void (*finish)(struct transport *t);   /* the sending direction ends */
    void (*shutdown)(struct transport *t); /* both directions; the other end and our poller notice */
    void (*close)(struct transport *t);
    void (*begin)(struct transport *t);    /* the greeting is over: bulk data from here on */
    /* Null where only the descriptor tells: */
    bool (*open)(struct transport *t, void (*told)(void *user), void *user); /* by the thread that polls; `told` when something has changed */
    bool (*good)(const struct transport *t); /* opened: bytes go both ways; before that a failure is nobody's fault */
    bool (*has)(const struct transport *t); /* something to receive: looks without a system call */
    /* As receive, but the bytes stay where they are until `lent` takes them; nothing says that they do not change meanwhile. */
    pccl_status (*lend)(struct transport *t, const void **data, size_t *bytes);
    void (*lent)(struct transport *t, size_t bytes);
    bool (*rest)(struct transport *t);      /* from now on the descriptor tells; false: something has come */
    bool (*room)(struct transport *t, bool sleep); /* after AGAIN of send: it is worth another one; `sleep`: else the descriptor tells, from now on */
    void (*spare)(struct transport *t);     /* gives back memory of what it sends, and takes it again when it sends: NOMEM then, if there is none */
    pccl_status (*hear)(struct transport *t); /* takes what the descriptor tells.  CLOSED: the other end has gone, receive what it left */
};

enum transport_kind { TRANSPORT_TCP, TRANSPORT_SHM, TRANSPORT_FABRIC };

struct transport {
    const struct transport_ops *ops;
    int fd; /* owned; becomes readable and writable */
    struct sock_buffers buffers; /* TCP: for bulk data */
    struct shm *shm; /* owned; shared memory: readable means to hear, and to look in both directions */
    struct fabric *fabric; /* owned; the same for libfabric.  Both null: a TCP socket */
};

static inline enum transport_kind transport_kind(const struct transport *t)
{
    return t->shm != NULL ? TRANSPORT_SHM : t->fabric != NULL ? TRANSPORT_FABRIC : TRANSPORT_TCP;
}

/* Takes a connected socket; `buffers` are for bulk data. */
void transport_tcp_take(struct transport *t, int fd, struct sock_buffers buffers);

/* Take a connected Unix socket, which is closed if that fails: the other end is another user's, or there is no memory.  The
 * dialler's memory, rings of `bytes` each, goes with its first bytes; the acceptor maps what came with them (once, before it answers). */
pccl_status transport_shm_dial(struct transport *t, int fd, uint32_t bytes, struct err *err) PCCL_MUST_CHECK;
pccl_status transport_shm_accept(struct transport *t, int fd, struct err *err) PCCL_MUST_CHECK;
pccl_status transport_shm_map(struct transport *t, uint32_t bytes, struct err *err) PCCL_MUST_CHECK;

#endif
