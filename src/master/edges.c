/* edges.c - pairs of a view without a link: which they are, and who forwards between them.
 *
 * A pair is missing because it could not be linked, or because its link broke again and again.
 * Invariant: the edges of a view are sorted, a < b, and both ends are members once the view is decided.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "master/master_state.h"

/* Where the pair is, or would go. */
static uint32_t edge_place(const struct view_record *v, uint64_t a, uint64_t b)
{
    uint32_t low = 0, high = v->edges;
    while (low < high) {
        uint32_t at = low + (high - low) / 2;
        const struct missing_edge *e = &v->edge[at];
        if (e->a < a || (e->a == a && e->b < b)) {
            low = at + 1;
        } else {
            high = at;
        }
    }
    return low;
}

bool edges_missing(const struct view_record *v, uint64_t x, uint64_t y)
{
    uint64_t a = x < y ? x : y, b = x < y ? y : x;
    uint32_t at = edge_place(v, a, b);
    return at < v->edges && v->edge[at].a == a && v->edge[at].b == b;
}

bool edges_note(struct view_record *v, uint64_t x, uint64_t y, uint32_t capacity)
{
    uint64_t a = x < y ? x : y, b = x < y ? y : x;
    if (edges_missing(v, a, b)) {
        return true;
    }
    if (v->edges >= capacity) {
        return false;
    }
    uint32_t at = edge_place(v, a, b);
    memmove(&v->edge[at + 1], &v->edge[at], (v->edges - at) * sizeof *v->edge);
    v->edge[at] = (struct missing_edge){.a = a, .b = b};
    v->edges++;
    return true;
}

/* A member that is linked with both; 0 if there is none. */
static uint64_t relay_of(const struct view_record *v, uint64_t a, uint64_t b)
{
    for (uint32_t k = 0; k < v->members; k++) {
        uint64_t x = v->ids[k];
        if (x != a && x != b && !edges_missing(v, a, x) && !edges_missing(v, x, b)) {
            return x;
        }
    }
    return 0;
}

/* The counter of the edge; a new one takes the place of the oldest if there is no room. */
static struct edge_break *break_of(struct master *m, struct group *g, uint64_t x, uint64_t y)
{
    uint64_t a = x < y ? x : y, b = x < y ? y : x;
    struct edge_break *oldest = NULL;
    for (uint32_t i = 0; i < g->break_count; i++) {
        struct edge_break *k = &g->breaks[i];
        if (k->a == a && k->b == b) {
            return k;
        }
        oldest = oldest == NULL || k->since < oldest->since ? k : oldest;
    }
    struct edge_break *k = g->break_count < m->config.max_members ? &g->breaks[g->break_count++] : oldest;
    *k = (struct edge_break){.a = a, .b = b, .since = m->now};
    return k;
}

bool edges_broken(struct master *m, struct group *g, uint64_t x, uint64_t y, bool unreachable)
{
    struct edge_break *k = break_of(m, g, x, y);
    uint64_t view = view_current(g)->view;
    if (k->count > 0 && k->view == view && k->attempt == m->admit.attempt) {
        return k->count >= MASTER_BREAKS;
    }
    if (m->now - k->since > MASTER_BREAK_NS) {
        k->count = 0;
        k->since = m->now;
    }
    k->view = view;
    k->attempt = m->admit.attempt;
    bool enough = unreachable && k->count < MASTER_BREAKS && relay_of(view_current(g), k->a, k->b) != 0;
    k->count = enough ? MASTER_BREAKS : k->count + 1;
    return k->count >= MASTER_BREAKS;
}

void edges_give_up(struct master *m, struct group *g, uint64_t x, uint64_t y)
{
    struct edge_break *k = break_of(m, g, x, y);
    k->count = MASTER_BREAKS_ALONE;
    k->since = m->now;
}

/* An edge that nobody can stand in for costs a member its place: it gets more patience. */
void edges_add_broken(struct master *m, struct group *g, struct view_record *to)
{
    for (uint32_t i = 0; i < g->break_count; i++) {
        const struct edge_break *k = &g->breaks[i];
        uint32_t bound = relay_of(to, k->a, k->b) != 0 ? MASTER_BREAKS : MASTER_BREAKS_ALONE;
        bool bad = k->count >= bound && m->now - k->since <= MASTER_BREAK_NS; /* later an admission may try again */
        if (bad && view_has(to, k->a) && view_has(to, k->b)) {
            (void)edges_note(to, k->a, k->b, m->edge_capacity); /* no room: it stays in use, that is no harm */
        }
    }
}

void edges_inherit(struct master *m, struct group *g, const struct view_record *from, struct view_record *to)
{
    uint32_t capacity = m->edge_capacity;
    for (uint32_t i = 0; i < from->edges; i++) {
        const struct missing_edge *e = &from->edge[i];
        if (view_has(to, e->a) && view_has(to, e->b)) {
            (void)edges_note(to, e->a, e->b, capacity); /* fits: it did before */
        }
    }
    edges_add_broken(m, g, to);
}

/* Whether the member is linked with all others: only such a one may own a shard of `direct`. */
bool edges_full(const struct view_record *v, uint64_t id)
{
    for (uint32_t i = 0; i < v->edges; i++) {
        if (v->edge[i].a == id || v->edge[i].b == id) {
            return false;
        }
    }
    return true;
}

uint64_t edges_relay(struct view_record *v)
{
    for (uint32_t i = 0; i < v->edges; i++) {
        struct missing_edge *e = &v->edge[i];
        e->relay = relay_of(v, e->a, e->b);
        if (e->relay == 0) {
            return e->b; /* the newer of the two */
        }
    }
    bool full = v->edges == 0;
    for (uint32_t k = 0; k < v->members; k++) {
        full = full || edges_full(v, v->ids[k]);
    }
    return full ? 0 : v->edge[v->edges - 1].b; /* nobody left to reduce at */
}
