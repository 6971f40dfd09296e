/* oracle_calm.c - where nothing goes wrong nothing is aborted, however slow the links.
 *
 * One idea: a run without faults has no cause for an abort but a wrong verdict on who stands still.
 * Invariant: asked of each call that has ended.
 * SPDX-License-Identifier: MIT */
#include "program.h"

void oracle_calm(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    /* A value that goes round a ring of far peers may be on its way for longer than a stall time. */
    int64_t round = (cl->opt.latency_ns + cl->opt.jitter_ns) * (int64_t)cl->opt.peers * 2;
    if (cl->fault_count == 0 && cl->opt.burst == 0 && !cl->opt.scripted && round < cl->opt.stall_ns && o->result == RESULT_LOST) {
        cluster_fail(cl, "peer %u: op %u in step %llu was lost by cause %u, but nothing has gone wrong", n->index, c->op,
                     (unsigned long long)n->program->step, o->cause);
    }
}
