/* peer_lanes.c - the lanes of one process: executors on one side, data connections on the other.
 *
 * One idea: bytes go straight to where the executor says, in whatever pieces they come, and straight from the
 * caller's buffer into the connection's room.  When an operation is stopped, what is left of a frame in hand goes through
 * scratch, both ways; the stop comes late on purpose, so that lanes still write while the session already knows.
 * Invariant: no pointer into a buffer is kept after the executor of its operation was stopped.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { LANES_HEAD = FRAME_HEADER_BYTES + P2P_DATA_PREFIX, LANES_NO_SLOT = 0xFFFFFFFF };

static void *lanes_memory(void *old, size_t *have, size_t need)
{
    if (need <= *have) {
        return old;
    }
    free(old);
    void *memory = aligned_alloc(64, (need + 63) / 64 * 64);
    if (memory == NULL) {
        abort();
    }
    *have = need;
    return memory;
}

uint32_t lanes_reserve(struct node *n, uint32_t senders, uint32_t want)
{
    uint32_t window = want;
    for (uint32_t lane = 0; senders != 0 && lane < WORLD_LANES; lane++) {
        uint32_t got = room_reserve(&n->room[lane], senders * want);
        window = got / senders < window ? got / senders : window;
        room_unreserve(&n->room[lane], got);
    }
    if (senders == 0) {
        window = 0;
    }
    for (uint32_t lane = 0; lane < WORLD_LANES; lane++) {
        room_reserve(&n->room[lane], senders * window);
    }
    return window;
}

/* From every lane. */
void lanes_unreserve(struct node *n, uint32_t grants)
{
    for (uint32_t lane = 0; lane < WORLD_LANES; lane++) {
        room_unreserve(&n->room[lane], grants);
    }
}

static void lanes_look(struct world *w, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    bool done = true, idle = true;
    for (uint32_t i = 0; i < r->op.lanes; i++) {
        if (r->exec[i].failed) {
            world_fail(w, "peer %u: an executor failed an assertion", n->index);
        }
        done = done && r->exec[i].done;
        idle = idle && r->exec[i].idle;
    }
    if (done && !r->done && !r->stopping) {
        r->done = true;
        world_post(w, 0, EVENT_STEP, n->index, SESSION_DONE, slot, r->use);
    }
    if (idle && r->done && !r->idle && !r->stopping) {
        r->idle = true;
        for (uint32_t i = 0; i < r->op.lanes; i++) {
            exec_step(&r->exec[i], &(struct exec_event){.kind = EXEC_STOP}, &(struct exec_out){0});
        }
        world_post(w, 0, EVENT_STEP, n->index, SESSION_IDLE, slot, r->use);
    }
}

/* Somebody gave grants back: executors whose senders starve may have them. */
static void lanes_feed_starved(struct node *n, uint32_t lane)
{
    for (uint32_t i = 0; i < WORLD_SLOTS; i++) {
        struct run *r = &n->run[i];
        if (r->taken && r->started && !r->idle && lane < r->op.lanes && r->exec[lane].starved) {
            exec_step(&r->exec[lane], &(struct exec_event){.kind = EXEC_ROOM}, &(struct exec_out){0});
        }
    }
}

