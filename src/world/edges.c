/* edges.c - pairs of a view without a link: which they are, who forwards between them, and when they end.
 *
 * A pair is missing because it could not be linked, or because its link broke again and again.  It is missing in the views that
 * follow until both ends have said that they are linked again.
 * Invariant: the edges of a view are sorted, a < b, and both ends are members once the view is decided.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "wire/address.h"
#include "world/world_state.h"
#include "world/breaks.h"
#include "world/edges.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"

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

static bool edges_note(struct view_record *v, uint64_t x, uint64_t y, uint32_t capacity)
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
    memmove(&v->linked[at + 1], &v->linked[at], (v->edges - at) * sizeof *v->linked);
    v->edge[at] = (struct missing_edge){.a = a, .b = b};
    v->linked[at] = 0;
    v->edges++;
    return true;
}

/* The mark of `from` at its missing edge with `to`; null if that is none of the view. */
static uint8_t *mark_in(struct view_record *v, uint64_t from, uint64_t to, uint8_t *bit)
{
    *bit = from < to ? 1 : 2;
    return edges_missing(v, from, to) ? &v->linked[edge_place(v, from < to ? from : to, from < to ? to : from)] : NULL;
}

bool edges_misses(struct view_record *v, uint64_t from, uint64_t to, uint32_t capacity)
{
    if (!edges_note(v, from, to, capacity)) {
        return false;
    }
    uint8_t bit, *mark = mark_in(v, from, to, &bit);
    *mark |= bit;
    return true;
}

