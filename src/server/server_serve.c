/* server_client.c - the server's connections: strangers, members, and those on their way out.
 *
 * One idea: what a connection may cost depends on what it has shown.  A stranger gets a place among 64, 4 KiB and the
 * time that the master gives for REGISTER; when the places are taken, the oldest stranger goes, first of all one of the
 * newcomer's own host if that host holds many.
 * Invariant: a client is freed by client_sweep alone, never while one of its frames is being served.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/log.h"
#include "server/server_state.h"
#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Takes it out of its list; it is put into another one at once. */
static void client_move(struct client *c, enum client_phase phase, struct list *to)
{
    struct server *s = c->server;
    s->fresh_count -= c->phase == CLIENT_FRESH;
    s->leaving_count -= c->phase == CLIENT_LEAVING;
    list_remove(&c->link);
    c->phase = phase;
    s->fresh_count += phase == CLIENT_FRESH;
    s->leaving_count += phase == CLIENT_LEAVING;
    list_append(to, &c->link);
}

static void client_free_slot(struct client *c)
{
    struct server *s = c->server;
    s->clients[c->slot] = NULL;
    s->free_slots[s->free_count++] = c->slot;
}

void client_drop(struct client *c)
{
    struct server *s = c->server;
    if (c->phase != CLIENT_LEAVING) {
        client_free_slot(c);
    }
    list_remove(&c->dirty);
    conn_detach(c->conn);
    conn_shutdown(c->conn);
    client_move(c, CLIENT_DONE, &s->leaving);
}

void client_lose(struct client *c)
{
    if (c->phase == CLIENT_FRESH || c->phase == CLIENT_REGISTERED) {
        client_move(c, CLIENT_LOST, &c->server->lost);
    }
}

void client_leave(struct client *c)
{
    struct server *s = c->server;
    if (c->phase == CLIENT_LOST || s->leaving_count >= SERVER_LEAVING) {
        conn_flush(c->conn); /* what fits into the socket may still arrive */
        client_drop(c);
        return;
    }
    client_free_slot(c);
    c->since = clock_now_ns();
    client_move(c, CLIENT_LEAVING, &s->leaving);
    if (list_empty(&c->dirty)) {
        list_append(&s->dirty, &c->dirty);
    }
}

void client_send(struct client *c, const void *bytes, size_t size)
{
    if (c->phase != CLIENT_FRESH && c->phase != CLIENT_REGISTERED) {
        return;
    }
    char text[ADDR_TEXT];
    if (conn_queued(c->conn) + size > SERVER_QUEUE_BYTES || conn_append(c->conn, bytes, size, NULL, 0) != PCCL_OK) {
        log_line(LOG_WARN, "client at %s does not read: closed", addr_format(&c->from, text));
        client_lose(c);
        return;
    }
    if (list_empty(&c->dirty)) {
        list_append(&c->server->dirty, &c->dirty);
    }
}

/* After the last words our direction is closed; the other end then closes its own, and nothing was lost by a reset. */
static void client_flush(struct client *c)
{
    pccl_status st = conn_flush(c->conn); /* if it is broken, receiving says so */
    if (c->phase == CLIENT_LEAVING && !c->silenced && (st == PCCL_OK || st == PCCL_ERR_CLOSED)) {
        c->silenced = true;
        shutdown(c->conn->source.fd, SHUT_WR);
    }
}

void client_flush_dirty(struct server *s)
{
    for (struct list *l; (l = list_pop(&s->dirty)) != NULL;) {
        client_flush(LIST_ENTRY(l, struct client, dirty));
    }
}

/* ---- receiving ----------------------------------------------------------------------------------------------------- */

static bool client_is_served(const struct client *c)
{
    return c->phase == CLIENT_FRESH || c->phase == CLIENT_REGISTERED;
}

