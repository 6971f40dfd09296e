/* stripe_pace.h - how fast a socket may send at most, so that it does not flood its path.
 *
 * BBR begins at 2.9 times the rate that it has seen, and goes on like that until three round trips in a row had always something to send.
 * An operation that waits for its partners has not, so each of its bursts overflows the queue of the path, and what is lost holds up all
 * that follows.  Once a rate has stopped growing and bytes are lost, the socket is bound to what its path has been seen to carry.
 * While BBR repairs a burst of losses it may forget what a path carries (decision 26).  Then the socket is not bound to its estimate; where
 * that is lost, BBR begins anew.
 * Pure: what the kernel counts comes in, a rate comes out.
 * Invariant: loss that the bound does not end is not the socket's own, and bounds it no longer.  A socket is bound to an estimate, or to the
 * one that it had before it fell, only if it has been seen to flood its path.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_STRIPE_PACE_H
#define PCCL_NET_STRIPE_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one socket, since it was made; the look before was a round trip ago or more. */
struct stripe_look {
    int64_t now;
    uint64_t acked, retransmitted; /* bytes */
    uint64_t estimate; /* bytes per second that its congestion control takes the path to carry; 0: it has no such idea */
};

struct stripe_pace {
    struct stripe_look last;
    uint64_t rate;    /* bytes per second; 0: not bound */
    uint64_t most;    /* the best estimate since it last fell */
    uint64_t base;    /* the estimate when a trial began, or last grew in it */
    uint32_t calm;    /* looks in a row that were filled and not flooded, since it was bound */
    uint32_t wait;    /* calm looks before it may try whether the path carries more */
    bool gains;       /* the trial has found that the path carries more */
    uint32_t lossy;   /* looks in a row at which much was lost although it was bound */
    uint32_t others;  /* looks for which the estimate may be that of another number of sockets */
    uint32_t free;    /* looks for which its estimate does not bind it */
    struct {
        uint64_t best;    /* the estimate before it fell; 0: it has not, or has had time to rise again */
        bool bound;       /* the socket was bound to it, and is while BBR begins anew: */
        uint32_t looks;   /* for so many more in which something arrives */
        bool anew;        /* BBR has begun anew */
    } fall;
    bool restart;     /* the congestion control is to begin anew: set by the look that has seen why */
};

/* Whether more sockets are no use now: it is bound, or its congestion control is finding out again what the path carries. */
static inline bool stripe_pace_full(const struct stripe_pace *p)
{
    return p->rate != 0 || p->fall.best != 0;
}

/* Returns the new rate. */
uint64_t stripe_pace_step(struct stripe_pace *p, const struct stripe_look *look);
/* Other sockets share the path from now on: what this one carried does not count. */
void stripe_pace_anew(struct stripe_pace *p);

#endif
