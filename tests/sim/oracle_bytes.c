/* oracle_bytes.c - the bytes that a success tells of are those of its plan, or of its counts where only two know them.
 *
 * One idea: what a rank sends and receives follows from the plan, frame by frame; a payload counts once, at the one who sends and at the
 * one who receives.  Of parts that only two know the size of it follows from these, whichever way they went.  Invariant: a member that died may have missed some of what was sent to it, nobody else has.
 * SPDX-License-Identifier: MIT */
#include "core/dtype.h"
#include "program.h"

static void planned_bytes(const struct run *r, uint64_t *tx, uint64_t *rx)
{
    for (uint32_t i = 0; i < r->plan.segment_count; i++) {
        const struct plan_segment *s = &r->plan.segments[i];
        uint64_t bytes = 0;
        for (size_t at = 0, most = r->plan.params.frame_elements; at < s->count; at += most) {
            bytes += numeric_wire_bytes(&r->op.numeric, s->count - at < most ? s->count - at : most);
        }
        for (uint32_t j = s->step; j < s->step + s->steps; j++) {
            const struct plan_step *step = &r->plan.steps[j];
            *tx += step->kind == STEP_GIVE || step->kind == STEP_SEND ? bytes : 0;
            *rx += step->kind == STEP_RECV || (step->kind == STEP_FOLD && step->rank != r->plan.params.rank) ? bytes : 0;
        }
    }
}

static void counted_bytes(const struct call *c, uint64_t *tx, uint64_t *rx)
{
    for (uint32_t r = 0; r < c->world; r++) {
        *tx += parts_moved(c, c->rank, r) * dtype_size((enum dtype)c->params.dtype);
        *rx += parts_moved(c, r, c->rank) * dtype_size((enum dtype)c->params.dtype);
    }
}

void oracle_bytes(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    const struct run *r = &n->run[c->slot];
    uint64_t tx = 0, rx = 0;
    if (!r->started) {
        return; /* a small one, whose payload travels with its launch */
    }
    if (r->op.params.layout == LAYOUT_PAIRS) {
        counted_bytes(c, &tx, &rx);
    } else {
        planned_bytes(r, &tx, &rx);
    }
    struct session_info info;
    session_info(n->session, &info);
    bool all_live = info.view == r->op.view; /* a view that decided it, and ended the world, is not seen: it has left with that */
    if (o->rx_bytes != rx || o->tx_bytes > tx || (all_live && cl->lies == 0 && o->tx_bytes != tx)) {
        cluster_fail(cl, "peer %u: op %u in step %llu tells of %llu bytes sent, %llu received, it moves %llu and %llu", n->index,
                     c->op, (unsigned long long)n->program->step, (unsigned long long)o->tx_bytes, (unsigned long long)o->rx_bytes,
                     (unsigned long long)tx, (unsigned long long)rx);
    }
}
