/* oracle_calm.c - where nothing goes wrong nothing is aborted, however slow the links.
 *
 * One idea: a world without faults has no cause for an abort but a wrong verdict on who stands still, whatever happens to its members in
 * other worlds (W1).
 * Invariant: asked of each call that has ended.
 * SPDX-License-Identifier: MIT */
#include "program.h"
#include "reset_fault.h"

void oracle_calm(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    cl->stats.calm += cl->opt.together && cl->stats.faults > 0 && process_calm(cl, n);
    /* A value that goes round a ring of far peers may be on its way for longer than a stall time. */
    int64_t round = (cl->opt.latency_ns + cl->opt.jitter_ns) * (int64_t)cl->opt.peers * 2;
    round += slow_ns(cl->opt.rate, cl->opt.frame_bytes) * cl->opt.lanes; /* frames are handed on whole, and lanes share the line */
    bool slow = round >= node_stall_least(&cl->opt);
    /* Members of windows leave while others have calls under way; who votes while others wait for its launch is their program's doing. */
    bool own = (o->cause == CAUSE_PEER_LEFT && n->windows != NULL) || o->cause == CAUSE_BLOCKED;
    if (process_calm(cl, n) && cl->opt.burst == 0 && !cl->opt.scripted && !slow && !own && o->result == RESULT_LOST) {
        cluster_fail(cl, "peer %u: op %u in step %llu was lost by cause %u, but nothing has gone wrong", n->index, c->op,
                     (unsigned long long)n->program->step, o->cause);
    }
}

void oracle_kept(struct cluster *cl, uint64_t id)
{
    uint16_t node = oracle_node_of(cl, id);
    struct session_info info;
    if (node >= CLUSTER_NODES || !reset_keeps(cl, &cl->nodes[node]) || cl->opt.scripted) {
        return;
    }
    session_info(cl->nodes[node].session, &info);
    if (info.connected && info.id == id) {
        cluster_fail(cl, "peer %u has lost its place, but nothing worse than resets has gone wrong in its world", node);
    }
}
