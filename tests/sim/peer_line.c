/* peer_line.c - a process's connections to its peers: who dials, hellos, bundles of data connections.
 *
 * One idea: the session says who is wanted; a table of lines is kept in that state by timers and by what happens to the
 * connections.  A session is stepped from events only, so wishes are noted and served by the next EVENT_LINKS.
 * Invariant: a line has at most one control connection and one bundle, each with the greatest number seen.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "reset_fault.h"

enum { LINE_RETRY_NS = 50000000, LINE_ROGUE = 0x80 };
#define LINE_SPARE_NS (CLOCK_S / 2) /* a link that the view does without is tried less and less often */
#define LINE_SPARE_MOST_NS (30 * CLOCK_S)

struct link *line_find(struct node *n, uint64_t peer)
{
    for (uint32_t i = 0; i < n->link_count; i++) {
        if (n->links[i]->peer == peer) {
            return n->links[i];
        }
    }
    return NULL;
}

void line_wake(struct cluster *cl, struct node *n, int64_t at)
{
    if (at < cl->now) {
        at = cl->now;
    }
    if (at < n->links_at) {
        n->links_at = at;
        if (!n->in_timers) { /* else once, at the end */
            cluster_post(cl, at - cl->now, EVENT_LINKS, n->index, 0, 0, 0);
        }
    }
}

void line_shut(struct cluster *cl, uint32_t channel, uint32_t generation, const struct node *n)
{
    if (channel_valid(cl, channel, generation)) {
        channel_close(cl, channel, cl->channels[channel].end[0].node == n->index ? 0 : 1);
    }
}

void line_bundle_drop(struct cluster *cl, struct node *n, struct link *l, bool tell)
{
    bool was_up = l->bundle_state == LINK_UP;
    uint64_t number = l->bundle, peer = l->peer;
    for (uint32_t i = 0; i < CLUSTER_LANES; i++) {
        struct data_connection *d = &l->data_connection[i];
        if (d->up) {
            lanes_forget_connection(n, d);
            line_shut(cl, d->channel, d->generation, n);
        }
    }
    l->bundle_state = LINK_DOWN;
    l->bundle_ready = 0;
    l->bundle_retry_at = cl->now + LINE_RETRY_NS;
    line_wake(cl, n, l->bundle_retry_at);
    if (was_up && tell) {
        bool quiet = n->ready_view != n->view && cl->lies == 0;
        node_step(cl, n, &(struct session_event){.kind = SESSION_DATA_DOWN, .peer = peer, .number = number});
        for (uint32_t i = 0; quiet && i < n->out.count; i++) {
            struct frame_header header;
            const struct action *a = &n->out.actions[i];
            if (a->kind == ACT_MASTER && frame_get(n->out.bytes + a->frame, &header) && header.type == FRAME_SUSPECT) {
                cluster_fail(cl, "peer %u reports the end of connections that no operation of this view has used", n->index);
            }
        }
    }
}

static void line_drop(struct cluster *cl, struct node *n, struct link *l)
{
    line_bundle_drop(cl, n, l, false);
    if (l->state != LINK_DOWN) {
        line_shut(cl, l->channel, l->generation, n);
    }
    l->state = LINK_DOWN;
    l->failed_told = true; /* until it is wanted again */
    for (int side = 0; side < 2; side++) {
        if (l->sync_up[side]) {
            line_shut(cl, l->sync_channel[side], l->sync_generation[side], n);
            l->sync_up[side] = false;
        }
    }
    l->sync_dialling = false;
    l->sync_queued = 0;
}

void line_close_all(struct cluster *cl, struct node *n, bool flush)
{
    (void)flush;
    for (uint32_t i = 0; i < n->link_count; i++) {
        n->links[i]->wanted = false;
        line_drop(cl, n, n->links[i]);
    }
    for (uint32_t i = 0; i < n->held_count; i++) {
        line_shut(cl, n->held[i], n->held_generation[i], n);
    }
    n->held_count = 0;
}

/* The control link is there no more, or not yet. */
static void line_missing(struct cluster *cl, struct node *n, struct link *l)
{
    l->state = LINK_DOWN;
    l->missing_since = cl->now;
    l->failed_told = false;
    l->retry_ns = l->spare ? LINE_SPARE_NS : LINE_RETRY_NS;
    l->retry_at = cl->now + l->retry_ns;
    line_wake(cl, n, l->retry_at);
    reset_lost(cl, n, l);
}

