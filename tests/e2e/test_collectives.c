/* test_collectives.c - collectives in the order of issue, value by value against an independent computation, for worlds of 1 to 9.
 *
 * Inputs are a function of (call, rank, element), small integers that all types hold exactly; what lies between and behind the parts of
 * an output must stay as it was.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SCATTER, ALL_TO_ALL, REDUCE, GATHER, BARRIER, KINDS };
enum { TYPES = 15, GAP = 3, MOST_WORLD = 9, UNTOUCHED = 0xA5 };

struct trial {
    enum kind kind;
    pcclDataType_t type;
    pcclRedOp_t op;
    size_t count;
    bool uneven, in_place, async;
    uint32_t root;
    uint32_t number; /* of the call: names its inputs */
};

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

struct buffers {
    size_t in_count, out_count;
    unsigned char *in, *out, *want;
};

static void fill(unsigned char *at, const struct trial *t, uint32_t world, uint32_t from, uint32_t to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        store(at + i * size_of(t->type), t->type, input(t, world, from, to, i));
    }
}

/* What this rank gives, and what it must have in the end, computed from everybody's inputs. */
static struct buffers make(const struct trial *t, uint32_t world, uint32_t self)
{
    struct buffers b = {0};
    size_t size = size_of(t->type);
    bool root = self == t->root, parts = t->kind == REDUCE_SCATTER || t->kind == ALL_TO_ALL || (t->kind == SCATTER && root);
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

static pcclResult_t call(const struct trial *t, pcclComm_t *comm, uint32_t world, uint32_t self, const struct buffers *b,
                         pcclAsyncOp_t *op)
{
    size_t counts[MOST_WORLD], places[MOST_WORLD], out_counts[MOST_WORLD], out_places[MOST_WORLD], size = size_of(t->type);
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
    case KINDS:
        break;
    }
    return pcclInternalError;
}

static void check(const struct trial *t, uint32_t world, uint32_t self, const struct buffers *b)
{
    size_t size = size_of(t->type);
    const unsigned char *out = t->kind == SCATTER && t->in_place && self == t->root ? b->in + place_of(t, true, self, self) * size : b->out;
    bool same = memcmp(out, b->want, b->out_count * size) == 0;
    EXPECT(same);
    if (!same) {
        fprintf(stderr, "# kind %d, type %d, op %d, count %zu, uneven %d, in place %d, async %d, root %u, world %u, rank %u\n", (int)t->kind,
                (int)t->type, (int)t->op, t->count, t->uneven, t->in_place, t->async, t->root, world, self);
    }
    EXPECT(b->out[b->out_count * size] == UNTOUCHED + self && b->in[b->in_count * size] == UNTOUCHED + self);
}

static void buffers_free(struct buffers *b)
{
    free(b->in);
    free(b->out);
    free(b->want);
}

static struct trial trial_of(uint32_t number, uint32_t world)
{
    static const size_t counts[] = {0, 1, 5, 100, 1000, 4096, 5000, 20000, 70000};
    uint32_t h = (uint32_t)(number * 0x9E3779B97F4A7C15u >> 33);
    struct trial t = {.kind = (enum kind)(number % KINDS), .type = (pcclDataType_t)(number / KINDS % TYPES), .op = (pcclRedOp_t)(h % 8),
                      .count = counts[(h >> 3) % 9], .uneven = (h >> 8) % 3 == 0, .in_place = (h >> 10) % 3 == 0,
                      .async = (h >> 12) % 2, .root = (h >> 14) % world, .number = number};
    bool lists = t.kind != ALL_REDUCE && t.kind != BROADCAST && t.kind != BARRIER && t.kind != REDUCE;
    t.uneven = t.uneven && lists;
    t.count = t.uneven ? t.count / 2 : t.count;
    static const pcclRedOp_t truths[] = {pcclSum, pcclMax, pcclMin, pcclBitAnd, pcclBitOr};
    bool sums = t.kind == ALL_REDUCE || t.kind == REDUCE_SCATTER || t.kind == REDUCE;
    t.type = sums && t.type > pcclBool ? pcclBool : t.type; /* the others move only */
    t.op = t.type == pcclBool ? truths[t.op % 5] : t.type >= pcclFloat16 ? (pcclRedOp_t)(t.op % 5) : t.op; /* bits: of integers */
    return t;
}

enum { TRIALS = 9 * TYPES * 3, FLIGHT = 5 };

/* Some are awaited at once, some up to FLIGHT later: all members issue them in the same order. */
static void run_trials(struct cluster_peer *p, void *context)
{
    uint32_t world = *(const uint32_t *)context, first = world * 1000, flying = 0;
    struct { struct trial t; struct buffers b; pcclAsyncOp_t op; } flight[FLIGHT];
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (uint32_t i = 0; i < TRIALS; i++) {
        struct trial t = trial_of(first + i, world);
        struct buffers b = make(&t, world, self.rank);
        pcclAsyncOp_t op;
        pcclResult_t rc = call(&t, p->comm, world, self.rank, &b, t.async ? &op : NULL);
        EXPECT_EQ(rc, pcclSuccess);
        if (rc != pcclSuccess) {
            fprintf(stderr, "# %s\n", pcclGetLastError());
        }
        if (t.async) {
            flight[flying].t = t;
            flight[flying].b = b;
            flight[flying++].op = op;
        } else {
            check(&t, world, self.rank, &b);
            buffers_free(&b);
        }
        bool last = i + 1 == TRIALS;
        while (flying == FLIGHT || (last && flying > 0)) {
            pcclReduceInfo_t info;
            flying--;
            EXPECT_EQ(pcclAwaitAsync(&flight[flying].op, &info), pcclSuccess);
            EXPECT_EQ(info.local_world_size, world);
            check(&flight[flying].t, world, self.rank, &flight[flying].b);
            buffers_free(&flight[flying].b);
        }
    }
}

