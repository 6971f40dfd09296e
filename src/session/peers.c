/* peers.c - whom this session knows: the peers it is or wants to be linked with, the members of its view, who stands in
 * for a missing edge.
 *
 * Its one idea: a member is found by its id through the view, in which ids ascend, and only whom no view names by a search.
 * Invariant: an entry is in use as long as the view or an open proposal wants the peer.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

uint32_t peer_find(const struct session *s, uint64_t id)
{
    uint32_t rank = view_rank(s, id);
    if (rank != NONE && s->view.peer[rank] != NONE) {
        return s->view.peer[rank];
    }
    for (uint32_t i = 0; id != 0 && i < s->peer_count; i++) {
        if (s->peers[i].id == id) {
            return i;
        }
    }
    return NONE;
}

uint32_t peer_get(struct session *s, uint64_t id)
{
    uint32_t i = peer_find(s, id);
    for (uint32_t k = 0; i == NONE && k < s->peer_count; k++) {
        if (s->peers[k].id == 0) {
            i = k;
            s->peers[i] = (struct peer){.id = id, .rank = NONE, .replay = NONE};
        }
    }
    return i;
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
    if (origin != s->peers[from].id) {
        return;
    }
    for (uint32_t i = 0; i < s->view.edges; i++) {
        const struct missing_edge *e = &s->view.edge[i];
        uint64_t to = e->a == origin ? e->b : e->b == origin ? e->a : 0;
        uint32_t rank = to == 0 || e->relay != s->id ? NONE : view_rank(s, to);
        if (rank != NONE && peer_reachable(s, rank)) {
            put_bytes(outbox_frame(out, h->type, s->run, h->view), payload, h->length);
            outbox_send(out, ACT_PEERS, to);
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
}
