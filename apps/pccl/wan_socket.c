/* wan_socket.c - see wan_socket.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_S = 2, CLIENTS = 16, NAME_MOST = 80 };

static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "pccl-wan-%.*s", NAME_MOST, name); /* behind a zero: not in the file system */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* A line comes and goes at once, or the other end is no client. */
static void limit_patience(int fd)
{
    struct timeval t = {.tv_sec = PATIENCE_S};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

int wan_socket_listen(const char *name, char error[WAN_ERROR])
{
    struct sockaddr_un at;
    socklen_t size = address_of(name, &at);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)(const void *)&at, size) != 0 || listen(fd, CLIENTS) != 0) {
        snprintf(error, WAN_ERROR, "listen for commands as '%s': %s%s", name, strerror(errno),
                 errno == EADDRINUSE ? ": an emulator has this name: give another --name" : "");
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

/* One line, up to its end or that of the stream. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t at = 0;
    while (at + 1 < size) {
        ssize_t n = recv(fd, line + at, size - 1 - at, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        at += n > 0 ? (size_t)n : 0;
        line[at] = 0;
        if (n <= 0 || strchr(line, '\n') != NULL) {
            break;
        }
    }
    line[at] = 0;
    line[strcspn(line, "\n")] = 0;
    return at > 0;
}

int wan_socket_take(int listener, char line[WAN_SOCKET_LINE])
{
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t size = sizeof who;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    limit_patience(fd);
    bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == 0 || who.uid == geteuid());
    if (known && read_line(fd, line, WAN_SOCKET_LINE)) {
        return fd;
    }
    if (!known) {
        wan_socket_answer(fd, "this emulator is another user's: ask that user");
    } else {
        close(fd);
    }
    return -1;
}

void wan_socket_answer(int client, const char *text)
{
    char line[WAN_ERROR + 1];
    int n = snprintf(line, sizeof line, "%s\n", text);
    (void)!send(client, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1, MSG_NOSIGNAL);
    close(client);
}

bool wan_socket_ask(const char *name, const char *line, char answer[WAN_ERROR])
{
    struct sockaddr_un at;
    socklen_t size = address_of(name, &at);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)(const void *)&at, size) != 0) {
        snprintf(answer, WAN_ERROR, "no emulator answers to '%s': %s: give the process id that it printed, or its --name", name, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    limit_patience(fd);
    char text[WAN_SOCKET_LINE + 1];
    int n = snprintf(text, sizeof text, "%s\n", line);
    bool ok = n > 0 && (size_t)n < sizeof text && send(fd, text, (size_t)n, MSG_NOSIGNAL) == n && read_line(fd, answer, WAN_ERROR);
    if (!ok) {
        snprintf(answer, WAN_ERROR, "the emulator '%s' does not answer: see whether it still runs", name);
    }
    close(fd);
    return ok && strcmp(answer, "ok") == 0;
}
