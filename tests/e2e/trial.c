/* trial.c - see trial.h.
 * SPDX-License-Identifier: MIT */
#include "tests/e2e/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 3, UNTOUCHED = 0xA5 };

bool trial_reduces(enum trial_kind kind)
{
    return kind == ALL_REDUCE || kind == REDUCE_SCATTER || kind == REDUCE;
}

bool trial_has_lists(enum trial_kind kind)
{
    return kind != ALL_REDUCE && kind != BROADCAST && kind != BARRIER && kind != REDUCE;
}

static size_t size_of(pcclDataType_t type)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 1};
    return sizes[type];
}

static void store(void *at, pcclDataType_t type, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint16_t half = v == 0 ? 0 : (uint16_t)(((bits >> 16) & 0x8000) | ((((bits >> 23) & 0xFF) - 112) << 10) | ((bits >> 13) & 0x3FF));
    uint16_t bfloat = (uint16_t)(bits >> 16);
    uint8_t u8 = (uint8_t)v;
    uint16_t u16 = (uint16_t)v;
    uint32_t u32 = (uint32_t)v;
    uint64_t u64 = (uint64_t)v;
    const void *from[] = {&u8, &u8, &u16, &u16, &u32, &u32, &u64, &u64, &half, &bfloat, &f, &v, &u8, &u8, &u8};
    memcpy(at, from[type], size_of(type));
}

/* Element `i` of what rank `from` gives, of a part for rank `to` where there are such. */
static double input(const struct trial *t, uint32_t world, uint32_t from, uint32_t to, size_t i)
{
    uint64_t h = (t->number * 7919u + from * 104729u + to * 1299709u + i) * 0x9E3779B97F4A7C15u >> 40;
    if (t->op == pcclProd) {
        return from % 3 == h % 3 ? 2 : 1;
    }
    uint64_t most = size_of(t->type) == 1 && world > 6 ? 2 : 4; /* the sum of world * world of them is to fit */
    return t->op == pcclAvg ? (double)world * (double)(h % most) : (double)(h % 8);
}

static double folded(const struct trial *t, double a, double b)
{
    if (t->type == pcclBool) {
        return t->op == pcclMin || t->op == pcclBitAnd ? a != 0 && b != 0 : a != 0 || b != 0;
    }
    switch (t->op) {
    case pcclProd:
        return a * b;
    case pcclMax:
        return a > b ? a : b;
    case pcclMin:
        return a < b ? a : b;
    case pcclBitAnd:
        return (double)((unsigned)a & (unsigned)b);
    case pcclBitOr:
        return (double)((unsigned)a | (unsigned)b);
    case pcclBitXor:
        return (double)((unsigned)a ^ (unsigned)b);
    case pcclSum:
    case pcclAvg:
    case pcclRedOpMost:
        break;
    }
    return a + b;
}

static double reduced(const struct trial *t, uint32_t world, uint32_t to, size_t i)
{
    double acc = input(t, world, 0, to, i);
    for (uint32_t r = 1; r < world; r++) {
        double v = input(t, world, r, to, i);
        acc = folded(t, acc, v);
    }
    return t->op == pcclAvg ? acc / world : acc;
}

/* Elements that go from one rank to another, and where they lie at each. */
static size_t part(const struct trial *t, uint32_t from, uint32_t to)
{
    size_t uneven = (t->number + 3 * to + (t->kind == ALL_TO_ALL ? 5 * from : 0)) % 4;
    return !t->uneven ? t->count : t->count * uneven;
}

static size_t place_of(const struct trial *t, bool in, uint32_t self, uint32_t of)
{
    size_t at = 0;
    for (uint32_t r = 0; r < of; r++) {
        at += (in ? part(t, self, r) : part(t, r, t->kind == ALL_GATHER || t->kind == GATHER ? r : self)) + (t->uneven ? GAP + self : 0); /* each has gaps of its own */
    }
    return at;
}

size_t trial_own_place(const struct trial *t, uint32_t self)
{
    return place_of(t, t->kind == SCATTER, self, self);
}

/* Whether a rank's input, or output, is one of parts of all ranks. */
static bool has_parts(const struct trial *t, bool in, uint32_t self)
{
    bool root = self == t->root;
    return in ? t->kind == REDUCE_SCATTER || t->kind == ALL_TO_ALL || (t->kind == SCATTER && root)
              : t->kind == ALL_GATHER || t->kind == ALL_TO_ALL || (t->kind == GATHER && root);
}

