/* peer_lanes.c - the lanes of one process: executors on one side, data connections on the other.
 *
 * One idea: bytes go straight to where the executor says, in whatever pieces they come, and straight from the
 * caller's buffer into the connection's room.  Only peers that an executor has touched are looked at, as in the library.  When an operation is stopped, what is left of a frame in hand goes through
 * scratch, both ways; the stop comes late on purpose, so that lanes still write while the session already knows.
 * Invariant: no pointer into a buffer is kept after the executor of its operation was stopped.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/bitset.h"
#include "peer_room.h"
#include "peer_watch.h"
#include "program.h"

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

/* A burst has a thousand slots, and most turns have few at work. */
static void lanes_let_go(struct node *n, uint32_t slot)
{
    n->run[slot].idle = true;
    bitset_remove(n->at_work, slot);
    bitset_remove(n->starving, slot);
}

static void lanes_step(struct node *n, uint32_t slot, uint32_t lane, const struct exec_event *e, struct exec_out *out)
{
    exec_step(&n->run[slot].exec[lane], e, out);
    bitset_add(n->stepped, slot);
}

static void lanes_look(struct cluster *cl, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    bool done = true, idle = true;
    for (uint32_t i = 0; i < r->op.lanes; i++) {
        while (r->exec[i].work) {
            lanes_step(n, slot, i, &(struct exec_event){.kind = EXEC_WORK}, &(struct exec_out){0});
        }
        if (r->exec[i].failed) {
            cluster_fail(cl, "peer %u: an executor failed %s", n->index, r->exec[i].failed_what);
        }
        done = done && r->exec[i].done;
        idle = idle && r->exec[i].idle;
    }
    if (done && !r->done && !r->stopping) {
        r->done = true;
        cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_DONE, slot, r->use);
    }
    if (idle && r->done && !r->idle && !r->stopping) {
        lanes_let_go(n, slot);
        for (uint32_t i = 0; i < r->op.lanes; i++) {
            lanes_step(n, slot, i, &(struct exec_event){.kind = EXEC_STOP}, &(struct exec_out){0});
        }
        cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_IDLE, slot, r->use);
    }
}

void lanes_offer(struct link *l)
{
    l->offers = (1u << CLUSTER_LANES) - 1;
}

/* The partners that something has changed for, since the last time. */
static void lanes_touched(struct node *n, struct run *r, uint32_t lane)
{
    for (uint32_t i = exec_touched(&r->exec[lane]); i != PLAN_NOBODY; i = exec_touched(&r->exec[lane])) {
        r->link[i] = r->link[i] == NULL ? line_find(n, r->ranks[r->partners[i]]) : r->link[i];
        if (r->link[i] != NULL) { /* else it is offered all once it is there */
            r->link[i]->offers |= (uint8_t)(1u << lane);
        }
    }
}

/* Grants that were given back go to executors whose senders starve; then all partners that something has changed for are offered it. */
static void lanes_change(struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    bool starving = false;
    for (uint32_t lane = 0; lane < r->op.lanes; lane++) {
        if (room_may_grant(n, &r->exec[lane], lane)) {
            exec_step(&r->exec[lane], &(struct exec_event){.kind = EXEC_ROOM}, &(struct exec_out){0});
        }
        lanes_touched(n, r, lane);
        starving = starving || r->exec[lane].starved;
    }
    (starving ? bitset_add : bitset_remove)(n->starving, slot);
}

/* Of the others nothing has changed. */
static void lanes_changes(struct node *n)
{
    uint32_t slots = n->config.max_ops;
    bool room = room_any(n);
    for (uint32_t at = 0, next; at < slots; at = next + 1) {
        uint32_t stepped = bitset_next(n->stepped, slots, at), starves = room ? bitset_next(n->starving, slots, at) : slots;
        next = stepped < starves ? stepped : starves;
        if (next < slots) {
            bitset_remove(n->stepped, next);
        }
        if (next < slots && bitset_has(n->at_work, next)) {
            lanes_change(n, next);
        }
    }
}