static void worlds(uint32_t from, uint32_t to, uint32_t pool)
{
    for (uint32_t world = from; world <= to; world++) {
        struct cluster c;
        setenv("PCCL_VERIFY", world % 2 == 0 ? "1" : "0", 1); /* digests of what all have alike */
        cluster_start(&c, (int)world, NULL, pool);
        cluster_run(&c, run_trials, &world);
        cluster_stop(&c);
    }
    unsetenv("PCCL_VERIFY");
}

TEST(every_collective_type_and_operator_in_worlds_of_1_to_4)
{
    worlds(1, 4, 2);
}

TEST(every_collective_type_and_operator_in_worlds_of_5_to_9)
{
    worlds(5, MOST_WORLD, 1);
}

/* ---- Mistakes: each takes its turn, so that what follows still meets what it should --------------------------------------------- */

static void last_words(const char *words)
{
    bool said = strstr(pcclGetLastError(), words) != NULL;
    EXPECT(said);
    if (!said) {
        fprintf(stderr, "# expected '%s' in: %s\n", words, pcclGetLastError());
    }
}

/* Rank 1 of 3 makes each mistake, the others the right call. */
static pcclResult_t mistaken(int number, bool wrong, pcclComm_t *comm, float *x, float *y)
{
    size_t counts[3] = {1, 2, 3}, send[3] = {2, 2, 2}, recv[3] = {2, 2, wrong ? 1 : 2};
    switch (number) {
    case 0:
        return pcclAllGather(wrong ? NULL : x, y, 4, pcclFloat, comm, NULL);
    case 1:
        return pcclBroadcast(x, y, 4, wrong ? (pcclDataType_t)15 : pcclFloat, 0, comm, NULL);
    case 2:
        return pcclBroadcast(x, y, 4, pcclFloat, wrong ? 3 : 0, comm, NULL);
    case 3:
        return pcclReduceScatter(x, wrong ? x + 1 : y, 4, pcclFloat, pcclSum, comm, NULL);
    case 4:
        return pcclAllReduceOrdered(x, y, 4, pcclFloat, wrong ? pcclBitXor : pcclSum, comm, NULL);
    case 5:
        return pcclAllGatherV(x, y, wrong ? NULL : counts, NULL, pcclFloat, comm, NULL);
    case 6:
        return pcclAllToAllV(x, send, NULL, y, recv, NULL, pcclFloat, comm, NULL);
    case 7:
        return pcclAllReduceOrdered(x, y, 4, pcclUint32, wrong ? pcclBitAnd : pcclBitOr, comm, NULL);
    case 8:
        return pcclReduce(x, y, 4, wrong ? pcclFloat8E4M3 : pcclInt8, pcclSum, 0, comm, NULL);
    default:
        return wrong ? pcclAllGather(x, y, 4, pcclFloat, comm, NULL) : pcclBroadcast(x, y, 4, pcclFloat, 0, comm, NULL);
    }
}

static void make_mistakes(struct cluster_peer *p, void *context)
{
    static const struct {
        const char *own, *others;
    } words[] = {
        {"all-gather: sendbuf is null while 4 elements are to be sent", "could not make this call as it was given"},
        {"broadcast: datatype is 15", "could not make this call"},
        {"broadcast: root is 3: expected a rank below 3", "could not make this call"},
        {"reduce-scatter: recvbuf overlaps sendbuf: pass buffers apart", "could not make this call"},
        {"all-reduce: op is 7 (xor) of f32: operators of bits are for integer types", "could not make this call"},
        {"all-gather: counts is null: pass the elements of each rank", "could not make this call"},
        {"other counts", "other counts"},
        {"this peer has 4 u32, and; peer ", "this peer has 4 u32, or; peer "},
        {"reduce: op is 0 (sum) of f8e4m3: numbers of 8 bits travel as bytes", "could not make this call"},
        {"this peer has all-gather of 4 f32; peer ", "this peer has broadcast of 4 f32, root "},
    };
    pcclPeerInfo_t self;
    float x[16] = {1, 2, 3, 4}, y[16], want[3] = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (int i = 0; i < 10; i++) {
        bool wrong = self.rank == 1;
        EXPECT_EQ(mistaken(i, wrong, p->comm, x, y), pcclInvalidArgument);
        if (i != 6 || self.rank != 0) {
            last_words(wrong ? words[i].own : words[i].others);
        }
        float mine = (float)(self.rank + 10 * (uint32_t)i);
        EXPECT_EQ(pcclAllGather(&mine, want, 1, pcclFloat, p->comm, NULL), pcclSuccess);
        EXPECT(want[0] == 10.f * (float)i && want[1] == 10.f * (float)i + 1 && want[2] == 10.f * (float)i + 2);
    }
}

TEST(a_mistake_takes_its_turn_and_is_told_at_all_members)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, make_mistakes, NULL);
    cluster_stop(&c);
}