/* Every whole frame becomes an event; what stays behind is an unfinished one. */
static pccl_status client_frames(struct client *c)
{
    struct frame_header header;
    const void *payload;
    pccl_status st = PCCL_OK;
    while (client_is_served(c) && (st = conn_next(c->conn, &header, &payload)) == PCCL_OK) {
        c->unfinished_at = CLOCK_NEVER;
        bool fresh = c->phase == CLIENT_FRESH;
        server_run(c->server, &(struct master_event){
                                  .kind = MASTER_FRAME, .connection = c->slot, .header = &header, .payload = payload});
        if (fresh && c->phase == CLIENT_FRESH) { /* not closed: it was a REGISTER, and it was taken */
            client_move(c, CLIENT_REGISTERED, &c->server->registered);
            c->conn->single = false;
            c->conn->most = BOUNDS_CONTROL_FRAME;
        }
    }
    if (st == PCCL_ERR_AGAIN && c->conn->in_used > c->conn->in_at && c->unfinished_at == CLOCK_NEVER) {
        c->unfinished_at = clock_now_ns();
    }
    return st;
}

static void client_receive(struct client *c)
{
    char text[ADDR_TEXT];
    for (int reads = 0; reads < SERVER_READS && client_is_served(c); reads++) {
        pccl_status st = conn_receive(c->conn);
        pccl_status frames = client_frames(c);
        if (frames == PCCL_ERR_PROTOCOL || st == PCCL_ERR_PROTOCOL) {
            log_line(LOG_DEBUG, "client at %s speaks another protocol: closed", addr_format(&c->from, text));
            client_lose(c);
        } else if (st == PCCL_ERR_AGAIN) {
            break;
        } else if (st != PCCL_OK) {
            client_lose(c);
        }
    }
}

/* Nobody listens any more to one that leaves; it is read so that closing does not reset what is on its way. */
static void client_discard(struct client *c)
{
    char bytes[4096];
    for (int reads = 0; reads < SERVER_READS; reads++) {
        ssize_t n = recv(c->conn->source.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            client_drop(c);
        }
        if (n <= 0) {
            return;
        }
    }
}

static void client_ready(struct source *source, uint32_t events)
{
    struct conn *conn = conn_of(source);
    struct client *c = conn->user;
    struct server *s = c->server;
    if ((events & EPOLLOUT) != 0) {
        client_flush(c);
    }
    if ((events & ~(uint32_t)EPOLLOUT) == 0) {
        return;
    }
    if (c->phase == CLIENT_LEAVING) {
        client_discard(c);
    } else if (client_is_served(c)) {
        client_receive(c);
    }
    server_run(s, NULL);
}

/* ---- accepting ----------------------------------------------------------------------------------------------------- */

static void client_make_room(struct server *s, const struct net_address *from)
{
    uint32_t same = 0;
    struct client *victim = NULL;
    LIST_FOR_EACH (l, after, &s->fresh) { /* oldest first */
        struct client *c = LIST_ENTRY(l, struct client, link);
        if (addr_same_host(&c->from, from)) {
            victim = same++ == 0 ? c : victim;
        }
    }
    if (same < SERVER_FRESH_HOST) {
        victim = LIST_ENTRY(s->fresh.next, struct client, link);
    }
    client_lose(victim);
    server_run(s, NULL);
}

static struct client *client_new(struct server *s, int fd, const struct net_address *from)
{
    struct client *c = calloc(1, sizeof *c);
    struct conn *conn = c != NULL ? conn_new() : NULL;
    if (conn == NULL) {
        free(c);
        fds_close(fd);
        return NULL;
    }
    conn_open_take(conn, fd);
    conn->single = true; /* until it has registered: no room for more than the frame in hand */
    conn->most = SERVER_FRESH_BYTES - FRAME_HEADER_BYTES;
    *c = (struct client){.server = s, .conn = conn, .from = *from, .since = clock_now_ns(), .unfinished_at = CLOCK_NEVER};
    list_init(&c->dirty);
    list_init(&c->link);
    if (conn_attach(conn, &s->loop, client_ready, c, NULL) != PCCL_OK) {
        conn_unref(conn);
        free(c);
        return NULL;
    }
    return c;
}