void lanes_start(struct world *w, struct node *n, uint32_t slot, uint32_t window)
{
    struct run *r = &n->run[slot];
    const struct session_op *op = session_op(n->session, slot);
    if (!r->taken || r->started || op == NULL) {
        world_fail(w, "peer %u: start of slot %u, which is %s", n->index, slot, r->taken ? "started" : "free");
        return;
    }
    r->op = *op;
    n->ready_view = op->view;
    if (op->lanes == 0 || op->lanes > WORLD_LANES || op->plan.world > WORLD_NODES) {
        world_fail(w, "peer %u: an operation on %u lanes of %u members", n->index, op->lanes, op->plan.world);
        return;
    }
    memset(r->ready, 0, sizeof r->ready);
    memcpy(r->ranks, op->ranks, op->plan.world * sizeof *r->ranks);
    uint32_t segments = plan_max_segments(op->plan.algorithm, op->plan.world);
    uint32_t steps = plan_max_steps(op->plan.algorithm, op->plan.world);
    r->segments = world_grow(r->segments, &r->segment_capacity, segments, sizeof *r->segments);
    r->steps = world_grow(r->steps, &r->step_capacity, steps, sizeof *r->steps);
    plan_make(&r->plan, &op->plan, r->segments, r->steps);
    r->started = true;
    if (r->window_reserved > window) { /* the session told less than was reserved */
        lanes_unreserve(n, r->senders * (r->window_reserved - window));
    }
    for (uint32_t lane = op->lanes; lane < WORLD_LANES; lane++) {
        room_unreserve(&n->room[lane], r->senders * window);
    }
    r->window_reserved = 0;
    for (uint32_t lane = 0; lane < op->lanes; lane++) {
        struct exec_config c = {.plan = &r->plan, .numeric = &r->op.numeric, .room = &n->room[lane], .in = op->in,
                                .out = op->out, .lane = lane, .lanes = op->lanes, .window = window, .verify = op->verify};
        r->arena[lane] = lanes_memory(r->arena[lane], &r->arena_bytes[lane], exec_arena_bytes(&c));
        exec_init(&r->exec[lane], &c, r->arena[lane]);
    }
    world_post(w, w->opt.stall_ns / 2, EVENT_PROGRESS, n->index, slot, r->use, 0);
    lanes_look(w, n, slot);
    lanes_pump(w, n);
}

static uint32_t lanes_rank(const struct run *r, uint64_t peer)
{
    for (uint32_t i = 0; i < r->op.plan.world; i++) {
        if (r->ranks[i] == peer) {
            return i;
        }
    }
    return LANES_NO_SLOT;
}

void lanes_ready(struct world *w, struct node *n, uint32_t slot, uint64_t peer, uint32_t credit)
{
    struct run *r = &n->run[slot];
    if (!r->taken || !r->started) {
        world_fail(w, "peer %u: slot %u is fed before it was started", n->index, slot);
        return;
    }
    uint32_t rank = lanes_rank(r, peer);
    if (rank == LANES_NO_SLOT) {
        world_fail(w, "peer %u: slot %u is fed by %llx, no member", n->index, slot, (unsigned long long)peer);
        return;
    }
    r->ready[rank] = true;
    for (uint32_t lane = 0; !r->idle && lane < r->op.lanes; lane++) {
        exec_step(&r->exec[lane], &(struct exec_event){.kind = EXEC_READY, .rank = rank, .credit = credit},
                  &(struct exec_out){0});
    }
    if (!r->idle) {
        lanes_look(w, n, slot);
        lanes_pump(w, n);
    }
}

/* The frame in hand goes on from scratch; the caller's buffer is free. */
static void lanes_unhand(struct data_connection *d, uint32_t slot)
{
    if (d->busy && d->tx_slot == slot) {
        d->scratch = realloc(d->scratch, d->body_bytes + 1);
        memcpy(d->scratch, d->body, d->body_bytes);
        d->body = d->scratch;
        d->tx_slot = LANES_NO_SLOT;
    }
    if (d->rx_frame && d->rx_slot == slot) {
        d->rx_at = NULL;
        d->rx_slot = LANES_NO_SLOT;
    }
}

void lanes_stop_later(struct world *w, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    if (!r->taken || !r->started) {
        world_fail(w, "peer %u: stop of slot %u, which lanes do not have", n->index, slot);
        return;
    }
    r->stopping = true;
    world_post(w, (int64_t)rng_below(&w->rng, (uint64_t)w->opt.latency_ns * 2 + 1), EVENT_LANES_STOP, n->index, slot, r->use,
               0);
}