size_t trial_reach(const struct trial *t, bool in, uint32_t world, uint32_t self)
{
    bool of_root = in ? t->kind == BROADCAST || t->kind == SCATTER : t->kind == REDUCE || t->kind == GATHER;
    bool none = t->kind == BARRIER || (of_root && self != t->root);
    bool of_part = in ? t->kind == ALL_GATHER || t->kind == GATHER : t->kind == REDUCE_SCATTER || t->kind == SCATTER;
    size_t reach = none ? 0 : of_part ? part(t, self, self) : t->count;
    if (has_parts(t, in, self)) {
        reach = 0;
        for (uint32_t r = 0; r < world; r++) {
            size_t count = in ? part(t, self, r) : part(t, r, t->kind == ALL_TO_ALL ? self : r);
            reach = count > 0 ? place_of(t, in, self, r) + count : reach;
        }
    }
    return reach;
}

static void fill(unsigned char *at, const struct trial *t, uint32_t world, uint32_t from, uint32_t to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        store(at + i * size_of(t->type), t->type, input(t, world, from, to, i));
    }
}

/* What this rank gives, and what it must have in the end, computed from everybody's inputs. */
struct trial_buffers trial_make(const struct trial *t, uint32_t world, uint32_t self)
{
    struct trial_buffers b = {0};
    size_t size = size_of(t->type);
    bool root = self == t->root, parts = has_parts(t, true, self);
    size_t own = t->kind == ALL_GATHER || t->kind == GATHER ? part(t, self, self) : t->count;
    b.in_count = parts ? place_of(t, true, self, world) : t->kind == ALL_REDUCE || t->kind == ALL_GATHER || t->kind == REDUCE || t->kind == GATHER || (t->kind == BROADCAST && root) ? own : 0;
    b.out_count = t->kind == ALL_GATHER || t->kind == ALL_TO_ALL ? place_of(t, false, self, world)
                  : t->kind == REDUCE_SCATTER || t->kind == SCATTER ? part(t, t->root, self)
                  : t->kind == GATHER ? (root ? place_of(t, false, self, world) : 0)
                  : t->kind == BARRIER || (t->kind == REDUCE && !root) ? 0 : t->count;
    b.in = malloc(b.in_count * size + 1);
    b.out = malloc(b.out_count * size + 1);
    b.want = malloc(b.out_count * size + 1);
    memset(b.in, UNTOUCHED + (int)self, b.in_count * size + 1);
    memset(b.out, UNTOUCHED + (int)self, b.out_count * size + 1);
    memset(b.want, UNTOUCHED + (int)self, b.out_count * size + 1);
    for (uint32_t r = 0; r < world && parts; r++) {
        fill(b.in + place_of(t, true, self, r) * size, t, world, self, r, part(t, self, r));
    }
    if (!parts) {
        fill(b.in, t, world, self, 0, b.in_count);
    }
    bool gathers = t->kind == ALL_GATHER || (t->kind == GATHER && root);
    for (uint32_t r = 0; r < world && (gathers || t->kind == ALL_TO_ALL); r++) {
        fill(b.want + place_of(t, false, self, r) * size, t, world, r, gathers ? 0 : self, part(t, r, gathers ? r : self));
    }
    if (t->kind == BROADCAST || t->kind == SCATTER) {
        fill(b.want, t, world, t->root, t->kind == SCATTER ? self : 0, b.out_count);
    }
    for (size_t i = 0; i < b.out_count && (t->kind == ALL_REDUCE || t->kind == REDUCE_SCATTER || t->kind == REDUCE); i++) {
        store(b.want + i * size, t->type, reduced(t, world, t->kind == REDUCE_SCATTER ? self : 0, i));
    }
    if (t->in_place && gathers) {
        memcpy(b.out + place_of(t, false, self, self) * size, b.in, b.in_count * size);
    } else if (t->in_place && (t->kind == ALL_REDUCE || ((t->kind == BROADCAST || t->kind == REDUCE) && root))) {
        memcpy(b.out, b.in, b.in_count * size);
    }
    return b;
}

