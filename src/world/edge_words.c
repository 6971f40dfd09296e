/* edge_words.c - what members say of edges without being asked: operations over one miss their prediction, have shown more than was measured,
 * or a probe has arrived.
 *
 * Invariant: one end alone makes no edge look better than it is.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "topology/rates.h"
#include "world/measuring.h"
#include "world/roll.h"

#define WORDS_SURE_NS (30 * CLOCK_S) /* a member that doubts all the time costs no more than a probe in that */

/* The edge is measured again with the next vote, and what its ends carry in all.  What was measured a moment ago is not doubted. */
static void doubt(struct world *w, const struct member *from, const struct member *to)
{
    const struct bandwidth_entry *e = bandwidth_find(&w->bandwidth, from->rates_key, to->rates_key);
    if (e != NULL && w->common->now - (int64_t)e->probed_ns >= WORDS_SURE_NS && bandwidth_doubt(&w->bandwidth, e->from, e->to)) {
        (void)bandwidth_doubt(&w->bandwidth, from->rates_key, RATES_ALL);
        (void)bandwidth_doubt(&w->bandwidth, RATES_ALL, to->rates_key);
    }
}

static void observe(struct world *w, const struct member *from, const struct member *to, bool sent, uint64_t bps)
{
    (void)bandwidth_observe(&w->bandwidth, from->rates_key, to->rates_key, sent, bps, (uint64_t)w->common->now);
}

bool edge_words_take(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    const struct member *other = member_find(w, ms->to);
    bool there = other != NULL && other != mb && other->group == mb->group;
    switch (ms->round) {
    case MEASURED_DOUBT:
        if (there) {
            doubt(w, mb, other);
        }
        return true;
    case MEASURED_SENT_AT_WORK:
        if (there) {
            observe(w, mb, other, true, ms->bits_per_second);
        }
        return true;
    case MEASURED_HEARD_AT_WORK:
        if (there) {
            observe(w, other, mb, false, ms->bits_per_second);
        }
        return true;
    default:
        break;
    }
    if ((ms->round & MEASURED_HEARD) != 0) {
        edge_probes_heard(w, mb, ms);
        return true;
    }
    return false;
}
