/* carry.h - the second carrier of a connection: memory that both ends share, in place of its socket, while it is in use.
 *
 * Each direction moves with SWITCH, the last frame that the socket carries; the memory is not read before that frame.  The socket
 * stays: its end is the sign that the other end has gone, which is told after all that lies in the memory.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_CARRY_H
#define PCCL_NET_CARRY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"
#include "net/loop.h"
#include "net/transport.h"

struct carry {
    struct source source;  /* its own descriptor */
    struct polled polled;
    struct transport transport; /* owned */
    struct loop *loop;     /* borrowed */
    void (*told)(struct carry *y); /* by the thread that polls: something came, there may be room, or the other end has gone */
    void *user;
    bool in;               /* poller's: SWITCH has been read */
    bool ended;            /* poller's: the other end has closed it, or does nothing but ring */
    bool out;              /* sender's: SWITCH is the last of these bytes of the queue, */
    size_t before;         /* ... which go by the socket */
};

/* Takes the transport, which is closed if that fails, and watches it. */
struct carry *carry_new(const struct transport *t, struct loop *loop, void (*told)(struct carry *), void *user);
void carry_free(struct carry *y); /* no longer watched */
void carry_unwatch(struct carry *y); /* may be repeated */

/* The sender's: so many bytes are before the memory's turn; what carries the next of *left, and how many of them at most; so many
 * have gone. */
void carry_out(struct carry *y, size_t before);
bool carry_sends(const struct carry *y); /* what is appended now goes through the memory; null: there is none */
struct transport *carry_sender(struct carry *y, struct transport *socket, size_t *left);
void carry_moved(struct carry *y, size_t moved);
void carry_spare(struct carry *y); /* gives back what it can of its memory; null: there is none */

/* The poller's: what comes is in the memory from now on; whether there is something; takes it, or says what the socket tells. */
void carry_in(struct carry *y);
bool carry_has(const struct carry *y);
pccl_status carry_receive(struct carry *y, struct transport *socket, struct iovec *part, size_t *moved) PCCL_MUST_CHECK;

#endif