/* The wanted set changed: notes it; connections are made by the timers. */
void line_update(struct cluster *cl, struct node *n)
{
    struct session_wanted wanted[CLUSTER_NODES];
    uint32_t count = session_wanted(n->session, wanted, CLUSTER_NODES);
    for (uint32_t i = 0; i < n->link_count; i++) {
        n->links[i]->wanted = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct link *l = line_find(n, wanted[i].info.id);
        if (l == NULL) {
            n->links = cluster_grow(n->links, &n->link_capacity, n->link_count + 1, sizeof *n->links);
            l = calloc(1, sizeof *l);
            if (l == NULL) {
                abort();
            }
            n->links[n->link_count++] = l;
            l->peer = wanted[i].info.id;
            l->retry_ns = LINE_RETRY_NS;
            l->failed_told = true;
        }
        if (l->spare != wanted[i].spare) {
            l->retry_ns = wanted[i].spare ? LINE_SPARE_NS : LINE_RETRY_NS;
            l->retry_at = wanted[i].spare ? cl->now + LINE_SPARE_NS : cl->now;
        }
        l->wanted = true;
        l->spare = wanted[i].spare;
        l->dial = wanted[i].dial;
        l->data = wanted[i].data;
        if (l->spare && l->bundle_state != LINK_DOWN) { /* the view goes round this pair now */
            line_bundle_drop(cl, n, l, false);
        }
        l->info = wanted[i].info;
        if (l->state != LINK_UP && l->failed_told) { /* else it has been missing since before, whatever the views */
            l->missing_since = cl->now;
            l->failed_told = false;
        }
    }
    for (uint32_t i = 0; i < n->link_count; i++) {
        if (!n->links[i]->wanted) {
            line_drop(cl, n, n->links[i]);
        }
    }
    line_wake(cl, n, cl->now);
}

void line_unlink(struct cluster *cl, struct node *n, uint64_t peer)
{
    struct link *l = line_find(n, peer);
    if (l != NULL && l->state == LINK_UP) {
        line_shut(cl, l->channel, l->generation, n);
        line_missing(cl, n, l);
    }
}

void line_dial(struct cluster *cl, struct node *n, uint8_t kind, uint16_t lane, uint64_t peer, uint64_t number)
{
    struct link *l = line_find(n, peer);
    uint16_t to = l == NULL ? CLUSTER_NOBODY : process_at(cl, n, &l->info.address[0]);
    bool lost = to >= cl->node_count || cl->cut[n->index][to] || cl->cut[to][n->index] || cl->nodes[to].gone_host;
    bool bare = kind == LINK_DATA && (n->no_data || (!lost && cl->nodes[to].no_data));
    bool refused = lost || bare || !cl->nodes[to].alive || n->fail_dials > 0;
    n->fail_dials -= n->fail_dials > 0;
    cluster_post(cl, lost ? cl->opt.stall_ns / 2 : 2 * cluster_delay(cl), refused ? EVENT_DIAL_FAILED : EVENT_DIALLED, n->index,
                 (uint32_t)kind | (uint32_t)lane << 8, peer, number);
}

static void line_serve(struct cluster *cl, struct node *n, struct link *l)
{
    if (l->dial && l->state == LINK_DOWN) {
        if (cl->now >= l->retry_at) {
            l->state = LINK_DIALLING;
            l->number = ++n->last_number;
            l->generation = 0;
            line_dial(cl, n, LINK_CONTROL, 0, l->peer, l->number);
        } else {
            line_wake(cl, n, l->retry_at);
        }
    }
    bool missing = l->dial && l->data && l->state == LINK_UP && l->bundle_state != LINK_UP;
    l->bundle_missing_since = !missing ? 0 : l->bundle_missing_since != 0 ? l->bundle_missing_since : cl->now;
    if (l->dial && l->data && l->bundle_state == LINK_DOWN) {
        if (cl->now >= l->bundle_retry_at) {
            l->bundle_state = LINK_DIALLING;
            l->bundle = ++n->last_number;
            l->bundle_lanes = n->config.lanes < l->info.lanes ? n->config.lanes : l->info.lanes;
            l->bundle_ready = 0;
            for (uint16_t lane = 0; lane < l->bundle_lanes; lane++) {
                line_dial(cl, n, LINK_DATA, lane, l->peer, l->bundle);
            }
        } else {
            line_wake(cl, n, l->bundle_retry_at);
        }
    }
}

