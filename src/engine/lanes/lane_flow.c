/* lane_flow.c - the windows of those that send to this process: each connection learns its own from what arrives within a round trip.
 *
 * Invariant: lane.windows is the sum of what the windows of its streams have beyond FLOW_BASE.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "core/clock.h"
#include "core/id.h"
#include "core/log.h"
#include "engine/comm.h"
#include "engine/lanes/lane_exec.h"
#include "engine/lanes/lane_flow.h"

enum {
    FLOW_LOOK = 32,  /* frames */
    FLOW_ROUNDS = 4, /* round trips */
    FLOW_SHARE_MOST = 1 << 30,
    FLOW_SHARE = 8,  /* first windows have one part of so many of the staging memory, and twice that in rooms (lane_room.c) */
};
#define FLOW_GOAL 125000000.0 /* bytes per second that the advice is for: 1 Gb/s */

/* What an operator should allow one socket: twice a round trip, of which half is for the kernel's own. */
static uint64_t advised(int64_t rtt_ns, uint64_t most)
{
    uint64_t bytes = 1 << 20;
    while ((double)bytes < 4 * FLOW_GOAL * (double)rtt_ns / 1e9 || bytes < 4 * most) {
        bytes *= 2;
    }
    return bytes;
}

/* A sender that fills what its sockets may hold would send more; the first one is said. */
static void tell_buffer(struct stream *s, uint64_t bytes, int64_t rtt_ns)
{
    struct engine *e = s->comm->engine;
    const struct sock_bulk bulk = engine_bulk(e);
    struct transport_tcp tcp;
    if (atomic_load(&e->buffer_told)) {
        return;
    }
    transport_tcp_look(&s->transport, &tcp);
    uint64_t most = sock_window_most(&bulk) * tcp.sockets;
    if (most == 0 || bytes < most - most / 4 || atomic_exchange(&e->buffer_told, true)) {
        return;
    }
    uint64_t more = advised(rtt_ns, most);
    log_line(LOG_WARN, "peer " ID_FORMAT ", %" PRId64 " ms away and back, fills its receive buffers: to let it send faster, "
                       "sysctl -w net.ipv4.tcp_rmem='4096 131072 %" PRIu64 "' here and net.ipv4.tcp_wmem='4096 65536 %" PRIu64 "' there",
             ID_PARTS(s->peer), rtt_ns / CLOCK_MS, more, more);
}

static int64_t rtt_of(struct stream *s)
{
    return s->transport.ops->rtt_ns != NULL ? s->transport.ops->rtt_ns(&s->transport) : 0;
}

static void look(struct stream *s, int64_t now)
{
    uint64_t bytes = atomic_load_explicit(&s->rx_bytes, memory_order_relaxed);
    int64_t passed = now - s->looked_at;
    s->rtt_ns = rtt_of(s);
    if (s->rtt_ns > 0 && passed < FLOW_ROUNDS * s->rtt_ns) {
        return; /* what comes at once after a loss is not the rate */
    }
    if (s->rtt_ns > 0) {
        tell_buffer(s, (uint64_t)((double)(bytes - s->looked_bytes) * (double)s->rtt_ns / (double)passed), s->rtt_ns);
    }
    s->looked_at = now;
    s->looked_bytes = bytes;
}

/* The window of a stream has become larger by so many frames. */
static void grown(struct stream *s, uint32_t more)
{
    s->lane->windows += more;
    atomic_store(&s->bound.window, s->flow.frames);
    uint32_t most = atomic_load(&s->comm->flow.window);
    while (most < s->flow.frames && !atomic_compare_exchange_weak(&s->comm->flow.window, &most, s->flow.frames)) {
    }
}

/* Frames that its first window may have beyond FLOW_BASE; none if a lane's part of the staging memory is less than a block. */
static uint32_t first_most(const struct stream *s)
{
    const struct lane *lane = s->lane;
    uint64_t bytes = (uint64_t)lane->engine->staging_most / atomic_load(&lane->engine->lanes);
    uint64_t share = bytes < LANE_ROOM_BYTES ? 0 : bytes / FLOW_SHARE / LANE_SLOT_BYTES;
    return flow_window_part(share < FLOW_SHARE_MOST ? (uint32_t)share : FLOW_SHARE_MOST, s->beside, lane->windows);
}

void lane_flow_begin(struct stream *s)
{
    s->rtt_ns = rtt_of(s);
    flow_window_init(&s->flow, flow_window_first(s->rtt_ns, LANE_SLOT_BYTES, first_most(s)));
    if (s->flow.frames > FLOW_BASE) {
        grown(s, s->flow.frames - FLOW_BASE);
    }
}

void lane_flow_arrived(struct stream *s)
{
    uint32_t before = s->flow.frames;
    if (s->flow_look == 0) {
        s->flow_look = FLOW_LOOK;
        look(s, clock_now_ns());
    }
    s->flow_look--;
    if (s->rtt_ns == 0 || !flow_window_arrived(&s->flow, clock_now_ns(), s->rtt_ns)) {
        return;
    }
    grown(s, s->flow.frames - before);
    LIST_FOR_EACH(l, after, &s->partners) {
        struct lane_partner *p = LIST_ENTRY(l, struct lane_partner, bound);
        struct exec_event event = {.kind = EXEC_WINDOW, .partner = (uint32_t)(p - p->exec->partner), .credit = s->flow.frames};
        struct exec_out out;
        lane_step(s->lane, p->exec, &event, &out);
    }
}

void lane_flow_end(struct stream *s)
{
    s->lane->windows -= s->flow.frames - FLOW_BASE;
    flow_window_init(&s->flow, FLOW_BASE);
}
