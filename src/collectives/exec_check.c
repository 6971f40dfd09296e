/* exec_check.c - what must hold between two steps of an executor, in one place.
 *
 * Flags and totals after every step; each sender's account and the frames, which cost as much as there are, every so many
 * steps (core/check.h).  Invariant: nothing is written but the count-down.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include "core/check.h"

/* Slots that hold what has arrived from this sender and is not folded, and the one that is being filled. */
static uint32_t slots_of(const struct exec *x, const struct exec_peer *p)
{
    uint32_t slots = p->receiving && p->in_slot != EXEC_NONE;
    for (uint32_t slot = p->slot_head; slot != EXEC_NONE && slots <= x->room->slot_count; slot = x->room->slot[slot].next) {
        PCCL_ASSERT(slot < x->room->slot_count);
        slots++;
    }
    return slots;
}

/* folded <= announced <= granted <= expected; what is granted and not folded was taken from the room. */
static void check_account(const struct exec *x, const struct exec_peer *p)
{
    PCCL_ASSERT(p->folded <= p->announced && p->announced <= p->granted && p->granted <= p->expected);
    PCCL_ASSERT(p->untold <= p->granted);
    PCCL_ASSERT(!p->in_place || (p->held_a == 0 && p->held_b == 0 && p->slot_head == EXEC_NONE));
    PCCL_ASSERT(!p->starved || p->granted < p->expected);
    PCCL_ASSERT(!p->busy || p->out_bytes > 0 || x->plan->params.count == 0);
    PCCL_ASSERT(p->queue[0].head <= p->queue[0].tail && p->queue[1].head <= p->queue[1].tail);
    PCCL_ASSERT(!x->ordered || (!p->in_place && p->queue[0].tail <= p->gives));
    if (!p->in_place) {
        PCCL_ASSERT(p->granted - p->folded == p->held_a + p->held_b);
        PCCL_ASSERT(p->announced - p->folded == slots_of(x, p));
    }
}

static void check_peers(const struct exec *x)
{
    uint32_t starved = 0, next = 0, in_hand = 0;
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        const struct exec_peer *p = &x->peers[i];
        check_account(x, p);
        starved += p->starved;
        PCCL_ASSERT(p->starved == ((x->starving[i / 64] >> i % 64 & 1) != 0));
        next += p->starved_next;
        PCCL_ASSERT(!p->starved_next || (p->starved && p->ready));
        in_hand += p->busy + (p->queue[0].tail - p->queue[0].head) + (p->queue[1].tail - p->queue[1].head);
    }
    PCCL_ASSERT(starved == x->starved_peers && next == x->starved_next);
    PCCL_ASSERT(in_hand <= x->unsent);
}

static void check_frames(const struct exec *x)
{
    uint32_t open = 0;
    for (uint32_t f = x->lane; f < x->plan->frame_count; f += x->lanes) {
        const struct exec_frame *frame = &x->frames[f / x->lanes];
        open += !frame->complete;
        PCCL_ASSERT(f >= x->oldest || frame->complete);
        PCCL_ASSERT(!frame->complete || !frame->queued);
    }
    PCCL_ASSERT(open == x->pending);
    PCCL_ASSERT(x->copy_next <= x->copy_end + x->lanes && (x->copy_next >= x->copy_end || x->pending > 0));
}

void exec_check(struct exec *x)
{
    PCCL_ASSERT(x->done == (x->pending == 0) && x->idle == (x->done && x->unsent == 0));
    PCCL_ASSERT(x->starved == (x->starved_peers > 0) || x->stopped);
    PCCL_ASSERT(x->room->free_slots <= x->room->slot_count);
    if (x->stopped || x->check_in-- > 1) {
        return;
    }
    x->check_in = check_interval(x->check_every, x->plan->frame_count / x->lanes + x->plan->partner_count);
    check_peers(x);
    check_frames(x);
}
