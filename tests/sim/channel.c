/* channel.c - connections with the manners of TCP.
 *
 * Bytes arrive in order, late, and in pieces that have nothing to do with what was sent.  A cut path loses them until it
 * heals; if that takes longer than the user time-out, both ends see the connection break.  A stopped receiver leaves
 * its bytes in the pipe, and a full pipe stops the sender.
 * Invariant: consumed <= delivered <= used; an index with another generation names nothing.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "sim_cluster.h"

bool channel_valid(const struct cluster *cl, uint32_t channel, uint32_t generation)
{
    return channel < cl->channel_count && cl->channels[channel].open && cl->channels[channel].generation == generation;
}

static void pipe_reset(struct pipe *p)
{
    unsigned char *bytes = p->bytes;
    uint32_t capacity = p->capacity;
    *p = (struct pipe){.bytes = bytes, .capacity = capacity, .pace = p->pace};
}

uint32_t channel_new(struct cluster *cl, uint16_t from, uint16_t to)
{
    uint32_t i = cl->channel_first_free;
    while (i < cl->channel_count && cl->channels[i].open) {
        i++;
    }
    cl->channel_first_free = i + 1;
    if (i == cl->channel_count) {
        cl->channels = cluster_grow(cl->channels, &cl->channel_capacity, i + 1, sizeof *cl->channels);
        memset(&cl->channels[i], 0, sizeof cl->channels[i]);
        cl->channel_count++;
    }
    struct channel *c = &cl->channels[i];
    c->generation++;
    c->open = true;
    c->stuck_since = 0;
    memset(c->end, 0, sizeof c->end);
    c->end[0].node = from;
    c->end[1].node = to;
    pipe_reset(&c->pipe[0]);
    pipe_reset(&c->pipe[1]);
    return i;
}

static void channel_release(struct cluster *cl, uint32_t channel)
{
    struct channel *c = &cl->channels[channel];
    if (c->end[0].closed && c->end[1].closed) {
        c->open = false;
        cl->channel_first_free = channel < cl->channel_first_free ? channel : cl->channel_first_free;
    }
}

/* What an arrival says: of whose bytes, how many, posted at which pace. */
static uint64_t channel_piece(const struct pipe *p, int end, uint32_t size)
{
    return (uint64_t)p->pace << 40 | (uint64_t)end << 32 | size;
}

/* Posts arrivals of the last `size` bytes of the pipe, in one to three pieces. */
static void channel_post(struct cluster *cl, uint32_t channel, int end, uint32_t size)
{
    struct channel *c = &cl->channels[channel];
    struct pipe *p = &c->pipe[end];
    uint32_t rate = slow_rate(cl, c->end[end].node, c->end[1 - end].node);
    uint32_t pieces = size > 1 && cluster_chance(cl, cl->opt.split_percent) ? 2 + (uint32_t)rng_below(&cl->rng, 2) : 1;
    while (size > 0) {
        uint32_t part = slow_piece(rate, pieces > 1 ? 1 + (uint32_t)rng_below(&cl->rng, size) : size);
        int64_t at = cl->now + cluster_delay(cl) + cluster_distance(cl, c->end[end].node, c->end[1 - end].node);
        if (at <= p->last_at) {
            at = p->last_at + 1;
        }
        at += slow_ns(rate, part);
        p->last_at = at;
        cluster_post(cl, at - cl->now, EVENT_DELIVER, c->end[1 - end].node, channel, c->generation,
                     channel_piece(p, end, part));
        size -= part;
        pieces = pieces > 1 ? pieces - 1 : 1;
    }
}

void channel_send(struct cluster *cl, uint32_t channel, int end, const void *bytes, uint32_t size)
{
    struct channel *c = &cl->channels[channel];
    struct pipe *p = &c->pipe[end];
    if (c->end[end].closed || c->end[1 - end].closed || p->eof || size == 0) {
        return; /* the kernel would answer with a reset: EVENT_CLOSED is on its way */
    }
    if (p->consumed == p->used) {
        p->used = p->delivered = p->consumed = 0;
    }
    p->bytes = cluster_grow(p->bytes, &p->capacity, p->used + size, 1);
    memcpy(p->bytes + p->used, bytes, size);
    p->used += size;
    channel_post(cl, channel, end, size);
}

