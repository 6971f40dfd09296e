/* exec_flow.c - frames in and out: headers, what goes next to whom.
 *
 * Its one idea: everything a sender may send is known from the plan, so a header is checked against a cursor before its
 * first byte lands.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include "core/check.h"

/* The step of the frame's program that takes this phase from this partner; EXEC_NONE if there is none. */
static uint32_t receiving_step(const struct exec *x, const struct exec_view *v, uint32_t phase, uint32_t partner)
{
    for (uint32_t i = v->segment->step; i < v->segment->step + v->segment->steps; i++) {
        const struct plan_step *s = &x->plan->steps[i];
        if (s->partner == partner && (s->kind == (phase == 0 ? STEP_FOLD : STEP_RECV))) {
            return i;
        }
    }
    return EXEC_NONE;
}

/* Whether the plan and the grants let this partner send this now; the place in `step`.  `frame`: by our own count. */
static bool header_valid(const struct exec *x, const struct exec_event *e, uint32_t frame, uint32_t *step)
{
    const struct exec_peer *p = &x->peers[e->partner];
    if (p->receiving || e->phase > 1 || frame == EXEC_NONE || frame % x->lanes != x->lane) {
        return false;
    }
    struct exec_view v = exec_view(x, frame);
    *step = receiving_step(x, &v, e->phase, e->partner);
    if (*step == EXEC_NONE || x->cursors[*step] != frame || e->bytes != numeric_wire_bytes(x->numeric, v.count)) {
        return false;
    }
    if (e->phase == 0) {
        return p->announced < p->granted && (p->folds == NULL || p->folds[p->announced] == frame);
    }
    /* Final data is a function of this rank's contribution: it cannot come while that still waits here. */
    return v.segment->step + v.state->step == *step && !v.state->queued;
}

void exec_on_header(struct exec *x, const struct exec_event *e, struct exec_out *out)
{
    bool known = e->partner < x->plan->partner_count;
    uint32_t step = EXEC_NONE, frame = known ? plan_heard(x->plan, x->plan->partners[e->partner], e->frame) : EXEC_NONE;
    if (frame == EXEC_NONE || !header_valid(x, e, frame, &step)) {
        out->refused = true;
        return;
    }
    struct exec_peer *p = &x->peers[e->partner];
    struct exec_view v = exec_view(x, frame);
    if (e->phase == 1 && !x->direct_bytes) {
        p->in_buffer = frame_pool_take(x->pool);
        out->no_buffer = p->in_buffer == NULL;
        if (out->no_buffer) {
            return;
        }
    }
    x->cursors[step] += x->lanes;
    p->receiving = true;
    p->in_frame = frame;
    p->in_phase = e->phase;
    p->in_bytes = e->bytes;
    p->in_slot = EXEC_NONE;
    p->in_folded = 0;
    p->in_lend = e->phase == 0 && exec_lends(x, &v, e->partner);
    out->lend = p->in_lend ? (uint32_t)numeric_user_bytes(x->numeric, 1) : 0;
    if ((e->phase == 1 && x->direct_bytes) || p->in_place) {
        exec_save(x, &v, e->phase == 0); /* the own contribution comes after the first one */
    }
    if (e->phase == 1) {
        out->dst = x->direct_bytes ? exec_out_bytes(x, &v) : p->in_buffer;
        return;
    }
    p->announced++;
    if (p->in_place) {
        out->dst = exec_out_bytes(x, &v);
        return;
    }
    p->in_slot = room_slot_take(x->room);
    out->dst = room_slot(x->room, p->in_slot);
}

void exec_on_lent(struct exec *x, const struct exec_event *e)
{
    struct exec_peer *p = &x->peers[e->partner];
    PCCL_ASSERT(p->receiving && p->in_lend && e->bytes <= p->in_bytes - p->in_folded);
    struct exec_view v = exec_view(x, p->in_frame);
    exec_fold_lent(x, &v, p->in_folded, e->data, e->bytes);
    p->in_folded += e->bytes;
}

/* A contribution that was not lent, in its slot. */
static void arrived_staged(struct exec *x, struct exec_peer *p)
{
    x->room->slot[p->in_slot].next = EXEC_NONE;
    if (x->ordered) {
        x->room->slot[p->in_slot].frame = p->in_frame;
    }
    if (p->slot_head == EXEC_NONE) {
        p->slot_head = p->in_slot;
    } else {
        x->room->slot[p->slot_tail].next = p->in_slot;
    }
    p->slot_tail = p->in_slot;
    exec_advance(x, p->in_frame);
    exec_resume(x);
}

