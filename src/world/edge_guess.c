/* edge_guess.c - edges between two sites, of which one was measured.
 *
 * Its one idea: where many hosts are at two sites there is one way between these.  To measure it once for each pair of hosts takes minutes, and
 * without all pairs there are no trees.  A host with a slower link than those that were measured is seen by its edges within its site; what its
 * link carries in all is seen when all edges are measured at once.
 * Invariant: an edge that was measured is never replaced.
 * SPDX-License-Identifier: MIT */
#include "world/measuring.h"
#include "world/edges.h"
#include "world/roll.h"
#include "world/view_read.h"

bool edge_guess_counts(const struct bandwidth_entry *e)
{
    return e != NULL && !e->assumed && e->rate_bps > 0;
}

bool edge_guess_more(uint64_t bps, uint64_t than_bps)
{
    return bps / 5 > than_bps / 4;
}

static const struct bandwidth_entry *better(const struct bandwidth_entry *a, const struct bandwidth_entry *b)
{
    return edge_guess_counts(b) && (a == NULL || b->rate_bps > a->rate_bps) ? b : a;
}

static bool is_at(const struct member *mb, const struct member *site)
{
    return mb != NULL && mb->site == site->site;
}

const struct bandwidth_entry *edge_guess_way(const struct world *w, const struct view_record *v, const struct member *one,
                                             const struct member *other)
{
    const struct bandwidth_entry *best = NULL;
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *a = member_find(w, v->ids[i]);
        for (uint32_t k = 0; k < v->members && is_at(a, one); k++) {
            const struct member *b = member_find(w, v->ids[k]);
            if (is_at(b, other)) {
                best = better(best, bandwidth_find(&w->bandwidth, a->rates_key, b->rates_key));
            }
        }
    }
    return best;
}

/* Operations may have shown that it carries more. */
static bool is_worse(const struct bandwidth_entry *known, const struct bandwidth_entry *like)
{
    return known->assumed && !(known->observed && known->rate_bps > like->rate_bps);
}

/* The most that a member's edges are known to carry, by rank in a view; 0: nothing is known, or it says nothing of other edges. */
struct link_most {
    uint64_t out, in;
};

static uint64_t known_rate(const struct world *w, const struct view_record *v, uint32_t from, uint32_t to)
{
    const struct member *a = member_find(w, v->ids[from]), *b = member_find(w, v->ids[to]);
    return a != NULL && b != NULL ? bandwidth_measured(&w->bandwidth, a->rates_key, b->rates_key) : 0;
}

/* Whether some of the members that it exchanges data with can exchange more with others: then its own link is the limit. */
static struct link_most bounds_of(const struct world *w, const struct view_record *v, const struct link_most *most, uint32_t rank)
{
    struct link_most own = {0, 0};
    for (uint32_t k = 0; k < v->members; k++) {
        if (known_rate(w, v, rank, k) > 0 && edge_guess_more(most[k].in, most[rank].out)) {
            own.out = most[rank].out;
        }
        if (known_rate(w, v, k, rank) > 0 && edge_guess_more(most[k].out, most[rank].in)) {
            own.in = most[rank].in;
        }
    }
    return own;
}

static void look_at_links(const struct world *w, const struct view_record *v, struct link_most bounds[MEASURE_MEMBERS])
{
    struct link_most most[MEASURE_MEMBERS] = {{0}};
    for (uint32_t i = 0; i < v->members; i++) {
        for (uint32_t k = 0; k < v->members; k++) {
            uint64_t rate = known_rate(w, v, i, k);
            most[i].out = rate > most[i].out ? rate : most[i].out;
            most[k].in = rate > most[k].in ? rate : most[k].in;
        }
    }
    for (uint32_t i = 0; i < v->members; i++) {
        bounds[i] = bounds_of(w, v, most, i);
    }
}

static struct bandwidth_entry bounded(const struct bandwidth_entry *like, uint64_t out, uint64_t in)
{
    struct bandwidth_entry e = *like;
    e.rate_bps = out > 0 && out < e.rate_bps ? out : e.rate_bps;
    e.rate_bps = in > 0 && in < e.rate_bps ? in : e.rate_bps;
    return e;
}

/* One direction stands for both, unless they differ. */
static void assume(struct world *w, struct member *from, struct member *to, const struct bandwidth_entry *like_there,
                   const struct bandwidth_entry *like_back)
{
    const struct bandwidth_entry *there = bandwidth_find(&w->bandwidth, from->rates_key, to->rates_key);
    const struct bandwidth_entry *back = bandwidth_find(&w->bandwidth, to->rates_key, from->rates_key);
    bool differ = like_there->rate_bps != like_back->rate_bps;
    bool go = there != NULL ? is_worse(there, like_there) : back == NULL || (back->assumed && differ);
    bool come = back != NULL ? is_worse(back, like_back) : (there == NULL || there->assumed) && differ;
    if (go && bandwidth_assume(&w->bandwidth, from->rates_key, to->rates_key, like_there)) {
        from->rated = to->rated = true; /* else the table is full: it stays unknown */
    }
    if (come && bandwidth_assume(&w->bandwidth, to->rates_key, from->rates_key, like_back)) {
        from->rated = to->rated = true;
    }
}

/* The edges between two sites. */
static void guess_between(struct world *w, const struct view_record *v, const struct link_most *bounds, const struct member *one,
                          const struct member *other)
{
    const struct bandwidth_entry *best = better(edge_guess_way(w, v, one, other), edge_guess_way(w, v, other, one));
    if (best == NULL) {
        return;
    }
    const struct bandwidth_entry like = *best; /* the table moves its entries */
    for (uint32_t i = 0; i < v->members; i++) {
        struct member *from = member_find(w, v->ids[i]);
        for (uint32_t k = 0; k < v->members && is_at(from, one); k++) {
            struct member *to = member_find(w, v->ids[k]);
            if (is_at(to, other) && !edges_missing(v, from->id, to->id)) {
                struct bandwidth_entry there = bounded(&like, bounds[i].out, bounds[k].in), back = bounded(&like, bounds[k].out, bounds[i].in);
                assume(w, from, to, &there, &back);
            }
        }
    }
}

static bool is_first(const struct world *w, const struct member *mb)
{
    return mb != NULL && mb == &w->members[mb->site];
}

static void guess_group(struct world *w, const struct view_record *v)
{
    struct link_most bounds[MEASURE_MEMBERS];
    look_at_links(w, v, bounds);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *one = member_find(w, v->ids[i]);
        for (uint32_t k = 0; k < i && is_first(w, one); k++) {
            const struct member *other = member_find(w, v->ids[k]);
            if (is_first(w, other)) {
                guess_between(w, v, bounds, one, other);
            }
        }
    }
}

void edge_guess(struct world *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->phase == GROUP_NORMAL && view_current(g)->members <= MEASURE_MEMBERS) {
            guess_group(w, view_current(g));
        }
    }
}
