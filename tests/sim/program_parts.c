/* program_parts.c - collectives in the order of issue: which a call is, who gives how much to whom, and the one right output.
 *
 * One idea: how much goes from one rank to another is a function of (call, from, to), which the program lays its buffers out by and the
 * oracle computes by.  Invariant: nothing of the library's plans is used.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "program.h"

static bool parted(const struct op_params *p)
{
    return p->kind != PLAN_ALL_REDUCE && p->kind != PLAN_BROADCAST && p->kind != PLAN_REDUCE;
}

static bool gathers(const struct op_params *p)
{
    return p->kind == PLAN_ALL_GATHER || p->kind == PLAN_GATHER;
}

size_t parts_between(const struct call *c, uint32_t from, uint32_t to)
{
    if (!c->uneven) {
        return c->base;
    }
    uint64_t pair = gathers(&c->params) ? from : c->params.kind == PLAN_ALL_TO_ALL ? from * 131 + to : to;
    static const uint8_t times[] = {0, 1, 2, 1};
    return c->base * times[mix64(c->shape, pair) % 4];
}

/* Where the part for or of rank `of` lies in the input or output of `self`. */
static size_t place(const struct call *c, bool in, uint32_t self, uint32_t of)
{
    size_t at = 0;
    for (uint32_t r = 0; r < of; r++) {
        at += in ? parts_between(c, self, r) : parts_between(c, r, self);
    }
    return at;
}

size_t parts_input(const struct call *c, uint32_t rank)
{
    switch ((enum plan_kind)c->params.kind) {
    case PLAN_ALL_REDUCE:
    case PLAN_REDUCE:
        return c->base;
    case PLAN_BROADCAST:
        return rank == c->root ? c->base : 0;
    case PLAN_ALL_GATHER:
    case PLAN_GATHER:
        return parts_between(c, rank, rank);
    case PLAN_SCATTER:
        return rank == c->root ? place(c, true, rank, c->world) : 0;
    case PLAN_REDUCE_SCATTER:
    case PLAN_ALL_TO_ALL:
        return place(c, true, rank, c->world);
    case PLAN_SEND:
    case PLAN_KINDS:
        break;
    }
    return 0;
}

size_t parts_output(const struct call *c, uint32_t rank)
{
    switch ((enum plan_kind)c->params.kind) {
    case PLAN_ALL_REDUCE:
    case PLAN_BROADCAST:
        return c->base;
    case PLAN_ALL_GATHER:
    case PLAN_ALL_TO_ALL:
        return place(c, false, rank, c->world);
    case PLAN_GATHER:
        return rank == c->root ? place(c, false, rank, c->world) : 0;
    case PLAN_REDUCE:
        return rank == c->root ? c->base : 0;
    case PLAN_SCATTER:
        return parts_between(c, c->root, rank);
    case PLAN_REDUCE_SCATTER:
        return parts_between(c, rank, rank);
    case PLAN_SEND:
    case PLAN_KINDS:
        break;
    }
    return 0;
}

bool parts_ordered(const struct cluster *cl, uint32_t group, uint64_t step, uint32_t j)
{
    bool fits = !cl->opt.bulk && cl->opt.burst == 0 && !cl->opt.scripted && j != PROGRAM_OPS;
    return cl->opt.refused != 0 ? fits : fits && mix64(cl->opt.seed, 83) % 2 == 0 && mix64(mix64(mix64(cl->opt.seed, group), step), j + 5000) % 3 != 0;
}

void parts_shape(const struct cluster *cl, const struct node *n, struct call *c, struct op_params *p)
{
    struct session_info info;
    session_info(n->session, &info);
    uint64_t h = mix64(mix64(mix64(cl->opt.seed, n->group), n->program->step), c->op + 7000);
    p->kind = algorithms_kind(&cl->opt, h);
    if (!plan_kind_sums(p->kind)) {
        p->op = p->quant = p->quant_dtype = 0;
    }
    if (!plan_kind_sums(p->kind) && p->dtype == DTYPE_BOOL) {
        p->dtype = (uint8_t)(DTYPE_BOOL + (h >> 50) % (DTYPE_COUNT - DTYPE_BOOL)); /* those that only move, as seldom as any */
    }
    c->known = info.known;
    c->world = info.snapshot.group;
    c->rank = info.rank;
    c->root = (uint32_t)(h >> 20) % c->world;
    c->shape = h;
    c->params = *p;
    c->uneven = parted(p) && (h >> 40) % 2 == 0;
    c->base = !parted(p) ? p->count : p->count / c->world / 2;
    c->in_place = c->in_place && (p->kind == PLAN_ALL_REDUCE || (p->kind == PLAN_REDUCE && c->rank == c->root));
    p->count = c->base;
    bool pairs = p->kind == PLAN_ALL_TO_ALL || p->kind == PLAN_SCATTER || p->kind == PLAN_GATHER;
    if (c->uneven && pairs) {
        p->layout = LAYOUT_PAIRS;
        p->count = 0;
    } else if (c->uneven) {
        p->layout = h | 2;
        p->count = 2 * c->base;
    }
}

