/* view_plan.c - how the members of a view do their operations: lanes, digests, what travels with a launch, what things cost.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "collectives/choose.h"
#include "collectives/plan.h"
#include "topology/cost.h"
#include "topology/owner_shares.h"
#include "wire/address.h"
#include "world/member_rates.h"
#include "world/roll.h"
#include "world/view_plan.h"
#include "world/view_read.h"

enum {
    PLAN_FAR_PS = 80000,         /* of long links a byte takes as long as at 100 Mb/s, until they have been measured */
    PLAN_MEASURED_MEMBERS = 256,
    PLAN_LOOKS = 16, PLAN_LOOK_PAIRS = 65536, /* groups, and pairs of their members, that one update looks at: other clients wait */
};

/* Digests where a link leaves the host, or where somebody asks for them: for all members or for none. */
static bool wants_verify(const struct world *w, const struct view_record *v)
{
    const struct member *first = NULL;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL && (mb->verify || (first != NULL && !address_same_host(&first->seen, &mb->seen)))) {
            return true;
        }
        first = first == NULL ? mb : first;
    }
    return false;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Copies of the buffer that each member of an exchange of equal shares sends, directly or round a ring. */
static double copies(uint32_t members)
{
    return 2 * ((double)members - 1) / (double)members;
}

static bool is_measured(const struct world *w, const struct view_record *v, uint32_t most)
{
    return v->members >= 2 && v->members <= most && w->bandwidth.count > 0;
}

/* What a byte takes, on average, at the member or pair that the direct exchange of equal shares keeps waiting longest.  A view that is too
 * large for n^2 looks, or was not measured, goes by its delays. */
static void plan_links(const struct world *w, const struct view_record *from, struct view_record *v)
{
    uint32_t n = v->members;
    struct member_network m;
    v->plan.measured = is_measured(w, v, PLAN_MEASURED_MEMBERS) && member_network(w, member_rates_keys(w, v->ids, n), n, &m);
    double s_per_bit = v->plan.measured ? shares_load(&m.net, m.share).s_per_bit : 0;
    if (v->edges > 0) { /* shares are not equal then: nothing is learnt of how equal ones fit */
        v->calibration.kind[TOOK_DIRECT] = from->calibration.kind[TOOK_DIRECT];
        v->calibration.kind[TOOK_DIRECT].links = 0;
        s_per_bit *= calibration_untold(v);
    } else {
        s_per_bit = calibration_apply(w, from, v, TOOK_DIRECT, true, s_per_bit);
    }
    uint32_t guess = v->plan.costs.delay_ns > WORLD_FAR_NS ? PLAN_FAR_PS : 0;
    v->plan.link_ps = v->plan.measured ? member_rates_whole(s_per_bit / copies(n) * 8e12) : guess;
}

/* One way over the longest link between members, if all have been measured; else 0.  A master far away does not make near members look far. */
static uint32_t measured_delay_us(const struct world *w, const struct view_record *v)
{
    if (w->bandwidth.count == 0 || v->members > PLAN_MEASURED_MEMBERS) {
        return 0;
    }
    const uint64_t *keys = member_rates_keys(w, v->ids, v->members);
    uint32_t longest = 0;
    for (uint32_t i = 0; i < v->members; i++) {
        for (uint32_t k = 0; k < v->members; k++) {
            const struct bandwidth_entry *e = bandwidth_either(&w->bandwidth, keys[i], keys[k]);
            if (i != k && (e == NULL || e->rtt_us == 0)) {
                return 0;
            }
            longest = i != k && e->rtt_us > longest ? e->rtt_us : longest;
        }
    }
    return longest / 2;
}

/* What choosing an algorithm needs: the greatest of the members' costs, and how many share the first one's host, which stands for all. */
static void plan_costs(const struct world *w, struct view_record *v)
{
    const struct member *first = NULL;
    struct costs *c = &v->plan.costs;
    uint64_t beside = 0;
    *c = (struct costs){0};
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb == NULL) {
            continue;
        }
        first = first == NULL ? mb : first;
        beside += address_same_host(&first->seen, &mb->seen);
        c->delay_ns = most(c->delay_ns, mb->costs.delay_ns);
        c->message_ns = most(c->message_ns, mb->costs.message_ns);
        c->byte_ps = most(c->byte_ps, mb->costs.byte_ps);
        c->fold_ps = most(c->fold_ps, mb->costs.fold_ps);
    }
    uint32_t delay_us = measured_delay_us(w, v);
    c->delay_ns = delay_us > 0 ? (delay_us < COSTS_MOST / 1000 ? delay_us * 1000 : COSTS_MOST) : c->delay_ns;
    uint64_t crowd = first == NULL || first->cores == 0 ? 0 : beside * CHOOSE_CROWD / first->cores;
    v->plan.crowd = (uint16_t)(crowd < UINT16_MAX ? crowd : UINT16_MAX);
}

