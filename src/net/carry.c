/* carry.c - which of its two carriers has what a connection says, and what it hears.
 * SPDX-License-Identifier: MIT */
#include "net/carry.h"

#include <stdlib.h>

#include "core/list.h"

bool carry_has(const struct carry *y)
{
    return y->transport.ops->has(&y->transport);
}

static void carry_ready(struct source *source, uint32_t events)
{
    struct carry *y = LIST_ENTRY(source, struct carry, source);
    (void)events;
    y->ended |= y->transport.ops->hear(&y->transport) != PCCL_OK;
    if (y->in) {
        loop_look_at(y->loop, &y->polled);
    }
    y->told(y);
}

static bool carry_look(struct polled *p)
{
    struct carry *y = LIST_ENTRY(p, struct carry, polled);
    if (!carry_has(y)) {
        return false;
    }
    y->told(y); /* which may be its end */
    return true;
}

static bool carry_rest(struct polled *p)
{
    struct carry *y = LIST_ENTRY(p, struct carry, polled);
    return y->transport.ops->rest(&y->transport);
}

struct carry *carry_new(const struct transport *t, struct loop *loop, void (*told)(struct carry *), void *user)
{
    struct transport own = *t;
    struct carry *y = malloc(sizeof *y);
    if (y != NULL) {
        *y = (struct carry){.source = {own.fd, carry_ready}, .polled = {.look = carry_look, .rest = carry_rest}, .transport = own,
                            .loop = loop, .told = told, .user = user};
        list_init(&y->polled.all);
        own.ops->begin(&y->transport);
    }
    if (y == NULL || loop_add(loop, &y->source, EPOLLIN, NULL) != PCCL_OK) {
        own.ops->close(&own);
        free(y);
        return NULL;
    }
    return y;
}

void carry_free(struct carry *y)
{
    y->transport.ops->close(&y->transport);
    free(y);
}

void carry_unwatch(struct carry *y)
{
    loop_remove(y->loop, &y->source);
    loop_look_away(y->loop, &y->polled);
}

/* ---- Sending ---------------------------------------------------------------------------------------------------------- */

void carry_out(struct carry *y, size_t before)
{
    y->out = true;
    y->before = before;
}

bool carry_sends(const struct carry *y)
{
    return y != NULL && y->out && y->before == 0;
}

struct transport *carry_sender(struct carry *y, struct transport *socket, size_t *left)
{
    if (carry_sends(y)) {
        return &y->transport;
    }
    if (y != NULL && y->out) {
        *left = *left < y->before ? *left : y->before;
    }
    return socket;
}

void carry_moved(struct carry *y, size_t moved)
{
    if (y != NULL && y->before > 0) {
        y->before -= moved;
    }
}

void carry_spare(struct carry *y)
{
    if (y != NULL) {
        y->transport.ops->spare(&y->transport);
    }
}

/* ---- Receiving -------------------------------------------------------------------------------------------------------- */

void carry_in(struct carry *y)
{
    y->in = true;
    loop_look_at(y->loop, &y->polled);
}

pccl_status carry_receive(struct carry *y, struct transport *socket, struct iovec *part, size_t *moved)
{
    unsigned char byte;
    struct iovec one = {&byte, 1};
    if (y == NULL || !y->in) {
        return socket->ops->receive(socket, part, 1, moved);
    }
    if (!carry_has(y)) { /* called for an end, of either descriptor */
        pccl_status st = y->ended ? PCCL_ERR_CLOSED : socket->ops->receive(socket, &one, 1, moved);
        *moved = 0;
        if (st == PCCL_OK) {
            return PCCL_ERR_PROTOCOL; /* the socket has carried its last frame */
        }
        if (!carry_has(y)) {
            return st;
        } /* what was written before the end counts */
    }
    return y->transport.ops->receive(&y->transport, part, 1, moved);
}
