/* stripe_pace.c - see stripe_pace.h.
 * SPDX-License-Identifier: MIT */
#include "net/stripe_pace.h"

#include <string.h>

enum {
    PACE_LEAST = 64 << 10, /* bytes: less is lost here and there */
    PACE_FILLED = 2,       /* one part of so many of what the path carries: a look at less does not tell whether it carries more */
    PACE_FLOOD = 50,       /* one byte of so many lost: the path is too full */
    PACE_BOUND = 25,       /* one of so many, where the rate is bound already; */
    PACE_LOSSY = 4,        /* looks in a row of that: others, or the link itself, lose them, ... */
    PACE_FREE = 64,        /* ... after which so many are not bound */
    PACE_FELL = 2,         /* an estimate below one part of so many of the best one has fallen, ... */
    PACE_RISE = 8,         /* ... after which it binds nothing for so many looks; */
    PACE_LOST = 8,         /* below one of so many it is lost, and would take long to rise again: BBR begins anew, ... */
    PACE_RISE_LOST = 16,   /* ... and has so many looks for that */
    PACE_OTHERS = 12,      /* looks for which BBR knows what a socket carried before others shared its path */
    PACE_GROWS = 4,        /* one part of so many more than at the look before: what the path carries is not known yet */
    PACE_ROOM = 20,        /* bound: one part of so many above what the path is known to carry, ... */
    PACE_TRIAL = 8,        /* ... of so many when it may carry more: a quarter would overrun a queue of 50 ms within a round trip, ... */
    PACE_GAINS = 4,        /* ... of so many once it has been found to do: that grows as fast as BBR's own search */
    PACE_TRIES = 2,        /* looks of a trial in which nothing grows */
    PACE_WAIT = 6,         /* calm looks before a trial, at first; twice as many after one that floods or gains nothing */
    PACE_WAIT_MOST = 64,
};

#define PACE_NS 1e9

static uint64_t above(uint64_t rate, int parts)
{
    return rate + rate / (uint64_t)parts;
}

/* Before the next trial. */
static void wait_longer(struct stripe_pace *p)
{
    p->wait = 2 * p->wait < PACE_WAIT_MOST ? 2 * p->wait : PACE_WAIT_MOST;
    p->calm = 0;
}

static bool is_trial(const struct stripe_pace *p)
{
    return p->rate != 0 && p->calm > p->wait;
}

/* A trial goes on for as long as the path is found to carry more.  A look that is not filled ends it until the next one that is: what comes
 * after a pause would begin with a burst. */
static void look_at_trial(struct stripe_pace *p, bool filled, uint64_t estimate)
{
    bool begins = p->calm == p->wait + 1, gains = !begins && estimate > above(p->base, PACE_ROOM);
    if (!filled) {
        p->calm = p->wait;
        return;
    }
    if (begins || gains) {
        p->base = estimate;
        p->gains = gains;
        p->wait = gains ? PACE_WAIT : p->wait;
        p->calm = p->wait + 1;
    }
    if (p->calm > p->wait + PACE_TRIES) {
        wait_longer(p);
    }
}

static void bind_first(struct stripe_pace *p)
{
    p->wait = PACE_WAIT;
    p->calm = 0;
    p->gains = false;
}

static void choose_rate(struct stripe_pace *p, bool flood, bool filled, uint64_t estimate)
{
    bool calm = filled && !flood;
    if (p->rate == 0) {
        bind_first(p);
    } else if (flood && is_trial(p)) {
        wait_longer(p);
    } else if (flood) {
        p->calm = 0;
    }
    p->calm += calm;
    if (is_trial(p)) {
        look_at_trial(p, calm, estimate);
    }
    p->rate = above(estimate, !is_trial(p) ? PACE_ROOM : p->gains ? PACE_GAINS : PACE_TRIAL);
}

static uint32_t at_least(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* What the path carries is not known any more. */
static void look_for_fall(struct stripe_pace *p, uint64_t estimate)
{
    if (estimate == 0) { /* BBR has just begun anew */
        return;
    }
    if (p->others > 0) {
        p->others--;
        return;
    }
    if (estimate < p->most / PACE_FELL) {
        if (p->fall.best == 0) {
            p->fall.best = p->most;
            p->fall.bound = p->rate != 0;
        }
        p->free = at_least(p->free, PACE_RISE);
        p->most = estimate;
    }
    if (estimate < p->fall.best / PACE_LOST && !p->fall.anew) {
        p->restart = p->fall.anew = true;
        p->free = at_least(p->free, PACE_RISE_LOST);
        p->fall.looks = p->fall.bound ? PACE_RISE_LOST : 0;
    }
    p->most = estimate > p->most ? estimate : p->most;
}

/* It is bound again if it has risen to about what it was bound to before. */
static void end_fall(struct stripe_pace *p, uint64_t estimate)
{
    if (p->rate != 0 && estimate >= p->fall.best / PACE_FELL) {
        bind_first(p);
    } else {
        p->rate = 0;
    }
    memset(&p->fall, 0, sizeof p->fall);
}

/* How long its estimate does not bind it. */
static void set_free(struct stripe_pace *p, bool flood, bool arrived, uint64_t estimate)
{
    p->restart = false;
    p->lossy = flood && p->rate != 0 ? p->lossy + 1 : arrived ? 0 : p->lossy;
    p->free -= p->free > 0;
    p->fall.looks -= p->fall.looks > 0 && arrived;
    if (p->fall.best != 0 && p->free == 0 && p->fall.looks == 0) {
        end_fall(p, estimate);
    }
    if (p->lossy == PACE_LOSSY) {
        p->lossy = 0;
        p->free = PACE_FREE;
        p->rate = 0;
        memset(&p->fall, 0, sizeof p->fall);
    }
    look_for_fall(p, estimate);
}

void stripe_pace_anew(struct stripe_pace *p)
{
    uint32_t free = p->fall.best == 0 ? 0 : at_least(p->free, PACE_RISE); /* a repair goes on */
    *p = (struct stripe_pace){.last = p->last, .free = free, .others = PACE_OTHERS};
}

uint64_t stripe_pace_step(struct stripe_pace *p, const struct stripe_look *look)
{
    uint64_t acked = look->acked - p->last.acked, lost = look->retransmitted - p->last.retransmitted, before = p->last.estimate;
    bool grows = look->estimate > before + before / PACE_GROWS;
    bool flood = lost >= PACE_LEAST && lost >= acked / (p->rate != 0 ? PACE_BOUND : PACE_FLOOD);
    bool filled = acked > 0 && (double)acked * PACE_FILLED >= (double)before * (double)(look->now - p->last.now) / PACE_NS;
    p->last = *look;
    set_free(p, flood, acked > 0, look->estimate);
    if (p->fall.looks > 0) {
        p->rate = above(p->fall.best, PACE_ROOM);
    } else if (look->estimate == 0 || p->free > 0) {
        p->rate = 0;
    } else if (p->rate != 0 || (flood && !grows)) {
        choose_rate(p, flood, filled, look->estimate);
    }
    return p->rate;
}
