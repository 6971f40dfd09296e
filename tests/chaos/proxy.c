/* proxy.c - see proxy.h.
 *
 * A direction is a queue of pieces, each with the time at which it may go on.  What a full queue cannot take stays in the
 * kernel, so that back-pressure reaches the sender as it would on a slow path.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dice.h"

enum { PIECE_BYTES = 65536, QUEUE_BYTES = 1 << 20, STRANGER_BYTES = 2048 };

struct piece {
    struct piece *next;
    int64_t due;
    size_t size, gone;
    unsigned char bytes[];
};

struct flow { /* one direction */
    struct piece *first, *last; /* owned */
    size_t queued;
    int64_t free_at;  /* when the modelled line has sent what is queued */
    int64_t cut_after; /* bytes until `cut_form` happens; negative: none */
    enum proxy_end_form cut_form;
    bool read_end;    /* the sender has finished */
    bool sent_end;    /* and the receiver knows */
    bool silent;      /* half-closed by a fault: nothing more is delivered */
};

struct connection {
    int fd[2];        /* 0: who dialled, 1: who was dialled; -1: none */
    int end[2];       /* whose they are; end[0] -1: a stranger's */
    bool used, dialling;
    struct flow flow[2]; /* flow[i] goes from fd[i] to fd[1 - i] */
};

struct listener {
    int fd, end;
};

struct proxy {
    const struct plan *plan; /* borrowed */
    proxy_whose whose;
    void *user;
    struct dice dice;
    struct sockaddr_in aim[PROXY_ENDS];
    struct proxy_rule rule[PROXY_ENDS][PROXY_ENDS];
    struct listener listener[PROXY_LISTENERS];
    int listeners;
    struct connection connection[PROXY_CONNECTIONS];
    int listened; /* listeners in the last proxy_descriptors */
    int first_fd[PROXY_CONNECTIONS]; /* place of fd[0] in the last proxy_descriptors, -1: not there */
    unsigned char buffer[PIECE_BYTES];
};

struct proxy *proxy_new(const struct plan *plan, proxy_whose whose, void *user)
{
    struct proxy *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->plan = plan;
    p->whose = whose;
    p->user = user;
    p->dice.state = dice_hash(plan->seed, 0x70726f78);
    for (int i = 0; i < PROXY_ENDS; i++) {
        for (int j = 0; j < PROXY_ENDS; j++) {
            p->rule[i][j] = (struct proxy_rule){.delay_us = plan->delay_us,
                                                .jitter_us = plan->jitter_us,
                                                .segment = plan->segment,
                                                .bytes_per_s = plan->bytes_per_s};
        }
    }
    return p;
}

/* ---- Connections ---------------------------------------------------------------------------------------------------- */

static void close_one(int *fd, bool reset)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (*fd >= 0) {
        if (reset) {
            setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        close(*fd);
        *fd = -1;
    }
}

static void end_connection(struct connection *c, bool reset)
{
    for (int i = 0; i < 2; i++) {
        close_one(&c->fd[i], reset);
        while (c->flow[i].first != NULL) {
            struct piece *piece = c->flow[i].first;
            c->flow[i].first = piece->next;
            free(piece);
        }
    }
    c->used = false;
}

void proxy_free(struct proxy *p)
{
    for (int i = 0; p != NULL && i < PROXY_CONNECTIONS; i++) {
        if (p->connection[i].used) {
            end_connection(&p->connection[i], true);
        }
    }
    for (int i = 0; p != NULL && i < p->listeners; i++) {
        close(p->listener[i].fd);
    }
    free(p);
}

static struct connection *new_connection(struct proxy *p)
{
    for (int i = 0; i < PROXY_CONNECTIONS; i++) {
        struct connection *c = &p->connection[i];
        if (!c->used) {
            memset(c, 0, sizeof *c);
            c->used = true;
            c->fd[0] = c->fd[1] = -1;
            c->flow[0].cut_after = c->flow[1].cut_after = -1;
            return c;
        }
    }
    return NULL;
}

static int new_socket(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return fd;
}

uint16_t proxy_listen(struct proxy *p, int end, uint32_t ip, uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    socklen_t size = sizeof at;
    int fd = new_socket(), on = 1;
    if (fd < 0 || p->listeners == PROXY_LISTENERS) {
        return 0;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        close(fd);
        return 0;
    }
    p->listener[p->listeners++] = (struct listener){fd, end};
    return ntohs(at.sin_port);
}