void line_timers(struct cluster *cl, struct node *n)
{
    if (cl->now < n->links_at) {
        return; /* replaced by an earlier one, which has been */
    }
    n->links_at = CLOCK_NEVER;
    n->in_timers = true;
    uint32_t held = n->held_count;
    uint32_t channels[16], generations[16];
    int64_t until[16];
    memcpy(channels, n->held, sizeof channels);
    memcpy(generations, n->held_generation, sizeof generations);
    memcpy(until, n->held_until, sizeof until);
    n->held_count = 0;
    for (uint32_t i = 0; i < held; i++) {
        if (channel_valid(cl, channels[i], generations[i]) && cl->channels[channels[i]].end[1].role == ROLE_HELD) {
            cl->channels[channels[i]].end[1].role = ROLE_HELLO;
            cl->channels[channels[i]].end[1].number = (uint64_t)until[i];
            line_hello(cl, n, channels[i]);
        }
    }
    for (uint32_t i = 0; i < n->link_count && n->alive; i++) {
        struct link *l = n->links[i];
        if (!l->wanted) {
            continue;
        }
        line_serve(cl, n, l);
        if (l->state != LINK_UP && !l->failed_told) {
            int64_t late = l->missing_since + n->config.link_ns;
            if (cl->now >= late) {
                l->failed_told = true;
                node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_FAILED, .peer = l->peer});
            } else {
                line_wake(cl, n, late);
            }
        }
    }
    n->in_timers = false;
    if (n->links_at != CLOCK_NEVER) {
        cluster_post(cl, n->links_at - cl->now, EVENT_LINKS, n->index, 0, 0, 0);
    }
}

/* ---- the dialler's side --------------------------------------------------------------------------------------------- */
static void line_dial_failed(struct cluster *cl, struct node *n, uint8_t kind, uint64_t peer, uint64_t number)
{
    struct link *l = line_find(n, peer);
    if (l == NULL) {
        return;
    }
    if (kind == LINK_CONTROL && l->number == number && l->state == LINK_DIALLING) {
        l->state = LINK_DOWN;
        l->retry_ns = l->spare && 2 * l->retry_ns < LINE_SPARE_MOST_NS ? 2 * l->retry_ns : l->retry_ns;
        l->retry_at = cl->now + l->retry_ns;
        line_wake(cl, n, l->retry_at);
    } else if (kind == LINK_DATA && l->bundle == number && l->bundle_state == LINK_DIALLING) {
        line_bundle_drop(cl, n, l, false);
        if (l->bundle_missing_since != 0 && cl->now - l->bundle_missing_since >= n->config.link_ns) {
            node_step(cl, n, &(struct session_event){.kind = SESSION_DATA_FAILED, .peer = peer});
        }
    } else if (kind == LINK_SYNC) {
        sync_link_failed(cl, n, peer);
    }
}

static void line_send_hello(struct cluster *cl, struct node *n, uint32_t channel, const struct msg_hello *hello)
{
    unsigned char bytes[FRAME_HEADER_BYTES + 256];
    struct session_info info;
    struct writer writer;
    session_info(n->session, &info);
    writer_init(&writer, bytes + FRAME_HEADER_BYTES, sizeof bytes - FRAME_HEADER_BYTES);
    put_hello(&writer, hello);
    struct frame_header header = {
        .type = FRAME_HELLO, .length = (uint32_t)writer.used, .run = info.run, .view = hello->view};
    frame_put(bytes, &header);
    channel_send(cl, channel, 0, bytes, FRAME_HEADER_BYTES + header.length);
}

