/* exec_view.c - a frame of an executor, asked without changing anything: where its bytes are, and whether it could go on.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

uint32_t exec_first_frame(const struct exec *x, const struct plan_segment *segment)
{
    return segment->frame + (x->lane + x->lanes - segment->frame % x->lanes) % x->lanes;
}

uint32_t exec_frame_count(const struct exec *x, const struct plan_segment *segment)
{
    uint32_t first = exec_first_frame(x, segment) - segment->frame;
    return first < segment->frames ? (segment->frames - first - 1) / x->lanes + 1 : 0;
}

struct exec_view exec_view(const struct exec *x, uint32_t frame)
{
    struct exec_view v = {.frame = frame, .state = &x->frames[frame / x->lanes]};
    v.segment = plan_frame(x->plan, frame, &v.offset, &v.count);
    return v;
}

uint32_t exec_contribution(const struct exec *x, const struct exec_peer *p, uint32_t k)
{
    return p->folds != NULL ? p->folds[k] : p->fold_first + k * x->lanes;
}

struct exec_grants exec_grants(const struct exec *x, uint32_t partner)
{
    const struct exec_peer *p = &x->peers[partner];
    return (struct exec_grants){.held = p->held_a + p->held_b, .window = p->window};
}

unsigned char *exec_out_bytes(const struct exec *x, const struct exec_view *v)
{
    return (v->segment->scratch ? x->scratch : x->out) + numeric_user_bytes(x->numeric, v->segment->out + v->offset);
}

const unsigned char *exec_in_bytes(const struct exec *x, const struct exec_view *v)
{
    const unsigned char *from = x->backup != NULL && x->saved[v->frame] ? x->backup : x->in;
    return from + numeric_user_bytes(x->numeric, v->segment->in + v->offset);
}

const unsigned char *exec_own_bytes(const struct exec *x, const struct exec_view *v)
{
    return x->in + numeric_user_bytes(x->numeric, v->segment->in + v->offset);
}

uint32_t exec_fold_place(const struct exec *x, uint32_t frame)
{
    return (frame - x->fold_first) / x->lanes;
}

unsigned char *exec_wire(const struct exec *x, uint32_t frame, uint32_t *index)
{
    *index = exec_fold_place(x, frame) % EXEC_WIRES;
    return x->wires + *index * x->wire_stride;
}

bool exec_may_begin(const struct exec *x, uint32_t frame)
{
    return x->numeric->plain || exec_fold_place(x, frame) < x->finished + EXEC_ACCS;
}

bool exec_wants(const struct exec *x, uint32_t frame, uint32_t partner)
{
    struct exec_view v = exec_view(x, frame);
    const struct plan_step *steps = &x->plan->steps[v.segment->step];
    uint32_t i = v.state->step;
    if (i < v.segment->steps && steps[i].kind == STEP_FOLD && steps[i].partner == PLAN_NOBODY) {
        i++; /* the own input is always there */
    }
    return i < v.segment->steps && steps[i].kind == STEP_FOLD && steps[i].partner == partner && exec_may_begin(x, frame);
}
