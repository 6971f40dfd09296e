/* exec_frame.c - runs one frame's program: folds, finishes, hands on.
 *
 * Its one idea: for plain types the value of a frame is the own input (remembered, not copied) or lies in `out`; a
 * contribution is folded the moment it can be, and never remembered in its slot: a slot that waited for another
 * rank's program could be one of half B.
 *
 * Other types add up in an accumulator.  Two per executor are enough, and cannot dead-lock: what is reduced here are frames one behind
 * the other (direct: the own shard, and parts that this rank sums up for others; tiny: the only segment), the k-th one uses
 * accumulator k mod 2 and begins when frame k - 2 is finished.  Contributions of each sender come in that order, so frame k never
 * waits for frame k + 1; the oldest unfinished frame always has its accumulator, and waits only for contributions (their senders have,
 * or will get, credit: exec_wants counts its frame as foldable) or for a result buffer.  Those are used in turn, too: buffer k mod 4
 * is held by frame k - 4 until its sends have left, and final data can always leave, because its receivers have launched (they
 * contributed) and need no room for it.
 *
 * Invariant: frames of a segment finish in their order, and those with accumulators in the order of all that are reduced here.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include <string.h>

#include "core/check.h"
#include "kernels/copy.h"
#include "kernels/hash.h"

static unsigned char *acc_of(const struct exec *x, uint32_t frame)
{
    return x->accs + exec_fold_place(x, frame) % EXEC_ACCS * x->acc_stride;
}

void exec_save(struct exec *x, const struct exec_view *v, bool read)
{
    if (x->backup != NULL && !x->saved[v->frame]) {
        size_t at = numeric_user_bytes(x->numeric, v->segment->in + v->offset), bytes = numeric_user_bytes(x->numeric, v->count);
        PCCL_ASSERT(v->segment->in == v->segment->out);
        if (x->large && !read) {
            copy_away(x->backup + at, x->in + at, bytes);
        } else {
            memcpy(x->backup + at, x->in + at, bytes);
        }
        x->saved[v->frame] = 1;
    }
}

void exec_complete(struct exec *x, const struct exec_view *v)
{
    if (x->verify && !v->segment->scratch) { /* of the result */
        uint64_t hash = hash_simple64(exec_out_bytes(x, v), numeric_user_bytes(x->numeric, v->count));
        x->digest += hash_mix64(hash, v->frame); /* places may be each member's own */
    }
    v->state->complete = true;
    PCCL_ASSERT(x->pending > 0);
    x->pending--;
    while (x->oldest < x->plan->frame_count && x->frames[x->oldest / x->lanes].complete) {
        x->oldest += x->lanes;
    }
}

/* Adds one contribution in wire form to the accumulator. */
static void fold_wire(struct exec *x, const struct exec_view *v, const void *wire)
{
    if (v->state->value == VALUE_NONE) {
        numeric_load(x->numeric, acc_of(x, v->frame), wire, v->count);
        v->state->value = VALUE_BUFFER;
    } else {
        numeric_fold(x->numeric, acc_of(x, v->frame), wire, v->count);
    }
}

/* From that byte of it on, to the value; or, if it is the first and the own input comes next, to that. */
static void fold_part(struct exec *x, const struct exec_view *v, size_t at, const void *other, size_t count)
{
    exec_save(x, v, false);
    unsigned char *out = exec_out_bytes(x, v) + at;
    if (v->state->value == VALUE_NONE) {
        numeric_fold_plain(x->numeric, out, other, exec_in_bytes(x, v) + at, count);
    } else {
        numeric_fold_plain(x->numeric, out, v->state->value == VALUE_INPUT ? exec_own_bytes(x, v) + at : out, other, count);
    }
}

static void fold_plain(struct exec *x, const struct exec_view *v, const void *other)
{
    PCCL_ASSERT(v->state->value != VALUE_NONE);
    fold_part(x, v, 0, other, v->count);
    v->state->value = VALUE_BUFFER;
}

static void fold_own(struct exec *x, const struct exec_view *v)
{
    const unsigned char *in = exec_in_bytes(x, v);
    if (!x->numeric->plain) {
        if (!x->direct_bytes) {
            numeric_encode(x->numeric, x->own, in, v->count); /* quantised, or multiplied, like everybody's */
            in = x->own;
        }
        fold_wire(x, v, in);
    } else if (v->state->value == VALUE_NONE) {
        v->state->value = VALUE_INPUT;
    } else {
        fold_plain(x, v, in);
    }
}

/* What has come of a partner to this frame, out of its slots; EXEC_NONE: nothing has, or it came in place. */
static uint32_t take_slot(struct exec *x, struct exec_peer *p, uint32_t frame)
{
    uint32_t slot = p->slot_head;
    if (p->in_place || slot == EXEC_NONE) {
        return EXEC_NONE;
    }
    if (x->ordered) {
        return exec_order_take(x, p, frame);
    }
    if (exec_contribution(x, p, p->folded) != frame) {
        return EXEC_NONE;
    }
    p->slot_head = x->room->slot[slot].next;
    return slot;
}

