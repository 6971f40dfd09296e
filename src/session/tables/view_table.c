/* view_table.c - the storage of the installed view, and what follows from it.
 *
 * Invariant: what it holds of the present view moves with it.
 * SPDX-License-Identifier: MIT */
#include "session/tables/peers.h"
#include "session/tables/storage.h"
#include "session/tables/view_table.h"

static uint32_t tree_room(uint32_t members)
{
    return BOUNDS_TREES * (members < BOUNDS_TREE_MEMBERS ? members : BOUNDS_TREE_MEMBERS);
}

size_t view_table_bytes(uint32_t members)
{
    size_t words = bitset_words(members) * sizeof(uint64_t), numbers = 7 * (size_t)members + 1;
    return members * sizeof(uint64_t) + words + numbers * sizeof(uint32_t) + tree_room(members) * sizeof(uint16_t);
}

void view_table_use(struct session *s, void *storage, uint32_t members)
{
    unsigned char *at = storage;
    struct view *v = &s->view;
    v->ids = storage_moved(&at, sizeof *v->ids, members, v->ids, v->world);
    v->apart = storage_moved(&at, sizeof *v->apart, bitset_words(members), v->apart, bitset_words(v->world));
    v->peer = storage_moved(&at, sizeof *v->peer, members, v->peer, v->world);
    v->ring = storage_moved(&at, sizeof *v->ring, members, v->ring, v->world);
    v->places = storage_moved(&at, sizeof *v->places, members, v->places, v->world);
    v->weights = storage_moved(&at, sizeof *v->weights, members, v->weights, v->world);
    v->ranked = storage_moved(&at, sizeof *v->ranked, members, v->ranked, v->world);
    v->shown = storage_moved(&at, sizeof *v->shown, members, v->shown, v->world);
    v->relay_first = storage_moved(&at, sizeof *v->relay_first, members + 1, v->relay_first, v->world > 0 ? v->world + 1 : 0);
    v->trees.parent = storage_moved(&at, sizeof *v->trees.parent, tree_room(members), v->trees.parent, v->trees.count * v->trees.members);
    if (v->world == 0) {
        memset(v->relay_first, 0, (members + 1) * sizeof *v->relay_first);
    }
    v->room = members;
}

size_t view_edges_bytes(uint32_t edges)
{
    return edges * (sizeof(struct missing_edge) + 2 * sizeof(uint32_t));
}

void view_edges_use(struct session *s, void *storage, uint32_t edges)
{
    unsigned char *at = storage;
    struct view *v = &s->view;
    v->edge = storage_moved(&at, sizeof *v->edge, edges, v->edge, v->edges);
    v->relay_to = storage_moved(&at, sizeof *v->relay_to, 2 * edges, v->relay_to, 2 * v->edges);
    v->edge_room = edges;
}

void view_clear(struct session *s)
{
    struct view *v = &s->view;
    v->view = 0;
    v->world = v->edges = 0;
    v->frozen = false;
    v->lost_in = v->lost_id = 0;
}

void view_init(struct session *s)
{
    s->view.stall_ns = s->cfg.stall_ns;
    s->view.heartbeat_ns = s->cfg.heartbeat_ns;
}

/* What others have been silent for until then counts by the one before. */
void view_stall(struct session *s, uint32_t stall_ms)
{
    int64_t before = s->view.stall_ns, of_view = (int64_t)stall_ms * 1000000;
    s->view.stall_ns = of_view > 0 && of_view < s->cfg.stall_ns ? of_view : s->cfg.stall_ns;
    s->view.heartbeat_ns = stall_heartbeat_ns(s->view.stall_ns, s->cfg.heartbeat_ns);
    if (s->view.stall_ns < before) {
        for (uint32_t i = 0; i < s->peers.count; i++) {
            struct peer *p = &s->peers.at[i];
            p->heard = p->heard > s->clock.now - s->view.stall_ns / 5 ? p->heard : s->clock.now;
        }
    }
}

/* ---- relays ---- */

/* The ends of a missing edge that this peer stands in for. */
static bool relayed(const struct session *s, uint32_t edge, uint32_t *a, uint32_t *b)
{
    const struct missing_edge *e = &s->view.edge[edge];
    *a = e->relay == s->id ? view_rank(s, e->a) : NONE;
    *b = e->relay == s->id ? view_rank(s, e->b) : NONE;
    return *a != NONE && *b != NONE && *a != s->view.rank && *b != s->view.rank;
}

void view_relays(struct session *s)
{
    struct view *v = &s->view;
    uint32_t a, b;
    memset(v->relay_first, 0, (v->world + 1) * sizeof *v->relay_first);
    bitset_clear(v->apart, v->world);
    for (uint32_t r = 0; r < v->world; r++) {
        if (view_relay(s, s->id, v->ids[r]) != 0) {
            bitset_add(v->apart, r);
        }
    }
    for (uint32_t i = 0; i < v->edges; i++) {
        if (relayed(s, i, &a, &b)) {
            v->relay_first[a]++;
            v->relay_first[b]++;
        }
    }
    for (uint32_t r = 0; r < v->world; r++) { /* now where each ends; filled from there, it is where each begins */
        v->relay_first[r + 1] += v->relay_first[r];
    }
    for (uint32_t i = v->edges; i-- > 0;) {
        if (relayed(s, i, &a, &b)) {
            v->relay_to[--v->relay_first[a]] = b;
            v->relay_to[--v->relay_first[b]] = a;
        }
    }
}
