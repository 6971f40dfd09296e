/* transport.h - the seam between a connection and what carries its bytes.
 *
 * A stream of bytes in each direction, reliable and ordered, with a descriptor that tells when it is ready.  TCP is
 * the first; shared memory and TLS come behind the same few functions.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_TRANSPORT_H
#define PCCL_NET_TRANSPORT_H

#include <stddef.h>
#include <sys/uio.h>

#include "core/status.h"

struct transport;

struct transport_ops {
    /* Moves as much as goes without waiting; *moved > 0 with PCCL_OK.  AGAIN: nothing now; CLOSED: the stream has ended. */
    pccl_status (*send)(struct transport *t, struct iovec *parts, int count, size_t *moved);
    pccl_status (*receive)(struct transport *t, struct iovec *parts, int count, size_t *moved);
    void (*finish)(struct transport *t);   /* the sending direction ends */
    void (*shutdown)(struct transport *t); /* both directions; the other end and our poller notice */
    void (*close)(struct transport *t);
};

struct transport {
    const struct transport_ops *ops;
    int fd; /* owned; becomes readable and writable */
};

/* Takes a connected socket. */
void transport_tcp_take(struct transport *t, int fd);

#endif
