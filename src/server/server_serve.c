/* server_serve.c - what the server's connections bring: strangers at the door, frames, and the time they may take.
 *
 * One idea: what a connection may cost depends on what it has shown.  A stranger gets a place among 64, 4 KiB and the
 * time that the master gives for REGISTER; when the places are taken, the oldest stranger goes, first of all one of the
 * newcomer's own host if that host holds many.
 * Invariant: a frame is handed to the master whole or not at all, and only of a client that is served.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/log.h"
#include "core/mutant.h"
#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"
#include "server/server_state.h"

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
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

/* What came is no frame.  Who speaks another version of this protocol, and has not registered, is answered. */
static void client_misunderstood(struct client *c)
{
    char text[ADDR_TEXT];
    uint8_t version = conn_other_version(c->conn);
    addr_format(&c->from, text);
    if (version == 0 || c->phase != CLIENT_FRESH) {
        log_line(LOG_DEBUG, "client at %s speaks another protocol: closed", text);
        client_lose(c);
        return;
    }
    log_line(LOG_WARN, "client at %s speaks version %u of the protocol, this master version %d: refused; run the same "
             "version of PCCL everywhere", text, version, FRAME_VERSION);
    server_run(c->server, &(struct master_event){.kind = MASTER_FOREIGN, .connection = c->slot, .number = version});
}

static void client_receive(struct client *c)
{
    for (int reads = 0; reads < SERVER_READS && client_is_served(c); reads++) {
        pccl_status st = conn_receive(c->conn);
        pccl_status frames = client_frames(c);
        if (frames == PCCL_ERR_PROTOCOL || st == PCCL_ERR_PROTOCOL) {
            client_misunderstood(c);
        } else if (st == PCCL_ERR_AGAIN) {
            break;
        } else if (st != PCCL_OK) {
            client_lose(c);
        }
    }
    conn_rest(c->conn);
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
        if (address_same_host(&c->from, from)) {
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
    if (s->fresh_count >= SERVER_FRESH || (s->free_count == 0 && s->slot_count == s->config.max_connections)) {
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
    c->slot = s->free_count > 0 ? s->free_slots[--s->free_count] : s->slot_count++;
    s->clients[c->slot] = c;
    c->phase = CLIENT_FRESH;
    s->fresh_count++;
    list_append(&s->fresh, &c->link);
    server_run(s, &(struct master_event){.kind = MASTER_OPENED, .connection = c->slot, .address = *from});
}

/* The descriptor of one that has ended is free when this turn ends. */
static bool client_frees_descriptor(struct server *s)
{
    LIST_FOR_EACH (l, after, &s->leaving) {
        if (LIST_ENTRY(l, struct client, link)->phase == CLIENT_DONE) {
            return true;
        }
    }
    return false;
}

/* The system has no descriptor left: a stranger gives up its own, which is free in the next turn; else accepting rests. */
static void client_want_descriptor(struct server *s)
{
    if (client_frees_descriptor(s)) {
        return;
    }
    if (s->fresh_count > 0) {
        client_lose(LIST_ENTRY(s->fresh.next, struct client, link));
        server_run(s, NULL);
        return;
    }
    log_line(LOG_WARN, "no descriptor left: new connections wait");
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

static void client_sweep_unfinished(struct server *s, struct list *list, int64_t now)
{
    char text[ADDR_TEXT];
    LIST_FOR_EACH (l, after, list) {
        struct client *c = LIST_ENTRY(l, struct client, link);
        if (c->unfinished_at != CLOCK_NEVER && !MUTANT(FRAME_TIMER_NOT) && now - c->unfinished_at >= SERVER_FRAME_NS) {
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
