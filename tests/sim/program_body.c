/* program_body.c - the calls of a step, in the order in which each process makes them.
 *
 * One idea: of one tag, or in the order of issue, a call is launched when those before it have been; all others in any order.
 * Invariant: the turn is over when each call of the attempt has returned.
 * SPDX-License-Identifier: MIT */
#include "program.h"

enum { BODY_WAKE_NS = 20000, BODY_PAUSE_NS = 50000000 };

/* Launches what may be launched; true if everything of this attempt has returned. */
bool program_launch_all(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    bool over = true, at_once = false, behind = false, launched = false;
    for (uint32_t i = 0; i < p->ops; i++) {
        uint32_t j = p->order[i];
        if (j >= p->upto) {
            continue;
        }
        if (p->status[j] != OP_TODO) {
            over = over && p->status[j] != OP_PENDING;
            if (p->status[j] == OP_PENDING && refused_one_by_one(cl, n)) {
                return false;
            }
            continue;
        }
        bool first_of_tag = true, pair = pair_chosen(cl, n, j), ordered = !pair && parts_ordered(cl, n->group, p->step, j);
        for (uint32_t k = 0; k < j && (pair || ordered); k++) { /* in the order of issue */
            bool alike = pair ? pair_chosen(cl, n, k) : !pair_chosen(cl, n, k) && parts_ordered(cl, n->group, p->step, k);
            first_of_tag = first_of_tag && !(p->status[k] == OP_TODO && alike);
        }
        uint64_t tag, other;
        struct op_params params;
        bool in_place;
        program_describe_op(cl, n->group, p->step, j, &params, &in_place, &tag);
        for (uint32_t k = 0; cl->opt.burst == 0 && k < p->upto && !ordered && !pair; k++) {
            program_describe_op(cl, n->group, p->step, k, &params, &in_place, &other);
            bool before = p->status[k] == OP_PENDING || (k < j && p->status[k] == OP_TODO);
            before = before && !parts_ordered(cl, n->group, p->step, k) && !pair_chosen(cl, n, k);
            first_of_tag = first_of_tag && !(k != j && other == tag && before);
        }
        if (!first_of_tag) {
            over = false;
            behind = true;
            continue;
        }
        if (!program_launch(cl, n, j)) {
            cluster_post(cl, BODY_PAUSE_NS, EVENT_PROGRAM, n->index, 0, 0, 0);
            return false;
        }
        launched = true;
        over = over && p->status[j] != OP_PENDING;
        if (p->status[j] == OP_PENDING && refused_one_by_one(cl, n)) {
            return false;
        }
        at_once = at_once || p->status[j] != OP_PENDING;
        if (match_pauses(cl, n)) {
            return false;
        }
        if (cl->opt.think && cluster_chance(cl, cl->opt.burst != 0 ? 4 : 30)) { /* the rest comes later */
            cluster_post(cl, (int64_t)rng_below(&cl->rng, 3 * (uint64_t)cl->opt.latency_ns + 1), EVENT_PROGRAM, n->index, 0, 0, 0);
            return false;
        }
    }
    for (uint32_t j = 0; j < p->upto; j++) {
        over = over && p->status[j] != OP_TODO;
    }
    if (at_once && !over) { /* a call that ended at once makes way for the next of its tag */
        cluster_post(cl, BODY_WAKE_NS, EVENT_PROGRAM, n->index, 0, 0, 0);
    }
    if (launched && behind) { /* what stood behind it in the order of issue need not wait until it has ended */
        cluster_post(cl, BODY_PAUSE_NS, EVENT_PROGRAM, n->index, 0, 0, 0);
    }
    return over;
}
