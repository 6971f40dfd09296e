/* edge_guess.c - edges between two sites, of which one was measured.
 *
 * Its one idea: where many hosts are at two sites there is one way between these.  To measure it once for each pair of hosts takes minutes, and
 * without all pairs there are no trees.  A host with a slower link than those that were measured is seen by its edges within its site; what its
 * link carries in all is seen when all edges are measured at once.
 * Invariant: an edge that was measured is never replaced.
 * SPDX-License-Identifier: MIT */
#include "world/measuring.h"

bool edge_guess_counts(const struct bandwidth_entry *e)
{
    return e != NULL && !e->assumed && e->rate_bps > 0;
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

/* The most that was measured of a member's edges: no other edge is assumed to carry more.  0: none was. */
struct link_most {
    uint64_t out, in;
};

static void raise(uint64_t *most, const struct bandwidth_entry *e)
{
    if (edge_guess_counts(e) && e->rate_bps > *most) {
        *most = e->rate_bps;
    }
}

/* By rank. */
static void look_at_links(const struct world *w, const struct view_record *v, struct link_most most[MEASURE_MEMBERS])
{
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *from = member_find(w, v->ids[i]);
        for (uint32_t k = 0; k < v->members && from != NULL; k++) {
            const struct member *to = member_find(w, v->ids[k]);
            const struct bandwidth_entry *e = to != NULL ? bandwidth_find(&w->bandwidth, from->rates_key, to->rates_key) : NULL;
            raise(&most[i].out, e);
            raise(&most[k].in, e);
        }
    }
}

static struct bandwidth_entry bounded(const struct bandwidth_entry *like, uint64_t out, uint64_t in)
{
    struct bandwidth_entry e = *like;
    e.rate_bps = out > 0 && out < e.rate_bps ? out : e.rate_bps;
    e.rate_bps = in > 0 && in < e.rate_bps ? in : e.rate_bps;
    return e;
}

static void assume(struct world *w, struct member *from, struct member *to, const struct bandwidth_entry *like_there,
                   const struct bandwidth_entry *like_back)
{
    const struct bandwidth_entry *there = bandwidth_find(&w->bandwidth, from->rates_key, to->rates_key);
    const struct bandwidth_entry *back = bandwidth_find(&w->bandwidth, to->rates_key, from->rates_key);
    if (back != NULL && is_worse(back, like_back)) {
        (void)bandwidth_assume(&w->bandwidth, to->rates_key, from->rates_key, like_back); /* it is there: the table has room */
    }
    bool wanted = there != NULL ? is_worse(there, like_there) : back == NULL;
    if (wanted && bandwidth_assume(&w->bandwidth, from->rates_key, to->rates_key, like_there)) {
        from->rated = to->rated = true; /* else the table is full: it stays unknown */
    }
}

/* The edges between two sites. */
static void guess_between(struct world *w, const struct view_record *v, const struct link_most *most, const struct member *one,
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
                struct bandwidth_entry there = bounded(&like, most[i].out, most[k].in), back = bounded(&like, most[k].out, most[i].in);
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
    struct link_most most[MEASURE_MEMBERS] = {{0}};
    look_at_links(w, v, most);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *one = member_find(w, v->ids[i]);
        for (uint32_t k = 0; k < i && is_first(w, one); k++) {
            const struct member *other = member_find(w, v->ids[k]);
            if (is_first(w, other)) {
                guess_between(w, v, most, one, other);
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
