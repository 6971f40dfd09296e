/* cage.h - network namespaces of a round: the proxy in one, each peer in one of its own, in a star.
 *
 * A peer with key k lives at 10.88.k.2 and reaches 10.99.0.1, the proxy, and nobody else.  No names: the namespaces go with the
 * processes in them, and nothing outside is touched.  Needs root, or user namespaces, and iproute2.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_CAGE_H
#define PCCL_TESTS_CAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CAGE_PROXY 0x0a630001u /* 10.99.0.1 */

static inline uint32_t cage_address(unsigned key)
{
    return 0x0a580002u | key << 8; /* 10.88.key.2 */
}

/* Moves this process into a network of its own; null, or why that cannot be done here: then nothing has changed. */
const char *cage_enter(void);

/* In a new child, then in its parent, then in the child again: a namespace, and the wire between the two. */
bool cage_leave_parent(void);
bool cage_wire(pid_t child, unsigned key);
bool cage_settle(unsigned key);

/* Drops in silence what the peer sends, or what is sent to it. */
bool cage_unplug(pid_t child, unsigned key, bool outgoing, bool on);

/* Kills the peer's connections inside its kernel: all, or those to one port. */
bool cage_kill_sockets(pid_t child, uint16_t port);

#endif