/* The most is for two: of what all the others say at once each member gets about as much, up to four of them. */
static uint32_t eager_bytes(const struct view_record *v)
{
    uint32_t most = v->plan.eager_bytes, least = most / 4, bytes = most;
    for (uint32_t members = 2; members < v->members && bytes > least; members *= 2) {
        bytes /= 2;
    }
    return bytes;
}

void view_plan(const struct world *w, const struct view_record *from, struct view_record *v)
{
    v->planned_at = w->common->now;
    v->plan = w->common->config.plan;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL) {
            v->plan.lanes = mb->info.lanes < v->plan.lanes ? mb->info.lanes : v->plan.lanes;
            v->plan.stall_ms = stall_shorter_ms(v->plan.stall_ms, mb->stall_ms);
        }
    }
    v->plan.verify = wants_verify(w, v);
    v->plan.eager_bytes = eager_bytes(v);
    plan_costs(w, v);
    plan_links(w, from, v);
    view_plan_ring(w, from, v);
    if (v->edges > 0) { /* eager messages would need every pair */
        v->plan.eager_bytes = 0;
    }
}

/* One way from one member to another, as far as is known. */
static double delay_us(const struct world *w, const struct view_record *v, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_either(&w->bandwidth, from, to);
    return e != NULL && e->rtt_us > 0 ? (double)e->rtt_us / 2 : (double)v->plan.costs.delay_ns / 1000;
}

/* What a lap round the ring asks of its links, in seconds for a bit; 0: that is not known.  Edges that were not measured count as fast as the
 * links of their members, so that a ring survives a newcomer. */
static double ring_load(const struct world *w, const struct view_record *v, double *delays_us)
{
    uint32_t n = v->members;
    struct member_network m;
    if (n < PLAN_RING_LEAST || v->edges > 0 || !is_measured(w, v, BOUNDS_RING)) {
        return 0;
    }
    const uint64_t *keys = member_rates_keys(w, v->ids, n);
    if (!member_network(w, keys, n, &m)) {
        return 0;
    }
    uint16_t *order = w->common->scratch_order;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (uint16_t)v->ring[i];
        *delays_us += delay_us(w, v, keys[v->ring[i]], keys[v->ring[(i + 1) % n]]);
    }
    return cost_ring_load(&m.net, order).s_per_bit;
}

void view_plan_ring(const struct world *w, const struct view_record *from, struct view_record *v)
{
    bool same = v->members == from->members && memcmp(v->ring, from->ring, v->members * sizeof *v->ring) == 0;
    double us = 0, s_per_bit = calibration_apply(w, from, v, TOOK_RING, same, ring_load(w, v, &us));
    v->plan.ring_ps = s_per_bit > 0 ? member_rates_whole(s_per_bit / copies(v->members) * 8e12) : 0;
    v->plan.ring_delay_us = member_rates_whole(us);
}

/* By more than probes err. */
static bool is_apart(uint32_t a, uint32_t b)
{
    uint32_t greater = a > b ? a : b, lesser = a > b ? b : a;
    return greater - lesser > greater / 10;
}

bool view_plan_differs(const struct world *w, const struct view_record *v)
{
    struct view_record now = *v;
    view_plan(w, v, &now);
    (void)calibration_apply(w, v, &now, TOOK_FOREST, true, v->calibration.kind[TOOK_FOREST].links);
    return now.plan.measured != v->plan.measured || is_apart(now.plan.link_ps, v->plan.link_ps) || is_apart(now.plan.ring_ps, v->plan.ring_ps) ||
           is_apart(now.plan.costs.delay_ns, v->plan.costs.delay_ns) ||
           (v->trees.count > 0 && is_apart(now.calibration.kind[TOOK_FOREST].permille, v->calibration.kind[TOOK_FOREST].permille));
}

static bool is_due(const struct world *w, struct group *g)
{
    const struct view_record *v = view_current(g);
    return g->phase == GROUP_NORMAL && v->members > 0 && v->members <= PLAN_MEASURED_MEMBERS && view_known_to_all(w, g) &&
           w->common->now - v->planned_at >= w->common->config.replan_ns;
}

/* The one that was looked at longest ago; null: none is due. */
static struct group *first_due(const struct world *w)
{
    struct group *first = NULL;
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (is_due(w, g) && (first == NULL || view_current(g)->planned_at < view_current(first)->planned_at)) {
            first = g;
        }
    }
    return first;
}

void view_plan_look(struct world *w)
{
    uint32_t pairs = PLAN_LOOK_PAIRS;
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].outdated = false;
    }
    for (uint32_t looks = 0; looks < PLAN_LOOKS; looks++) {
        struct group *g = first_due(w);
        uint32_t n = g != NULL ? view_current(g)->members : 0;
        if (n == 0 || n * n > pairs) {
            return;
        }
        pairs -= n * n;
        view_current(g)->planned_at = w->common->now;
        g->outdated = view_plan_differs(w, view_current(g));
    }
}
