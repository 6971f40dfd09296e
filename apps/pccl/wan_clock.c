/* wan_clock.c - see wan_clock.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_clock.h"

uint64_t wan_clock_backlog(const struct wan_clock *c, int64_t t)
{
    int64_t wait_ns = c->free_ns - t;
    return c->rate_bps == 0 || wait_ns <= 0 ? 0 : (uint64_t)((double)wait_ns * (double)c->rate_bps / 8e9);
}

bool wan_clock_pass(struct wan_clock *c, int64_t t, uint32_t bytes, int64_t *leaves_ns)
{
    if (c->rate_bps == 0) {
        *leaves_ns = t;
        return true;
    }
    if (wan_clock_backlog(c, t) > c->queue_bytes) {
        return false;
    }
    if (c->free_ns < t) {
        c->free_ns = t;
        c->part = 0;
    }
    uint64_t work = (uint64_t)(bytes + WAN_FRAME_BYTES) * 8 * UINT64_C(1000000000) + c->part;
    c->free_ns += (int64_t)(work / c->rate_bps);
    c->part = work % c->rate_bps;
    *leaves_ns = c->free_ns;
    return true;
}
