/* stripe_pace.c - see stripe_pace.h.
 * SPDX-License-Identifier: MIT */
#include "net/stripe_pace.h"

#include <stdbool.h>

enum {
    PACE_LEAST = 64 << 10, /* bytes: less is lost here and there */
    PACE_TELLS = 256 << 10, /* bytes: a look at which less has arrived does not tell whether more would */
    PACE_FLOOD = 50,       /* one byte of so many lost: the path is too full */
    PACE_BOUND = 25,       /* one of so many, where the rate is bound already; */
    PACE_LOSSY = 4,        /* looks in a row of that: others, or the link itself, lose them, ... */
    PACE_FREE = 64,        /* ... after which so many are not bound */
    PACE_GROWS = 4,        /* one part of so many more than at the look before: what the path carries is not known yet */
    PACE_ROOM = 20,        /* bound: one part of so many above what the path is known to carry, ... */
    PACE_TRIAL = 4,        /* ... of so many when it may carry more: that grows as fast as BBR's own search */
    PACE_WAIT = 6,         /* calm looks before a trial, at first; twice as many after one that floods */
    PACE_WAIT_MOST = 64,
};

static void choose_rate(struct stripe_pace *p, bool flood, bool calm, uint64_t estimate)
{
    if (p->rate == 0) {
        p->wait = PACE_WAIT;
    } else if (flood && p->calm > p->wait) {
        p->wait = p->wait < PACE_WAIT_MOST ? 2 * p->wait : p->wait;
    }
    p->calm = flood ? 0 : p->calm + calm;
    p->rate = estimate + estimate / (p->calm > p->wait ? PACE_TRIAL : PACE_ROOM);
}

uint64_t stripe_pace_step(struct stripe_pace *p, const struct stripe_look *look)
{
    uint64_t acked = look->acked - p->last.acked, lost = look->retransmitted - p->last.retransmitted, before = p->last.estimate;
    bool grows = look->estimate > before + before / PACE_GROWS;
    bool flood = lost >= PACE_LEAST && lost >= acked / (p->rate != 0 ? PACE_BOUND : PACE_FLOOD);
    p->last = *look;
    p->lossy = flood && p->rate != 0 ? p->lossy + 1 : acked > 0 ? 0 : p->lossy;
    if (p->lossy == PACE_LOSSY) {
        p->lossy = 0;
        p->free = PACE_FREE;
    }
    p->free -= p->free > 0;
    if (look->estimate == 0 || p->free > 0) {
        p->rate = 0;
    } else if (p->rate != 0 || (flood && !grows)) {
        choose_rate(p, flood, !flood && acked >= PACE_TELLS, look->estimate);
    }
    return p->rate;
}
