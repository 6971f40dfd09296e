/* flow_window.c - see flow_window.h.
 * SPDX-License-Identifier: MIT */
#include "collectives/flow_window.h"

#include <string.h>

enum {
    FLOW_AGAIN = 3,       /* round trips within which as much has to come again */
    FLOW_OTHER = 4,       /* a round trip that differs by one part of so many is another one */
    FLOW_MOST = 1 << 14,     /* frames, 2 GiB: no window is larger */
    FLOW_SHORT_NS = 2000000, /* within a site FLOW_BASE is enough at any rate that a lane reaches */
};

#define FLOW_FIRST_BYTES 125000000.0 /* a second: a link of which nothing is known but its round trip */

uint32_t flow_window_first(int64_t rtt_ns, uint32_t frame_bytes, uint32_t most)
{
    double frames = rtt_ns < FLOW_SHORT_NS ? 0 : 2 * FLOW_FIRST_BYTES * (double)rtt_ns / 1e9 / frame_bytes;
    uint32_t wanted = frames > FLOW_MOST ? FLOW_MOST : (uint32_t)frames, more = wanted > FLOW_BASE ? wanted - FLOW_BASE : 0;
    return FLOW_BASE + (more < most ? more : most);
}

uint32_t flow_window_part(uint32_t share, uint32_t peers, uint32_t used)
{
    uint32_t part = share / (peers > 0 ? peers : 1), left = used / 2 < share ? 2 * share - used : 0;
    return part < left ? part : left;
}

void flow_window_init(struct flow_window *w, uint32_t frames)
{
    *w = (struct flow_window){.frames = frames};
}

/* A round trip swings by some microseconds with each look.  Parts keep their length until it has become another one. */
static void measure_parts(struct flow_window *w, int64_t rtt_ns)
{
    int64_t part_ns = rtt_ns / FLOW_PARTS, other = w->part_ns / FLOW_OTHER;
    if (part_ns < w->part_ns - other || part_ns > w->part_ns + other) {
        w->part_ns = part_ns;
        memset(w->arrived, 0, sizeof w->arrived);
    }
}

/* Forgets what came more than a round trip ago. */
static void move_on(struct flow_window *w, int64_t now_ns)
{
    int64_t part = now_ns / w->part_ns, passed = part - w->part;
    if (passed < 0 || passed >= FLOW_PARTS) { /* parts are numbered anew, or nothing has come for long */
        memset(w->arrived, 0, sizeof w->arrived);
    }
    for (int64_t p = w->part + 1; passed < FLOW_PARTS && p <= part; p++) {
        w->arrived[p % FLOW_PARTS] = 0;
    }
    w->part = part;
}

bool flow_window_cut(uint32_t frames, uint32_t granted)
{
    return granted < frames / 2;
}

/* As much has arrived as it takes to grow.  Once is enough while the window grows; then it has to come in two round trips. */
static bool lasts(struct flow_window *w, int64_t now_ns, int64_t rtt_ns)
{
    int64_t passed = now_ns - w->met_at;
    if (w->steady && passed < rtt_ns) {
        return false;
    }
    w->met_at = now_ns;
    return !w->steady || passed < FLOW_AGAIN * rtt_ns;
}

bool flow_window_arrived(struct flow_window *w, int64_t now_ns, int64_t rtt_ns)
{
    if (rtt_ns < FLOW_SHORT_NS) {
        return false;
    }
    uint32_t sum = 0;
    measure_parts(w, rtt_ns);
    move_on(w, now_ns);
    w->arrived[w->part % FLOW_PARTS]++;
    for (uint32_t i = 0; i < FLOW_PARTS; i++) {
        sum += w->arrived[i];
    }
    bool due = w->grown_at == 0 || now_ns - w->grown_at >= rtt_ns; /* grants bear fruit after a round trip */
    w->steady |= w->grown_at != 0 && now_ns - w->grown_at >= 2 * rtt_ns;
    if (!due || flow_window_cut(w->frames, sum) || w->frames >= FLOW_MOST || !lasts(w, now_ns, rtt_ns)) {
        return false;
    }
    w->frames *= 2;
    w->grown_at = now_ns;
    return true;
}