void lanes_stop(struct world *w, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    if (r->idle) {
        return;
    }
    for (uint32_t lane = 0; lane < r->op.lanes; lane++) {
        exec_step(&r->exec[lane], &(struct exec_event){.kind = EXEC_STOP}, &(struct exec_out){0});
    }
    for (uint32_t i = 0; i < n->link_count; i++) {
        for (uint32_t lane = 0; lane < WORLD_LANES; lane++) {
            lanes_unhand(&n->links[i]->data_connection[lane], slot);
        }
    }
    r->idle = true;
    node_step(w, n, &(struct session_event){.kind = SESSION_IDLE, .slot = slot});
    lanes_pump(w, n);
}

void lanes_forget_connection(struct node *n, struct data_connection *d)
{
    (void)n;
    unsigned char *scratch = d->scratch;
    *d = (struct data_connection){.scratch = scratch};
}

/* No byte for stall_ns: the session is told whom the lanes wait for. */
void lanes_progress(struct world *w, struct node *n, const struct event *e)
{
    struct run *r = &n->run[e->a];
    if (!r->taken || r->use != e->b || r->idle || r->returned) {
        return;
    }
    uint64_t progress = 1;
    for (uint32_t lane = 0; lane < r->op.lanes; lane++) {
        progress += r->exec[lane].progress + r->exec[lane].rx_bytes + r->exec[lane].tx_bytes;
    }
    if (progress == e->c && !r->done && !r->stopping) {
        world_post(w, 0, EVENT_STEP, n->index, SESSION_STALLED, e->a, r->use);
    }
    world_post(w, w->opt.stall_ns, EVENT_PROGRESS, n->index, e->a, r->use, progress);
}

/* ---- sending -------------------------------------------------------------------------------------------------------- */
static void lanes_head(struct data_connection *d, const struct run *r, uint8_t type, uint32_t lane, uint32_t payload)
{
    struct frame_header header = {
        .type = type, .lane = (uint16_t)lane, .length = payload, .view = r->op.view};
    frame_put(d->head, &header);
    d->sent = 0;
    d->busy = true;
}

static bool lanes_next_credit(struct node *n, struct data_connection *d, uint32_t lane, uint64_t peer)
{
    for (uint32_t i = 0; i < WORLD_SLOTS; i++) {
        struct run *r = &n->run[i];
        if (!r->taken || !r->started || r->idle || lane >= r->op.lanes) {
            continue;
        }
        uint32_t rank = lanes_rank(r, peer);
        uint32_t frames = rank == LANES_NO_SLOT || !r->ready[rank] ? 0 : exec_take_credit(&r->exec[lane], rank);
        if (frames != 0) {
            struct writer writer;
            writer_init(&writer, d->head + FRAME_HEADER_BYTES, sizeof d->head - FRAME_HEADER_BYTES);
            put_credit(&writer, &(struct msg_credit){.name = r->op.name, .frames = frames});
            lanes_head(d, r, FRAME_CREDIT, lane, (uint32_t)writer.used);
            d->head_bytes = FRAME_HEADER_BYTES + (uint32_t)writer.used;
            d->body_bytes = 0;
            d->tx_slot = LANES_NO_SLOT;
            return true;
        }
    }
    return false;
}

static bool lanes_next_data(struct node *n, struct data_connection *d, uint32_t lane, uint64_t peer)
{
    for (uint32_t i = 0; i < WORLD_SLOTS; i++) {
        struct run *r = &n->run[i];
        if (!r->taken || !r->started || r->idle || lane >= r->op.lanes) {
            continue;
        }
        uint32_t rank = lanes_rank(r, peer);
        if (rank == LANES_NO_SLOT || !exec_has_frame(&r->exec[lane], rank)) {
            continue;
        }
        struct exec_out out = {0};
        exec_step(&r->exec[lane], &(struct exec_event){.kind = EXEC_PULL, .rank = rank}, &out);
        if (out.data == NULL) {
            continue;
        }
        struct writer writer;
        writer_init(&writer, d->head + FRAME_HEADER_BYTES, sizeof d->head - FRAME_HEADER_BYTES);
        put_data(&writer, &(struct msg_data){.name = r->op.name, .frame = out.frame, .phase = (uint8_t)out.phase});
        lanes_head(d, r, FRAME_DATA, lane, P2P_DATA_PREFIX + out.bytes);
        d->head_bytes = LANES_HEAD;
        d->body = out.data;
        d->body_bytes = out.bytes;
        d->tx_slot = i;
        d->tx_rank = rank;
        return true;
    }
    return false;
}