/* No memory for its plan, or a failed invariant: nothing was handed to lanes, it is idle, and is given up once this step is over. */
static void lanes_fail(struct cluster *cl, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    n->fail_executor = false;
    r->failing = rng_below(&cl->rng, 2) == 0 ? CAUSE_NO_MEMORY : CAUSE_INTERNAL;
    r->started = r->stopping = true;
    r->op.lanes = 0;
    lanes_unreserve(n, r->senders * r->window_reserved);
    r->window_reserved = 0;
    cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_CANCEL, slot, r->use);
    cluster_post(cl, 0, EVENT_LANES_STOP, n->index, slot, r->use, 0);
}

void lanes_start(struct cluster *cl, struct node *n, uint32_t slot, uint32_t window)
{
    struct run *r = &n->run[slot];
    const struct session_op *op = session_op(n->session, slot);
    if (!r->taken || r->started || op == NULL) {
        cluster_fail(cl, "peer %u: start of slot %u, which is %s", n->index, slot, r->taken ? "started" : "free");
        return;
    }
    r->op = *op;
    n->ready_view = op->view;
    if (n->fail_executor && r->call->op != PROGRAM_OPS) {
        lanes_fail(cl, n, slot);
        return;
    }
    if (op->lanes == 0 || op->lanes > CLUSTER_LANES || op->plan.world > CLUSTER_NODES) {
        cluster_fail(cl, "peer %u: an operation on %u lanes of %u members", n->index, op->lanes, op->plan.world);
        return;
    }
    memset(r->launch, 0, sizeof r->launch);
    memset(r->link, 0, sizeof r->link);
    memset(r->bundle, 0, sizeof r->bundle);
    r->moved = 0;
    memcpy(r->ranks, op->ranks, op->plan.world * sizeof *r->ranks);
    r->segments = cluster_grow(r->segments, &r->segment_capacity, plan_max_segments(&op->plan), sizeof *r->segments);
    r->steps = cluster_grow(r->steps, &r->step_capacity, plan_max_steps(&op->plan), sizeof *r->steps);
    r->pieces = cluster_grow(r->pieces, &r->piece_capacity, plan_max_pieces(&op->plan), sizeof *r->pieces);
    plan_make(&r->plan, &op->plan, r->segments, r->steps, r->pieces, r->partners);
    r->started = true;
    bitset_add(n->at_work, slot);
    bitset_add(n->stepped, slot);
    if (r->window_reserved > window) { /* the session told less than was reserved */
        lanes_unreserve(n, r->senders * (r->window_reserved - window));
    }
    for (uint32_t lane = op->lanes; lane < CLUSTER_LANES; lane++) {
        room_unreserve(&n->room[lane], r->senders * window);
    }
    r->window_reserved = 0;
    program_backup(r);
    for (uint32_t lane = 0; lane < op->lanes; lane++) {
        struct exec_config c = {.plan = &r->plan, .numeric = &r->op.numeric, .room = &n->room[lane], .pool = &n->pool,
                                .in = r->lazy ? op->out : op->in, .out = op->out, .scratch = r->sums, .backup = r->lazy ? r->backup : NULL, .saved = r->saved,
                                .lane = lane, .lanes = op->lanes, .window = window, .verify = op->verify,
                                .check_every = cl->opt.check_every};
        r->arena[lane] = lanes_memory(r->arena[lane], &r->arena_bytes[lane], exec_arena_bytes(&c));
        exec_init(&r->exec[lane], &c, r->arena[lane]);
        exec_watch_start(&r->watch[lane], cl->now);
    }
    watch_start(cl, n);
    lanes_look(cl, n, slot);
    lanes_pump(cl, n);
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

void lanes_ready(struct cluster *cl, struct node *n, const struct action *a)
{
    struct run *r = &n->run[a->slot];
    if (!r->taken || !r->started) {
        cluster_fail(cl, "peer %u: slot %u is fed before it was started", n->index, a->slot);
        return;
    }
    if (r->failing != 0) {
        return;
    }
    uint32_t rank = lanes_rank(r, a->id), partner = plan_number(&r->plan, rank); /* nobody if nothing goes between the two */
    if (rank == LANES_NO_SLOT) {
        cluster_fail(cl, "peer %u: slot %u is fed by %llx, no member", n->index, a->slot, (unsigned long long)a->id);
        return;
    }
    if (partner != PLAN_NOBODY) {
        r->launch[partner] = a->order;
    }
    for (uint32_t lane = 0; partner != PLAN_NOBODY && !r->idle && lane < r->op.lanes; lane++) {
        lanes_step(n, a->slot, lane, &(struct exec_event){.kind = EXEC_READY, .partner = partner, .credit = (uint32_t)a->value},
                  &(struct exec_out){0});
        watch_again(cl, n, a->slot, lane);
    }
    if (!r->idle) {
        lanes_look(cl, n, a->slot);
        lanes_pump(cl, n);
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

void lanes_stop_later(struct cluster *cl, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    if (!r->taken || !r->started) {
        cluster_fail(cl, "peer %u: stop of slot %u, which lanes do not have", n->index, slot);
        return;
    }
    r->stopping = true;
    cluster_post(cl, (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.latency_ns * 2 + 1), EVENT_LANES_STOP, n->index, slot, r->use,
                 0);
}

void lanes_stop(struct cluster *cl, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    if (r->idle) {
        return;
    }
    for (uint32_t lane = 0; lane < r->op.lanes; lane++) {
        lanes_step(n, slot, lane, &(struct exec_event){.kind = EXEC_STOP}, &(struct exec_out){0});
    }
    for (uint32_t i = 0; i < n->link_count; i++) {
        for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
            lanes_unhand(&n->links[i]->data_connection[lane], slot);
        }
    }
    lanes_let_go(n, slot);
    struct session_event idle = {.kind = SESSION_IDLE, .slot = slot};
    lanes_bytes(r, &idle);
    node_step(cl, n, &idle);
    lanes_pump(cl, n);
}

void lanes_forget_connection(struct node *n, struct data_connection *d)
{
    (void)n;
    unsigned char *scratch = d->scratch;
    *d = (struct data_connection){.scratch = scratch};
    exec_edge_clear(&d->edge);
}

/* The rank of its peer is remembered: views are large and change seldom. */
static uint32_t lanes_partner(const struct run *r, struct link *l)
{
    if (l->rank >= r->op.plan.world || r->ranks[l->rank] != l->peer) {
        l->rank = lanes_rank(r, l->peer);
    }
    return plan_number(&r->plan, l->rank);
}

/* Over this bundle, unless frames have gone over another, and may be lost. */
static bool lanes_bind(struct run *r, uint32_t partner, const struct link *l)
{
    r->bundle[partner] = r->bundle[partner] == 0 ? l->bundle : r->bundle[partner];
    return r->bundle[partner] == l->bundle;
}

static bool lanes_bound(const struct run *r, uint32_t partner, const struct link *l)
{
    return r->bundle[partner] == 0 || r->bundle[partner] == l->bundle;
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

static bool lanes_next_credit(const struct cluster *cl, struct node *n, struct data_connection *d, uint32_t lane, struct link *l)
{
    for (uint32_t i = 0; (i = bitset_next(n->at_work, n->config.max_ops, i)) < n->config.max_ops; i++) {
        struct run *r = &n->run[i];
        if (lane >= r->op.lanes) {
            continue;
        }
        uint32_t partner = lanes_partner(r, l);
        struct exec_credit credit;
        if (partner != PLAN_NOBODY && r->launch[partner] != 0 && lanes_bound(r, partner, l) && exec_take_credit(&r->exec[lane], partner, &credit)) {
            struct writer writer;
            writer_init(&writer, d->head + FRAME_HEADER_BYTES, sizeof d->head - FRAME_HEADER_BYTES);
            struct msg_credit m = {.name = r->op.name, .frames = credit.frames, .ready = credit.sums, .moved_far = credit.moved.far};
            m.moved_ms = credit.moved.at != 0 ? exec_move_ms(credit.moved.at, cl->now) : 0;
            put_credit(&writer, &m);
            lanes_bind(r, partner, l);
            lanes_head(d, r, FRAME_CREDIT, lane, (uint32_t)writer.used);
            d->head_bytes = FRAME_HEADER_BYTES + (uint32_t)writer.used;
            d->body_bytes = 0;
            d->tx_slot = LANES_NO_SLOT;
            return true;
        }
    }
    return false;
}

/* The first in the order of launches that has something for the peer. */
static struct run *lanes_first(struct node *n, uint32_t lane, struct link *l)
{
    struct run *first = NULL;
    for (uint32_t i = 0; (i = bitset_next(n->at_work, n->config.max_ops, i)) < n->config.max_ops; i++) {
        struct run *r = &n->run[i];
        if (lane >= r->op.lanes || (first != NULL && first->op.launch < r->op.launch)) {
            continue;
        }
        uint32_t partner = lanes_partner(r, l);
        if (partner != PLAN_NOBODY && lanes_bound(r, partner, l) && exec_has_frame(&r->exec[lane], partner)) {
            first = r;
        }
    }
    return first;
}

static bool lanes_next_data(const struct cluster *cl, struct node *n, struct data_connection *d, uint32_t lane, struct link *l)
{
    struct run *r = lanes_first(n, lane, l);
    struct exec_out out = {0};
    if (r == NULL) {
        return false;
    }
    uint32_t partner = lanes_partner(r, l);
    room_buffer(cl, n);
    uint32_t slot = (uint32_t)(r - n->run);
    lanes_step(n, slot, lane, &(struct exec_event){.kind = EXEC_PULL, .partner = partner}, &out);
    lanes_touched(n, r, lane);
    if (out.data == NULL) {
        return false;
    }
    lanes_bind(r, partner, l);
    struct writer writer;
    writer_init(&writer, d->head + FRAME_HEADER_BYTES, sizeof d->head - FRAME_HEADER_BYTES);
    put_data(&writer, &(struct msg_data){.name = r->op.name, .frame = out.frame, .phase = (uint8_t)out.phase});
    lanes_head(d, r, FRAME_DATA, lane, P2P_DATA_PREFIX + out.bytes);
    d->head_bytes = LANES_HEAD;
    d->body = out.data;
    d->body_bytes = out.bytes;
    d->tx_slot = slot;
    d->tx_partner = partner;
    return true;
}

/* Fills the connection's room; a frame is cut wherever the room ends. */
static bool lanes_write(struct cluster *cl, struct node *n, struct data_connection *d, uint32_t lane)
{
    int end = cl->channels[d->channel].end[0].node == n->index ? 0 : 1;
    bool moved = false;
    while (d->busy) {
        uint32_t room = channel_room(cl, d->channel, end), total = d->head_bytes + d->body_bytes;
        if (room == 0) {
            cl->channels[d->channel].pipe[end].blocked = true;
            break;
        }
        bool in_head = d->sent < d->head_bytes;
        const unsigned char *at = in_head ? d->head + d->sent : d->body + (d->sent - d->head_bytes);
        uint32_t size = (in_head ? d->head_bytes : total) - d->sent;
        size = size < room ? size : room;
        channel_send(cl, d->channel, end, at, size);
        d->sent += size;
        if (!in_head && d->tx_slot != LANES_NO_SLOT) {
            n->run[d->tx_slot].moved += size;
            exec_edge_note(&d->edge.sent, n->run[d->tx_slot].op.launch);
        }
        moved = true;
        if (d->sent == total) {
            d->busy = false;
            if (d->tx_slot != LANES_NO_SLOT) {
                uint32_t slot = d->tx_slot;
                lanes_step(n, slot, lane, &(struct exec_event){.kind = EXEC_SENT, .partner = d->tx_partner},
                          &(struct exec_out){0});
                lanes_touched(n, &n->run[slot], lane);
                lanes_look(cl, n, slot);
            }
        }
    }
    return moved;
}

void lanes_pump(struct cluster *cl, struct node *n)
{
    for (bool moved = true; moved && !cl->failed;) {
        moved = false;
        lanes_changes(n);
        for (uint32_t i = 0; i < n->link_count; i++) {
            struct link *l = n->links[i];
            for (uint32_t lane = 0; l->offers != 0 && l->bundle_state == LINK_UP && lane < l->bundle_lanes; lane++) {
                struct data_connection *d = &l->data_connection[lane];
                if ((l->offers >> lane & 1) == 0 || !d->up || !channel_valid(cl, d->channel, d->generation)) {
                    continue;
                }
                if (d->busy || lanes_next_credit(cl, n, d, lane, l) || lanes_next_data(cl, n, d, lane, l)) {
                    moved = lanes_write(cl, n, d, lane) || moved;
                } else {
                    l->offers &= (uint8_t)~(1u << lane);
                }
            }
        }
    }
}

/* ---- receiving ------------------------------------------------------------------------------------------------------ */
/* Of a pair the name travels without the ends of its connection: data comes from the sender, credit from the receiver. */
static struct run *lanes_find(struct node *n, uint64_t view, struct op_name name, uint64_t from, uint64_t to, uint32_t lane, uint32_t *slot)
{
    name.from = space_pairs(name.space) ? from : 0, name.to = space_pairs(name.space) ? to : 0;
    for (uint32_t i = 0; (i = bitset_next(n->at_work, n->config.max_ops, i)) < n->config.max_ops; i++) {
        struct run *r = &n->run[i];
        if (lane < r->op.lanes && r->op.view == view && op_name_equal(&r->op.name, &name)) {
            *slot = i;
            return r;
        }
    }
    return NULL;
}

/* The header of a frame is here: where its payload goes.  False: the connection was closed. */
static bool lanes_begin(struct cluster *cl, struct node *n, struct link *l, struct data_connection *d, uint32_t lane,
                        const struct frame_header *header, const unsigned char *payload)
{
    struct reader reader;
    struct msg_data data;
    reader_init(&reader, payload, P2P_DATA_PREFIX);
    if (header->length < P2P_DATA_PREFIX || !get_data(&reader, &data)) {
        channel_break(cl, d->channel);
        return false;
    }
    d->rx_frame = true;
    d->rx_left = header->length - P2P_DATA_PREFIX;
    d->rx_at = NULL;
    d->rx_slot = LANES_NO_SLOT;
    struct run *r = lanes_find(n, header->view, data.name, l->peer, n->id, lane, &d->rx_slot);
    if (r == NULL) {
        return true; /* of an older view, or stopped: to nowhere */
    }
    uint32_t partner = lanes_partner(r, l);
    struct exec_out out = {0};
    if (partner != PLAN_NOBODY && !lanes_bind(r, partner, l)) {
        d->rx_slot = LANES_NO_SLOT;
        return true; /* frames before this one were lost: its view is about to end */
    }
    room_buffer(cl, n);
    struct exec_event event = {.kind = EXEC_HEADER, .partner = partner, .frame = data.frame, .phase = data.phase, .bytes = d->rx_left};
    lanes_step(n, d->rx_slot, lane, &event, &out);
    if (out.refused) {
        if (lie_is_liar(n)) { /* it has asked for what it does not take */
            channel_break(cl, d->channel);
        } else {
            cluster_fail(cl, "peer %u: frame %u phase %u of %u bytes of tag %llu from peer %u breaks the plan", n->index, data.frame,
                         data.phase, d->rx_left, (unsigned long long)data.name.tag, cluster_node_of(cl, l->peer));
        }
        return false;
    }
    d->rx_at = out.dst;
    d->rx_lend = (d->channel + data.frame) % 2 == 0 ? out.lend : 0; /* shared memory lends, others do not */
    d->rx_partner = partner;
    d->rx_given = data.phase == 0;
    return true;
}

static void lanes_credit(struct cluster *cl, struct node *n, struct link *l, struct data_connection *d, uint32_t lane,
                         const struct frame_header *header, const unsigned char *payload)
{
    struct reader reader;
    struct msg_credit credit;
    uint32_t slot;
    reader_init(&reader, payload, header->length);
    if (!get_credit(&reader, &credit)) {
        return;
    }
    struct run *r = lanes_find(n, header->view, credit.name, n->id, l->peer, lane, &slot);
    uint32_t partner = r == NULL ? PLAN_NOBODY : lanes_partner(r, l);
    if (partner != PLAN_NOBODY && lanes_bind(r, partner, l)) {
        if (credit.frames > 0) {
            exec_edge_note(&d->edge.granted, r->launch[partner]);
        }
        struct exec_event event = {.kind = EXEC_CREDIT, .partner = partner, .credit = credit.frames, .sums = credit.ready};
        lanes_step(n, slot, lane, &event, &(struct exec_out){0});
        watch_heard(cl, n, slot, lane, partner, &credit);
    }
}

static void lanes_payload(struct cluster *cl, struct node *n, struct data_connection *d, uint32_t channel, int end, uint32_t lane)
{
    uint32_t size, slot = d->rx_slot;
    const unsigned char *bytes = channel_peek(cl, channel, end, &size);
    struct run *r = slot != LANES_NO_SLOT ? &n->run[slot] : NULL;
    uint32_t part = size < d->rx_left ? size : d->rx_left;
    if (d->rx_at != NULL && d->rx_lend > 0) {
        part -= part % d->rx_lend;
        struct exec_event event = {.kind = EXEC_LENT, .partner = d->rx_partner, .data = bytes, .bytes = part};
        lanes_step(n, slot, lane, &event, &(struct exec_out){0});
    } else if (d->rx_at != NULL) {
        memcpy(d->rx_at, bytes, part);
        d->rx_at += part;
    }
    d->rx_left -= part;
    n->lane_bytes[lane] += part;
    if (r != NULL && part > 0) {
        r->moved += part;
        exec_edge_note(&d->edge.received, r->launch[d->rx_partner]);
    }
    channel_take(cl, channel, end, part);
    d->rx_frame = d->rx_left != 0;
    if (!d->rx_frame && r != NULL) {
        lanes_step(n, slot, lane, &(struct exec_event){.kind = EXEC_ARRIVED, .partner = d->rx_partner}, &(struct exec_out){0});
        if (room_flow(cl, n, d, lane)) {
            struct exec_event wider = {.kind = EXEC_WINDOW, .partner = d->rx_partner, .credit = d->flow.frames};
            lanes_step(n, slot, lane, &wider, &(struct exec_out){0});
        }
        lanes_look(cl, n, slot);
    }
}

void lanes_readable(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    struct channel_end e = cl->channels[channel].end[end];
    struct link *l = line_find(n, e.peer);
    struct data_connection *d = l == NULL ? NULL : &l->data_connection[e.lane];
    if (d == NULL || !d->up || d->channel != channel || d->generation != cl->channels[channel].generation) {
        return;
    }
    for (;;) {
        uint32_t size;
        const unsigned char *bytes = channel_peek(cl, channel, end, &size);
        struct frame_header header;
        if (d->rx_frame) {
            lanes_payload(cl, n, d, channel, end, e.lane);
            if (d->rx_frame) {
                break;
            }
            continue;
        }
        if (size < FRAME_HEADER_BYTES) {
            break;
        }
        if (!frame_get(bytes, &header) || (header.type != FRAME_DATA && header.type != FRAME_CREDIT)) {
            channel_break(cl, channel);
            break;
        }
        uint32_t head = FRAME_HEADER_BYTES + (header.type == FRAME_DATA ? P2P_DATA_PREFIX : header.length);
        if (size < head) {
            break;
        }
        if (header.type == FRAME_CREDIT) {
            lanes_credit(cl, n, l, d, e.lane, &header, bytes + FRAME_HEADER_BYTES);
        } else if (!lanes_begin(cl, n, l, d, e.lane, &header, bytes + FRAME_HEADER_BYTES)) {
            break;
        }
        channel_take(cl, channel, end, head);
    }
    lanes_pump(cl, n);
    if (cl->armed != 0) {
        faults_check(cl, n);
    }
}
