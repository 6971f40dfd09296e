/* oracle_calm.c - where nothing goes wrong nothing is aborted, however slow the links.
 *
 * One idea: a world without faults has no cause for an abort but a wrong verdict on who stands still, whatever happens to its members in
 * other worlds (W1).
 * Invariant: asked of each call that has ended.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "reset_fault.h"

/* A limit of the library: a value that goes round a ring, or down a chain, gives nobody else anything to do.  Each member hands a frame
 * on when it has all of it, in as many pieces as the connection has too little room for; lanes share the line.  And a grant waits behind
 * what is in the socket before it, which may be of later operations. */
static bool may_look_still(const struct options *o)
{
    int64_t hop = o->latency_ns * (o->places ? 1 + PLACES_APART : 1) + o->jitter_ns;
    int64_t pieces = 1 + (o->frame_bytes + FRAME_HEADER_BYTES + P2P_DATA_PREFIX) / o->socket_bytes;
    int64_t frame = pieces * hop + slow_ns(o->rate, o->frame_bytes) * o->lanes;
    return frame * o->peers * 2 + slow_ns(o->rate, o->socket_bytes) * o->lanes >= node_stall_least(o);
}

/* A limit of the library: where members are not told of all launches, an algorithm that hides whose program is late is taken only by a
 * program that allows no other.  Whoever waits for a late one may then be blamed. */
static bool hides_late(const struct node *n)
{
    struct session_info info;
    session_info(n->session, &info);
    bool hides = false;
    for (uint32_t k = 0; info.world > n->config.mesh_members && k < PLAN_KINDS; k++) {
        bool one = false, others = false;
        for (uint32_t a = PLAN_TINY + 1; a < PLAN_ALGORITHMS; a++) {
            bool late = plan_hides_late((enum plan_kind)k, (enum plan_algorithm)a), allowed = n->config.wishes.allowed[k] >> a & 1;
            one = one || (allowed && late);
            others = others || (allowed && !late);
        }
        hides = hides || (one && !others);
    }
    return hides;
}

void oracle_calm(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    cl->stats.calm += cl->opt.together && cl->stats.faults > 0 && process_calm(cl, n);
    bool other = may_look_still(&cl->opt) || (o->cause == CAUSE_NO_PROGRESS && hides_late(n)) || o->cause == CAUSE_BLOCKED; /* a vote while others wait for the voter's launch */
    if (process_calm(cl, n) && cl->opt.burst == 0 && cl->opt.refused == 0 && !cl->opt.scripted && !other && o->result == RESULT_LOST) {
        cluster_fail(cl, "peer %u: op %u in step %llu was lost by cause %u, but nothing has gone wrong", n->index, c->op,
                     (unsigned long long)n->program->step, o->cause);
    }
}

void oracle_kept(struct cluster *cl, uint64_t id)
{
    uint16_t node = oracle_node_of(cl, id);
    struct session_info info;
    if (node >= CLUSTER_NODES || !reset_keeps(cl, &cl->nodes[node]) || cl->opt.scripted ||
        (cl->opt.rate != 0 && may_look_still(&cl->opt))) {
        return;
    }
    session_info(cl->nodes[node].session, &info);
    if (info.connected && info.id == id) {
        cluster_fail(cl, "peer %u has lost its place, but nothing worse than resets has gone wrong in its world", node);
    }
}