/* Fills the connection's room; a frame is cut wherever the room ends. */
static bool lanes_write(struct world *w, struct node *n, struct data_connection *d, uint32_t lane)
{
    int end = w->channels[d->channel].end[0].node == n->index ? 0 : 1;
    bool moved = false;
    while (d->busy) {
        uint32_t room = channel_room(w, d->channel, end), total = d->head_bytes + d->body_bytes;
        if (room == 0) {
            w->channels[d->channel].pipe[end].blocked = true;
            break;
        }
        bool in_head = d->sent < d->head_bytes;
        const unsigned char *at = in_head ? d->head + d->sent : d->body + (d->sent - d->head_bytes);
        uint32_t size = (in_head ? d->head_bytes : total) - d->sent;
        size = size < room ? size : room;
        channel_send(w, d->channel, end, at, size);
        d->sent += size;
        moved = true;
        if (d->sent == total) {
            d->busy = false;
            if (d->tx_slot != LANES_NO_SLOT) {
                uint32_t slot = d->tx_slot;
                exec_step(&n->run[slot].exec[lane], &(struct exec_event){.kind = EXEC_SENT, .rank = d->tx_rank},
                          &(struct exec_out){0});
                lanes_look(w, n, slot);
            }
        }
    }
    return moved;
}

void lanes_pump(struct world *w, struct node *n)
{
    for (bool moved = true; moved && !w->failed;) {
        moved = false;
        for (uint32_t lane = 0; lane < WORLD_LANES; lane++) {
            lanes_feed_starved(n, lane);
        }
        for (uint32_t i = 0; i < n->link_count; i++) {
            struct link *l = n->links[i];
            for (uint32_t lane = 0; l->bundle_state == LINK_UP && lane < l->bundle_lanes; lane++) {
                struct data_connection *d = &l->data_connection[lane];
                if (!d->up || !channel_valid(w, d->channel, d->generation)) {
                    continue;
                }
                if (d->busy || lanes_next_credit(n, d, lane, l->peer) || lanes_next_data(n, d, lane, l->peer)) {
                    moved = lanes_write(w, n, d, lane) || moved;
                }
            }
        }
    }
}

/* ---- receiving ------------------------------------------------------------------------------------------------------ */
static struct run *lanes_find(struct node *n, uint64_t view, const struct op_name *name, uint32_t lane, uint32_t *slot)
{
    for (uint32_t i = 0; i < WORLD_SLOTS; i++) {
        struct run *r = &n->run[i];
        if (r->taken && r->started && !r->idle && lane < r->op.lanes && r->op.view == view && r->op.name.tag == name->tag &&
            r->op.name.seq == name->seq) {
            *slot = i;
            return r;
        }
    }
    return NULL;
}

/* The header of a frame is here: where its payload goes.  False: the connection was closed. */
static bool lanes_begin(struct world *w, struct node *n, struct link *l, struct data_connection *d, uint32_t lane,
                        const struct frame_header *header, const unsigned char *payload)
{
    struct reader reader;
    struct msg_data data;
    reader_init(&reader, payload, P2P_DATA_PREFIX);
    if (header->length < P2P_DATA_PREFIX || !get_data(&reader, &data)) {
        channel_break(w, d->channel);
        return false;
    }
    d->rx_frame = true;
    d->rx_left = header->length - P2P_DATA_PREFIX;
    d->rx_at = NULL;
    d->rx_slot = LANES_NO_SLOT;
    struct run *r = lanes_find(n, header->view, &data.name, lane, &d->rx_slot);
    if (r == NULL) {
        return true; /* of an older view, or stopped: to nowhere */
    }
    uint32_t rank = lanes_rank(r, l->peer);
    struct exec_out out = {0};
    if (rank != LANES_NO_SLOT) {
        exec_step(&r->exec[lane],
                  &(struct exec_event){.kind = EXEC_HEADER, .rank = rank, .frame = data.frame, .phase = data.phase,
                                       .bytes = d->rx_left},
                  &out);
    }
    if (rank == LANES_NO_SLOT || out.refused) {
        world_fail(w, "peer %u: frame %u phase %u of %u bytes of tag %llu from peer %u breaks the plan", n->index, data.frame,
                   data.phase, d->rx_left, (unsigned long long)data.name.tag, world_node_of(w, l->peer));
        return false;
    }
    d->rx_at = out.dst;
    d->rx_rank = rank;
    return true;
}

