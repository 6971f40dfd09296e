/* transport.h - the seam between a connection and what carries its bytes.
 *
 * A stream of bytes in each direction, reliable and ordered, with a descriptor that tells when it is ready: a TCP socket,
 * memory that two processes of one host share, or a connection through libfabric.  TLS comes behind the same few functions.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_TRANSPORT_H
#define PCCL_NET_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/status.h"
#include "net/sock.h"

struct transport;
struct shm;
struct fabric;
struct stripe;

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
    int64_t (*rtt_ns)(const struct transport *t); /* the last round trip that was measured; 0: unknown, or within this host */
    pccl_status (*hear)(struct transport *t); /* takes what the descriptor tells.  CLOSED: the other end has gone, receive what it left */
};

enum transport_kind { TRANSPORT_TCP, TRANSPORT_SHM, TRANSPORT_FABRIC };

struct transport {
    const struct transport_ops *ops;
    int fd; /* owned; becomes readable and writable */
    struct sock_bulk bulk; /* TCP: what it is like from `begin` on */
    struct shm *shm; /* owned; shared memory: readable means to hear, and to look in both directions */
    struct fabric *fabric; /* owned; the same for libfabric.  Both null: TCP, */
    struct stripe *stripe; /* owned; ... over several sockets; null: one, which is fd */
};

static inline enum transport_kind transport_kind(const struct transport *t)
{
    return t->shm != NULL ? TRANSPORT_SHM : t->fabric != NULL ? TRANSPORT_FABRIC : TRANSPORT_TCP;
}

/* Takes a connected socket; `bulk` says what it is like for bulk data. */
void transport_tcp_take(struct transport *t, int fd, const struct sock_bulk *bulk);

/* Of all stripes of a process. */
struct stripe_budget {
    atomic_uint used; /* sockets beyond the first of each, */
    atomic_uint far;  /* stripes on long paths */
    uint32_t most;
};

struct stripe_paths;

struct stripe_config {
    uint64_t token;        /* says that a socket is to join it; not 0 */
    bool dials;            /* this end dials the sockets that are missing */
    uint32_t fixed;        /* sockets to send on; 0: as its policy finds */
    uint32_t most;         /* sockets, at most 64 */
    struct stripe_budget *budget; /* borrowed */
    struct stripe_paths *paths; /* borrowed: where what its policy finds is kept; null: nowhere */
    uint64_t path;         /* names the way to the other end there */
    uint32_t lanes;        /* so many stripes share it */
    uint32_t stripes;      /* that there will be in its communicator, of all lanes to all peers */
    void (*wants)(void *user); /* the end that dials: more are missing; by the thread that polls */
    void *user;
};

/* Makes of a TCP transport whose bulk data begins a stripe with one socket.  Both ends must do so. */
pccl_status transport_stripe_take(struct transport *t, const struct stripe_config *config) PCCL_MUST_CHECK;
/* The following by any thread, while the transport is sure to be there.  At the end that accepts: whether a socket that names this
 * token and this number of the dialler's, from 1, may join; each number once. */
bool transport_stripe_admit(struct transport *t, uint64_t token, uint32_t number);
/* A connected socket, tuned for bulk data, joins.  False: it does not, and stays the caller's. */
bool transport_stripe_add(struct transport *t, int fd);
uint32_t transport_stripe_missing(const struct transport *t); /* sockets to be dialled */
uint64_t transport_stripe_token(const struct transport *t);   /* 0: no stripe */
int transport_stripe_first(const struct transport *t);        /* its first socket */

/* What carries a TCP transport's bulk data, as the kernel sees it: sums over its sockets, but for the round trip of the first. */
struct transport_tcp {
    uint32_t sockets;
    char congestion[SOCK_CONGESTION_NAME];
    uint64_t rate, retransmitted; /* bytes per second; bytes */
    uint32_t rtt_us, least_rtt_us;
    bool filled;                  /* one of the sockets always had something to send, of late */
};
void transport_tcp_look(const struct transport *t, struct transport_tcp *out);

/* Take a connected Unix socket, which is closed if that fails: the other end is another user's, or there is no memory.  The
 * dialler's memory, rings of `bytes` each, goes with its first bytes; the acceptor maps what came with them (once, before it answers). */
pccl_status transport_shm_dial(struct transport *t, int fd, uint32_t bytes, struct err *err) PCCL_MUST_CHECK;
pccl_status transport_shm_accept(struct transport *t, int fd, struct err *err) PCCL_MUST_CHECK;
pccl_status transport_shm_map(struct transport *t, uint32_t bytes, struct err *err) PCCL_MUST_CHECK;

#endif
