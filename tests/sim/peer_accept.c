/* peer_accept.c - the listener's side of a process: what a HELLO is answered with.
 *
 * One idea: the session gives the verdict, this file binds the connection to its line, holds it (it speaks of a view that is still
 * on its way), or sends it back.  Invariant: a connection with a number not above the last one's replaces nothing.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

static void line_answer(struct cluster *cl, uint32_t channel, uint8_t verdict, uint64_t view)
{
    unsigned char bytes[FRAME_HEADER_BYTES + 256];
    struct writer writer;
    writer_init(&writer, bytes + FRAME_HEADER_BYTES, sizeof bytes - FRAME_HEADER_BYTES);
    put_hello_ack(&writer, &(struct msg_hello_ack){.verdict = verdict, .view = view});
    struct frame_header header = {.type = FRAME_HELLO_ACK, .length = (uint32_t)writer.used};
    frame_put(bytes, &header);
    channel_send(cl, channel, 1, bytes, FRAME_HEADER_BYTES + header.length);
    if (verdict != HELLO_OK) {
        channel_close(cl, channel, 1);
    }
}

static void line_accept_control(struct cluster *cl, struct node *n, struct link *l, uint32_t channel, const struct msg_hello *h)
{
    if (l->dial || h->number <= l->number) {
        channel_close(cl, channel, 1); /* an older one that was late */
        return;
    }
    if (l->state == LINK_UP) {
        line_shut(cl, l->channel, l->generation, n);
        l->state = LINK_DOWN;
        node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = h->from});
    }
    line_answer(cl, channel, HELLO_OK, 0);
    l = line_find(n, h->from);
    struct channel *c = &cl->channels[channel];
    c->end[1].role = ROLE_CONTROL;
    c->end[1].peer = h->from;
    l->channel = channel;
    l->generation = c->generation;
    l->number = h->number;
    l->state = LINK_UP;
    node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_UP, .peer = h->from});
}

static void line_accept_data(struct cluster *cl, struct node *n, struct link *l, uint32_t channel, const struct msg_hello *h)
{
    if (l->dial || h->number < l->bundle || h->lane >= CLUSTER_LANES || h->lanes > CLUSTER_LANES ||
        (h->number == l->bundle && l->bundle_state != LINK_DIALLING)) {
        channel_close(cl, channel, 1);
        return;
    }
    if (h->number > l->bundle) {
        line_bundle_drop(cl, n, l, true);
        l->bundle = h->number;
        l->bundle_lanes = h->lanes;
        l->bundle_state = LINK_DIALLING;
    }
    line_answer(cl, channel, HELLO_OK, 0);
    struct channel *c = &cl->channels[channel];
    c->end[1].role = ROLE_DATA;
    c->end[1].lane = h->lane;
    c->end[1].peer = h->from;
    c->end[1].number = h->number;
    struct data_connection *d = &l->data_connection[h->lane];
    lanes_forget_connection(n, d);
    d->channel = channel;
    d->generation = c->generation;
    d->up = true;
    if (++l->bundle_ready == l->bundle_lanes) {
        l->bundle_state = LINK_UP;
        lanes_offer(l);
        node_step(cl, n, &(struct session_event){.kind = SESSION_DATA_UP, .peer = h->from, .number = h->number});
        lanes_pump(cl, n);
    }
}

static void line_hold(struct cluster *cl, struct node *n, uint32_t channel)
{
    struct channel *c = &cl->channels[channel];
    int64_t until = c->end[1].number != 0 ? (int64_t)c->end[1].number : cl->now + n->config.link_ns;
    if (n->held_count == 16 || cl->now >= until) {
        channel_take(cl, channel, 1, 0);
        line_answer(cl, channel, HELLO_NOT_YET, 0);
        return;
    }
    c->end[1].role = ROLE_HELD;
    n->held[n->held_count] = channel;
    n->held_generation[n->held_count] = c->generation;
    n->held_until[n->held_count++] = until;
    line_wake(cl, n, until);
}

void line_hello(struct cluster *cl, struct node *n, uint32_t channel)
{
    struct frame_header header;
    struct msg_hello hello;
    struct reader reader;
    bool bad;
    const unsigned char *frame = channel_frame(cl, channel, 1, &header, &bad);
    if (frame == NULL && !bad) {
        return;
    }
    if (!bad) {
        reader_init(&reader, frame + FRAME_HEADER_BYTES, header.length);
    }
    struct session_info info;
    session_info(n->session, &info);
    if (bad || header.type != FRAME_HELLO || !get_hello(&reader, &hello)) {
        channel_close(cl, channel, 1);
        return;
    }
    if (header.run != info.run || hello.to != info.id) {
        line_answer(cl, channel, HELLO_STALE, 0);
        return;
    }
    struct session_event e = {.kind = SESSION_HELLO, .peer = hello.from, .hello = &hello, .header = &header};
    node_step(cl, n, &e);
    struct link *l = line_find(n, hello.from);
    if (e.verdict == HELLO_STALE && info.connected && !session_poisoned(n->session) && hello.view > info.newest) {
        cluster_fail(cl, "P8: peer %u refused a hello that speaks of a later view", n->index);
    }
    if (e.verdict == HELLO_NOT_YET) {
        line_hold(cl, n, channel);
        return;
    }
    channel_take(cl, channel, 1, FRAME_HEADER_BYTES + header.length);
    if (e.verdict != HELLO_OK) {
        line_answer(cl, channel, HELLO_STALE, e.view);
    } else if (l == NULL || !l->wanted) {
        line_answer(cl, channel, HELLO_NOT_YET, 0);
    } else if (hello.kind == LINK_CONTROL) {
        line_accept_control(cl, n, l, channel, &hello);
    } else if (hello.kind == LINK_DATA) {
        line_accept_data(cl, n, l, channel, &hello);
    } else if (hello.kind == LINK_SYNC) {
        line_answer(cl, channel, HELLO_OK, 0);
        cl->channels[channel].end[1].role = ROLE_SYNC;
        cl->channels[channel].end[1].peer = hello.from;
        sync_link_up(cl, n, l, channel, 1);
    } else {
        channel_close(cl, channel, 1);
    }
}
