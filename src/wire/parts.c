/* parts.c - pieces that several messages share: bounded numbers, causes, addresses, sizes.
 *
 * Invariant: after a failed check the reader is bad and the value is zero, so no caller sees an
 * unchecked one.
 * SPDX-License-Identifier: MIT */
#include "wire/parts.h"

#include <string.h>

#include "core/dtype.h"
#include "core/plan_kind.h"

uint32_t parts_get_u32(struct reader *r, uint32_t least, uint32_t most)
{
    uint32_t v = get_u32(r);
    if (v < least || v > most) {
        r->bad = true;
    }
    return r->bad ? 0 : v;
}

uint16_t parts_get_u16(struct reader *r, uint16_t least, uint16_t most)
{
    uint16_t v = get_u16(r);
    if (v < least || v > most) {
        r->bad = true;
    }
    return r->bad ? 0 : v;
}

uint8_t parts_get_u8(struct reader *r, uint8_t least, uint8_t most)
{
    uint8_t v = get_u8(r);
    if (v < least || v > most) {
        r->bad = true;
    }
    return r->bad ? 0 : v;
}

/* One of enum cause; -Wswitch-enum finds the one that is missing here. */
static bool parts_is_cause(uint8_t v)
{
    switch ((enum cause)v) {
    case CAUSE_NONE:
    case CAUSE_DEADLINE:
    case CAUSE_CANCEL:
    case CAUSE_NO_MEMORY:
    case CAUSE_MISMATCH:
    case CAUSE_INTERNAL:
    case CAUSE_ARGUMENT:
    case CAUSE_OLD_VIEW:
    case CAUSE_PEER_LOST:
    case CAUSE_PEER_LEFT:
    case CAUSE_PEER_SILENT:
    case CAUSE_LINK_LOST:
    case CAUSE_NO_PROGRESS:
    case CAUSE_DIGEST:
    case CAUSE_BLOCKED:
    case CAUSE_REVOKED:
    case CAUSE_KICK_PROTOCOL:
    case CAUSE_KICK_KEYS:
    case CAUSE_KICK_REVISION:
    case CAUSE_KICK_STRATEGY:
    case CAUSE_KICK_NO_CANDIDATE:
    case CAUSE_KICK_UNREACHABLE:
    case CAUSE_KICK_STALE:
    case CAUSE_KICK_FULL:
    case CAUSE_KICK_VERSION:
    case CAUSE_KICK_TAKEN:
    case CAUSE_KICK_USED:
    case CAUSE_KICK_NO_WORLD:
        return true;
    }
    return false;
}

uint8_t parts_get_cause(struct reader *r)
{
    uint8_t v = get_u8(r);
    if (!parts_is_cause(v)) {
        r->bad = true;
        return CAUSE_NONE;
    }
    return v;
}

/* Bytes of an address of a family; 0 for the unset one. */
static size_t parts_ip_bytes(uint8_t family)
{
    return family == 4 ? 4 : family == 6 ? 16 : 0;
}

void parts_put_address(struct writer *w, const struct net_address *a)
{
    put_u8(w, a->family);
    put_u16(w, a->port);
    put_bytes(w, a->ip, parts_ip_bytes(a->family));
}

void parts_get_address(struct reader *r, struct net_address *a, bool unset)
{
    memset(a, 0, sizeof *a);
    uint8_t family = get_u8(r);
    uint16_t port = get_u16(r);
    size_t size = parts_ip_bytes(family);
    if (size == 0 && (family != 0 || !unset)) {
        r->bad = true;
    }
    const void *ip = get_bytes(r, size);
    if (ip == NULL || r->bad) {
        return;
    }
    a->family = family;
    a->port = port;
    if (size > 0) {
        memcpy(a->ip, ip, size);
    }
}

void parts_put_addresses(struct writer *w, const struct net_address *list, uint8_t count)
{
    if (count > BOUNDS_ADDRESSES) {
        w->bad = true;
        return;
    }
    put_u8(w, count);
    for (uint8_t i = 0; i < count; i++) {
        parts_put_address(w, &list[i]);
    }
}

uint8_t parts_get_addresses(struct reader *r, struct net_address list[BOUNDS_ADDRESSES])
{
    memset(list, 0, BOUNDS_ADDRESSES * sizeof list[0]);
    uint8_t count = parts_get_u8(r, 0, BOUNDS_ADDRESSES);
    for (uint8_t i = 0; i < count; i++) {
        parts_get_address(r, &list[i], false);
    }
    return r->bad ? 0 : count;
}

void parts_put_sizes(struct writer *w, const struct sizes *s)
{
    put_u32(w, s->global);
    put_u32(w, s->group);
    put_u32(w, s->groups);
    put_u32(w, s->largest);
}

void parts_get_sizes(struct reader *r, struct sizes *s)
{
    s->global = get_u32(r);
    s->group = get_u32(r);
    s->groups = get_u32(r);
    s->largest = get_u32(r);
}

