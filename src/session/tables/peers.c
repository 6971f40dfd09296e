/* peers.c - whom this session knows: the peers it is or wants to be linked with, the members of its view, who stands in
 * for a missing edge.
 *
 * Its one idea: a member is found by its id through the view, in which ids ascend, and whom no view names by a hash.
 * Invariant: an entry is in use as long as the view or an open proposal wants the peer.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/rows.h"
#include "session/tables/peers.h"

static uint32_t rows(uint32_t count)
{
    return rows_for(4, 2 * count);
}

/* Where the peer's index + 1 is, or would go. */
static uint32_t row_of(const struct session *s, uint64_t id)
{
    uint32_t mask = rows(s->peers.count) - 1, at = (uint32_t)mix64(s->cfg.seed, id) & mask;
    while (s->peers.row[at] != 0 && s->peers.at[s->peers.row[at] - 1].id != id) {
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
    return at == NONE || s->peers.row[at] == 0 ? NONE : s->peers.row[at] - 1;
}

uint32_t peer_get(struct session *s, uint64_t id)
{
    uint32_t i = peer_find(s, id);
    while (i == NONE && s->peers.next < s->peers.count && s->peers.at[s->peers.next].id != 0) {
        s->peers.next++;
    }
    if (i == NONE && s->peers.next < s->peers.count) {
        i = s->peers.next++;
        s->peers.at[i] = (struct peer){.id = id, .spoke = s->clock.now, .rank = NONE, .replay = NONE};
        s->peers.row[row_of(s, id)] = i + 1;
    }
    return i;
}

size_t peer_table_bytes(uint32_t count)
{
    return count * sizeof(struct peer) + rows(count) * sizeof(uint32_t);
}

void peer_table_use(struct session *s, void *storage, uint32_t count)
{
    unsigned char *at = storage;
    s->peers.at = storage_moved(&at, sizeof *s->peers.at, count, s->peers.at, s->peers.count);
    memset(s->peers.at + s->peers.count, 0, (count - s->peers.count) * sizeof *s->peers.at);
    s->peers.count = count;
    s->peers.row = storage_moved(&at, sizeof *s->peers.row, rows(count), NULL, 0);
    peers_index(s);
}

void peers_index(struct session *s)
{
    memset(s->peers.row, 0, rows(s->peers.count) * sizeof *s->peers.row);
    s->peers.next = 0;
    for (uint32_t i = 0; i < s->peers.count; i++) {
        if (s->peers.at[i].id != 0) {
            s->peers.row[row_of(s, s->peers.at[i].id)] = i + 1;
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
    const struct peer *p = &s->peers.at[s->view.peer[rank]];
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
    uint64_t sender = s->peers.at[from].id;
    return sender == origin || view_relay(s, s->id, origin) == sender ? rank : NONE;
}

void peers_relay(struct session *s, uint32_t from, uint64_t origin, const struct frame_header *h, const void *payload,
                 struct outbox *out)
{
    uint32_t rank = s->peers.at[from].rank;
    if (origin != s->peers.at[from].id || rank == NONE) {
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

void peers_unheard(struct session *s, uint64_t id)
{
    uint64_t relay = view_relay(s, s->id, id);
    s->peers.bad = relay != 0 ? relay : id;
}

void peers_drop_unwanted(struct session *s)
{
    for (uint32_t i = 0; i < s->peers.count; i++) {
        struct peer *p = &s->peers.at[i];
        if (p->id != 0 && !p->in_view && !p->in_proposal) {
            memset(p, 0, sizeof *p);
        }
    }
    peers_index(s);
}

void peers_clear(struct session *s)
{
    memset(s->peers.at, 0, sizeof *s->peers.at * s->peers.count);
    peers_index(s);
}

void peers_replay(struct session *s, struct peer *p)
{
    p->replay = 0;
    s->peers.replaying = true;
}

void peers_replaying(struct session *s, bool goes_on)
{
    s->peers.replaying = goes_on;
}

void peers_bad(struct session *s, uint64_t id)
{
    s->peers.bad = id;
}

uint64_t peers_take_bad(struct session *s)
{
    uint64_t id = s->peers.bad;
    s->peers.bad = 0;
    return id;
}
