/* channel.c - connections with the manners of TCP.
 *
 * Bytes arrive in order, late, and in pieces that have nothing to do with what was sent.  A cut path loses them until it
 * heals; if that takes longer than the user time-out, both ends see the connection break.  A stopped receiver leaves
 * its bytes in the pipe, and a full pipe stops the sender.
 * Invariant: consumed <= delivered <= used; an index with another generation names nothing.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "world.h"

bool channel_valid(const struct world *w, uint32_t channel, uint32_t generation)
{
    return channel < w->channel_count && w->channels[channel].open && w->channels[channel].generation == generation;
}

static void pipe_reset(struct pipe *p)
{
    unsigned char *bytes = p->bytes;
    uint32_t capacity = p->capacity;
    *p = (struct pipe){.bytes = bytes, .capacity = capacity, .pace = p->pace};
}

uint32_t channel_new(struct world *w, uint16_t from, uint16_t to)
{
    uint32_t i = w->channel_first_free;
    while (i < w->channel_count && w->channels[i].open) {
        i++;
    }
    w->channel_first_free = i + 1;
    if (i == w->channel_count) {
        w->channels = world_grow(w->channels, &w->channel_capacity, i + 1, sizeof *w->channels);
        memset(&w->channels[i], 0, sizeof w->channels[i]);
        w->channel_count++;
    }
    struct channel *c = &w->channels[i];
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

static void channel_release(struct world *w, uint32_t channel)
{
    struct channel *c = &w->channels[channel];
    if (c->end[0].closed && c->end[1].closed) {
        c->open = false;
        w->channel_first_free = channel < w->channel_first_free ? channel : w->channel_first_free;
    }
}

/* What an arrival says: of whose bytes, how many, posted at which pace. */
static uint64_t channel_piece(const struct pipe *p, int end, uint32_t size)
{
    return (uint64_t)p->pace << 40 | (uint64_t)end << 32 | size;
}

/* Posts arrivals of the last `size` bytes of the pipe, in one to three pieces. */
static void channel_post(struct world *w, uint32_t channel, int end, uint32_t size)
{
    struct channel *c = &w->channels[channel];
    struct pipe *p = &c->pipe[end];
    uint32_t rate = slow_rate(w, c->end[end].node, c->end[1 - end].node);
    uint32_t pieces = size > 1 && world_chance(w, w->opt.split_percent) ? 2 + (uint32_t)rng_below(&w->rng, 2) : 1;
    while (size > 0) {
        uint32_t part = slow_piece(rate, pieces > 1 ? 1 + (uint32_t)rng_below(&w->rng, size) : size);
        int64_t at = w->now + world_delay(w);
        if (at <= p->last_at) {
            at = p->last_at + 1;
        }
        at += slow_ns(rate, part);
        p->last_at = at;
        world_post(w, at - w->now, EVENT_DELIVER, c->end[1 - end].node, channel, c->generation,
                   channel_piece(p, end, part));
        size -= part;
        pieces = pieces > 1 ? pieces - 1 : 1;
    }
}

void channel_send(struct world *w, uint32_t channel, int end, const void *bytes, uint32_t size)
{
    struct channel *c = &w->channels[channel];
    struct pipe *p = &c->pipe[end];
    if (c->end[end].closed || c->end[1 - end].closed || p->eof || size == 0) {
        return; /* the kernel would answer with a reset: EVENT_CLOSED is on its way */
    }
    if (p->consumed == p->used) {
        p->used = p->delivered = p->consumed = 0;
    }
    p->bytes = world_grow(p->bytes, &p->capacity, p->used + size, 1);
    memcpy(p->bytes + p->used, bytes, size);
    p->used += size;
    channel_post(w, channel, end, size);
}

uint32_t channel_room(const struct world *w, uint32_t channel, int end)
{
    const struct pipe *p = &w->channels[channel].pipe[end];
    uint32_t load = p->used - p->consumed;
    return load >= w->opt.socket_bytes ? 0 : w->opt.socket_bytes - load;
}

const unsigned char *channel_peek(const struct world *w, uint32_t channel, int end, uint32_t *size)
{
    const struct pipe *p = &w->channels[channel].pipe[1 - end];
    *size = p->delivered - p->consumed;
    return p->bytes + p->consumed;
}

void channel_take(struct world *w, uint32_t channel, int end, uint32_t size)
{
    struct channel *c = &w->channels[channel];
    struct pipe *p = &c->pipe[1 - end];
    p->consumed += size;
    if (p->blocked) {
        p->blocked = false;
        world_post(w, 0, EVENT_WRITABLE, c->end[1 - end].node, channel, c->generation, (uint64_t)(1 - end));
    }
}

