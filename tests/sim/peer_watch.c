/* peer_watch.c - lanes look whether operations move, as the real ones do: several times in a stall time, all at once.
 *
 * Invariant: what connections have moved is forgotten only when every operation has been looked at.
 * SPDX-License-Identifier: MIT */
#include "peer_watch.h"

#include "core/bitset.h"

enum { WATCH_LOOKS = 4 };

void watch_start(struct cluster *cl, struct node *n)
{
    if (!n->watching) {
        n->watching = true;
        cluster_post(cl, cl->opt.stall_ns / WATCH_LOOKS, EVENT_PROGRESS, n->index, 0, 0, 0);
    }
}

/* Null: there is no connection. */
static const struct exec_edge *watch_edge(struct node *n, const struct run *r, uint32_t lane, uint32_t partner)
{
    struct link *l = line_find(n, r->ranks[r->partners[partner]]);
    return l != NULL && l->data_connection[lane].up ? &l->data_connection[lane].edge : NULL;
}

static void watch_tell(struct cluster *cl, struct node *n, uint32_t slot, uint32_t lane)
{
    struct run *r = &n->run[slot];
    struct exec *x = &r->exec[lane];
    bool tells = exec_watch_tells(&r->watch[lane], cl->opt.stall_ns);
    for (uint32_t i = 0; tells && i < x->plan->partner_count; i++) {
        const struct exec_edge *edge = watch_edge(n, r, lane, i);
        if (edge == NULL || !exec_edge_shows(edge, r->op.launch)) {
            exec_step(x, &(struct exec_event){.kind = EXEC_MOVED, .partner = i, .moved = r->watch[lane].moved}, &(struct exec_out){0});
            bitset_add(n->stepped, slot);
        }
    }
}

void watch_heard(struct cluster *cl, struct node *n, uint32_t slot, uint32_t lane, uint32_t partner, const struct msg_credit *m)
{
    struct run *r = &n->run[slot];
    if (m->moved_ms > 0) {
        struct exec_move move = {exec_move_at(m->moved_ms, cl->now), m->moved_far};
        struct exec_wait wait = exec_waits_for(&r->exec[lane]);
        exec_watch_heard(&r->watch[lane], &wait, r->op.plan.world, partner, &move);
        watch_tell(cl, n, slot, lane);
    }
}

void watch_again(struct cluster *cl, struct node *n, uint32_t slot, uint32_t lane)
{
    exec_watch_again(&n->run[slot].watch[lane], cl->now);
    watch_tell(cl, n, slot, lane);
}

static void watch_lane(struct cluster *cl, struct node *n, uint32_t slot, uint32_t lane)
{
    struct run *r = &n->run[slot];
    struct exec *x = &r->exec[lane];
    struct exec_wait wait = exec_waits_for(x);
    bool lane_moves = n->lane_bytes[lane] != r->watch[lane].lane_bytes, other = wait.partner != PLAN_NOBODY;
    struct exec_look look = {.now = cl->now, .stall_ns = cl->opt.stall_ns, .own_bytes = r->moved, .own = r->op.launch,
                             .lane_bytes = n->lane_bytes[lane]};
    if (other) {
        look.edge = watch_edge(n, r, lane, wait.partner);
        look.theirs = r->launch[wait.partner];
    }
    bool stalled = exec_watch_stalled(&r->watch[lane], &wait, &look);
    watch_tell(cl, n, slot, lane);
    if (x->starved && lane_moves) {
        exec_step(x, &(struct exec_event){.kind = EXEC_TELL, .moved = {cl->now, 0}}, &(struct exec_out){0});
        bitset_add(n->stepped, slot);
    }
    if (stalled && other && !x->done && !r->stopping) {
        cluster_trace(cl, n->index, "lanes stalled", slot, r->ranks[r->partners[wait.partner]]);
        node_step(cl, n, &(struct session_event){.kind = SESSION_STALLED, .slot = slot, .peer = r->ranks[r->partners[wait.partner]]});
    }
}

void watch_look(struct cluster *cl, struct node *n)
{
    bool any = false;
    for (uint32_t slot = 0; (slot = bitset_next(n->at_work, n->config.max_ops, slot)) < n->config.max_ops; slot++) {
        for (uint32_t lane = 0; bitset_has(n->at_work, slot) && lane < n->run[slot].op.lanes; lane++) {
            any = true;
            watch_lane(cl, n, slot, lane);
        }
    }
    for (uint32_t i = 0; i < n->link_count; i++) {
        for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
            exec_edge_clear(&n->links[i]->data_connection[lane].edge);
        }
    }
    n->watching = false;
    if (any) {
        watch_start(cl, n);
    }
    lanes_pump(cl, n);
}

void lanes_bytes(const struct run *r, struct session_event *idle)
{
    for (uint32_t lane = 0; lane < r->op.lanes; lane++) {
        idle->tx_bytes += r->exec[lane].tx_bytes;
        idle->rx_bytes += r->exec[lane].rx_bytes;
    }
}
