/* sockets.c - see sockets.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The inode of the socket at 127.0.0.1:port that is no listener; 0: none. */
static unsigned long inode_of(uint16_t port)
{
    char line[512];
    unsigned long found = 0;
    FILE *f = fopen("/proc/net/tcp", "re");
    while (f != NULL && found == 0 && fgets(line, sizeof line, f) != NULL) {
        unsigned ip, own, state;
        unsigned long inode;
        if (sscanf(line, "%*d: %x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &ip, &own, &state, &inode) == 4 &&
            ip == htonl(INADDR_LOOPBACK) && own == port && state != 10) {
            found = inode;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

bool sockets_belong(pid_t pid, uint16_t port)
{
    char directory[64], name[64], wanted[64];
    unsigned long inode = inode_of(port);
    bool found = false;
    snprintf(directory, sizeof directory, "/proc/%d/fd", (int)pid);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *d = inode != 0 ? opendir(directory) : NULL;
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL && !found; e = readdir(d)) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, name, sizeof name - 1);
        name[n > 0 ? n : 0] = 0;
        found = strcmp(name, wanted) == 0;
    }
    if (d != NULL) {
        closedir(d);
    }
    return found;
}

uint16_t sockets_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
              getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok ? ntohs(at.sin_port) : 0;
}