uint32_t channel_room(const struct cluster *cl, uint32_t channel, int end)
{
    const struct pipe *p = &cl->channels[channel].pipe[end];
    uint32_t load = p->used - p->consumed;
    return load >= cl->opt.socket_bytes ? 0 : cl->opt.socket_bytes - load;
}

const unsigned char *channel_peek(const struct cluster *cl, uint32_t channel, int end, uint32_t *size)
{
    const struct pipe *p = &cl->channels[channel].pipe[1 - end];
    *size = p->delivered - p->consumed;
    return p->bytes + p->consumed;
}

void channel_take(struct cluster *cl, uint32_t channel, int end, uint32_t size)
{
    struct channel *c = &cl->channels[channel];
    struct pipe *p = &c->pipe[1 - end];
    p->consumed += size;
    if (p->blocked) {
        p->blocked = false;
        cluster_post(cl, 0, EVENT_WRITABLE, c->end[1 - end].node, channel, c->generation, (uint64_t)(1 - end));
    }
}

const unsigned char *channel_frame(struct cluster *cl, uint32_t channel, int end, struct frame_header *header, bool *bad)
{
    uint32_t size;
    const unsigned char *bytes = channel_peek(cl, channel, end, &size);
    *bad = false;
    if (size < FRAME_HEADER_BYTES) {
        return NULL;
    }
    if (!frame_get(bytes, header)) {
        *bad = true;
        return NULL;
    }
    return size < FRAME_HEADER_BYTES + header->length ? NULL : bytes;
}

static void channel_tell(struct cluster *cl, uint32_t channel, int end)
{
    struct channel *c = &cl->channels[channel];
    if (c->end[end].closed) {
        return;
    }
    c->end[end].closed = true;
    uint16_t node = c->end[end].node;
    if (node == CLUSTER_MASTER) {
        master_shell_closed(cl, channel, end);
    } else if (cl->nodes[node].alive) {
        node_closed(cl, &cl->nodes[node], channel, end);
    }
    channel_release(cl, channel);
}

/* The other end reads what is under way, then the end. */
void channel_close(struct cluster *cl, uint32_t channel, int end)
{
    struct channel *c = &cl->channels[channel];
    struct pipe *p = &c->pipe[end];
    if (!c->open || c->end[end].closed) {
        return;
    }
    c->end[end].closed = true;
    p->eof = true;
    if (!c->end[1 - end].closed) {
        int64_t at = cl->now + cluster_delay(cl) + cluster_distance(cl, c->end[end].node, c->end[1 - end].node);
        if (at <= p->last_at) {
            at = p->last_at + 1;
        }
        p->last_at = at;
        cluster_post(cl, at - cl->now, EVENT_CLOSED, c->end[1 - end].node, channel, c->generation, (uint64_t)(1 - end));
    }
    channel_release(cl, channel);
}

void channel_reset_owner(struct cluster *cl, uint32_t channel, int end)
{
    struct channel *c = &cl->channels[channel];
    if (!c->open || c->end[end].closed) {
        return;
    }
    if (cluster_chance(cl, 50)) { /* a reset: what is under way is lost */
        c->pipe[end].used = c->pipe[end].delivered;
    }
    channel_close(cl, channel, end);
}

void channel_break(struct cluster *cl, uint32_t channel)
{
    struct channel *c = &cl->channels[channel];
    if (!c->open) {
        return;
    }
    for (int end = 0; end < 2; end++) {
        c->pipe[end].used = c->pipe[end].delivered;
        c->pipe[end].eof = true;
        if (!c->end[end].closed) {
            cluster_post(cl, cluster_delay(cl), EVENT_CLOSED, c->end[end].node, channel, c->generation,
                         (uint64_t)end | UINT64_C(1) << 32);
        }
    }
}

static bool channel_is_cut(const struct cluster *cl, const struct channel *c, int from)
{
    return cl->cuts != 0 && cl->cut[c->end[from].node][c->end[1 - from].node];
}

