/* oracle_links.c - pairs without a link, who forwards between them, and whether who is excluded may be.
 *
 * One idea: an exclusion costs a program its place, so each must have a cause that the simulator made.
 * Invariant: each VIEW and each FENCE is looked at once, when it reaches its peer.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

/* Nothing has kept this process from anybody for long enough to link up again.  A process without memory for what it hears breaks its links. */
static bool is_undisturbed(const struct cluster *cl, const struct node *n)
{
    bool still = cl->now - cl->still_at > 40 * CLOCK_S && cl->now - n->cut_at > 40 * CLOCK_S;
    for (uint32_t i = 0; still && i < cl->node_count; i++) {
        const struct node *other = &cl->nodes[i];
        still = !other->alive || (!other->no_data && !other->starved && !cl->cut[n->index][i] && !cl->cut[i][n->index]);
    }
    return still;
}

static void oracle_fence(struct cluster *cl, const struct node *n, struct reader *r)
{
    struct msg_fence m;
    if (!get_fence(r, &m)) {
        cluster_fail(cl, "the master sent a FENCE that cannot be read");
        return;
    }
    cluster_trace(cl, n->index, m.text, m.cause, m.view);
    if (m.cause == CAUSE_KICK_PROTOCOL && !lie_is_liar(n)) {
        cluster_fail(cl, "peer %u keeps the protocol, yet it is excluded: %s", n->index, m.text);
    }
    if (m.cause == CAUSE_KICK_UNREACHABLE && is_undisturbed(cl, n)) {
        cluster_fail(cl, "R15: peer %u reaches everybody, yet it is excluded: %s", n->index, m.text);
    }
}

/* Both ends of a missing edge are linked with its relay; edges are ascending. */
static void oracle_edges(struct cluster *cl, struct node *n, const struct msg_view *m, struct reader *r)
{
    static struct missing_edge list[CLUSTER_NODES * CLUSTER_NODES / 2];
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->removed; i++) {
        (void)get_u64(r);
    }
    struct member_info info;
    for (uint32_t i = 0; i < m->added; i++) {
        (void)get_member_info(r, &info);
    }
    for (uint32_t i = 0; i < m->members + m->weights; i++) {
        (void)get_u32(r);
    }
    for (uint32_t i = 0; i < m->trees; i++) {
        uint16_t parent[BOUNDS_TREE_MEMBERS];
        uint32_t share;
        (void)get_view_tree(r, &share, parent, m->members);
    }
    for (uint32_t i = 0; i < m->edges && i < CLUSTER_NODES * CLUSTER_NODES / 2; i++) {
        (void)get_missing_edge(r, &list[count++]);
    }
    n->edges = count;
    n->relay = count > 0 ? list[0].relay : 0;
    if (count > cl->opt.max_edges) {
        cluster_fail(cl, "view %llx misses %u edges, %u are allowed", (unsigned long long)m->view, count, cl->opt.max_edges);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count && count < 64; k++) {
            const struct missing_edge *e = &list[i], *x = &list[k];
            bool a = x->a == e->relay && (x->b == e->a || x->b == e->b);
            bool b = x->b == e->relay && (x->a == e->a || x->a == e->b);
            if (a || b || e->relay == 0) {
                cluster_fail(cl, "R15: the relay of a pair in view %llx has no link with it", (unsigned long long)m->view);
            }
        }
    }
}

void oracle_links(struct cluster *cl, struct node *n, const struct frame_header *h, const void *payload)
{
    struct reader r;
    struct msg_view m;
    reader_init(&r, payload, h->length);
    if (h->type == FRAME_FENCE) {
        oracle_fence(cl, n, &r);
    } else if (h->type == FRAME_VIEW && get_view(&r, &m)) {
        oracle_edges(cl, n, &m, &r);
    }
}
