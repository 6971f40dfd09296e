/* flow_window.h - how many frames of one sender, or leaves of a shared state, may be under way to this process.
 *
 * A window of one round trip's worth of frames keeps a link full, as long as nothing is lost.  What follows a lost packet waits one more round
 * trip for it, and takes its share of the window along.  So a window grows until it is twice as large at least.  The frames that arrive within
 * a round trip are counted.  While these are half of the window or more, it doubles; it settles between 2 and 4 times what the link carries.
 * What a lost packet had held up arrives at once.  So a window that has stopped growing grows on only if as much comes in two round trips.
 * Invariant: frames is never less than at first; it only grows, so that a pause of the program costs nothing.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_FLOW_WINDOW_H
#define PCCL_COLLECTIVES_FLOW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FLOW_BASE = 8,  /* frames: enough within a site */
    FLOW_PARTS = 4, /* of a round trip */
};

struct flow_window {
    uint32_t frames;              /* the window */
    uint32_t arrived[FLOW_PARTS]; /* in the last parts of a round trip, by their number */
    int64_t part_ns;              /* how long a part lasts; 0: not known yet */
    int64_t part;                 /* number of the current part, since the clock began */
    int64_t grown_at, met_at;     /* when it grew last; when as much arrived as it takes to grow */
    bool steady;                  /* it has stopped growing */
};

/* What a sender gets at first over a link with that round trip, in frames of so many bytes, at most `most` beyond FLOW_BASE: what 1 Gb/s
 * would fill.  A connection begins slowly; a window that is as small as it is then would be what holds it back. */
uint32_t flow_window_first(int64_t rtt_ns, uint32_t frame_bytes, uint32_t most);
/* So many frames beyond FLOW_BASE, of `share` for all first windows of a lane, may the first one of a peer have that is one of so many; the
 * windows of the lane have `used`.  Peers that come later have a part, too: twice the share is the most that all have. */
uint32_t flow_window_part(uint32_t share, uint32_t peers, uint32_t used);
void flow_window_init(struct flow_window *w, uint32_t frames);
/* One more frame has arrived, over a link with that round trip.  True: the window has grown. */
bool flow_window_arrived(struct flow_window *w, int64_t now_ns, int64_t rtt_ns);
/* Whether so many frames, all that its sender was granted, are too few to show whether the link carries more. */
bool flow_window_cut(uint32_t frames, uint32_t granted);

#endif