static void channel_stick(struct cluster *cl, uint32_t channel)
{
    struct channel *c = &cl->channels[channel];
    if (c->stuck_since == 0) {
        c->stuck_since = cl->now;
        cluster_post(cl, cl->opt.stall_ns, EVENT_STUCK, CLUSTER_NOBODY, channel, c->generation, (uint64_t)cl->now);
    }
}

void channel_healed(struct cluster *cl, uint16_t from, uint16_t to)
{
    for (uint32_t i = 0; i < cl->channel_count; i++) {
        struct channel *c = &cl->channels[i];
        for (int end = 0; c->open && end < 2; end++) {
            struct pipe *p = &c->pipe[end];
            if (c->end[end].node != from || c->end[1 - end].node != to || (p->held == 0 && !p->eof_held)) {
                continue;
            }
            int64_t delay = cluster_delay(cl) * 2;
            if (p->held != 0) {
                cluster_post(cl, delay, EVENT_DELIVER, to, i, c->generation, channel_piece(p, end, p->held));
            }
            if (p->eof_held) {
                cluster_post(cl, delay, EVENT_CLOSED, to, i, c->generation, (uint64_t)(1 - end));
            }
            p->last_at = cl->now + delay;
            p->held = 0;
            p->eof_held = false;
            c->stuck_since = 0;
        }
    }
}

void channel_repace(struct cluster *cl, uint16_t from, uint16_t to)
{
    for (uint32_t i = 0; i < cl->channel_count; i++) {
        struct channel *c = &cl->channels[i];
        for (int end = 0; c->open && end < 2; end++) {
            struct pipe *p = &c->pipe[end];
            if (c->end[end].node == from && c->end[1 - end].node == to && p->held == 0 && !p->eof_held && p->delivered < p->used) {
                p->pace++;
                p->last_at = cl->now;
                channel_post(cl, i, end, p->used - p->delivered);
            }
        }
    }
}

static void channel_deliver(struct cluster *cl, const struct event *e)
{
    struct channel *c = &cl->channels[e->a];
    int from = (int)(e->c >> 32 & 1);
    uint32_t size = (uint32_t)e->c;
    struct pipe *p = &c->pipe[from];
    if (e->c >> 40 != p->pace) {
        return;
    }
    if (channel_is_cut(cl, c, from) || p->held != 0) {
        p->held += size;
        channel_stick(cl, e->a);
        return;
    }
    if (p->delivered + size > p->used) { /* cut short by a reset */
        size = p->used - p->delivered;
    }
    p->delivered += size;
    struct channel_end *end = &c->end[1 - from];
    if (size == 0 || end->closed) {
        return;
    }
    if (end->node == CLUSTER_MASTER) {
        master_shell_readable(cl, e->a, 1 - from);
    } else if (cl->nodes[end->node].alive) {
        node_readable(cl, &cl->nodes[end->node], e->a, 1 - from);
    }
}

void channel_event(struct cluster *cl, const struct event *e)
{
    if (!channel_valid(cl, e->a, (uint32_t)e->b)) {
        return;
    }
    struct channel *c = &cl->channels[e->a];
    int end = (int)(e->c & 1);
    switch (e->kind) {
    case EVENT_DELIVER:
        channel_deliver(cl, e);
        break;
    case EVENT_CLOSED:
        if ((e->c >> 32) == 0 && (channel_is_cut(cl, c, 1 - end) || c->pipe[1 - end].held != 0)) {
            c->pipe[1 - end].eof_held = true;
            channel_stick(cl, e->a);
            break;
        }
        channel_tell(cl, e->a, end);
        break;
    case EVENT_STUCK:
        if (c->stuck_since == (int64_t)e->c) {
            channel_break(cl, e->a);
        }
        break;
    case EVENT_WRITABLE:
        if (!c->end[end].closed && c->end[end].node != CLUSTER_MASTER && cl->nodes[c->end[end].node].alive) {
            lanes_pump(cl, &cl->nodes[c->end[end].node]);
        }
        break;
    default:
        break;
    }
}