static void lanes_credit(struct node *n, struct link *l, uint32_t lane, const struct frame_header *header,
                         const unsigned char *payload)
{
    struct reader reader;
    struct msg_credit credit;
    uint32_t slot;
    reader_init(&reader, payload, header->length);
    if (!get_credit(&reader, &credit)) {
        return;
    }
    struct run *r = lanes_find(n, header->view, &credit.name, lane, &slot);
    uint32_t rank = r == NULL ? LANES_NO_SLOT : lanes_rank(r, l->peer);
    if (rank != LANES_NO_SLOT) {
        exec_step(&r->exec[lane], &(struct exec_event){.kind = EXEC_CREDIT, .rank = rank, .credit = credit.frames},
                  &(struct exec_out){0});
    }
}

static void lanes_payload(struct world *w, struct node *n, struct data_connection *d, uint32_t channel, int end, uint32_t lane)
{
    uint32_t size;
    const unsigned char *bytes = channel_peek(w, channel, end, &size);
    uint32_t part = size < d->rx_left ? size : d->rx_left;
    if (d->rx_at != NULL) {
        memcpy(d->rx_at, bytes, part);
        d->rx_at += part;
    }
    d->rx_left -= part;
    channel_take(w, channel, end, part);
    if (d->rx_left != 0) {
        return;
    }
    d->rx_frame = false;
    if (d->rx_slot != LANES_NO_SLOT) {
        uint32_t slot = d->rx_slot;
        exec_step(&n->run[slot].exec[lane], &(struct exec_event){.kind = EXEC_ARRIVED, .rank = d->rx_rank},
                  &(struct exec_out){0});
        lanes_look(w, n, slot);
    }
}

void lanes_readable(struct world *w, struct node *n, uint32_t channel, int end)
{
    struct channel_end e = w->channels[channel].end[end];
    struct link *l = line_find(n, e.peer);
    struct data_connection *d = l == NULL ? NULL : &l->data_connection[e.lane];
    if (d == NULL || !d->up || d->channel != channel || d->generation != w->channels[channel].generation) {
        return;
    }
    for (;;) {
        uint32_t size;
        const unsigned char *bytes = channel_peek(w, channel, end, &size);
        struct frame_header header;
        if (d->rx_frame) {
            lanes_payload(w, n, d, channel, end, e.lane);
            if (d->rx_frame) {
                break;
            }
            continue;
        }
        if (size < FRAME_HEADER_BYTES) {
            break;
        }
        if (!frame_get(bytes, &header) || (header.type != FRAME_DATA && header.type != FRAME_CREDIT)) {
            channel_break(w, channel);
            break;
        }
        uint32_t head = FRAME_HEADER_BYTES + (header.type == FRAME_DATA ? P2P_DATA_PREFIX : header.length);
        if (size < head) {
            break;
        }
        if (header.type == FRAME_CREDIT) {
            lanes_credit(n, l, e.lane, &header, bytes + FRAME_HEADER_BYTES);
        } else if (!lanes_begin(w, n, l, d, e.lane, &header, bytes + FRAME_HEADER_BYTES)) {
            break;
        }
        channel_take(w, channel, end, head);
    }
    lanes_pump(w, n);
    if (w->armed != 0) {
        faults_check(w, n);
    }
}