void proxy_aim(struct proxy *p, int end, uint32_t ip, uint16_t port)
{
    p->aim[end] = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

struct proxy_rule *proxy_rule(struct proxy *p, int from, int to)
{
    return &p->rule[from][to];
}

static bool dial(struct proxy *p, struct connection *c)
{
    const struct sockaddr_in *to = &p->aim[c->end[1]];
    c->fd[1] = to->sin_port != 0 ? new_socket() : -1;
    if (c->fd[1] < 0) {
        return false;
    }
    c->dialling = true;
    return connect(c->fd[1], (const struct sockaddr *)to, sizeof *to) == 0 || errno == EINPROGRESS;
}

static void accept_one(struct proxy *p, const struct listener *l)
{
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int on = 1, fd = accept4(l->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int who = p->whose(p->user, &from);
    struct connection *c = who >= 0 && !p->rule[who][l->end].refuse ? new_connection(p) : NULL;
    if (c == NULL) {
        close_one(&fd, true);
        return;
    }
    c->fd[0] = fd;
    c->end[0] = who;
    c->end[1] = l->end;
    if (!dial(p, c)) {
        end_connection(c, true);
    }
}

/* ---- Faults --------------------------------------------------------------------------------------------------------- */

static void cut_now(struct connection *c, int direction, enum proxy_end_form form)
{
    if (form == CUT_HALF) {
        c->flow[direction].silent = true; /* what is queued is lost, the receiver sees the end */
        c->flow[direction].sent_end = true;
        if (c->fd[1 - direction] >= 0) {
            shutdown(c->fd[1 - direction], SHUT_WR);
        }
    } else {
        end_connection(c, form == CUT_RESET);
    }
}

void proxy_cut(struct proxy *p, int a, int b, enum proxy_end_form form, int bytes)
{
    for (int i = 0; i < PROXY_CONNECTIONS; i++) {
        struct connection *c = &p->connection[i];
        bool meant = c->used && ((c->end[0] == a && c->end[1] == b) || (c->end[0] == b && c->end[1] == a));
        if (!meant) {
            continue;
        }
        if (bytes == 0) {
            cut_now(c, (int)dice_below(&p->dice, 2), form);
            continue;
        }
        for (int d = 0; d < 2; d++) {
            c->flow[d].cut_after = bytes;
            c->flow[d].cut_form = form;
        }
    }
}

void proxy_stranger(struct proxy *p, int end, int form)
{
    struct connection *c = new_connection(p);
    if (c == NULL) {
        return;
    }
    c->end[0] = -1;
    c->end[1] = end;
    size_t size = form == 0 ? 0 : 1 + dice_below(&p->dice, STRANGER_BYTES);
    struct piece *piece = malloc(sizeof *piece + STRANGER_BYTES);
    if (piece == NULL || !dial(p, c)) {
        free(piece);
        end_connection(c, true);
        return;
    }
    *piece = (struct piece){.size = size};
    for (size_t i = 0; i < size; i++) {
        piece->bytes[i] = (unsigned char)(form == 1 ? 0 : dice_next(&p->dice));
    }
    if (form == 2 && size > 40) {
        memcpy(piece->bytes, "GET / HTTP/1.1\r\nHost: chaos\r\n\r\n", 32);
    }
    c->flow[0].first = c->flow[0].last = piece;
    c->flow[0].queued = size;
    c->flow[0].read_end = form % 2 == 1; /* half of them end at once, half wait to be closed */
}

/* ---- Bytes ---------------------------------------------------------------------------------------------------------- */

static const struct proxy_rule *rule_of(const struct proxy *p, const struct connection *c, int direction)
{
    static const struct proxy_rule plain;
    return c->end[0] < 0 ? &plain : &p->rule[c->end[direction]][c->end[1 - direction]];
}

static bool can_read(const struct proxy *p, const struct connection *c, int direction)
{
    const struct flow *f = &c->flow[direction];
    return c->fd[direction] >= 0 && !f->read_end && !rule_of(p, c, direction)->hold && f->queued < QUEUE_BYTES;
}

/* Queues what was read, in segments if the rule says so, each with its time. */
static bool queue(struct proxy *p, struct connection *c, int direction, size_t size, int64_t now)
{
    const struct proxy_rule *rule = rule_of(p, c, direction);
    struct flow *f = &c->flow[direction];
    for (size_t at = 0; at < size;) {
        size_t most = rule->segment > 0 && c->flow[direction].queued < 4096 ? 1 + dice_below(&p->dice, (uint64_t)rule->segment)
                                                                          : size;
        size_t part = size - at < most ? size - at : most;
        struct piece *piece = malloc(sizeof *piece + part);
        if (piece == NULL) {
            return false;
        }
        int64_t line = f->free_at > now ? f->free_at : now;
        line += rule->bytes_per_s > 0 ? (int64_t)part * 1000000000 / rule->bytes_per_s : 0;
        f->free_at = line;
        int64_t due = line + (int64_t)rule->delay_us * 1000;
        due += rule->jitter_us > 0 ? (int64_t)dice_below(&p->dice, (uint64_t)rule->jitter_us) * 1000 : 0;
        *piece = (struct piece){.size = part, .due = f->last != NULL && f->last->due > due ? f->last->due : due};
        memcpy(piece->bytes, p->buffer + at, part);
        if (f->last != NULL) {
            f->last->next = piece;
        } else {
            f->first = piece;
        }
        f->last = piece;
        f->queued += part;
        at += part;
    }
    return true;
}

static void read_some(struct proxy *p, struct connection *c, int direction, int64_t now)
{
    struct flow *f = &c->flow[direction];
    ssize_t n = recv(c->fd[direction], p->buffer, sizeof p->buffer, 0);
    if (n == 0) {
        f->read_end = true;
    } else if (n > 0 && !f->silent && c->end[0] >= 0 && !queue(p, c, direction, (size_t)n, now)) {
        end_connection(c, true);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end_connection(c, true);
    }
}

/* Sends what is due; false: the connection has ended. */
static bool send_due(struct connection *c, int direction, int64_t now)
{
    struct flow *f = &c->flow[direction];
    int to = c->fd[1 - direction];
    while (f->first != NULL && f->first->due <= now && !f->silent) {
        struct piece *piece = f->first;
        size_t left = piece->size - piece->gone;
        if (f->cut_after >= 0 && (int64_t)left > f->cut_after) {
            left = (size_t)f->cut_after;
        }
        ssize_t n = left > 0 ? send(to, piece->bytes + piece->gone, left, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (n < 0) {
            if (errno == EAGAIN || errno == EINTR) {
                return true;
            }
            end_connection(c, true);
            return false;
        }
        piece->gone += (size_t)n;
        f->queued -= (size_t)n;
        if (f->cut_after >= 0) {
            f->cut_after -= n;
            if (f->cut_after == 0) {
                f->cut_after = -1;
                cut_now(c, direction, f->cut_form);
                return c->used;
            }
        }
        if (piece->gone < piece->size) {
            return true;
        }
        f->first = piece->next;
        f->last = f->first == NULL ? NULL : f->last;
        free(piece);
    }
    if (f->first == NULL && f->read_end && !f->sent_end) {
        f->sent_end = true;
        shutdown(to, SHUT_WR);
    }
    return true;
}

/* ---- The caller's loop ---------------------------------------------------------------------------------------------- */

int proxy_descriptors(struct proxy *p, struct pollfd *fds, int capacity)
{
    int n = 0;
    p->listened = p->listeners;
    for (int i = 0; i < p->listened && n < capacity; i++) {
        fds[n++] = (struct pollfd){.fd = p->listener[i].fd, .events = POLLIN};
    }
    for (int i = 0; i < PROXY_CONNECTIONS; i++) {
        struct connection *c = &p->connection[i];
        p->first_fd[i] = -1;
        if (!c->used || n + 2 > capacity) {
            continue;
        }
        p->first_fd[i] = n;
        for (int d = 0; d < 2; d++) {
            /* Of this end: readable, if there is room; writable, if something waits to go to it. */
            const struct flow *in = &c->flow[1 - d];
            short events = !c->dialling && can_read(p, c, d) ? POLLIN : 0;
            bool blocked = in->first != NULL && in->first->due == 0; /* see proxy_pass */
            events = (short)(events | ((c->dialling && d == 1) || blocked ? POLLOUT : 0));
            fds[n++] = (struct pollfd){.fd = events != 0 || c->dialling ? c->fd[d] : -1, .events = events};
        }
    }
    return n;
}

int64_t proxy_due(const struct proxy *p, int64_t now)
{
    int64_t due = INT64_MAX;
    for (int i = 0; i < PROXY_CONNECTIONS; i++) {
        const struct connection *c = &p->connection[i];
        for (int d = 0; c->used && !c->dialling && d < 2; d++) {
            const struct flow *f = &c->flow[d];
            if (f->first != NULL && !f->silent && f->first->due != 0 && f->first->due < due) {
                due = f->first->due;
            }
        }
    }
    return due < now ? now : due;
}

static void finish_dial(struct connection *c, short events)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (events == 0) {
        return;
    }
    if (getsockopt(c->fd[1], SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        end_connection(c, true);
        return;
    }
    c->dialling = false;
}

static void pass_one(struct proxy *p, struct connection *c, const struct pollfd *fds, int64_t now)
{
    if (c->dialling) {
        finish_dial(c, fds[1].revents);
    }
    for (int d = 0; d < 2 && c->used && !c->dialling; d++) {
        if ((fds[d].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && fds[d].fd >= 0 && can_read(p, c, d)) {
            read_some(p, c, d, now);
        }
    }
    for (int d = 0; d < 2 && c->used && !c->dialling; d++) {
        if (!send_due(c, d, now)) {
            return;
        }
        struct piece *first = c->flow[d].first;
        if (first != NULL && first->due <= now) {
            first->due = 0; /* waits for room at the receiver, no longer for its time */
        }
    }
    bool over = c->used && !c->dialling && c->flow[0].sent_end && c->flow[1].sent_end;
    bool stranger_over = c->used && c->end[0] < 0 && c->flow[1].read_end;
    if (over || stranger_over) {
        end_connection(c, false);
    }
}

void proxy_pass(struct proxy *p, const struct pollfd *fds, int count, int64_t now)
{
    for (int i = 0; i < PROXY_CONNECTIONS; i++) {
        struct connection *c = &p->connection[i];
        if (c->used && p->first_fd[i] >= 0 && p->first_fd[i] + 1 < count) {
            pass_one(p, c, &fds[p->first_fd[i]], now);
        }
    }
    for (int i = 0; i < p->listened && i < count; i++) {
        if (fds[i].revents != 0) {
            accept_one(p, &p->listener[i]);
        }
    }
}
