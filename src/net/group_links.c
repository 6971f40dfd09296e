/* group_links.c - see group_links.h.
 * SPDX-License-Identifier: MIT */
#include "net/group_links.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/bitset.h"
#include "net/ask.h"

static pccl_status unreadable(struct err *err)
{
    return err_set(err, PCCL_ERR_PROTOCOL, "the master sent an answer that cannot be read");
}

static pccl_status no_memory(struct err *err)
{
    return err_set(err, PCCL_ERR_NOMEM, "no memory for the links of the group");
}

void group_links_fini(struct group_links *l)
{
    free(l->list);
    free(l->edges);
    *l = (struct group_links){0};
}

/* ---- a page -------------------------------------------------------------------------------------------------------- */

static pccl_status add_members(struct group_links *l, struct reader *r, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct topology_member *m = &l->list[l->listed];
        if (l->listed == l->members || !get_topology_member(r, m) || m->ring >= l->members || (l->listed > 0 && m->id <= m[-1].id)) {
            return unreadable(err);
        }
        l->listed++;
    }
    return PCCL_OK;
}

static uint64_t edge_order(const struct topology_edge *e)
{
    return (uint64_t)e->from << 16 | e->to;
}

static pccl_status add_edges(struct group_links *l, struct reader *r, uint32_t count, struct err *err)
{
    if (count > l->edge_room - l->edge_count) {
        uint32_t room = 2 * l->edge_room + count;
        struct topology_edge *edges = realloc(l->edges, room * sizeof *edges);
        if (edges == NULL) {
            return no_memory(err);
        }
        l->edges = edges;
        l->edge_room = room;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct topology_edge *e = &l->edges[l->edge_count];
        if (!get_topology_edge(r, e) || e->from >= l->members || e->to >= l->members ||
            (l->edge_count > 0 && edge_order(e) <= edge_order(e - 1))) {
            return unreadable(err);
        }
        l->edge_count++;
    }
    return reader_done(r) ? PCCL_OK : unreadable(err);
}

static pccl_status not_found(const struct group_asked *asked, uint8_t state, struct err *err)
{
    if (state == TOPOLOGY_NO_GROUP) {
        return err_set(err, PCCL_ERR_INVALID, "group %u has no members in that world: choose another group, or wait for them", asked->group);
    }
    if (asked->run != 0) {
        return err_set(err, PCCL_ERR_INVALID, "the master does not know run %016" PRIx64 ": the world has ended", asked->run);
    }
    return err_set(err, PCCL_ERR_INVALID, "the master has no world '%s' with members: `ccoip_master --status` lists its worlds", asked->world);
}

static bool ring_whole(const struct group_links *l)
{
    uint64_t seen[(BOUNDS_MEMBERS + 63) / 64] = {0};
    bool whole = l->listed == l->members;
    for (uint32_t i = 0; whole && i < l->listed; i++) {
        whole = !bitset_has(seen, l->list[i].ring);
        bitset_add(seen, l->list[i].ring);
    }
    return whole;
}

static int by_key(const void *a, const void *b)
{
    const struct topology_member *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->id > y->id) - (x->id < y->id);
}

static int by_pair(const void *a, const void *b)
{
    uint64_t x = edge_order(a), y = edge_order(b);
    return (x > y) - (x < y);
}

/* Places by id become ranks, in the ring and in the edges, too. */
static pccl_status rank_members(struct group_links *l, struct err *err)
{
    uint32_t n = l->members, *ring = malloc(2 * n * sizeof *ring), *rank = ring + n;
    if (ring == NULL) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        ring[i] = l->list[i].ring;
        l->list[i].ring = i; /* its place, until all have their ranks */
    }
    qsort(l->list, n, sizeof *l->list, by_key);
    for (uint32_t i = 0; i < n; i++) {
        rank[l->list[i].ring] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        l->list[i].ring = rank[ring[i]];
    }
    for (uint32_t i = 0; i < l->edge_count; i++) {
        l->edges[i].from = (uint16_t)rank[l->edges[i].from];
        l->edges[i].to = (uint16_t)rank[l->edges[i].to];
    }
    if (l->edge_count > 0) {
        qsort(l->edges, l->edge_count, sizeof *l->edges, by_pair);
    }
    free(ring);
    return PCCL_OK;
}