size_t parts_moved(const struct call *c, uint32_t from, uint32_t to)
{
    enum plan_kind kind = (enum plan_kind)c->params.kind;
    bool goes = from != to && (kind == PLAN_SCATTER ? from == c->root : kind != PLAN_GATHER || to == c->root);
    return goes ? parts_between(c, from, to) : 0;
}

bool parts_odd(struct call *c, struct op_params *p)
{
    size_t moves = 0;
    for (uint32_t r = 0; r < c->world && c->rank < c->world; r++) {
        moves += parts_moved(c, c->rank, r) + parts_moved(c, r, c->rank);
    }
    if (moves == 0) {
        return false;
    }
    c->base += 1 + c->node->index;
    if (p->layout != LAYOUT_PAIRS) {
        p->layout ^= (1 + (uint64_t)c->node->index) << 8;
        p->count = 2 * c->base;
    }
    return true;
}

bool parts_other_root(struct call *c)
{
    if (!plan_kind_has_root(c->params.kind) || c->world < 2) {
        return false;
    }
    c->root = (c->root + 1) % c->world;
    c->in_place = c->in_place && c->rank == c->root;
    return true;
}

/* Counts and places as the call passes them. */
void parts_lists(struct call *c, struct session_launch *l)
{
    uint32_t n = c->world;
    l->call.space = SPACE_ORDERED;
    l->call.tag = 0;
    l->call.known = c->known;
    l->call.world = n;
    l->call.root_rank = c->root;
    uint32_t self = c->rank < n ? c->rank : 0;
    l->call.count = c->params.kind == PLAN_GATHER ? parts_input(c, self) : parts_output(c, self);
    if (!c->uneven) {
        return;
    }
    c->lists = realloc(c->lists, 4 * (size_t)n * sizeof *c->lists);
    bool gather = gathers(&c->params);
    for (uint32_t r = 0; r < n; r++) {
        c->lists[r] = gather ? parts_between(c, r, r) : parts_between(c, c->rank, r);
        c->lists[n + r] = place(c, !gather, c->rank, r);
        c->lists[2 * n + r] = parts_between(c, r, c->rank);
        c->lists[3 * n + r] = place(c, false, c->rank, r);
    }
    if ((c->params.kind != PLAN_SCATTER && c->params.kind != PLAN_GATHER) || c->rank == c->root) {
        l->call.parts = (struct part_lists){c->lists, c->lists + n};
    }
    if (c->params.kind == PLAN_ALL_TO_ALL) {
        l->call.out_parts = (struct part_lists){c->lists + 2 * n, c->lists + 3 * n};
    }
}

bool parts_same_for_all(const struct call *c)
{
    return plan_kind_alike(c->params.kind);
}

/* ---- The oracle's side ------------------------------------------------------------------------------------------------------- */

/* What the member of that rank gave. */
void parts_given(const struct cluster *cl, const struct view_record *v, const struct call *c, uint32_t rank, unsigned char *out)
{
    struct op_params p = c->params;
    p.count = parts_input(c, rank);
    program_input(cl, oracle_node_of(cl, v->ids[rank]), program_key(c->node, c->op, 0), &p, out);
}

bool parts_moved_right(const struct cluster *cl, const struct view_record *v, const struct call *c, uint32_t self)
{
    static unsigned char given[CLUSTER_BYTES + 8];
    size_t size = dtype_size((enum dtype)c->params.dtype);
    for (uint32_t r = 0; r < v->members; r++) {
        bool rooted = c->params.kind == PLAN_BROADCAST || c->params.kind == PLAN_SCATTER;
        size_t to = gathers(&c->params) || c->params.kind == PLAN_ALL_TO_ALL ? place(c, false, self, r) : 0;
        size_t from = c->params.kind == PLAN_ALL_TO_ALL || c->params.kind == PLAN_SCATTER ? place(c, true, r, self) : 0;
        bool has = c->params.kind != PLAN_GATHER || self == c->root;
        size_t count = rooted ? (r == c->root ? parts_output(c, self) : 0) : has ? parts_between(c, r, self) : 0;
        if (count > 0) {
            parts_given(cl, v, c, r, given);
        }
        if (memcmp(c->out + to * size, given + from * size, count * size) != 0) {
            return false;
        }
    }
    return true;
}

size_t parts_from(const struct call *c, uint32_t from, uint32_t to)
{
    return c->params.kind == PLAN_REDUCE_SCATTER ? place(c, true, from, to) : 0;
}