pcclResult_t trial_call(const struct trial *t, pcclComm_t *comm, uint32_t world, uint32_t self, const struct trial_buffers *b,
                        pcclAsyncOp_t *op)
{
    size_t counts[TRIAL_MOST_WORLD], places[TRIAL_MOST_WORLD], out_counts[TRIAL_MOST_WORLD], out_places[TRIAL_MOST_WORLD];
    size_t size = size_of(t->type);
    const void *in = b->in;
    void *out = b->out;
    for (uint32_t r = 0; r < world; r++) {
        counts[r] = t->kind == ALL_GATHER || t->kind == GATHER ? part(t, r, r) : part(t, self, r);
        places[r] = place_of(t, t->kind != ALL_GATHER && t->kind != GATHER, self, r);
        out_counts[r] = part(t, r, self);
        out_places[r] = place_of(t, false, self, r);
    }
    switch (t->kind) {
    case ALL_REDUCE:
        return pcclAllReduceOrdered(t->in_place ? out : in, out, t->count, t->type, t->op, comm, op);
    case BROADCAST:
        return pcclBroadcast(self != t->root ? NULL : t->in_place ? out : in, out, t->count, t->type, t->root, comm, op);
    case ALL_GATHER:
        in = t->in_place ? b->out + places[self] * size : in;
        return t->uneven ? pcclAllGatherV(in, out, counts, places, t->type, comm, op)
                         : pcclAllGather(in, out, t->count, t->type, comm, op);
    case REDUCE_SCATTER:
        return t->uneven ? pcclReduceScatterV(in, out, counts, places, t->type, t->op, comm, op)
                         : pcclReduceScatter(in, out, t->count, t->type, t->op, comm, op);
    case ALL_TO_ALL:
        return t->uneven ? pcclAllToAllV(in, counts, places, out, out_counts, out_places, t->type, comm, op)
                         : pcclAllToAll(in, out, t->count, t->type, comm, op);
    case SCATTER:
        out = t->in_place && self == t->root ? b->in + places[self] * size : out;
        return t->uneven ? pcclScatterV(in, counts, places, out, part(t, t->root, self), t->type, t->root, comm, op)
                         : pcclScatter(in, out, t->count, t->type, t->root, comm, op);
    case REDUCE:
        return pcclReduce(t->in_place && self == t->root ? out : in, self == t->root ? out : NULL, t->count, t->type, t->op, t->root, comm,
                          op);
    case GATHER:
        in = t->in_place && self == t->root ? b->out + places[self] * size : in;
        return t->uneven ? pcclGatherV(in, part(t, self, self), out, self == t->root ? counts : NULL, places, t->type, t->root, comm, op)
                         : pcclGather(in, self == t->root ? out : NULL, t->count, t->type, t->root, comm, op);
    case BARRIER:
        return pcclBarrier(comm, op);
    case TRIAL_KINDS:
        break;
    }
    return pcclInternalError;
}

static bool said(bool good, const char *what, const struct trial *t, uint32_t world, uint32_t self)
{
    if (!good) {
        fprintf(stderr, "# %s: kind %d, type %d, op %d, count %zu, uneven %d, in place %d, async %d, root %u, world %u, rank %u\n", what,
                (int)t->kind, (int)t->type, (int)t->op, t->count, t->uneven, t->in_place, t->async, t->root, world, self);
    }
    return good;
}

bool trial_is_right(const struct trial *t, uint32_t world, uint32_t self, const struct trial_buffers *b)
{
    size_t size = size_of(t->type);
    const unsigned char *out = t->kind == SCATTER && t->in_place && self == t->root ? b->in + place_of(t, true, self, self) * size : b->out;
    bool same = memcmp(out, b->want, b->out_count * size) == 0;
    bool within = b->out[b->out_count * size] == UNTOUCHED + self && b->in[b->in_count * size] == UNTOUCHED + self;
    return said(same && within, same ? "written beyond the end" : "wrong result", t, world, self);
}

bool trial_is_intact(const struct trial *t, uint32_t world, uint32_t self, const struct trial_buffers *b)
{
    size_t size = size_of(t->type), own = b->in_count * size;
    bool root = self == t->root, part = t->kind == ALL_GATHER || (t->kind == GATHER && root);
    bool whole = t->kind == ALL_REDUCE || ((t->kind == BROADCAST || t->kind == REDUCE) && root);
    struct trial_buffers as_given = trial_make(t, world, self);
    const unsigned char *at = b->out + (part ? place_of(t, false, self, self) * size : 0);
    bool same = memcmp(b->in, as_given.in, own) == 0 && (!t->in_place || (!part && !whole) || memcmp(at, as_given.in, own) == 0);
    trial_buffers_free(&as_given);
    return said(same, "input changed", t, world, self);
}

void trial_buffers_free(struct trial_buffers *b)
{
    free(b->in);
    free(b->out);
    free(b->want);
}
