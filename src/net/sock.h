/* sock.h - stream sockets: listening, dialling without blocking, and the options that faults and speed need.
 *
 * All descriptors are non-blocking, closed on exec, and on record in fds.h.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_SOCK_H
#define PCCL_NET_SOCK_H

#include <stdint.h>
#include <sys/types.h>

#include "core/status.h"
#include "wire/control.h"

/* Listens at `at`; port 0: any.  The IPv6 "any" address takes IPv4 connections too. */
pccl_status sock_listen(const struct net_address *at, int *fd_out, struct err *err) PCCL_MUST_CHECK;

/* Listens on all addresses, both families where the system has IPv6. */
pccl_status sock_listen_any(uint16_t port, int *fd_out, struct err *err) PCCL_MUST_CHECK;

/* PCCL_ERR_AGAIN: nobody waits.  Other failures concern one connection or a lack of descriptors. */
pccl_status sock_accept(int listener, int *fd_out, struct net_address *from, struct err *err) PCCL_MUST_CHECK;

/* A Unix socket in the abstract name space, whose name is a secret of 128 bits: within one host, and one network name space.
 * Dialling either succeeds at once or not at all. */
pccl_status sock_listen_host(const uint64_t name[2], int *fd_out, struct err *err) PCCL_MUST_CHECK;
pccl_status sock_accept_host(int listener, int *fd_out, struct err *err) PCCL_MUST_CHECK;
pccl_status sock_dial_host(const uint64_t name[2], int *fd_out, struct err *err) PCCL_MUST_CHECK;

/* What sendmsg, recv or the like have returned: PCCL_ERR_AGAIN where the socket is full or empty, PCCL_ERR_CLOSED at its end. */
pccl_status sock_moved(ssize_t n, size_t *moved) PCCL_MUST_CHECK;

/* Begins to connect; the descriptor becomes writable when it is decided: ask sock_connected (PCCL_ERR_CLOSED: nobody listens). */
pccl_status sock_dial(const struct net_address *to, int *fd_out, struct err *err) PCCL_MUST_CHECK;
pccl_status sock_connected(int fd, const struct net_address *to, struct err *err) PCCL_MUST_CHECK;
/* Whether it is decided already that nobody listens, as it is within a host. */
bool sock_refused(int fd);

pccl_status sock_local(int fd, struct net_address *out) PCCL_MUST_CHECK;
pccl_status sock_remote(int fd, struct net_address *out) PCCL_MUST_CHECK;
bool sock_within_host(int fd); /* both ends of a connected socket have one address */

/* For a connected socket: no delay, keepalive 5/2/3, unacknowledged bytes end it after timeout_ns, the first tries of a packet again come at
 * equal intervals if few packets are on their way, and on one host cubic in place of a default that paces (BBR halves loopback).  What the system refuses is left as it is. */
void sock_tune(int fd, int64_t timeout_ns);

/* One way to the other end of a connected TCP socket, as the kernel has measured it; 0: on this host, or not known. */
int64_t sock_away_ns(int fd);

/* Bytes; -1: as the kernel tunes them by itself, the most it allows being tcp_wmem and tcp_rmem. */
struct sock_buffers {
    int send, receive;
};

enum { SOCK_CONGESTION_NAME = 16, /* with the zero at its end */
       SOCK_NEAR_US = 500 };      /* a round trip */

/* What connections for bulk data are like. */
struct sock_bulk {
    struct sock_buffers buffers;
    struct sock_buffers tuned, most; /* the kernel's limits: of its own tuning, of what it may be asked for; 0: not known */
    char congestion[SOCK_CONGESTION_NAME]; /* the congestion control beyond a host; "": the system's default */
    bool near_too;                         /* near hosts have it as well: it was asked for by name */
};

/* Whether its other end is another host whose round trip is below SOCK_NEAR_US. */
bool sock_is_near(int fd);

/* Bytes that one socket may receive in a round trip, half of them being for the kernel's own; 0: not known. */
uint64_t sock_window_most(const struct sock_bulk *bulk);
/* Reads the kernel's limits of this network name space. */
void sock_read_limits(struct sock_bulk *bulk);
/* Whether a socket may have this congestion control: 0, or the kernel's reason (EPERM: not allowed, ENOENT: not there). */
int sock_congestion_refused(const char *name);
/* The congestion control of a socket; "": not known. */
void sock_congestion(int fd, char name[SOCK_CONGESTION_NAME]);

enum { SOCK_BUFFER_AUTO = -1, SOCK_BUFFER_LEAST = 4096, SOCK_BUFFER_MOST = 1 << 30, SOCK_BUFFER = 4 << 20,
       SOCK_UNSENT = 1 << 20 /* beyond a host, no more than this waits in a socket to be sent first: grants wait behind it */ };

bool sock_buffer_good(int64_t bytes); /* -1, or between these */

/* When it is closed, what has not been sent or acknowledged is dropped. */
void sock_reset_on_close(int fd);
/* Has the congestion control of a connection forget what it has found out of its path.  False: this process may not choose it. */
bool sock_restart_congestion(int fd);
/* Lets so many bytes come before any of them is read; the kernel's own bound grows with what is read.  Where the kernel cannot, nothing
 * changes. */
void sock_open_window(int fd, int bytes);
void sock_bound_unsent(int fd, int bytes); /* no more than this waits in it to be sent first */

/* For connections that carry bulk data.  Within a host the buffers are as asked for.  Beyond it a size is set only where the
 * kernel's own tuning would end below it: a size that is set ends that tuning.  BBR is for long paths: where the round trip is shorter than the
 * gaps between acknowledgements it takes bursts of these for the rate of the path, and loses a tenth of what it sends. */
void sock_tune_bulk(int fd, const struct sock_bulk *bulk);

#endif