void line_dialled(struct cluster *cl, struct node *n, const struct event *e, bool ok)
{
    uint8_t kind = e->a & 0x7F;
    uint16_t lane = (uint16_t)(e->a >> 8);
    bool rogue = (e->a & LINE_ROGUE) != 0;
    struct link *l = line_find(n, e->b);
    if (l == NULL || !l->wanted) {
        return;
    }
    uint16_t to = process_at(cl, n, &l->info.address[0]);
    if (!ok || to >= cl->node_count || !cl->nodes[to].alive || cl->cut[n->index][to] || cl->cut[to][n->index]) {
        line_dial_failed(cl, n, kind, e->b, e->c);
        if (kind == LINK_CONTROL) {
            reset_failed(cl, n, l);
        }
        return;
    }
    bool current = (kind == LINK_CONTROL && l->state == LINK_DIALLING && l->number == e->c) ||
                   (kind == LINK_DATA && l->bundle_state == LINK_DIALLING && l->bundle == e->c) ||
                   (kind == LINK_SYNC && l->sync_dialling);
    if (!current && !rogue) {
        return;
    }
    struct session_info info;
    session_info(n->session, &info);
    uint32_t channel = channel_new(cl, n->index, to);
    struct channel *c = &cl->channels[channel];
    c->end[0].role = rogue ? ROLE_NONE : ROLE_DIALLING;
    c->end[0].link_kind = kind;
    c->end[0].lane = lane;
    c->end[0].peer = e->b;
    c->end[0].number = e->c;
    c->end[1].role = ROLE_HELLO;
    if (kind == LINK_CONTROL && !rogue) {
        l->channel = channel;
        l->generation = c->generation;
    } else if (kind == LINK_SYNC) {
        l->sync_channel[0] = channel;
        l->sync_generation[0] = c->generation;
    } else if (kind == LINK_DATA && !rogue) {
        lanes_forget_connection(n, &l->data_connection[lane]);
        l->data_connection[lane].channel = channel;
        l->data_connection[lane].generation = c->generation;
        l->data_connection[lane].up = true;
    }
    line_send_hello(cl, n, channel,
                    &(struct msg_hello){.kind = kind, .lane = lane, .lanes = l->bundle_lanes, .group = n->group,
                                        .from = info.id, .to = e->b, .view = info.newest, .number = e->c});
}

static void line_acked(struct cluster *cl, struct node *n, uint32_t channel, const struct msg_hello_ack *ack)
{
    struct channel_end end = cl->channels[channel].end[0];
    struct link *l = line_find(n, end.peer);
    if (ack->verdict != HELLO_OK || l == NULL || !l->wanted) {
        channel_close(cl, channel, 0);
        line_dial_failed(cl, n, end.link_kind, end.peer, end.number);
        if (ack->verdict == HELLO_STALE && end.link_kind == LINK_CONTROL) {
            node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_STALE, .peer = end.peer, .view = ack->view});
        }
        return;
    }
    switch ((enum link_kind)end.link_kind) {
    case LINK_CONTROL:
        if (l->state != LINK_DIALLING || l->number != end.number) {
            channel_close(cl, channel, 0);
            break;
        }
        cl->channels[channel].end[0].role = ROLE_CONTROL;
        l->state = LINK_UP;
        node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_UP, .peer = end.peer});
        break;
    case LINK_DATA:
        if (l->bundle_state != LINK_DIALLING || l->bundle != end.number) {
            channel_close(cl, channel, 0);
            break;
        }
        cl->channels[channel].end[0].role = ROLE_DATA;
        if (++l->bundle_ready == l->bundle_lanes) {
            l->bundle_state = LINK_UP;
            lanes_offer(l);
            node_step(cl, n, &(struct session_event){.kind = SESSION_DATA_UP, .peer = end.peer, .number = end.number});
            lanes_pump(cl, n);
        }
        break;
    case LINK_SYNC:
        cl->channels[channel].end[0].role = ROLE_SYNC;
        sync_link_up(cl, n, l, channel, 0);
        break;
    case LINK_PROBE:
    case LINK_SHARE:
    case LINK_STRIPE: /* the simulator's links carry frames, whatever carries their bytes */
        break;
    }
}

/* ---- bytes and ends ------------------------------------------------------------------------------------------------- */
/* Operations by tag, number and what is said of them. */
static void line_trace(struct cluster *cl, struct node *n, uint64_t peer, const struct frame_header *header, const void *payload)
{
    struct reader r;
    struct msg_refuse m;
    reader_init(&r, payload, header->length);
    uint64_t what = header->view;
    if (header->type == FRAME_REFUSE && get_refuse(&r, &m)) {
        what = m.name.tag << 32 | (uint64_t)m.name.seq << 8 | m.cause;
    } else if (header->type >= FRAME_READY && header->type <= FRAME_HOLD && header->length >= 12) {
        uint64_t tag = get_u64(&r);
        what = tag << 32 | (uint64_t)get_u32(&r) << 8;
    }
    struct msg_path path;
    struct msg_part part;
    const void *bytes;
    if (header->type == FRAME_PART && get_part(&r, &part, &bytes)) {
        *(part.name.space == SPACE_PART ? &cl->stats.call_parts : &cl->stats.parts) += 1;
    }
    cl->stats.paths_lost += header->type == FRAME_PATH && get_path(&r, &path) && path.up == 0;
    cluster_trace(cl, n->index, frame_name(header->type), peer, what);
}

