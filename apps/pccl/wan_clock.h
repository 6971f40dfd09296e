/* wan_clock.h - a link of limited rate with a queue in front of it, as the time at which its last bit leaves.
 *
 * One idea: no timer and no list.  A packet that comes at `t` leaves when the clock has advanced by its transmission time, from `t` or
 * from the end of the packet before it.  Invariant: `free_ns` never goes back, so packets keep their order.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_CLOCK_H
#define PCCL_WAN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { WAN_FRAME_BYTES = 18 /* of Ethernet around an IP packet */ };

struct wan_clock {
    uint64_t rate_bps;    /* 0: no limit */
    uint64_t queue_bytes; /* beyond this a packet is dropped */
    int64_t free_ns;      /* when the last bit leaves */
    uint64_t part;        /* of a nanosecond, in 1 / rate_bps */
};

/* What waits at `t`. */
uint64_t wan_clock_backlog(const struct wan_clock *c, int64_t t);
/* A packet of `bytes` comes at `t`; when its last bit leaves.  False: the queue is full. */
bool wan_clock_pass(struct wan_clock *c, int64_t t, uint32_t bytes, int64_t *leaves_ns);

#endif
