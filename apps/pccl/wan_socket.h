/* wan_socket.h - the way to a running emulator: a Unix socket in the abstract name space, so that nothing stays behind.
 *
 * A client sends one line and gets one: "ok", or a sentence.  Only the same user, or root, is heard.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_SOCKET_H
#define PCCL_WAN_SOCKET_H

#include "pccl/wan_network.h"

enum { WAN_SOCKET_LINE = 1024 };

/* Listens under a name, or a process id; -1: `error` says why. */
int wan_socket_listen(const char *name, char error[WAN_ERROR]);
/* Takes the next client and its line; the client, -1: it is none that is heard. */
int wan_socket_take(int listener, char line[WAN_SOCKET_LINE]);
void wan_socket_answer(int client, const char *text); /* and closes it */
/* As a client; false: `answer` is no "ok", but what is wrong. */
bool wan_socket_ask(const char *name, const char *line, char answer[WAN_ERROR]);

#endif