const unsigned char *channel_frame(struct world *w, uint32_t channel, int end, struct frame_header *header, bool *bad)
{
    uint32_t size;
    const unsigned char *bytes = channel_peek(w, channel, end, &size);
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

static void channel_tell(struct world *w, uint32_t channel, int end)
{
    struct channel *c = &w->channels[channel];
    if (c->end[end].closed) {
        return;
    }
    c->end[end].closed = true;
    uint16_t node = c->end[end].node;
    if (node == WORLD_MASTER) {
        master_shell_closed(w, channel, end);
    } else if (w->nodes[node].alive) {
        node_closed(w, &w->nodes[node], channel, end);
    }
    channel_release(w, channel);
}

/* The other end reads what is under way, then the end. */
void channel_close(struct world *w, uint32_t channel, int end)
{
    struct channel *c = &w->channels[channel];
    struct pipe *p = &c->pipe[end];
    if (!c->open || c->end[end].closed) {
        return;
    }
    c->end[end].closed = true;
    p->eof = true;
    if (!c->end[1 - end].closed) {
        int64_t at = w->now + world_delay(w);
        if (at <= p->last_at) {
            at = p->last_at + 1;
        }
        p->last_at = at;
        world_post(w, at - w->now, EVENT_CLOSED, c->end[1 - end].node, channel, c->generation, (uint64_t)(1 - end));
    }
    channel_release(w, channel);
}

void channel_reset_owner(struct world *w, uint32_t channel, int end)
{
    struct channel *c = &w->channels[channel];
    if (!c->open || c->end[end].closed) {
        return;
    }
    if (world_chance(w, 50)) { /* a reset: what is under way is lost */
        c->pipe[end].used = c->pipe[end].delivered;
    }
    channel_close(w, channel, end);
}

void channel_break(struct world *w, uint32_t channel)
{
    struct channel *c = &w->channels[channel];
    if (!c->open) {
        return;
    }
    for (int end = 0; end < 2; end++) {
        c->pipe[end].used = c->pipe[end].delivered;
        c->pipe[end].eof = true;
        if (!c->end[end].closed) {
            world_post(w, world_delay(w), EVENT_CLOSED, c->end[end].node, channel, c->generation,
                       (uint64_t)end | UINT64_C(1) << 32);
        }
    }
}

static bool channel_is_cut(const struct world *w, const struct channel *c, int from)
{
    return w->cuts != 0 && w->cut[c->end[from].node][c->end[1 - from].node];
}

static void channel_stick(struct world *w, uint32_t channel)
{
    struct channel *c = &w->channels[channel];
    if (c->stuck_since == 0) {
        c->stuck_since = w->now;
        world_post(w, w->opt.stall_ns, EVENT_STUCK, WORLD_NOBODY, channel, c->generation, (uint64_t)w->now);
    }
}

void channel_healed(struct world *w, uint16_t from, uint16_t to)
{
    for (uint32_t i = 0; i < w->channel_count; i++) {
        struct channel *c = &w->channels[i];
        for (int end = 0; c->open && end < 2; end++) {
            struct pipe *p = &c->pipe[end];
            if (c->end[end].node != from || c->end[1 - end].node != to || (p->held == 0 && !p->eof_held)) {
                continue;
            }
            int64_t delay = world_delay(w) * 2;
            if (p->held != 0) {
                world_post(w, delay, EVENT_DELIVER, to, i, c->generation, channel_piece(p, end, p->held));
            }
            if (p->eof_held) {
                world_post(w, delay, EVENT_CLOSED, to, i, c->generation, (uint64_t)(1 - end));
            }
            p->last_at = w->now + delay;
            p->held = 0;
            p->eof_held = false;
            c->stuck_since = 0;
        }
    }
}

void channel_repace(struct world *w, uint16_t from, uint16_t to)
{
    for (uint32_t i = 0; i < w->channel_count; i++) {
        struct channel *c = &w->channels[i];
        for (int end = 0; c->open && end < 2; end++) {
            struct pipe *p = &c->pipe[end];
            if (c->end[end].node == from && c->end[1 - end].node == to && p->held == 0 && !p->eof_held && p->delivered < p->used) {
                p->pace++;
                p->last_at = w->now;
                channel_post(w, i, end, p->used - p->delivered);
            }
        }
    }
}

static void channel_deliver(struct world *w, const struct event *e)
{
    struct channel *c = &w->channels[e->a];
    int from = (int)(e->c >> 32 & 1);
    uint32_t size = (uint32_t)e->c;
    struct pipe *p = &c->pipe[from];
    if (e->c >> 40 != p->pace) {
        return;
    }
    if (channel_is_cut(w, c, from) || p->held != 0) {
        p->held += size;
        channel_stick(w, e->a);
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
    if (end->node == WORLD_MASTER) {
        master_shell_readable(w, e->a, 1 - from);
    } else if (w->nodes[end->node].alive) {
        node_readable(w, &w->nodes[end->node], e->a, 1 - from);
    }
}

void channel_event(struct world *w, const struct event *e)
{
    if (!channel_valid(w, e->a, (uint32_t)e->b)) {
        return;
    }
    struct channel *c = &w->channels[e->a];
    int end = (int)(e->c & 1);
    switch (e->kind) {
    case EVENT_DELIVER:
        channel_deliver(w, e);
        break;
    case EVENT_CLOSED:
        if ((e->c >> 32) == 0 && (channel_is_cut(w, c, 1 - end) || c->pipe[1 - end].held != 0)) {
            c->pipe[1 - end].eof_held = true;
            channel_stick(w, e->a);
            break;
        }
        channel_tell(w, e->a, end);
        break;
    case EVENT_STUCK:
        if (c->stuck_since == (int64_t)e->c) {
            channel_break(w, e->a);
        }
        break;
    case EVENT_WRITABLE:
        if (!c->end[end].closed && c->end[end].node != WORLD_MASTER && w->nodes[c->end[end].node].alive) {
            lanes_pump(w, &w->nodes[c->end[end].node]);
        }
        break;
    default:
        break;
    }
}
