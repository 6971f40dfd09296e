/* server.h - the master on real sockets: a thread that turns bytes into events and actions into bytes.
 *
 * One thread, no blocking calls.  Clients are strangers until their REGISTER has been taken: few of them, for a short
 * time, with little memory; afterwards a client that does not read, or never finishes a frame, is let go.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SERVER_SERVER_H
#define PCCL_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "wire/control.h"

struct server;

/* Zero is a valid default everywhere. */
struct server_options {
    int64_t dead_ns;      /* silence after which a member is excluded; 0: 10 s; shorter times shorten the heartbeats too */
    uint32_t max_members; /* of a world at one time, of all its groups; 0: BOUNDS_MEMBERS */
    uint32_t max_groups;  /* of a world; 0: 64 */
    int64_t idle_ns;      /* its thread ends by itself when no peer has been registered for so long; 0: never */
};

/* Allocates; opens nothing.  `options` may be null.  Port 0: any.  The "any" address means all addresses of both families. */
pccl_status server_new(const struct net_address *listen, const struct server_options *options, struct server **out,
                       struct err *err) PCCL_MUST_CHECK;

/* Binds, starts the thread.  INVALID: started before; SYSTEM: the address cannot be bound (it may be tried again). */
pccl_status server_start(struct server *s, struct err *err) PCCL_MUST_CHECK;

/* Whether its thread has been started and has not ended.  Signal-safe, as the next is. */
bool server_running(const struct server *s);

/* In a child forked since the start: it has the memory of the master, but not its thread nor its descriptors. */
bool server_forked(const struct server *s);

/* Asks the thread to end: every member is told.  Async-signal-safe, repeatable.  INVALID: never started. */
pccl_status server_stop(struct server *s);

/* Waits until the thread has ended; repeatable, from any thread.  INVALID: never started. */
pccl_status server_wait(struct server *s);

/* Frees a server that was never started, has ended, or is the parent's; null does nothing.  INVALID: it still runs. */
pccl_status server_free(struct server *s);

/* Where it listens, with the real port, in the family that was asked for.  INVALID: not running. */
pccl_status server_address(const struct server *s, struct net_address *out) PCCL_MUST_CHECK;

#endif
