/* wire_client.h - a client of the master that speaks its frames by hand, through the real codec.
 *
 * For tests of what a master does with bytes; no engine, no timers.  Waits end with the event or after SPAWN_PATIENCE_MS.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_WIRE_CLIENT_H
#define PCCL_TESTS_WIRE_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "spawn.h"
#include "wire/control.h"
#include "wire/frame.h"

enum { CLIENT_FRAME = FRAME_HEADER_BYTES + 4096 };

struct frame_bytes {
    unsigned char at[CLIENT_FRAME];
    size_t size;
};

/* A socket to 127.0.0.1 or ::1; -1 if nobody listens. */
static inline int client_dial(uint16_t port, bool six)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *to = six ? (const struct sockaddr *)(const void *)&v6
                                    : (const struct sockaddr *)(const void *)&v4;
    int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd >= 0 && connect(fd, to, six ? sizeof v6 : sizeof v4) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* All or nothing; false: the other end has closed. */
static inline bool client_send(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static inline bool client_readable(int fd, int64_t patience_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, (int)patience_ms) == 1;
}

/* Reads and forgets until the other end closes; false if it does not. */
static inline bool client_closed(int fd, int64_t patience_ms)
{
    char bytes[4096];
    int64_t until = spawn_now_ms() + patience_ms;
    for (;;) {
        int64_t left = until - spawn_now_ms();
        if (!client_readable(fd, left > 0 ? left : 0)) {
            return false;
        }
        if (recv(fd, bytes, sizeof bytes, 0) <= 0) {
            return true;
        }
    }
}

static inline bool client_read(int fd, void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        ssize_t n = client_readable(fd, SPAWN_PATIENCE_MS) ? recv(fd, at, size, 0) : -1;
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* The next frame of `type`; others are skipped.  False: the stream ended before. */
static inline bool client_await(int fd, uint8_t type, struct frame_header *header, unsigned char payload[CLIENT_FRAME])
{
    unsigned char raw[FRAME_HEADER_BYTES];
    while (client_read(fd, raw, sizeof raw)) {
        if (!frame_get(raw, header) || header->length > CLIENT_FRAME || !client_read(fd, payload, header->length)) {
            return false;
        }
        if (header->type == type) {
            return true;
        }
    }
    return false;
}

static inline void client_frame(struct frame_bytes *f, uint8_t type, uint64_t run, const struct writer *payload)
{
    struct frame_header h = {.type = type, .run = run, .length = payload != NULL ? (uint32_t)payload->used : 0};
    frame_put(f->at, &h);
    if (payload != NULL) {
        memcpy(f->at + FRAME_HEADER_BYTES, payload->start, payload->used);
    }
    f->size = FRAME_HEADER_BYTES + h.length;
}

static inline void client_leave(struct frame_bytes *f, uint64_t run)
{
    unsigned char payload[1];
    struct writer w;
    writer_init(&w, payload, sizeof payload);
    put_leave(&w, &(struct msg_leave){.revoke = 0});
    client_frame(f, FRAME_LEAVE, run, &w);
}

/* A newcomer's REGISTER; `port`: where it says that it can be reached. */
static inline void client_register_frame_at(struct frame_bytes *f, uint32_t group, uint16_t port)
{
    unsigned char bytes[512];
    struct writer w;
    struct msg_register m = {.group = group, .lanes = 1, .addresses = 1,
                             .address = {{.family = 4, .ip = {127, 0, 0, 1}, .port = port}}};
    writer_init(&w, bytes, sizeof bytes);
    put_register(&w, &m);
    client_frame(f, FRAME_REGISTER, 0, &w);
}

static inline void client_register_frame(struct frame_bytes *f, uint32_t group)
{
    client_register_frame_at(f, group, 9);
}

/* Registers on a connected socket. */
static inline bool client_register_at(int fd, uint16_t port, struct msg_welcome *welcome)
{
    struct frame_bytes f;
    struct frame_header h;
    unsigned char payload[CLIENT_FRAME];
    struct reader r;
    client_register_frame_at(&f, 0, port);
    if (!client_send(fd, f.at, f.size) || !client_await(fd, FRAME_WELCOME, &h, payload)) {
        return false;
    }
    reader_init(&r, payload, h.length);
    return get_welcome(&r, welcome);
}

static inline bool client_register(int fd, struct msg_welcome *welcome)
{
    return client_register_at(fd, 9, welcome);
}

/* Registers and, nobody else being there, becomes the first accepted member; *view is what it is told. */
static inline bool client_become_first_at(int fd, uint16_t port, struct msg_welcome *welcome, struct msg_view *view)
{
    struct frame_bytes f;
    struct frame_header h;
    unsigned char payload[CLIENT_FRAME], bytes[64];
    struct msg_admit admit;
    struct reader r;
    struct writer w;
    if (!client_register_at(fd, port, welcome) || !client_await(fd, FRAME_ADMIT, &h, payload)) {
        return false;
    }
    reader_init(&r, payload, h.length);
    if (!get_admit(&r, &admit)) {
        return false;
    }
    writer_init(&w, bytes, sizeof bytes);
    put_linked(&w, &(struct msg_linked){.attempt = admit.attempt});
    client_frame(&f, FRAME_LINKED, welcome->run, &w);
    if (!client_send(fd, f.at, f.size) || !client_await(fd, FRAME_VIEW, &h, payload)) {
        return false;
    }
    reader_init(&r, payload, h.length);
    return get_view(&r, view);
}

static inline bool client_become_first(int fd, struct msg_welcome *welcome, struct msg_view *view)
{
    return client_become_first_at(fd, 9, welcome, view);
}

/* Comes and goes like an honest peer; false if it was not let in. */
static inline bool client_visit(uint16_t port)
{
    struct msg_welcome welcome;
    struct frame_bytes leave;
    int fd = client_dial(port, false);
    bool ok = fd >= 0 && client_register(fd, &welcome);
    if (ok) {
        client_leave(&leave, welcome.run);
        ok = client_send(fd, leave.at, leave.size) && client_closed(fd, SPAWN_PATIENCE_MS);
    }
    close(fd);
    return ok;
}

#endif