pccl_status group_links_add(struct group_links *l, struct reader *page, const struct group_asked *asked, uint32_t from, uint32_t *next_out,
                            struct err *err)
{
    struct msg_topology_page m;
    if (!get_topology_page(page, &m)) {
        return unreadable(err);
    }
    if (m.state == TOPOLOGY_CHANGED) {
        group_links_fini(l);
        return PCCL_ERR_AGAIN;
    }
    if (m.state != TOPOLOGY_FOUND) {
        return not_found(asked, m.state, err);
    }
    if (l->members == 0) {
        l->list = calloc(m.members, sizeof *l->list);
        if (l->list == NULL) {
            return no_memory(err);
        }
        l->members = m.members;
        l->view = m.view;
        memcpy(l->took, m.took, sizeof l->took);
    }
    if (m.view != l->view || m.members != l->members || (m.next != 0 && m.next <= from)) {
        return unreadable(err);
    }
    pccl_status st = add_members(l, page, m.listed, err);
    st = st == PCCL_OK ? add_edges(l, page, m.edges, err) : st;
    if (st == PCCL_OK && m.next == 0) {
        st = ring_whole(l) ? rank_members(l, err) : unreadable(err);
    }
    *next_out = m.next;
    return st;
}

/* ---- all pages ----------------------------------------------------------------------------------------------------- */

pccl_status group_links_ask(struct group_links *l, const struct net_address *master, int64_t deadline, const struct group_asked *asked,
                            struct err *err)
{
    uint32_t from = 0;
    pccl_status st;
    *l = (struct group_links){0};
    do {
        struct msg_topology m = {.run = asked->run, .group = asked->group, .view = l->view, .from = from};
        unsigned char question[128];
        struct writer w;
        struct reader page;
        struct conn *c = conn_new();
        if (c == NULL) {
            st = no_memory(err);
            break;
        }
        strncpy(m.world, asked->world, sizeof m.world - 1);
        writer_init(&w, question, sizeof question);
        put_topology(&w, &m);
        st = ask_master(&(struct ask){.master = master, .deadline = deadline, .question = FRAME_TOPOLOGY, .answer = FRAME_TOPOLOGY_PAGE,
                                      .payload = question, .size = (uint32_t)w.used}, c, &page, err);
        uint32_t next = 0;
        st = st == PCCL_OK ? group_links_add(l, &page, asked, from, &next, err) : st;
        conn_unref(c);
        from = next;
    } while (st == PCCL_ERR_AGAIN || (st == PCCL_OK && from != 0));
    if (st != PCCL_OK) {
        group_links_fini(l);
    }
    return st;
}

/* ---- looking ------------------------------------------------------------------------------------------------------- */

const struct topology_edge *group_links_find(const struct group_links *l, uint32_t from, uint32_t to)
{
    uint64_t wanted = (uint64_t)from << 16 | to;
    uint32_t low = 0, high = l->edge_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (edge_order(&l->edges[middle]) < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < l->edge_count && edge_order(&l->edges[low]) == wanted ? &l->edges[low] : NULL;
}

uint32_t group_links_slowest(const struct group_links *l)
{
    const struct topology_edge *slowest = NULL;
    for (uint32_t i = 0; l->members > 1 && i < l->members; i++) {
        const struct topology_edge *e = group_links_find(l, l->list[i].ring, l->list[(i + 1) % l->members].ring);
        if (e == NULL) {
            return UINT32_MAX;
        }
        slowest = slowest == NULL || e->rate_bps < slowest->rate_bps ? e : slowest;
    }
    return slowest == NULL ? UINT32_MAX : (uint32_t)(slowest - l->edges);
}
