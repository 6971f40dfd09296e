/* sockets.h - whose socket is it, and which port is free: what /proc and the kernel tell.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SOCKETS_H
#define PCCL_TESTS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* True if the process holds a TCP socket whose own address is 127.0.0.1:port. */
bool sockets_belong(pid_t pid, uint16_t port);

/* A port of 127.0.0.1 that was free a moment ago; 0: none. */
uint16_t sockets_free_port(void);

#endif