static bool line_frame(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    struct frame_header header;
    bool bad;
    const unsigned char *frame = channel_frame(cl, channel, end, &header, &bad);
    uint64_t peer = cl->channels[channel].end[end].peer;
    uint32_t generation = cl->channels[channel].generation;
    if (bad) {
        channel_break(cl, channel);
        return false;
    }
    if (frame == NULL) {
        return false;
    }
    if (cl->channels[channel].end[end].role == ROLE_DIALLING) {
        struct msg_hello_ack ack;
        struct reader reader;
        reader_init(&reader, frame + FRAME_HEADER_BYTES, header.length);
        if (header.type != FRAME_HELLO_ACK || !get_hello_ack(&reader, &ack)) {
            channel_break(cl, channel);
            return false;
        }
        channel_take(cl, channel, end, FRAME_HEADER_BYTES + header.length);
        line_acked(cl, n, channel, &ack);
        return channel_valid(cl, channel, generation);
    }
    if (header.type == FRAME_READY) {
        n->ready_view = header.view > n->ready_view ? header.view : n->ready_view;
    }
    line_trace(cl, n, peer, &header, frame + FRAME_HEADER_BYTES);
    node_step(cl, n, &(struct session_event){.kind = SESSION_PEER_FRAME, .peer = peer, .header = &header,
                                             .payload = frame + FRAME_HEADER_BYTES});
    if (!channel_valid(cl, channel, generation)) {
        return false;
    }
    channel_take(cl, channel, end, FRAME_HEADER_BYTES + header.length);
    return true;
}

void line_readable(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    uint32_t generation = cl->channels[channel].generation;
    for (bool more = true; more && n->alive && channel_valid(cl, channel, generation);) {
        struct channel_end *e = &cl->channels[channel].end[end];
        more = false;
        if (e->closed) {
            return;
        }
        switch ((enum role)e->role) {
        case ROLE_HELLO:
            e->number = 0;
            line_hello(cl, n, channel);
            more = channel_valid(cl, channel, generation) && cl->channels[channel].end[1].role != ROLE_HELLO &&
                   cl->channels[channel].end[1].role != ROLE_HELD;
            break;
        case ROLE_DIALLING:
        case ROLE_CONTROL:
            more = line_frame(cl, n, channel, end);
            break;
        case ROLE_DATA:
            lanes_readable(cl, n, channel, end);
            break;
        case ROLE_SYNC:
            sync_link_readable(cl, n, channel, end);
            break;
        case ROLE_NONE:
        case ROLE_HELD:
        case ROLE_MASTER:
            break;
        }
    }
}

void line_closed(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    struct channel_end e = cl->channels[channel].end[end];
    uint32_t generation = cl->channels[channel].generation;
    struct link *l = line_find(n, e.peer);
    if (l == NULL) {
        return;
    }
    switch ((enum role)e.role) {
    case ROLE_DIALLING:
        line_dial_failed(cl, n, e.link_kind, e.peer, e.number);
        break;
    case ROLE_CONTROL:
        if (l->state == LINK_UP && l->channel == channel && l->generation == generation) {
            line_missing(cl, n, l);
            if (l->wanted) {
                node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = e.peer});
            }
        }
        break;
    case ROLE_DATA:
        if (l->bundle_state != LINK_DOWN && l->bundle == e.number) {
            line_bundle_drop(cl, n, l, l->wanted);
        }
        break;
    case ROLE_SYNC:
        sync_link_closed(cl, n, channel, end);
        break;
    case ROLE_NONE:
    case ROLE_HELLO:
    case ROLE_HELD:
    case ROLE_MASTER:
        break;
    }
}

void line_send(struct cluster *cl, struct node *n, uint64_t peer, const void *bytes, uint32_t size)
{
    struct link *l = line_find(n, peer);
    if (l != NULL && l->state == LINK_UP && channel_valid(cl, l->channel, l->generation)) {
        channel_send(cl, l->channel, cl->channels[l->channel].end[0].node == n->index ? 0 : 1, lie_tell(cl, n, bytes, size), size);
    }
}
