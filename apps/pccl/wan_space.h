/* wan_space.h - the hosts of an emulated network: a network namespace with one TUN device each, which is the way to everybody.
 *
 * Namespaces have no name: descriptors and the processes inside keep them, so that none outlives this process and its children.
 * Invariant: the calling thread stays in its own namespace; what happens in a host's happens in a thread that ends.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_SPACE_H
#define PCCL_WAN_SPACE_H

#include "pccl/wan_network.h"

struct wan_space {
    int net;    /* owned; the namespace; -1: none */
    int device; /* owned; the TUN device's other end, which does not block */
};

/* Whether this process may make namespaces and devices; becomes root of a user namespace of its own if that is needed.  To be called before
 * there is another thread.  False: one sentence in `error` says what is missing. */
bool wan_space_permitted(char error[WAN_ERROR]);
/* Makes the host number `index` of a network. */
bool wan_space_open(const struct wan_network *n, unsigned index, struct wan_space *out, char error[WAN_ERROR]);
void wan_space_close(struct wan_space *s);
/* The calling process, which has one thread, moves into it. */
bool wan_space_enter(const struct wan_space *s);
/* A socket of that host; -1. */
int wan_space_socket(const struct wan_space *s, int type);
/* Packets that the device dropped before anybody could read them; 0 if that is unknown. */
uint64_t wan_space_unread(const struct wan_space *s, const char *name);

#endif