static void client_welcome(struct server *s, int fd, const struct net_address *from)
{
    if (s->fresh_count >= SERVER_FRESH || s->free_count == 0) {
        if (s->fresh_count == 0) { /* all places are taken by members */
            fds_close(fd);
            return;
        }
        client_make_room(s, from);
    }
    sock_tune(fd, SERVER_FRAME_NS);
    struct client *c = client_new(s, fd, from);
    if (c == NULL) {
        log_line(LOG_WARN, "no memory for another connection");
        return;
    }
    c->slot = s->free_slots[--s->free_count];
    s->clients[c->slot] = c;
    c->phase = CLIENT_FRESH;
    s->fresh_count++;
    list_append(&s->fresh, &c->link);
    server_run(s, &(struct master_event){.kind = MASTER_OPENED, .connection = c->slot, .address = *from});
}

/* The system has no descriptor left: a stranger gives up its own, which is free in the next turn; else accepting rests. */
static void client_want_descriptor(struct server *s)
{
    if (s->fresh_count > 0) {
        client_lose(LIST_ENTRY(s->fresh.next, struct client, link));
        server_run(s, NULL);
        return;
    }
    log_line(LOG_WARN, "no descriptor left: accepting rests");
    s->accept_at = clock_now_ns() + SERVER_ACCEPT_NS;
    loop_change(&s->loop, &s->listener, 0);
}

void client_accept_ready(struct source *listener, uint32_t events)
{
    struct server *s = LIST_ENTRY(listener, struct server, listener);
    (void)events;
    for (int i = 0; i < SERVER_ACCEPTS; i++) {
        int fd;
        struct net_address from;
        pccl_status st = sock_accept(listener->fd, &fd, &from, NULL);
        if (st == PCCL_OK) {
            client_welcome(s, fd, &from);
        } else if (st == PCCL_ERR_AGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            client_want_descriptor(s);
            return;
        } /* else the one connection that failed is gone */
    }
}

/* ---- time ---------------------------------------------------------------------------------------------------------- */

static void client_free(struct client *c)
{
    list_remove(&c->link);
    conn_unref(c->conn);
    free(c);
}

static void client_sweep_unfinished(struct server *s, struct list *list, int64_t now)
{
    char text[ADDR_TEXT];
    LIST_FOR_EACH (l, after, list) {
        struct client *c = LIST_ENTRY(l, struct client, link);
        if (c->unfinished_at != CLOCK_NEVER && now - c->unfinished_at >= SERVER_FRAME_NS) {
            log_line(LOG_WARN, "client at %s does not finish a message: closed", addr_format(&c->from, text));
            client_lose(c);
        }
    }
    server_run(s, NULL);
}

void client_sweep(struct server *s, int64_t now)
{
    if (now >= s->sweep_at) {
        s->sweep_at = now + SERVER_SWEEP_NS;
        client_sweep_unfinished(s, &s->registered, now); /* strangers have the master's limit */
    }
    LIST_FOR_EACH (l, after, &s->leaving) {
        struct client *c = LIST_ENTRY(l, struct client, link);
        if (c->phase == CLIENT_LEAVING && now - c->since >= SERVER_LINGER_NS) {
            client_drop(c);
        }
    }
    LIST_FOR_EACH (l, after, &s->leaving) {
        struct client *c = LIST_ENTRY(l, struct client, link);
        if (c->phase == CLIENT_DONE) {
            client_free(c);
        }
    }
    if (s->accept_at != 0 && now >= s->accept_at) {
        s->accept_at = 0;
        loop_change(&s->loop, &s->listener, EPOLLIN);
    }
}

int64_t client_deadline(const struct server *s)
{
    int64_t due = s->accept_at != 0 ? s->accept_at : CLOCK_NEVER;
    LIST_FOR_EACH (l, after, &s->leaving) {
        const struct client *c = LIST_ENTRY(l, const struct client, link);
        due = sooner(due, c->phase == CLIENT_DONE ? 0 : c->since + SERVER_LINGER_NS);
    }
    return list_empty(&s->registered) ? due : sooner(due, s->sweep_at);
}