void exec_on_arrived(struct exec *x, uint32_t partner)
{
    struct exec_peer *p = &x->peers[partner];
    PCCL_ASSERT(p->receiving);
    struct exec_view v = exec_view(x, p->in_frame);
    p->receiving = false;
    x->rx_bytes += p->in_bytes;
    x->progress++;
    if (p->in_folded > 0) {
        PCCL_ASSERT(p->in_folded == p->in_bytes);
        exec_folded(&v);
        if (p->in_slot != EXEC_NONE) {
            exec_release_slot(x, partner, p->in_slot);
        }
        exec_advance(x, v.frame);
    } else if (p->in_phase == 1 || p->in_place) {
        if (p->in_phase == 1 && !x->direct_bytes) {
            exec_save(x, &v, false);
            numeric_decode(x->numeric, exec_out_bytes(x, &v), p->in_buffer, v.count);
            frame_pool_give(x->pool, p->in_buffer);
            p->in_buffer = NULL;
        }
        exec_landed(x, &v);
    } else {
        arrived_staged(x, p);
    }
}

bool exec_has_frame(const struct exec *x, uint32_t partner)
{
    const struct exec_peer *p = &x->peers[partner];
    if (x->stopped || p->busy) {
        return false;
    }
    bool lead = p->lead_next < p->lead_end;
    if (p->ready && (p->queue[1].head != p->queue[1].tail || (lead && p->lead_phase == 1))) {
        return true;
    }
    return p->credit > 0 && ((lead && p->lead_phase == 0) || p->queue[0].head != p->queue[0].tail);
}

/* Final frames go first: they end other ranks' waiting and free buffers. */
void exec_on_pull(struct exec *x, uint32_t partner, struct exec_out *out)
{
    struct exec_peer *p = &x->peers[partner];
    struct exec_view v;
    if (!exec_has_frame(x, partner)) {
        return;
    }
    if (p->ready && p->queue[1].head != p->queue[1].tail) {
        uint32_t index;
        v = exec_view(x, p->queue[1].frames[p->queue[1].head++]);
        out->phase = 1;
        out->data = x->direct_bytes ? exec_out_bytes(x, &v) : exec_wire(x, v.frame, &index);
    } else if (p->lead_next < p->lead_end && (p->lead_phase == 0 ? p->credit > 0 : p->ready)) {
        if (!x->direct_bytes && (p->out_buffer = frame_pool_take(x->pool)) == NULL) {
            return;
        }
        v = exec_view(x, p->lead_next);
        p->lead_next += x->lanes;
        out->phase = p->lead_phase;
        /* What goes to one alone is not written over before that one has it all: whatever comes in its place is made of it. */
        exec_save(x, &v, !p->lead_alone);
        out->data = p->lead_alone ? exec_own_bytes(x, &v) : exec_in_bytes(x, &v);
        if (!x->direct_bytes) {
            numeric_encode(x->numeric, p->out_buffer, out->data, v.count);
            out->data = p->out_buffer;
        }
    } else {
        v = exec_view(x, p->queue[0].frames[p->queue[0].head++]);
        bool own = v.state->value == VALUE_NONE; /* ordered, and nothing is folded here */
        v.state->queued = false;
        if (own) {
            exec_save(x, &v, false);
        }
        out->data = own ? exec_own_bytes(x, &v) : exec_out_bytes(x, &v);
    }
    p->credit -= out->phase == 0 ? 1 : 0;
    p->gave += out->phase == 0 ? 1 : 0;
    out->frame = plan_wire(x->plan, v.segment, v.frame);
    out->bytes = (uint32_t)numeric_wire_bytes(x->numeric, v.count);
    p->busy = true;
    p->out_frame = v.frame;
    p->out_phase = out->phase;
    p->out_bytes = out->bytes;
}

void exec_on_sent(struct exec *x, uint32_t partner)
{
    struct exec_peer *p = &x->peers[partner];
    PCCL_ASSERT(p->busy && x->unsent > 0);
    p->busy = false;
    if (p->out_buffer != NULL) {
        frame_pool_give(x->pool, p->out_buffer);
        p->out_buffer = NULL;
    }
    exec_touch(x, partner); /* for its next one */
    x->unsent--;
    x->tx_bytes += p->out_bytes;
    x->progress++;
    if (p->out_phase == 1 && !x->direct_bytes) {
        uint32_t index;
        exec_wire(x, p->out_frame, &index);
        if (--x->wire_refs[index] == 0) {
            exec_resume(x); /* a frame may wait for the buffer */
        }
    }
}

void exec_stop(struct exec *x)
{
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        struct exec_peer *p = &x->peers[i];
        if (p->receiving && p->in_slot != EXEC_NONE) {
            room_slot_give(x->room, p->in_slot);
        }
        while (p->slot_head != EXEC_NONE) {
            uint32_t slot = p->slot_head;
            p->slot_head = x->room->slot[slot].next;
            room_slot_give(x->room, slot);
        }
        if (p->out_buffer != NULL) {
            frame_pool_give(x->pool, p->out_buffer);
        }
        if (p->in_buffer != NULL) {
            frame_pool_give(x->pool, p->in_buffer);
        }
        p->out_buffer = p->in_buffer = NULL;
        room_unreserve(x->room, p->held_a);
        room_give_b(x->room, p->held_b);
        p->held_a = 0;
        p->held_b = 0;
        p->receiving = false;
    }
    x->starved = false;
    x->stopped = true;
}
