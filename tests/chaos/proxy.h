/* proxy.h - every byte between the peers, and between peers and master, passes through here and may be delayed, held or cut.
 *
 * One listener per end; who dials is told from its address.  Ends are the numbers of
 * processes, and PROXY_MASTER.  For each ordered pair there is a rule, which new and running connections follow; a connection
 * belongs to the pair that dialled it, its two directions to the two ordered pairs.
 * Invariant: bytes arrive in order and unchanged, or the connection ends; nothing is dropped within a stream.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_PROXY_H
#define PCCL_TESTS_PROXY_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "chaos_plan.h"

enum { PROXY_MASTER = PLAN_PROCESSES, PROXY_ENDS = PLAN_PROCESSES + 1, PROXY_CONNECTIONS = 1024, PROXY_LISTENERS = 64 };

enum proxy_end_form { CUT_RESET, CUT_CLOSE, CUT_HALF };

struct proxy_rule { /* for bytes from one end to another */
    int delay_us, jitter_us, segment;
    int64_t bytes_per_s;
    bool refuse; /* new connections are closed */
    bool hold;   /* nothing is read any more */
};

struct proxy;

/* Whose socket is at this address: the number of a process, or -1. */
typedef int (*proxy_whose)(void *user, const struct sockaddr_in *from);

struct proxy *proxy_new(const struct plan *plan, proxy_whose whose, void *user);
void proxy_free(struct proxy *p);

/* Listens at `ip` (host order) for connections to `end`; returns the port, 0 on failure.  `port` 0: any. */
uint16_t proxy_listen(struct proxy *p, int end, uint32_t ip, uint16_t port);

/* Where `end` really listens. */
void proxy_aim(struct proxy *p, int end, uint32_t ip, uint16_t port);

struct proxy_rule *proxy_rule(struct proxy *p, int from, int to);

/* Ends what runs between two ends, either way round, as it is; after `bytes` more in either direction where that is not 0. */
void proxy_cut(struct proxy *p, int a, int b, enum proxy_end_form form, int bytes);

/* What a stranger can do to an end. */
void proxy_stranger(struct proxy *p, int end, int form);

/* For the caller's loop: its descriptors, when it wants to be called without an event (ns, CLOCK_MONOTONIC), and the call. */
int proxy_descriptors(struct proxy *p, struct pollfd *fds, int capacity);
int64_t proxy_due(const struct proxy *p, int64_t now);
void proxy_pass(struct proxy *p, const struct pollfd *fds, int count, int64_t now);

#endif
