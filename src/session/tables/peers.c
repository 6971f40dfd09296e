/* peers.c - whom this session knows: the peers it is or wants to be linked with, the members of its view, who stands in
 * for a missing edge.
 *
 * Its one idea: a member is found by its id through the view, in which ids ascend, and whom no view names by a hash.
 * Invariant: an entry is in use as long as the view or an open proposal wants the peer.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/rows.h"
#include "session/tables/peers.h"

/* Where the peer's index + 1 is, or would go. */
static uint32_t row_of(const struct session *s, uint64_t id)
{
    uint32_t mask = peers_rows(s->peer_count) - 1, at = (uint32_t)mix64(s->cfg.seed, id) & mask;
    while (s->peer_row[at] != 0 && s->peers[s->peer_row[at] - 1].id != id) {
        at = (at + 1) & mask;
    }
    return at;
}

uint32_t peer_find(const struct session *s, uint64_t id)
{
    uint32_t rank = view_rank(s, id);
    if (rank != NONE && s->view.peer[rank] != NONE) {
        return s->view.peer[rank];
    }
    uint32_t at = id != 0 ? row_of(s, id) : NONE;
    return at == NONE || s->peer_row[at] == 0 ? NONE : s->peer_row[at] - 1;
}

uint32_t peer_get(struct session *s, uint64_t id)
{
    uint32_t i = peer_find(s, id);
    while (i == NONE && s->peer_next < s->peer_count && s->peers[s->peer_next].id != 0) {
        s->peer_next++;
    }
    if (i == NONE && s->peer_next < s->peer_count) {
        i = s->peer_next++;
        s->peers[i] = (struct peer){.id = id, .spoke = s->now, .rank = NONE, .replay = NONE};
        s->peer_row[row_of(s, id)] = i + 1;
    }
    return i;
}

uint32_t peers_rows(uint32_t count)
{
    return rows_for(4, 2 * count);
}

void peers_index(struct session *s)
{
    memset(s->peer_row, 0, peers_rows(s->peer_count) * sizeof *s->peer_row);
    s->peer_next = 0;
    for (uint32_t i = 0; i < s->peer_count; i++) {
        if (s->peers[i].id != 0) {
            s->peer_row[row_of(s, s->peers[i].id)] = i + 1;
        }
    }
}

uint32_t view_rank(const struct session *s, uint64_t id)
{
    uint32_t low = 0, high = s->view.world;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->view.ids[mid] < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < s->view.world && s->view.ids[low] == id ? low : NONE;
}

bool peer_reachable(const struct session *s, uint32_t rank)
{
    const struct peer *p = &s->peers[s->view.peer[rank]];
    return p->link_up && p->their_view == s->view.view && !p->spare;
}

bool edge_before(const struct missing_edge *e, uint64_t a, uint64_t b)
{
    return e->a < a || (e->a == a && e->b < b);
}

uint64_t view_relay(const struct session *s, uint64_t x, uint64_t y)
{
    uint64_t a = x < y ? x : y, b = x < y ? y : x;
    uint32_t low = 0, high = s->view.edges;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (edge_before(&s->view.edge[mid], a, b)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    const struct missing_edge *e = &s->view.edge[low];
    return low < s->view.edges && e->a == a && e->b == b ? e->relay : 0;
}

/* A member may speak for itself, its relay may speak for it. */
uint32_t origin_rank(const struct session *s, uint32_t from, uint64_t origin)
{
    uint32_t rank = view_rank(s, origin);
    if (rank == NONE || rank == s->view.rank) {
        return NONE;
    }
    uint64_t sender = s->peers[from].id;
    return sender == origin || view_relay(s, s->id, origin) == sender ? rank : NONE;
}

void peers_relay(struct session *s, uint32_t from, uint64_t origin, const struct frame_header *h, const void *payload,
                 struct outbox *out)
{
    uint32_t rank = s->peers[from].rank;
    if (origin != s->peers[from].id || rank == NONE) {
        return;
    }
    for (uint32_t i = s->view.relay_first[rank]; i < s->view.relay_first[rank + 1]; i++) {
        if (peer_reachable(s, s->view.relay_to[i])) {
            put_bytes(outbox_frame(out, h->type, s->run, h->view), payload, h->length);
            outbox_send(out, ACT_PEERS, s->view.ids[s->view.relay_to[i]]);
        }
    }
}

void peers_send(const struct session *s, uint32_t rank, struct outbox *out)
{
    uint64_t id = s->view.ids[rank], relay = view_relay(s, s->id, id);
    uint32_t via = relay == 0 ? rank : view_rank(s, relay);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    if (via != NONE && via != s->view.rank && peer_reachable(s, via)) {
        outbox_dest(out, a, s->view.ids[via]);
    }
}

void peers_send_all(const struct session *s, struct outbox *out)
{
    struct action *a = outbox_send_many(out, ACT_PEERS);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && peer_reachable(s, r)) {
            outbox_dest(out, a, s->view.ids[r]);
        }
    }
}

/* The ends of a missing edge that this peer stands in for. */
static bool relayed(const struct session *s, uint32_t edge, uint32_t *a, uint32_t *b)
{
    const struct missing_edge *e = &s->view.edge[edge];
    *a = e->relay == s->id ? view_rank(s, e->a) : NONE;
    *b = e->relay == s->id ? view_rank(s, e->b) : NONE;
    return *a != NONE && *b != NONE && *a != s->view.rank && *b != s->view.rank;
}

void peers_unheard(struct session *s, uint64_t id)
{
    uint64_t relay = view_relay(s, s->id, id);
    s->wish.bad = relay != 0 ? relay : id;
}

void peers_relays(struct session *s)
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

void peers_drop_unwanted(struct session *s)
{
    for (uint32_t i = 0; i < s->peer_count; i++) {
        struct peer *p = &s->peers[i];
        if (p->id != 0 && !p->in_view && !p->in_proposal) {
            memset(p, 0, sizeof *p);
        }
    }
    peers_index(s);
}
