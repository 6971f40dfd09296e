/* peer_room.c - the staging room of one process: reserved for an operation on every lane, and granted again when it comes back.
 *
 * One idea: lanes of one process have rooms of equal size, so an operation gets the same window on each.
 * Invariant: what is reserved on one lane is reserved on all.
 * SPDX-License-Identifier: MIT */
#include "peer_room.h"

#include <stdlib.h>

enum { ROOM_GROWN = 4 /* blocks, where windows grow */, ROOM_FLOW = 2 /* frames: operations are short here */ };

/* Of the process: freed with its buffers. */
static unsigned char *block_new(const struct cluster *cl, struct node *n)
{
    size_t bytes = (size_t)cl->opt.room_slots * (cl->opt.frame_bytes + 64);
    void **b = malloc(2 * sizeof *b + bytes);
    if (b == NULL) {
        abort();
    }
    b[0] = n->buffers;
    n->buffers = b;
    return (unsigned char *)(b + 2);
}

void rooms_new(const struct cluster *cl, struct node *n)
{
    uint32_t slots = cl->opt.room_slots, most = slots * (cl->opt.windows ? ROOM_GROWN : 1);
    n->room_list = malloc((size_t)CLUSTER_LANES * most * sizeof *n->room_list);
    if (n->room_list == NULL) {
        abort();
    }
    for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
        room_init(&n->room[lane], block_new(cl, n), cl->opt.frame_bytes + 64, slots, n->room_list + lane * most);
    }
}

bool room_flow(const struct cluster *cl, struct node *n, struct data_connection *d, uint32_t lane)
{
    struct room *room = &n->room[lane];
    if (!cl->opt.windows || !d->rx_given) {
        return false;
    }
    if (d->flow.frames == 0) {
        flow_window_init(&d->flow, ROOM_FLOW);
    }
    bool grows = flow_window_arrived(&d->flow, cl->now, 2 * (cl->opt.latency_ns + cl->opt.jitter_ns / 2));
    if (grows && !room_has_a(room) && room->blocks < ROOM_GROWN) {
        room_grow(room, block_new(cl, n));
    }
    return grows || d->flow.frames > ROOM_FLOW;
}

uint32_t lanes_reserve(struct node *n, uint32_t senders, uint32_t want)
{
    uint32_t window = want;
    for (uint32_t lane = 0; senders != 0 && lane < CLUSTER_LANES; lane++) {
        uint32_t got = room_reserve(&n->room[lane], senders * want);
        window = got / senders < window ? got / senders : window;
        room_unreserve(&n->room[lane], got);
    }
    if (senders == 0) {
        window = 0;
    }
    for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
        room_reserve(&n->room[lane], senders * window);
    }
    return window;
}

/* From every lane. */
void lanes_unreserve(struct node *n, uint32_t grants)
{
    for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
        room_unreserve(&n->room[lane], grants);
    }
}

/* Half A of the room may serve any sender that starves, half B only one whose frame is folded on arrival: lane_exec.c asks the same. */
bool room_may_grant(const struct node *n, const struct exec *x, uint32_t lane)
{
    return x->starved && (room_has_a(&n->room[lane]) || (x->starved_next > 0 && room_has_b(&n->room[lane])));
}

bool room_any(const struct node *n)
{
    bool any = false;
    for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
        any = any || room_has_a(&n->room[lane]) || room_has_b(&n->room[lane]);
    }
    return any;
}

/* For the next frame, if its type travels encoded. */
void room_buffer(const struct cluster *cl, struct node *n)
{
    if (n->pool.first == NULL) {
        void **b = malloc(2 * sizeof *b + cl->opt.frame_bytes + 64);
        if (b == NULL) {
            abort();
        }
        b[0] = n->buffers;
        n->buffers = b;
        frame_pool_give(&n->pool, b + 1);
    }
}
