/* stall.h - what follows from a stall time, alike at masters and peers (M7).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_STALL_H
#define PCCL_CORE_STALL_H

#include "core/clock.h"

/* Who sleeps longer than this knows nothing of others' silence. */
static inline int64_t stall_pause_ns(int64_t stall_ns)
{
    return stall_ns < 2 * CLOCK_S ? stall_ns / 2 : CLOCK_S;
}

/* How often a sign of life goes out: so often that four may be lost, or as often as is usual. */
static inline int64_t stall_heartbeat_ns(int64_t stall_ns, int64_t usual_ns)
{
    return stall_ns / 5 < usual_ns ? stall_ns / 5 : usual_ns;
}

/* The shorter of two; 0: none is asked for. */
static inline uint32_t stall_shorter_ms(uint32_t a, uint32_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

#endif
