/* server_client.c - one connection of the server: its phase, what is sent to it, how it ends.
 *
 * One idea: ending takes three words.  A client is lost (the master is yet to hear of it), leaves (last words are on
 * their way), or is dropped (nothing is left to do but free it), and each is a list of the server.
 * Invariant: a client is freed by client_sweep alone, never while one of its frames is being served.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/socket.h>

#include "core/log.h"
#include "net/addr.h"
#include "server/server_state.h"

void client_move(struct client *c, enum client_phase phase, struct list *to)
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
void client_flush(struct client *c)
{
    pccl_status st = conn_flush(c->conn); /* if it is broken, receiving says so */
    if (c->phase == CLIENT_LEAVING && !c->silenced && (st == PCCL_OK || st == PCCL_ERR_CLOSED)) {
        c->silenced = true;
        shutdown(c->conn->source.fd, SHUT_WR);
    }
    conn_rest(c->conn);
}

void client_flush_dirty(struct server *s)
{
    for (struct list *l; (l = list_pop(&s->dirty)) != NULL;) {
        client_flush(LIST_ENTRY(l, struct client, dirty));
    }
}

void client_free(struct client *c)
{
    list_remove(&c->link);
    conn_unref(c->conn);
    free(c);
}