static bool one_sided(const struct view_record *v)
{
    for (uint32_t i = 0; i < v->edges; i++) {
        if (v->linked[i] == 1 || v->linked[i] == 2) {
            return true;
        }
    }
    return false;
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

/* Whether the member is linked with all others: only such a one may own a shard of `direct`. */
static bool edges_full(const struct view_record *v, uint64_t id)
{
    for (uint32_t i = 0; i < v->edges; i++) {
        if (v->edge[i].a == id || v->edge[i].b == id) {
            return false;
        }
    }
    return true;
}

/* Names a relay for each missing edge; the id of a member that cannot be relayed, 0 if all is well. */
static uint64_t name_relays(struct view_record *v)
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

static bool recent(const struct world *w, int64_t at)
{
    return w->common->now - at <= WORLD_BREAK_NS;
}

/* It broke too often to be relied on, or was given up in the view that ends.  An edge that nobody can stand in for costs a
 * member its place: there only breaks count, and there it gets more patience. */
static bool is_bad(const struct world *w, struct group *g, const struct edge_break *k, bool relayed)
{
    if (!relayed) {
        return k->count >= WORLD_BREAKS_ALONE && recent(w, k->since);
    }
    bool gave = k->gave_view != 0 && (k->gave_view == view_current(g)->view || (k->again && recent(w, k->gave_at)));
    return gave || (k->count >= WORLD_BREAKS && recent(w, k->since));
}

bool edges_broken(struct world *w, struct group *g, const struct edge_report *e)
{
    struct edge_break *k = breaks_get(w, g, e->from, e->to);
    uint64_t view = g->broken_view = view_current(g)->view;
    bool relayed = relay_of(view_current(g), k->a, k->b) != 0;
    if (e->counts && (k->count == 0 || k->view != view || k->attempt != w->admit.attempt)) {
        if (!recent(w, k->since)) {
            k->count = 0;
            breaks_since(g, k, w->common->now);
        }
        k->view = view;
        k->attempt = w->admit.attempt;
        k->count++;
    }
    if (e->unreachable && relayed) {
        edges_give_up(w, g, e->from, e->to);
    }
    return is_bad(w, g, k, true);
}

void edges_pardon(const struct world *w, struct group *g, uint64_t id)
{
    uint64_t view = view_current(g)->view;
    for (uint32_t i = 0; i < g->break_count; i++) {
        struct edge_break *k = &g->breaks[i];
        if ((k->a == id || k->b == id) && k->view == view && k->attempt == w->admit.attempt && k->count > 0) {
            k->count--;
            k->view = 0;
        }
    }
}

void edges_give_up(struct world *w, struct group *g, uint64_t x, uint64_t y)
{
    struct edge_break *k = breaks_get(w, g, x, y);
    uint64_t view = g->broken_view = view_current(g)->view;
    if (k->gave_view != view) { /* what comes back at once and breaks again is waited for */
        k->again = k->gave_view != 0 && recent(w, k->gave_at);
        k->gave_view = view;
        k->gave_at = w->common->now;
    }
}

/* ---- links that are made again --------------------------------------------------------------------------------------- */

enum { LINKED_BOTH = 3, EDGE_SOFT = 4 }; /* SOFT: in a view being made: may be left out again */

static bool is_healed(const struct world *w, const struct group *g, const struct view_record *v, uint32_t edge)
{
    const struct missing_edge *e = &v->edge[edge];
    const struct edge_break *k = breaks_find(w, g, e->a, e->b);
    bool waits = k != NULL && ((k->count >= WORLD_BREAKS && recent(w, k->since)) || (k->again && recent(w, k->gave_at)));
    return v->linked[edge] == LINKED_BOTH && !waits;
}

bool edges_healed(const struct world *w, const struct group *g)
{
    const struct view_record *v = &g->views[g->current];
    for (uint32_t i = 0; i < v->edges; i++) {
        if (is_healed(w, g, v, i)) {
            return true;
        }
    }
    return false;
}

void edges_linked(struct world *w, struct member *mb, const struct msg_linked *l, uint64_t view, struct reader *r)
{
    struct group *g = member_group(w, mb);
    bool counts = mb->phase == MEMBER_ACCEPTED && view == view_current(g)->view;
    for (uint32_t i = 0; i < l->failed; i++) {
        uint8_t bit, *mark = mark_in(view_current(g), mb->id, get_u64(r), &bit);
        if (counts && mark != NULL) {
            *mark |= bit;
            w->changed = true;
        }
    }
    if (!reader_done(r)) {
        member_violation(w, mb, "a linked that cannot be read");
    }
}

void edges_unlinked(struct group *g, uint64_t from, uint64_t to)
{
    uint8_t bit, *mark = mark_in(view_current(g), from, to, &bit);
    if (mark != NULL) {
        *mark &= (uint8_t)~bit;
    }
}

void edges_unlinked_all(struct group *g, uint64_t from)
{
    const struct view_record *v = view_current(g);
    for (uint32_t i = 0; i < v->edges; i++) {
        if (v->edge[i].a == from || v->edge[i].b == from) {
            edges_unlinked(g, from, v->edge[i].a == from ? v->edge[i].b : v->edge[i].a);
        }
    }
}

/* ---- of the next view ------------------------------------------------------------------------------------------------ */

/* What breaks too often, though it may be linked for the moment. */
static void add_bad(struct world *w, struct group *g)
{
    struct view_record *to = view_next(g);
    for (uint32_t i = 0; i < g->break_count; i++) {
        const struct edge_break *k = &g->breaks[i];
        if (!view_has(to, k->a) || !view_has(to, k->b) || edges_missing(to, k->a, k->b)) {
            continue;
        }
        bool relayed = relay_of(to, k->a, k->b) != 0;
        if (is_bad(w, g, k, relayed) && edges_note(to, k->a, k->b, w->common->edge_limit)) { /* no room: it stays in use, no harm */
            to->linked[edge_place(to, k->a, k->b)] = relayed ? EDGE_SOFT : 0;
        }
    }
}

static void drop_soft(struct view_record *v, bool edges_too)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->edges; i++) {
        if (v->linked[i] != EDGE_SOFT || !edges_too) {
            v->edge[kept] = v->edge[i];
            v->linked[kept++] = 0;
        }
    }
    v->edges = kept;
}

