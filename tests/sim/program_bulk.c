/* program_bulk.c - a body of all-reduces as one list with retry, each process with a window of its own.
 *
 * One idea: the order of launches is the library's (bulk.h); the program does what its caller does: launches, collects what has ended, gives
 * up what is behind an error.
 * Invariant: when the turn is over nothing of the list is in flight.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program.h"

enum { BULK_WAKE_NS = 50000000 };

void program_bulk_begin(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    p->listed = cl->opt.bulk && p->ops > 0;
    if (p->listed) {
        size_t window = rng_below(&cl->rng, 3) == 0 ? 40 : 1 + (size_t)rng_below(&cl->rng, 3);
        bulk_init(&p->list, p->list_state, p->ops, window);
        memset(p->tries, 0, sizeof p->tries);
    }
}

static void bulk_give_up(struct cluster *cl, struct node *n)
{
    for (uint32_t slot = 0; slot < n->config.max_ops; slot++) {
        const struct run *r = &n->run[slot];
        if (r->taken && r->call->op != PROGRAM_OPS && bulk_doomed(&n->program->list, r->call->op)) {
            cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_CANCEL, slot, r->use);
        }
    }
}

void program_bulk_ended(struct cluster *cl, struct node *n, uint32_t op, const struct session_outcome *o)
{
    struct program *p = n->program;
    size_t bad = p->list.bad;
    bulk_ended(&p->list, op, o);
    if (p->list.bad != bad) {
        bulk_give_up(cl, n);
    }
}

bool program_bulk_turn(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    while (!cl->failed) {
        size_t next = bulk_next(&p->list);
        if (next == BULK_NONE) {
            return p->list.flying == 0;
        }
        if (!program_launch(cl, n, (uint32_t)next)) {
            if (p->list.flying == 0) { /* no room ahead of what others still have to end */
                cluster_post(cl, BULK_WAKE_NS, EVENT_PROGRAM, n->index, 0, 0, 0);
            }
            return false;
        }
        if (p->list_state[next] == BULK_READY && p->status[next] == OP_PENDING) {
            bulk_launched(&p->list, next);
            if (bulk_doomed(&p->list, next)) {
                bulk_give_up(cl, n);
            }
        }
        if (cl->opt.think && cluster_chance(cl, 30)) {
            cluster_post(cl, (int64_t)rng_below(&cl->rng, 3 * (uint64_t)cl->opt.latency_ns + 1), EVENT_PROGRAM, n->index, 0, 0, 0);
            return false;
        }
    }
    return false;
}

bool program_bulk_same(const struct program *p)
{
    return !p->listed || p->list.bad == BULK_NONE;
}
