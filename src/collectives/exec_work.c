/* exec_work.c - what a lane does when it has time: copies of the own input, and ranges that are put together of others.
 *
 * Its one idea: the frame of which all before are complete is the only one that can be packed, since what it takes may have come in any
 * of them; so nobody keeps lists of what waits for what.  Invariant: a frame is packed once, before it is sent, and what it is packed of
 * is not written again.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include <string.h>

#include "core/check.h"
#include "core/mutant.h"

/* Makes the next frame of the own input final. */
static void copy_next(struct exec *x)
{
    struct exec_view v = exec_view(x, x->copy_next);
    unsigned char *out = exec_out_bytes(x, &v);
    const unsigned char *in = exec_in_bytes(x, &v);
    PCCL_ASSERT(x->copy_next < x->copy_end && x->plan->steps[v.segment->step + v.state->step].kind == STEP_COPY);
    if (!x->direct_bytes) { /* alone: the product is the sum */
        exec_save(x, &v, true);
        numeric_encode(x->numeric, out, in, v.count);
    } else if (out != in) {
        memcpy(out, in, numeric_user_bytes(x->numeric, v.count));
    }
    exec_complete(x, &v);
    v.state->step++;
    x->copy_next += x->lanes;
}

/* The frame that is to be packed, if all before it are complete; EXEC_NONE: there is none. */
static uint32_t next_packed(const struct exec *x)
{
    uint32_t last = x->plan->piece_count == 0 ? 0 : x->plan->frame_count;
    for (uint32_t frame = x->oldest; frame < last; frame++) {
        struct exec_view v = exec_view(x, frame);
        if (!v.state->complete && x->plan->steps[v.segment->step + v.state->step].kind == STEP_PACK) {
            return frame;
        }
        if (!MUTANT(PACK_EARLY)) {
            break;
        }
    }
    return EXEC_NONE;
}

static void pack_next(struct exec *x)
{
    struct exec_view v = exec_view(x, next_packed(x));
    unsigned char *out = exec_out_bytes(x, &v);
    size_t end = v.offset + v.count;
    for (uint32_t i = v.segment->piece; i < v.segment->piece + v.segment->pieces; i++) {
        const struct plan_piece *p = &x->plan->pieces[i];
        size_t first = p->at > v.offset ? p->at : v.offset, last = p->at + p->count < end ? p->at + p->count : end;
        if (first < last) {
            const unsigned char *from = (p->scratch ? x->scratch : x->in) + numeric_user_bytes(x->numeric, p->from + (first - p->at));
            memcpy(out + numeric_user_bytes(x->numeric, first - v.offset), from, numeric_user_bytes(x->numeric, last - first));
        }
    }
    exec_complete(x, &v);
    v.state->step++;
    exec_advance(x, v.frame);
}

bool exec_has_work(const struct exec *x)
{
    return !x->stopped && (x->copy_next < x->copy_end || next_packed(x) != EXEC_NONE);
}

void exec_work(struct exec *x)
{
    if (x->copy_next < x->copy_end) {
        copy_next(x);
    } else {
        pack_next(x);
    }
    x->progress++;
}
