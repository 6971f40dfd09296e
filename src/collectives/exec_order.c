/* exec_order.c - contributions of plans whose segments lie between each other: what goes to a partner, and comes, in the order of frames.
 *
 * Its one idea: both ends know the order from the plan, so a number of grants says which frames they are for.  A queue of gifts is full
 * from the start; its tail stops before the first frame whose sum is not ready, and moves on as sums become ready.  What has come is folded as
 * soon as its frame gets to it: it must not wait for one before it, whose slot it could need (half B, exec_grant.c).
 * Invariant: what lies between head and tail of such a queue is ready; the frame at the tail, if there is one, is not.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include "core/check.h"
#include "core/mutant.h"

void exec_order_ready(struct exec *x, struct exec_peer *p)
{
    struct exec_queue *q = &p->queue[0];
    while (q->tail < p->gives && (x->frames[q->frames[q->tail] / x->lanes].queued || MUTANT(FOREST_EARLY))) {
        q->tail++;
    }
}

uint32_t exec_order_take(struct exec *x, struct exec_peer *p, uint32_t frame)
{
    uint32_t before = EXEC_NONE, slot = p->slot_head;
    while (slot != EXEC_NONE && x->room->slot[slot].frame != frame) {
        before = slot;
        slot = MUTANT(FOREST_BEHIND) ? EXEC_NONE : x->room->slot[slot].next;
    }
    if (slot == EXEC_NONE) {
        return EXEC_NONE;
    }
    if (before == EXEC_NONE) {
        p->slot_head = x->room->slot[slot].next;
    } else {
        x->room->slot[before].next = x->room->slot[slot].next;
    }
    p->slot_tail = p->slot_tail == slot ? before : p->slot_tail;
    return slot;
}

/* Gives lists their places, then what is expected of each partner. */
static void list_folds(struct exec *x)
{
    uint32_t *list = x->folds;
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        x->peers[i].folds = list;
        list += x->peers[i].expected;
        x->peers[i].expected = 0; /* counted again below */
    }
}

static void list_segment(struct exec *x, const struct plan_segment *s)
{
    uint32_t frames = exec_frame_count(x, s), frame = exec_first_frame(x, s);
    for (uint32_t k = 0; k < frames; k++, frame += x->lanes) {
        for (uint32_t j = s->step; j < s->step + s->steps; j++) {
            const struct plan_step *step = &x->plan->steps[j];
            struct exec_peer *p = step->partner != PLAN_NOBODY ? &x->peers[step->partner] : NULL;
            if (step->kind == STEP_GIVE) {
                p->queue[0].frames[p->queue[0].tail++] = frame;
                x->frames[frame / x->lanes].queued = j == s->step; /* the own input: it is always ready */
            } else if (step->kind == STEP_FOLD && p != NULL) {
                p->folds[p->expected++] = frame;
            }
        }
    }
}

void exec_order_init(struct exec *x)
{
    list_folds(x);
    for (uint32_t i = 0; i < x->plan->segment_count; i++) {
        list_segment(x, &x->plan->segments[i]);
    }
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        struct exec_peer *p = &x->peers[i];
        PCCL_ASSERT(p->queue[0].tail == p->gives);
        p->queue[0].tail = 0;
        exec_order_ready(x, p);
    }
}