void edges_inherit(struct world *w, struct group *g)
{
    const struct view_record *from = view_current(g);
    struct view_record *to = view_next(g);
    for (uint32_t i = 0; i < from->edges; i++) {
        const struct missing_edge *e = &from->edge[i];
        if (view_has(to, e->a) && view_has(to, e->b) && !is_healed(w, g, from, i)) {
            (void)edges_note(to, e->a, e->b, w->common->edge_limit); /* fits: it did before */
        }
    }
}

/* M10: a pair without a link gets a relay; who cannot even be relayed is returned. */
static uint64_t edges_close(struct world *w, struct group *g)
{
    struct view_record *v = view_next(g);
    add_bad(w, g);
    uint64_t alone = name_relays(v);
    drop_soft(v, alone != 0); /* a link that breaks now and then is better than none */
    return alone == 0 ? 0 : name_relays(v);
}

uint64_t edges_close_linked(struct world *w, struct group *g, bool *doubted, bool *again)
{
    bool doubtful = one_sided(view_next(g)) && !*doubted;
    uint64_t unlinked = edges_close(w, g);
    *again = unlinked != 0 && doubtful;
    *doubted |= *again;
    return unlinked;
}

/* "peer 1.2 (10.0.0.3:48150 or 192.168.1.7:48150)", with as many addresses as fit; one of them always does. */
static size_t unlinked_text(struct world *w, uint64_t id, char *out, size_t size)
{
    const struct member *mb = member_find(w, id);
    int used = snprintf(out, size, "peer " ID_FORMAT, ID_PARTS(id));
    for (uint32_t i = 0; mb != NULL && i < mb->info.addresses; i++) {
        char where[ADDRESS_TEXT];
        address_text(&mb->info.address[i], where);
        if ((size_t)used + strlen(where) + sizeof " or )" > size) {
            break;
        }
        used += snprintf(out + used, size - (size_t)used, "%s%s", i == 0 ? " (" : " or ", where);
    }
    if (mb != NULL && mb->info.addresses > 0) {
        used += snprintf(out + used, size - (size_t)used, ")");
    }
    return (size_t)used;
}

void edges_exclude(struct world *w, struct group *g, uint64_t id)
{
    enum { LIST = 88 }; /* what becomes of it, with the address of the master, fits BOUNDS_TEXT */
    const struct view_record *v = view_next(g);
    char list[LIST] = "", more[32] = "", one[LIST], text[BOUNDS_TEXT];
    size_t used = 0;
    uint32_t left = 0;
    for (uint32_t i = 0; i < v->edges; i++) {
        const struct missing_edge *e = &v->edge[i];
        if (e->a != id && e->b != id) {
            continue;
        }
        size_t length = unlinked_text(w, e->a == id ? e->b : e->a, one, sizeof one);
        if (used > 0 && used + length + sizeof ", " > sizeof list) { /* the first one is told in any case, as far as it fits */
            left++;
            continue;
        }
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", one);
    }
    if (left > 0) {
        snprintf(more, sizeof more, " and %u more", left);
    }
    snprintf(text, sizeof text, "no link with %s%s, and nobody to relay", list, more);
    member_exclude_told(w, member_find(w, id), CAUSE_KICK_UNREACHABLE, "no link and nobody to relay", text);
}

bool edges_unsure(struct world *w, struct group *g)
{
    const struct view_record *v = view_next(g);
    bool unsure = edges_close(w, g) != 0;
    for (uint32_t i = 0; i < g->break_count; i++) {
        const struct edge_break *k = &g->breaks[i];
        bool gave = k->gave_view == view_current(g)->view && view_has(v, k->a) && view_has(v, k->b);
        unsure = unsure || (gave && !edges_missing(v, k->a, k->b));
    }
    return unsure;
}