/* Of nobody: the own input.  False: the contribution is not there, or the accumulator is not free. */
static bool step_fold(struct exec *x, const struct exec_view *v, uint32_t partner)
{
    if (v->state->value == VALUE_NONE && !exec_may_begin(x, v->frame)) {
        return false;
    }
    if (partner == PLAN_NOBODY) {
        fold_own(x, v);
        return true;
    }
    struct exec_peer *p = &x->peers[partner];
    uint32_t slot = take_slot(x, p, v->frame);
    if (slot == EXEC_NONE) {
        if (p->starved) {
            exec_grant(x, partner); /* it is next now: half B may serve it */
        }
        return false;
    }
    const unsigned char *wire = room_slot(x->room, slot);
    if (x->numeric->plain) {
        fold_plain(x, v, wire);
    } else {
        fold_wire(x, v, wire);
    }
    exec_release_slot(x, partner, slot);
    return true;
}

static bool step_finish(struct exec *x, const struct exec_view *v)
{
    const struct numeric *n = x->numeric;
    unsigned char *out = exec_out_bytes(x, v);
    uint32_t world = x->plan->params.world;
    if (n->plain) {
        PCCL_ASSERT(v->state->value == VALUE_BUFFER); /* a world has two ranks: something was folded */
        numeric_finish_plain(n, out, v->count, world);
    } else {
        uint32_t index, sends = v->segment->steps - v->state->step - 1u;
        unsigned char *wire = exec_wire(x, v->frame, &index);
        if (exec_fold_place(x, v->frame) != x->finished || (!x->direct_bytes && x->wire_refs[index] != 0)) {
            return false; /* partners take buffers at speeds of their own, so the next one may be free before this frame's */
        }
        bool keep = !x->direct_bytes && sends > 0;
        exec_save(x, v, false);
        numeric_finish(n, out, keep ? wire : NULL, acc_of(x, v->frame), v->count, world);
        x->wire_refs[index] = keep ? sends : 0;
        if (x->plan->params.algorithm == PLAN_TINY) {
            numeric_canonical(n, out, v->count); /* all compute it: a NaN's payload must not differ */
        }
        x->finished++;
    }
    exec_complete(x, v);
    return true;
}

static void step_send(struct exec *x, const struct exec_view *v, uint32_t partner, uint32_t phase)
{
    struct exec_queue *q = &x->peers[partner].queue[phase];
    v->state->queued = phase == 0 && !v->segment->scratch;
    if (phase == 0 && x->ordered) {
        exec_order_ready(x, &x->peers[partner]);
    } else {
        q->frames[q->tail++] = v->frame;
    }
    exec_touch(x, partner);
    if (phase == 0 && v->segment->scratch) {
        exec_complete(x, v); /* nothing comes back */
    }
}

void exec_advance(struct exec *x, uint32_t frame)
{
    struct exec_view v = exec_view(x, frame);
    const struct plan_step *steps = &x->plan->steps[v.segment->step];
    while (v.state->step < v.segment->steps) {
        const struct plan_step *step = &steps[v.state->step];
        switch ((enum step_kind)step->kind) {
        case STEP_FOLD:
            if (!step_fold(x, &v, step->partner)) {
                return;
            }
            break;
        case STEP_FINISH:
            if (!step_finish(x, &v)) {
                return;
            }
            break;
        case STEP_GIVE:
        case STEP_SEND:
            step_send(x, &v, step->partner, step->kind == STEP_SEND ? 1 : 0);
            break;
        case STEP_RECV:
        case STEP_COPY:
        case STEP_PACK:
            return; /* exec_landed, exec_work go on */
        }
        v.state->step++;
    }
}

void exec_resume(struct exec *x)
{
    uint32_t before;
    if (x->numeric->plain) {
        return;
    }
    do {
        before = x->finished;
        for (uint32_t i = 0; i < EXEC_ACCS && before + i < x->fold_frames; i++) {
            exec_advance(x, x->fold_first + (before + i) * x->lanes);
        }
    } while (x->finished != before);
}

void exec_landed(struct exec *x, const struct exec_view *v)
{
    if (x->plan->steps[v->segment->step + v->state->step].kind == STEP_RECV) {
        exec_complete(x, v);
    } else {
        v->state->value = VALUE_BUFFER;
    }
    v->state->step++;
    exec_advance(x, v->frame);
}

/* A first contribution is added to the own one, if that comes next; else it has to wait in `out`. */
static bool first_of_two(const struct exec *x, const struct exec_view *v)
{
    const struct plan_step *next = &x->plan->steps[v->segment->step + v->state->step + 1];
    return v->state->step + 1u < v->segment->steps && next->kind == STEP_FOLD && next->partner == PLAN_NOBODY;
}

bool exec_lends(struct exec *x, const struct exec_view *v, uint32_t partner)
{
    if (!x->numeric->plain) {
        return false;
    }
    exec_advance(x, v->frame); /* the own input may come first */
    const struct exec_peer *p = &x->peers[partner];
    const struct plan_step *step = &x->plan->steps[v->segment->step + v->state->step];
    bool next = p->in_place ? first_of_two(x, v) : x->ordered || p->slot_head == EXEC_NONE; /* else frames of a sender are folded in their order */
    return next && step->kind == STEP_FOLD && step->partner == partner;
}

void exec_fold_lent(struct exec *x, const struct exec_view *v, size_t at, const void *wire, size_t bytes)
{
    fold_part(x, v, at, wire, bytes / numeric_user_bytes(x->numeric, 1));
}

void exec_folded(const struct exec_view *v)
{
    v->state->step = (uint16_t)(v->state->step + (v->state->value == VALUE_NONE ? 2 : 1));
    v->state->value = VALUE_BUFFER;
}
