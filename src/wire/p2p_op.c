/* p2p_op.c - messages of operations: launch, eager input, agreement on the end, data and room for
 * it.
 *
 * Invariant: a payload's length is in the message and is exactly what is left of the frame.  DATA
 * alone has no length of its own: its payload is the rest of the frame and is read into place, past
 * this codec.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/plan_kind.h"
#include "wire/p2p.h"
#include "wire/parts.h"

/* Messages, and nothing else, are operations of two; what goes by a relay is a message, or a part that only two know the size of. */
static bool kind_fits(const struct op_name *name, const struct op_params *params)
{
    return space_pairs(name->space) == (params->kind == PLAN_SEND) && (name->space != SPACE_PART || params->layout == LAYOUT_PAIRS);
}

void put_ready(struct writer *w, const struct msg_ready *m)
{
    put_op_name(w, &m->name);
    parts_put_params(w, &m->params);
    put_u32(w, m->window);
    put_u64(w, m->bundle);
    put_u64(w, m->launch);
    if (m->params.layout == LAYOUT_PAIRS) {
        put_u64(w, m->expects);
    }
}

bool get_ready(struct reader *r, struct msg_ready *m)
{
    (void)get_part_name(r, &m->name);
    parts_get_params(r, &m->params);
    m->window = get_u32(r);
    m->bundle = get_u64(r);
    m->launch = get_u64(r);
    m->expects = m->params.layout == LAYOUT_PAIRS ? get_u64(r) : 0;
    return reader_done(r) && m->launch != 0 && kind_fits(&m->name, &m->params);
}

void put_eager(struct writer *w, const struct msg_eager *m)
{
    put_op_name(w, &m->name);
    parts_put_params(w, &m->params);
    put_u32(w, m->bytes);
}

bool get_eager(struct reader *r, struct msg_eager *m, const void **payload)
{
    (void)get_op_name(r, &m->name);
    parts_get_params(r, &m->params);
    m->bytes = get_u32(r);
    *payload = get_bytes(r, m->bytes);
    return reader_done(r) && kind_fits(&m->name, &m->params);
}

void put_want(struct writer *w, const struct msg_want *m)
{
    put_op_name(w, &m->name);
}

bool get_want(struct reader *r, struct msg_want *m)
{
    (void)get_op_name(r, &m->name);
    return reader_done(r);
}

void put_hold(struct writer *w, const struct msg_hold *m)
{
    put_op_name(w, &m->name);
    put_u64(w, m->origin);
    put_u8(w, m->round);
    put_u64(w, m->params);
    put_u64(w, m->digest);
}

bool get_hold(struct reader *r, struct msg_hold *m)
{
    (void)get_op_name(r, &m->name);
    m->origin = get_u64(r);
    m->round = get_u8(r);
    m->params = get_u64(r);
    m->digest = get_u64(r);
    return reader_done(r);
}

void put_refuse(struct writer *w, const struct msg_refuse *m)
{
    put_op_name(w, &m->name);
    put_u64(w, m->origin);
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
    put_u32(w, m->settled);
    if (m->cause == CAUSE_MISMATCH) {
        parts_put_clash(w, &m->clash);
    }
}

bool get_refuse(struct reader *r, struct msg_refuse *m)
{
    (void)get_op_name(r, &m->name);
    m->origin = get_u64(r);
    m->cause = parts_get_u8(r, CAUSE_DEADLINE, CAUSE_OLD_VIEW); /* of an operation itself */
    m->culprit = get_u64(r);
    m->settled = get_u32(r);
    m->clash = (struct op_clash){0};
    if (m->cause == CAUSE_MISMATCH) {
        parts_get_clash(r, &m->clash);
        r->bad = r->bad || (m->clash.id[1] != 0 && m->clash.id[1] != m->culprit);
    }
    return reader_done(r);
}

void put_finished(struct writer *w, const struct msg_finished *m)
{
    put_u64(w, m->origin);
    put_u32(w, m->names);
}

bool get_finished(struct reader *r, struct msg_finished *m)
{
    m->origin = get_u64(r);
    m->names = get_count(r, PARTS_NAME_BYTES, PARTS_NAMES);
    return !r->bad;
}

void put_path(struct writer *w, const struct msg_path *m)
{
    put_u64(w, m->with);
    put_u8(w, m->up);
}

bool get_path(struct reader *r, struct msg_path *m)
{
    m->with = get_u64(r);
    m->up = parts_get_u8(r, 0, 1);
    return reader_done(r);
}

void put_part(struct writer *w, const struct msg_part *m)
{
    put_op_name(w, &m->name);
    put_u64(w, m->offset);
    put_u32(w, m->bytes);
}

bool get_part(struct reader *r, struct msg_part *m, const void **payload)
{
    (void)get_part_name(r, &m->name);
    m->offset = get_u64(r);
    m->bytes = get_u32(r);
    *payload = get_bytes(r, m->bytes);
    return reader_done(r) && m->bytes > 0 && m->bytes <= P2P_PART_BYTES;
}

void put_got(struct writer *w, const struct msg_got *m)
{
    put_op_name(w, &m->name);
    put_u64(w, m->offset);
    put_u8(w, m->anew);
}

bool get_got(struct reader *r, struct msg_got *m)
{
    (void)get_part_name(r, &m->name);
    m->offset = get_u64(r);
    m->anew = parts_get_u8(r, 0, 1);
    return reader_done(r);
}

void put_data(struct writer *w, const struct msg_data *m)
{
    parts_put_link_name(w, &m->name);
    put_u32(w, m->frame);
    put_u8(w, m->phase);
}

bool get_data(struct reader *r, struct msg_data *m)
{
    (void)parts_get_link_name(r, &m->name);
    m->frame = get_u32(r);
    m->phase = parts_get_u8(r, 0, 1); /* contribution or final: see collectives/plan.h */
    return !r->bad;
}

void put_credit(struct writer *w, const struct msg_credit *m)
{
    parts_put_link_name(w, &m->name);
    put_u32(w, m->frames);
    put_u32(w, m->ready);
    put_u32(w, m->moved_ms);
    put_u16(w, m->moved_far);
}

bool get_credit(struct reader *r, struct msg_credit *m)
{
    (void)parts_get_link_name(r, &m->name);
    m->frames = get_u32(r);
    m->ready = get_u32(r);
    m->moved_ms = get_u32(r);
    m->moved_far = get_u16(r);
    return reader_done(r);
}

uint64_t p2p_params_hash(const struct op_params *params, const struct plan_view *plan)
{
    uint64_t h = mix64(mix64(mix64((uint64_t)params->kind << 56 | (uint64_t)params->algorithm << 48, params->count), params->root), params->layout);
    h = mix64(h, (uint64_t)params->dtype | (uint64_t)params->op << 8 | (uint64_t)params->quant << 16 |
                     (uint64_t)params->quant_dtype << 24 | (uint64_t)plan->lanes << 40 | (uint64_t)plan->verify << 56);
    return mix64(h, (uint64_t)plan->frame_bytes << 32 | plan->eager_bytes);
}
