/* world_topology.c - how the members of a group are linked, for people and their programs: members, ring, known edges.
 *
 * Its one idea: a page begins at a place: below the number of members that is a member's, by id, from there on a pair's, row by row.  A page looks
 * at a bounded number of both, so that nobody's message waits long behind one.
 * Invariant: nothing changes by being asked.
 * SPDX-License-Identifier: MIT */
#include "topology/rates.h"
#include "world/world_state.h"
#include "world/formation.h"
#include "world/member_rates.h"
#include "world/roll.h"

enum { TOPOLOGY_LOOKS = 16384 }; /* at pairs, of one page */

static const struct group *group_asked(const struct world *w, uint32_t label)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        if (g->phase != GROUP_FREE && g->label == label && g->views[g->current].members > 0) {
            return g;
        }
    }
    return NULL;
}

/* Pairs that may have been measured, one of a member with itself counted in; of larger groups none is. */
static uint32_t pair_count(const struct world *w, const struct view_record *v)
{
    return w->bandwidth.count == 0 || v->members > BOUNDS_RING ? 0 : v->members * v->members;
}

static uint8_t source_of(const struct bandwidth_entry *e)
{
    return e->observed ? TOPOLOGY_OBSERVED : e->assumed ? TOPOLOGY_ASSUMED : TOPOLOGY_PROBED;
}

/* The next measured edge at or behind pair *at, which then is the one behind it; false, and *at is `end`, if there is none before `end`. */
static bool next_edge(const struct world *w, const struct view_record *v, const uint64_t *keys, uint32_t *at, uint32_t end, struct topology_edge *out)
{
    while (*at < end) {
        uint32_t from = *at / v->members, to = *at % v->members;
        const struct bandwidth_entry *e = from == to ? NULL : bandwidth_find(&w->bandwidth, keys[from], keys[to]);
        ++*at;
        if (e != NULL) {
            uint64_t age_s = ((uint64_t)w->common->now - e->seen_ns) / 1000000000;
            *out = (struct topology_edge){
                .from = (uint16_t)from, .to = (uint16_t)to, .rate_bps = e->rate_bps, .rtt_us = e->rtt_us,
                .loss_ppm = e->loss_ppm < 1000000 ? e->loss_ppm : 1000000, /* as a peer has said it */
                .age_s = age_s < UINT32_MAX ? (uint32_t)age_s : UINT32_MAX, .source = source_of(e),
            };
            return true;
        }
    }
    return false;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What a member carried with many at once. */
static uint64_t rate_of_edge(const struct world *w, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(&w->bandwidth, from, to);
    return e != NULL ? e->rate_bps : 0;
}

static struct topology_link link_of(const struct world *w, uint64_t key)
{
    return (struct topology_link){rate_of_edge(w, key, RATES_ALL), rate_of_edge(w, RATES_ALL, key), rate_of_edge(w, key, RATES_FAR),
                                  rate_of_edge(w, RATES_FAR, key)};
}

static void put_members(const struct world *w, const struct view_record *v, uint32_t from, uint32_t count, struct writer *to)
{
    for (uint32_t i = from; i < from + count; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        struct topology_member m = {.id = v->ids[i], .ring = v->ring[i]};
        m.key = mb != NULL ? mb->info.key : formation_key(w, v->ids[i]);
        if (mb != NULL && mb->info.addresses > 0) {
            m.address = mb->info.address[0];
        }
        if (mb != NULL) {
            m.link = link_of(w, mb->rates_key);
        }
        put_topology_member(to, &m);
    }
}

void world_tell_topology(const struct world *w, const struct msg_topology *asked, struct writer *to)
{
    const struct group *g = group_asked(w, asked->group);
    struct msg_topology_page page = {.state = g == NULL ? TOPOLOGY_NO_GROUP : TOPOLOGY_FOUND};
    const struct view_record *v = g == NULL ? NULL : &g->views[g->current];
    if (v != NULL && asked->view != 0 && asked->view != v->view) {
        page.state = TOPOLOGY_CHANGED;
    }
    if (page.state != TOPOLOGY_FOUND) {
        put_topology_page(to, &page);
        return;
    }
    uint32_t n = v->members, pairs = pair_count(w, v);
    uint32_t first = asked->from < n ? 0 : least(asked->from - n, pairs), at = first;
    page.view = v->view;
    page.members = n;
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        calibration_tell(w, v, (enum took_kind)kind, &page.took[kind]);
    }
    page.listed = (uint16_t)least(n - least(asked->from, n), TOPOLOGY_PAGE_MEMBERS);
    bool all_listed = asked->from >= n || asked->from + page.listed == n;
    uint32_t end = all_listed ? least(first + TOPOLOGY_LOOKS, pairs) : 0;
    const uint64_t *keys = pairs > 0 ? member_rates_keys(w, v->ids, n) : NULL;
    struct topology_edge e;
    while (page.edges < TOPOLOGY_PAGE_EDGES && next_edge(w, v, keys, &at, end, &e)) {
        page.edges++;
    }
    page.next = !all_listed ? asked->from + page.listed : at < pairs ? n + at : 0;
    put_topology_page(to, &page);
    put_members(w, v, asked->from, page.listed, to);
    at = first;
    for (uint32_t i = 0; i < page.edges && next_edge(w, v, keys, &at, end, &e); i++) {
        put_topology_edge(to, &e);
    }
}
