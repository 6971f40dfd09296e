/* oracle_calm.c - where nothing goes wrong nothing is aborted, however slow the links.
 *
 * One idea: a run without faults has no cause for an abort but a wrong verdict on who stands still.
 * Invariant: asked of each call that has ended.
 * SPDX-License-Identifier: MIT */
#include "program.h"

void oracle_calm(struct world *w, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    /* A value that goes round a ring of far peers may be on its way for longer than a stall time. */
    int64_t round = (w->opt.latency_ns + w->opt.jitter_ns) * (int64_t)w->opt.peers * 2;
    if (w->fault_count == 0 && w->opt.burst == 0 && !w->opt.scripted && round < w->opt.stall_ns && o->result == RESULT_LOST) {
        world_fail(w, "peer %u: op %u in step %llu was lost by cause %u, but nothing has gone wrong", n->index, c->op,
                   (unsigned long long)n->program->step, o->cause);
    }
}