void put_op_name(struct writer *w, const struct op_name *m)
{
    parts_put_link_name(w, m);
    if (space_two(m->space)) {
        put_u64(w, m->from);
        put_u64(w, m->to);
    }
}

/* Of one of the spaces up to `last`, without the two. */
static void get_number(struct reader *r, struct op_name *m, uint8_t last)
{
    m->space = parts_get_u8(r, SPACE_TAG, last);
    m->tag = get_u64(r);
    m->from = m->to = 0;
    m->seq = get_u32(r);
    r->bad = r->bad || ((m->space == SPACE_ORDERED || m->space == SPACE_PART) && m->tag != 0);
}

static void get_name(struct reader *r, struct op_name *m, uint8_t last)
{
    get_number(r, m, last);
    bool two = !r->bad && space_two(m->space);
    m->from = two ? get_u64(r) : 0;
    m->to = two ? get_u64(r) : 0;
    r->bad = r->bad || (two && (m->to == 0 || m->from == m->to));
}

bool get_op_name(struct reader *r, struct op_name *m)
{
    parts_get_wait_name(r, m);
    r->bad = r->bad || (space_pairs(m->space) && m->from == 0);
    return !r->bad;
}

bool get_part_name(struct reader *r, struct op_name *m)
{
    get_name(r, m, SPACE_PART);
    r->bad = r->bad || (space_two(m->space) && m->from == 0);
    return !r->bad;
}

void parts_get_wait_name(struct reader *r, struct op_name *m)
{
    get_name(r, m, SPACE_WINDOW);
}

void parts_put_link_name(struct writer *w, const struct op_name *m)
{
    put_u8(w, m->space);
    put_u64(w, m->tag);
    put_u32(w, m->seq);
}

bool parts_get_link_name(struct reader *r, struct op_name *m)
{
    get_number(r, m, SPACE_WINDOW);
    return !r->bad;
}

/* Of an all-reduce there is neither a root nor a layout. */
void parts_put_params(struct writer *w, const struct op_params *p)
{
    put_u8(w, p->kind);
    if (p->kind != PLAN_ALL_REDUCE) {
        put_u64(w, p->root);
        put_u64(w, p->layout);
    }
    put_u64(w, p->count);
    put_u8(w, p->dtype);
    put_u8(w, p->op);
    put_u8(w, p->quant);
    put_u8(w, p->quant_dtype);
    put_u8(w, p->algorithm);
}

void parts_get_params(struct reader *r, struct op_params *p)
{
    p->kind = parts_get_u8(r, 0, PLAN_KINDS - 1);
    bool more = p->kind != PLAN_ALL_REDUCE;
    p->root = more ? get_u64(r) : 0;
    p->layout = more ? get_u64(r) : 0;
    p->count = get_u64(r);
    p->dtype = parts_get_u8(r, 0, DTYPE_COUNT - 1);
    p->op = parts_get_u8(r, 0, REDOP_COUNT - 1);
    p->quant = parts_get_u8(r, 0, QUANT_COUNT - 1);
    p->quant_dtype = parts_get_u8(r, 0, DTYPE_COUNT - 1);
    p->algorithm = parts_get_u8(r, 0, PLAN_ALGORITHMS - 1);
}

void parts_put_clash(struct writer *w, const struct op_clash *c)
{
    put_u8(w, c->id[1] != 0);
    for (int i = 0; i < 2 && c->id[1] != 0; i++) {
        put_u64(w, c->id[i]);
        parts_put_params(w, &c->params[i]);
    }
}

void parts_get_clash(struct reader *r, struct op_clash *c)
{
    *c = (struct op_clash){0};
    bool known = parts_get_u8(r, 0, 1) != 0;
    for (int i = 0; i < 2 && known; i++) {
        c->id[i] = get_u64(r);
        parts_get_params(r, &c->params[i]);
    }
    r->bad = r->bad || (known && c->id[0] >= c->id[1]);
}

void parts_put_costs(struct writer *w, const struct costs *c)
{
    put_u32(w, c->delay_ns);
    put_u32(w, c->message_ns);
    put_u32(w, c->byte_ps);
    put_u32(w, c->fold_ps);
}

/* 0: none. */
uint32_t parts_get_stall(struct reader *r)
{
    uint32_t ms = get_u32(r);
    r->bad = r->bad || (ms > 0 && ms < BOUNDS_STALL_LEAST_MS);
    return ms;
}

void parts_get_costs(struct reader *r, struct costs *c)
{
    c->delay_ns = parts_get_u32(r, 0, COSTS_MOST);
    c->message_ns = parts_get_u32(r, 0, COSTS_MOST);
    c->byte_ps = parts_get_u32(r, 0, COSTS_MOST);
    c->fold_ps = parts_get_u32(r, 0, COSTS_MOST);
}
