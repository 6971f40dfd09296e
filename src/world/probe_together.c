/* probe_together.c - once each pair is known: every member measures its edges to all others at once.
 *
 * Its one idea: eight good paths and one good uplink look alike as long as paths are measured one by one.  What all edges out of a member carry
 * together is what its uplink carries, and it is kept as an edge to nobody (topology/rates.h); likewise for the downlink.  What leaves the
 * members of a site together is what the site's uplink carries.
 * Only groups that may have trees are measured so: trees are made for what links carry together.
 * Invariant: each edge counts once; a round that is broken off leaves what was known before.
 * SPDX-License-Identifier: MIT */
#include "topology/rates.h"
#include "topology/site_find.h"
#include "world/measuring.h"
#include "world/trees_make.h"
#include "world/member_rates.h"
#include "world/roll.h"
#include "world/view_read.h"

enum { TOGETHER_LEAST = 3, TOGETHER_TIMES = 5 /* as long as a probe of its own: streams that share a link take turns */ };

#define TOGETHER_MOST 1e18 /* bits per second: no link carries more */

_Static_assert((int)TREES_MEMBERS <= (int)MEASURE_MEMBERS, "a bit for each of them");

/* Whether the pairs of a group are known one by one, and not all of its links yet. */
static bool is_due(const struct world *w, const struct view_record *v)
{
    if (v->members < TOGETHER_LEAST || v->members > TREES_MEMBERS || v->edges > 0) {
        return false;
    }
    const uint64_t *keys = member_rates_keys(w, v->ids, v->members);
    if (!bandwidth_complete(&w->bandwidth, keys, v->members)) {
        return false;
    }
    for (uint32_t i = 0; i < v->members; i++) {
        if (!bandwidth_sure(&w->bandwidth, keys[i], RATES_ALL) || !bandwidth_sure(&w->bandwidth, RATES_ALL, keys[i])) {
            return true;
        }
    }
    return false;
}

static void start_member(struct world *w, const struct view_record *v, struct member *from, int64_t probe_ns)
{
    from->up_bps = from->down_bps = from->far_up_bps = from->far_down_bps = 0; /* no answer comes before all have been asked */
    for (uint32_t k = 0; k < v->members; k++) {
        edge_ask(w, from, k, (uint32_t)(probe_ns / 1000000));
    }
}

bool probe_together_start(struct world *w)
{
    int64_t probe_ns = TOGETHER_TIMES * w->common->config.probe_ns;
    edge_asks_begin(w, edge_probes_answered_by(w, probe_ns));
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        const struct view_record *v = view_current(g);
        bool due = g->phase == GROUP_NORMAL && is_due(w, v);
        for (uint32_t k = 0; due && k < v->members; k++) {
            struct member *mb = member_find(w, v->ids[k]);
            if (mb != NULL) {
                start_member(w, v, mb, probe_ns);
            }
        }
    }
    return w->optimise.waiting > 0;
}

void probe_together_answer(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    if (edge_answered(w, mb, ms) == SLOT_NONE) {
        return;
    }
    struct member *to = member_find(w, ms->to);
    const struct bandwidth_entry *alone = to != NULL ? bandwidth_either(&w->bandwidth, mb->rates_key, to->rates_key) : NULL;
    uint64_t bps = alone != NULL && alone->rate_bps < ms->bits_per_second ? alone->rate_bps : ms->bits_per_second;
    bool far = to != NULL && rates_trip_ns(&w->bandwidth, mb->rates_key, to->rates_key) >= SITE_FIND_RTT_NS;
    double far_bps = far ? (double)bps : 0;
    mb->up_bps += (double)bps;
    mb->far_up_bps += far_bps;
    if (to != NULL) {
        to->down_bps += (double)bps;
        to->far_down_bps += far_bps;
    }
}

static void keep(struct world *w, uint64_t from, uint64_t to, double bps)
{
    if (bps > 0) {
        (void)bandwidth_set(&w->bandwidth, from, to, bps < TOGETHER_MOST ? (uint64_t)bps : (uint64_t)TOGETHER_MOST, (uint64_t)w->common->now);
    }
}

/* All edges of its members have been measured. */
static bool is_complete(const struct world *w, const struct view_record *v)
{
    for (uint32_t k = 0; k < v->members; k++) {
        const struct member *mb = member_find(w, v->ids[k]);
        if (mb == NULL || mb->asked != 0) {
            return false;
        }
    }
    return true;
}

void probe_together_end(struct world *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        const struct view_record *v = view_current(g);
        if (g->phase != GROUP_NORMAL || !is_due(w, v) || !is_complete(w, v)) {
            continue;
        }
        for (uint32_t k = 0; k < v->members; k++) {
            const struct member *mb = member_find(w, v->ids[k]);
            keep(w, mb->rates_key, RATES_ALL, mb->up_bps);
            keep(w, RATES_ALL, mb->rates_key, mb->down_bps);
            keep(w, mb->rates_key, RATES_FAR, mb->far_up_bps);
            keep(w, RATES_FAR, mb->rates_key, mb->far_down_bps);
        }
    }
}
