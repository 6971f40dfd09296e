/* compare_cubic.c - preloaded by bench/compare/compare.py into other libraries: their TCP sockets use cubic, or what
 * COMPARE_CONGESTION names.
 *
 * Some kernels' default halves the throughput of loopback; ours chooses cubic there by itself, so that it would win by that
 * alone.  An accepted socket has what its listener had.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol)
{
    int fd = (int)syscall(SYS_socket, domain, type, protocol);
    if (fd >= 0 && (domain == AF_INET || domain == AF_INET6) && (type & 0xF) == SOCK_STREAM) {
        const char *named = getenv("COMPARE_CONGESTION"), *name = named != NULL ? named : "cubic";
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
    }
    return fd;
}
