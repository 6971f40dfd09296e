/* peer_sync.c - connections for shared state: dialled when first needed, closed with the vote.
 *
 * One idea: two connections per pair, one dialled from each side; a question goes out on the own one, its answer comes back on the
 * same.  Invariant: frames queued before the connection is up leave in their order once it is.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "sim_cluster.h"
#include "tests/whole_frame.h"

static void sync_queue(struct link *l, const void *bytes, uint32_t size)
{
    l->sync_queue = cluster_grow(l->sync_queue, &l->sync_capacity, l->sync_queued + size, 1);
    memcpy(l->sync_queue + l->sync_queued, bytes, size);
    l->sync_queued += size;
}

/* A source that lies flips a bit of what it sends. */
static void sync_corrupt(struct node *n, unsigned char *frame, uint32_t size)
{
    struct frame_header header;
    if (n->lie && frame_get(frame, &header) && header.type == FRAME_LEAF && size > FRAME_HEADER_BYTES + 24) {
        frame[size - 1] ^= 0x10;
    }
}

void sync_link_send(struct cluster *cl, struct node *n, const struct action *a)
{
    if (a->dests == 0) {
        return;
    }
    uint32_t size = (uint32_t)whole_frame_bytes(a);
    unsigned char *frame = whole_frame(&n->out, a);
    sync_corrupt(n, frame, size);
    uint64_t peer = n->out.dest_ids[a->dest];
    struct link *l = line_find(n, peer);
    int side = a->value == 1 ? 1 : 0;
    if (l != NULL && l->sync_up[side] && channel_valid(cl, l->sync_channel[side], l->sync_generation[side])) {
        channel_send(cl, l->sync_channel[side], side, frame, size);
    } else if (l != NULL && side == 0) {
        sync_queue(l, frame, size);
        if (!l->sync_dialling) {
            l->sync_dialling = true;
            line_dial(cl, n, LINK_SYNC, 0, peer, ++n->last_number);
        }
    } else if (l == NULL) {
        cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_SYNC_DOWN, peer, 0);
    }
    free(frame);
}

void sync_link_up(struct cluster *cl, struct node *n, struct link *l, uint32_t channel, int side)
{
    (void)n;
    l->sync_channel[side] = channel;
    l->sync_generation[side] = cl->channels[channel].generation;
    l->sync_up[side] = true;
    if (side == 0) {
        l->sync_dialling = false;
        channel_send(cl, channel, 0, l->sync_queue, l->sync_queued);
        l->sync_queued = 0;
    }
}

void sync_link_failed(struct cluster *cl, struct node *n, uint64_t peer)
{
    struct link *l = line_find(n, peer);
    if (l != NULL && l->sync_dialling) {
        l->sync_dialling = false;
        l->sync_queued = 0;
        cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_SYNC_DOWN, peer, 0);
    }
}

void sync_link_closed(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    struct link *l = line_find(n, cl->channels[channel].end[end].peer);
    if (l != NULL && l->sync_up[end] && l->sync_channel[end] == channel) {
        l->sync_up[end] = false;
        if (end == 0) {
            node_step(cl, n, &(struct session_event){.kind = SESSION_SYNC_DOWN, .peer = l->peer});
        }
    }
}

void sync_link_close_all(struct cluster *cl, struct node *n)
{
    for (uint32_t i = 0; i < n->link_count; i++) {
        struct link *l = n->links[i];
        for (int side = 0; side < 2; side++) {
            if (l->sync_up[side] && channel_valid(cl, l->sync_channel[side], l->sync_generation[side])) {
                channel_close(cl, l->sync_channel[side], side);
            }
            l->sync_up[side] = false;
        }
        l->sync_dialling = false;
        l->sync_queued = 0;
    }
}

void sync_link_readable(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    uint32_t generation = cl->channels[channel].generation;
    uint64_t peer = cl->channels[channel].end[end].peer;
    while (n->alive && channel_valid(cl, channel, generation) && !cl->channels[channel].end[end].closed) {
        struct frame_header header;
        bool bad;
        const unsigned char *frame = channel_frame(cl, channel, end, &header, &bad);
        if (bad) {
            channel_break(cl, channel);
        }
        if (frame == NULL) {
            return;
        }
        cluster_trace(cl, n->index, frame_name(header.type), peer, header.view);
        node_step(cl, n, &(struct session_event){.kind = SESSION_SYNC_FRAME, .peer = peer, .header = &header,
                                                 .payload = frame + FRAME_HEADER_BYTES});
        if (channel_valid(cl, channel, generation)) {
            channel_take(cl, channel, end, FRAME_HEADER_BYTES + header.length);
        }
    }
}
