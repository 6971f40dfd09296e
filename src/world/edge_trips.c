/* edge_trips.c - before anything is measured: which members are near each other.
 *
 * Its one idea: members of one site may share its link, so that probes of them disturb each other, and their paths to another site are alike.
 * Round trips tell the sites, and members know them from the connections that they have.
 * Invariant: when it ends, `site` of each member is the slot of a member of the same view and site, the same for all of that site.
 * SPDX-License-Identifier: MIT */
#include "topology/rates.h"
#include "topology/site_find.h"
#include "world/measuring.h"
#include "world/roll.h"
#include "world/view_read.h"

static bool is_measured(struct group *g)
{
    const struct view_record *v = view_current(g);
    return g->phase == GROUP_NORMAL && v->members > 2 && v->members <= MEASURE_MEMBERS;
}

static bool is_near(uint64_t rtt_ns)
{
    return rtt_ns != SITE_FIND_UNKNOWN && rtt_ns < SITE_FIND_RTT_NS;
}

/* Of each pair one member is asked, unless the master knows. */
static void ask_for_pairs(struct world *w, const struct view_record *v)
{
    for (uint32_t i = 0; i < v->members; i++) {
        struct member *mb = member_find(w, v->ids[i]);
        for (uint32_t k = 0; k < v->members && mb != NULL; k++) {
            const struct member *other = member_find(w, v->ids[k]);
            uint64_t rtt_ns = other != NULL ? rates_trip_ns(&w->bandwidth, mb->rates_key, other->rates_key) : 0;
            mb->near |= (uint64_t)is_near(rtt_ns) << k;
            if (rtt_ns == SITE_FIND_UNKNOWN && ((i + k) % 2 == 1) == (i < k)) {
                edge_ask(w, mb, k, 0);
            }
        }
    }
}

bool edge_trips_start(struct world *w)
{
    edge_asks_begin(w, w->common->now + w->common->config.register_ns);
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].near = 0;
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        if (is_measured(&w->groups[i])) {
            ask_for_pairs(w, view_current(&w->groups[i]));
        }
    }
    return w->optimise.waiting > 0;
}

void edge_trips_answer(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    uint32_t rank = edge_answered(w, mb, ms);
    if (rank != SLOT_NONE && ms->rtt_us > 0 && is_near((uint64_t)ms->rtt_us * 1000)) {
        mb->near |= UINT64_C(1) << rank;
    }
}

static void find_sites(struct world *w, const struct view_record *v)
{
    static const struct site_address nowhere[MEASURE_MEMBERS];
    uint64_t rtt_ns[MEASURE_MEMBERS * MEASURE_MEMBERS] = {0};
    uint32_t slot[MEASURE_MEMBERS], n = v->members, first[MEASURE_MEMBERS];
    uint16_t site[MEASURE_MEMBERS];
    for (uint32_t i = 0; i < n; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        slot[i] = mb != NULL ? (uint32_t)(mb - w->members) : SLOT_NONE;
        for (uint32_t k = 0; k < n; k++) {
            rtt_ns[i * n + k] = mb != NULL && (mb->near >> k & 1) != 0 ? 0 : SITE_FIND_UNKNOWN;
        }
    }
    for (uint32_t g = 0, sites = (uint32_t)site_find(rtt_ns, nowhere, n, site); g < sites; g++) {
        first[g] = SLOT_NONE;
    }
    for (uint32_t i = 0; i < n; i++) {
        first[site[i]] = first[site[i]] == SLOT_NONE ? slot[i] : first[site[i]];
        if (slot[i] != SLOT_NONE) {
            w->members[slot[i]].site = first[site[i]];
        }
    }
}

void edge_trips_end(struct world *w)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].site = i;
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        if (is_measured(&w->groups[i])) {
            find_sites(w, view_current(&w->groups[i]));
        }
    }
}
