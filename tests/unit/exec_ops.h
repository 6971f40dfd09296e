/* exec_ops.h - the operations of a world of executors: drawn at random, with inputs, and what each rank is to have in the end.
 *
 * What is expected is computed from whole buffers, without frames, slots or the executor; only numbers are folded by the same kernels.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_UNIT_EXEC_OPS_H
#define PCCL_TESTS_UNIT_EXEC_OPS_H

#include "collectives/exec_wait.h"

#include "core/random.h"
#include "kernels/half.h"
#include "tests/draw_trees.h"
#include "tests/testing.h"

enum { MAX_RANKS = 33, ALL_RANKS = 9 /* of worlds of which each size is tried */, MAX_LANES = 3, MAX_OPS = 6, CHANNEL_FRAMES = 2, MAX_SLOTS = 8 };

struct message {
    struct message *next;
    uint32_t op, lane, credit[MAX_LANES]; /* control: READY if `ready`, else CREDIT of `lane` */
    bool ready;
    uint32_t sums; /* with CREDIT */
    uint32_t frame, phase, bytes; /* data */
    unsigned char payload[];
};

struct channel {
    struct message *first, **last;
    uint32_t count;
    void *landing;     /* of the head, once its header was accepted */
    bool head_open;    /* its header went in, its bytes not yet */
    uint32_t lend, lent; /* they are lent in elements of so many, if that is not 0, and so many were */
    struct message *leaving; /* pulled; enters the channel on SENT */
    const void *leaving_data;
    bool busy;
    uint32_t busy_op;
};

struct operation {
    struct plan_params params; /* of each rank in turn */
    uint32_t ring[MAX_RANKS], weights[MAX_RANKS];
    struct tree_set trees;
    uint16_t parent[TREE_SET_MOST * MAX_RANKS];
    size_t parts[MAX_RANKS][MAX_RANKS]; /* elements: all-to-all [from][to], others [0][of] */
    size_t out_parts[MAX_RANKS];
    struct numeric numeric; /* each rank has a factor of its own: share_numeric */
    bool aborted;
};

struct share { /* one rank's part of one operation */
    struct numeric numeric; /* with its factor */
    bool launched, stopped;
    struct plan plan;
    struct plan_segment *segments; /* owned */
    struct plan_step *steps;       /* owned */
    struct plan_piece pieces[4 * MAX_RANKS + 1];
    uint32_t partners[MAX_RANKS];
    size_t in_count, out_count, in_bytes, out_bytes;
    unsigned char *in, *in_copy, *out, *scratch, *expected;
    bool in_place; /* in lies in out */
    unsigned char *backup; /* owned: in is out; null: not so */
    uint8_t *saved;        /* owned, with backup: by frame */
    struct exec lanes[MAX_LANES];
    void *arena[MAX_LANES];
};

struct cluster {
    struct rng rng;
    uint64_t seed;
    uint32_t world, lane_count, op_count, slot_count;
    size_t slot_bytes;
    struct operation ops[MAX_OPS];
    struct share shares[MAX_RANKS][MAX_OPS];
    uint32_t order[MAX_RANKS][MAX_OPS], launches[MAX_RANKS];
    uint32_t slow[MAX_RANKS][MAX_RANKS]; /* a connection moves at one in so many of its chances */
    bool serial[MAX_RANKS]; /* waits for an operation before it launches the next */
    struct room rooms[MAX_RANKS][MAX_LANES];
    unsigned char *slots[MAX_RANKS][MAX_LANES];
    struct frame_pool pool; /* of buffers for frames in hand */
    struct room_slot room_slots[MAX_RANKS][MAX_LANES][MAX_SLOTS];
    struct channel data[MAX_RANKS][MAX_RANKS][MAX_LANES];
    struct channel control[MAX_RANKS][MAX_RANKS];
};

static uint32_t draw(struct cluster *c, uint32_t bound)
{
    return (uint32_t)rng_below(&c->rng, bound);
}

/* ---- Making operations -------------------------------------------------------------------------------------------- */

static bool is_float(enum dtype type)
{
    return type == DTYPE_F16 || type == DTYPE_BF16 || type == DTYPE_F32 || type == DTYPE_F64;
}

/* Finite values of mixed sign and size, so that the order of folding shows in the bits; NaNs only where asked for. */
static void fill(struct cluster *c, enum dtype type, unsigned char *to, size_t count, bool nans)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = rng_next(&c->rng);
        double d = ((double)(bits >> 11) / (double)(1 << 26) / (double)(1 << 26) - 0.7) * (double)(1 + (bits & 63));
        float f = (float)d;
        uint16_t half = (uint16_t)((bits & 0x83FF) | 0x3800), bhalf = (uint16_t)((bits & 0x807F) | 0x3F80);
        if (nans && bits % 5 == 0) {
            uint32_t nan32 = 0x7FC00001u | (uint32_t)(bits >> 40 & 0x80000FFF);
            uint64_t nan64 = UINT64_C(0x7FF8000000000001) | (bits & UINT64_C(0x8000000000FFFFF0));
            memcpy(&f, &nan32, 4);
            memcpy(&d, &nan64, 8);
            half |= 0x7E00;
            bhalf |= 0x7FC0;
        }
        const void *from = type == DTYPE_F16    ? (void *)&half
                           : type == DTYPE_BF16 ? (void *)&bhalf
                           : type == DTYPE_F32  ? (void *)&f
                           : type == DTYPE_F64  ? (void *)&d
                                                : (void *)&bits;
        memcpy(to + i * dtype_size(type), from, dtype_size(type));
    }
}

/* What rank `r` multiplies its input by, where that is done: the bits of -1.5, 0.5, 2.5, 4.5 ... */
static struct numeric share_numeric(const struct cluster *c, uint32_t r, uint32_t o)
{
    struct numeric n = c->ops[o].numeric;
    double d = 2 * (double)r - 1.5;
    float f = (float)d;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint16_t half = half_f16_narrow_bits(bits), bhalf = (uint16_t)(bits >> 16);
    const void *from = n.dtype == DTYPE_F16 ? (void *)&half : n.dtype == DTYPE_BF16 ? (void *)&bhalf : n.dtype == DTYPE_F32 ? (void *)&f : (void *)&d;
    n.factor = 0;
    memcpy(&n.factor, from, dtype_size(n.dtype));
    return n;
}

/* The sum of a range in the order of a chain, without frames or slots: rank chain[0] first.  From `in` of each, to `out`. */
static void reduce_range(const struct cluster *c, uint32_t o, size_t in, unsigned char *out, size_t count, const uint32_t *chain)
{
    const struct numeric *n = &c->ops[o].numeric;
    size_t offset = numeric_user_bytes(n, in);
    if (count == 0) {
        return;
    }
    if (n->plain) {
        memcpy(out, c->shares[chain[0]][o].in_copy + offset, numeric_user_bytes(n, count));
        for (uint32_t i = 1; i < c->world; i++) {
            numeric_fold_plain(n, out, out, c->shares[chain[i]][o].in_copy + offset, count);
        }
        numeric_finish_plain(n, out, count, c->world);
    } else {
        void *wire = malloc(numeric_wire_bytes(n, count)), *acc = malloc(numeric_acc_bytes(n, count));
        for (uint32_t i = 0; i < c->world; i++) {
            struct numeric own = share_numeric(c, chain[i], o);
            numeric_encode(&own, wire, c->shares[chain[i]][o].in_copy + offset, count);
            if (i == 0) {
                numeric_load(n, acc, wire, count);
            } else {
                numeric_fold(n, acc, wire, count);
            }
        }
        numeric_finish(n, out, wire, acc, count, c->world);
        free(wire);
        free(acc);
    }
}

/* The sum of a subtree: `behind` the root, the children within `bit`.  The nearest child first, then the own input. */
static void reduce_tree(const struct cluster *c, uint32_t o, unsigned char *out, uint32_t behind, uint32_t bit)
{
    const struct numeric *n = &c->ops[o].numeric;
    size_t count = c->ops[o].params.count, bytes = numeric_user_bytes(n, count);
    const unsigned char *own = c->shares[(c->ops[o].params.root + behind) % c->world][o].in_copy;
    unsigned char *child = malloc(bytes + 1);
    memcpy(out, own, bytes);
    for (uint32_t b = 1; b < bit && behind + b < c->world; b *= 2) {
        reduce_tree(c, o, child, behind + b, b);
        numeric_fold_plain(n, out, b == 1 ? child : out, b == 1 ? own : child, count);
    }
    free(child);
}

/* The sum that `rank` has of one range when it has folded those across all bits above `stop`. */
static void reduce_halving(const struct cluster *c, uint32_t o, size_t in, unsigned char *out, size_t count, uint32_t rank, uint32_t stop)
{
    const struct numeric *n = &c->ops[o].numeric;
    size_t offset = numeric_user_bytes(n, in), bytes = numeric_user_bytes(n, count);
    const unsigned char *own = c->shares[rank][o].in_copy + offset;
    uint32_t power = plan_power(c->world);
    unsigned char *child = malloc(bytes + 1);
    bool begun = rank + power < c->world;
    if (begun) {
        numeric_fold_plain(n, out, c->shares[rank + power][o].in_copy + offset, own, count);
    } else {
        memcpy(out, own, bytes);
    }
    for (uint32_t across = power / 2; across > stop; across /= 2) {
        reduce_halving(c, o, in, child, count, rank ^ across, across);
        numeric_fold_plain(n, out, begun ? out : child, begun ? child : own, count);
        begun = true;
    }
    free(child);
}

/* The sum of a range of those below `rank` in a tree: its own input, then its children's sums by rank. */
static void reduce_branch(const struct cluster *c, uint32_t o, uint32_t tree, size_t in, unsigned char *out, size_t count, uint32_t rank)
{
    const struct numeric *n = &c->ops[o].numeric;
    const uint16_t *parent = c->ops[o].parent + (size_t)tree * c->world;
    unsigned char *child = malloc(numeric_user_bytes(n, count) + 1);
    memcpy(out, c->shares[rank][o].in_copy + numeric_user_bytes(n, in), numeric_user_bytes(n, count));
    for (uint32_t r = 0; r < c->world; r++) {
        if (r != rank && parent[r] == rank) {
            reduce_branch(c, o, tree, in, child, count, r);
            numeric_fold_plain(n, out, out, child, count);
        }
    }
    free(child);
}

static void expect_sum(struct cluster *c, uint32_t o, uint32_t r)
{
    const struct operation *op = &c->ops[o];
    struct share *share = &c->shares[r][o];
    const struct plan *plan = &share->plan;
    if (op->params.algorithm == PLAN_TREE) {
        reduce_tree(c, o, share->expected, 0, 64);
        numeric_finish_plain(&op->numeric, share->expected, op->params.count, c->world);
    }
    for (uint32_t s = 0; op->params.algorithm != PLAN_TREE && s < plan->segment_count; s++) {
        uint32_t chain[MAX_RANKS];
        if (op->params.algorithm == PLAN_HALVING) {
            unsigned char *sum = share->expected + numeric_user_bytes(&op->numeric, plan->segments[s].out);
            reduce_halving(c, o, plan->segments[s].in, sum, plan->segments[s].count, s, 0);
            numeric_finish_plain(&op->numeric, sum, plan->segments[s].count, c->world);
            continue;
        }
        if (op->params.algorithm == PLAN_FOREST) { /* rounds of all trees, one after the other */
            uint32_t tree = s % op->trees.count;
            unsigned char *sum = share->expected + numeric_user_bytes(&op->numeric, plan->segments[s].out);
            reduce_branch(c, o, tree, plan->segments[s].in, sum, plan->segments[s].count, tree_set_root(&op->trees, tree));
            numeric_finish_plain(&op->numeric, sum, plan->segments[s].count, c->world);
            continue;
        }
        for (uint32_t i = 0; i < c->world; i++) {
            bool ring = op->params.algorithm == PLAN_RING;
            chain[i] = ring ? op->ring[(s + 1 + i) % c->world] : i;
        }
        reduce_range(c, o, plan->segments[s].in, share->expected + numeric_user_bytes(&op->numeric, plan->segments[s].out),
                     plan->segments[s].count, chain);
    }
    if (op->params.algorithm == PLAN_TINY) {
        numeric_canonical(&op->numeric, share->expected, op->params.count);
    }
}

/* At the root: in the order of ranks, of the ring that ends there, or of the tree. */
static void expect_reduce(const struct cluster *c, uint32_t o, unsigned char *out)
{
    const struct operation *op = &c->ops[o];
    uint32_t chain[MAX_RANKS], at = 0;
    if (op->params.algorithm == PLAN_TREE) {
        reduce_tree(c, o, out, 0, 64);
        numeric_finish_plain(&op->numeric, out, op->params.count, c->world);
        return;
    }
    while (op->ring[at] != op->params.root) {
        at++;
    }
    for (uint32_t i = 0; i < c->world; i++) {
        chain[i] = op->params.algorithm == PLAN_CHAIN ? op->ring[(at + 1 + i) % c->world] : i;
    }
    reduce_range(c, o, 0, out, op->params.count, chain);
}

/* Elements of a list before `n`. */
static size_t sum_of(const size_t *list, uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += list[i];
    }
    return sum;
}

static void expect_copy(const struct cluster *c, uint32_t o, struct share *to, size_t out, uint32_t from, size_t in, size_t count)
{
    size_t size = dtype_size(c->ops[o].numeric.dtype);
    memcpy(to->expected + out * size, c->shares[from][o].in_copy + in * size, count * size);
}

/* What each rank is to have, by what the kind promises. */
static void op_expect(struct cluster *c, uint32_t o)
{
    const struct operation *op = &c->ops[o];
    uint32_t order[MAX_RANKS], root = op->params.root;
    for (uint32_t r = 0; r < c->world; r++) {
        order[r] = r;
    }
    for (uint32_t r = 0; r < c->world; r++) {
        struct share *s = &c->shares[r][o];
        size_t before = sum_of(op->parts[0], r), part = op->parts[0][r];
        switch ((int)op->params.kind) {
        case PLAN_ALL_REDUCE:
            expect_sum(c, o, r);
            break;
        case PLAN_REDUCE_SCATTER:
            reduce_range(c, o, before, s->expected, part, order);
            break;
        case PLAN_BROADCAST:
            expect_copy(c, o, s, 0, root, 0, op->params.count);
            break;
        case PLAN_REDUCE:
            if (r == root) {
                expect_reduce(c, o, s->expected);
            }
            break;
        case PLAN_SCATTER:
            expect_copy(c, o, s, 0, root, before, part);
            break;
        default:
            for (uint32_t i = 0; i < c->world && (op->params.kind != PLAN_GATHER || r == root); i++) {
                bool gather = op->params.kind == PLAN_ALL_GATHER || op->params.kind == PLAN_GATHER;
                size_t column = 0;
                for (uint32_t k = 0; k < i; k++) {
                    column += op->parts[k][r];
                }
                expect_copy(c, o, s, gather ? sum_of(op->parts[0], i) : column, i, gather ? 0 : sum_of(op->parts[i], r),
                            op->parts[gather ? 0 : i][gather ? i : r]);
            }
            break;
        }
    }
}

struct op_choice {
    enum plan_kind kind;
    enum plan_algorithm algorithm;
    enum dtype dtype;
    enum redop op;
    enum quant quant;
    enum dtype quant_dtype;
    size_t count;
    bool even; /* no weights, equal parts */
};

/* How much each rank has and gets. */
static void op_sizes(struct cluster *c, uint32_t o, const struct op_choice *choice)
{
    struct operation *op = &c->ops[o];
    bool pairs = choice->kind == PLAN_ALL_TO_ALL, packs = plan_packs(choice->kind, choice->algorithm);
    bool even = choice->even || packs || (pairs && choice->algorithm == PLAN_DIRECT);
    for (uint32_t r = 0; r < (pairs ? c->world : 1); r++) {
        for (uint32_t t = 0; t < c->world; t++) {
            op->parts[r][t] = even ? choice->count : draw(c, 3) == 0 ? 0 : draw(c, 1 + (uint32_t)choice->count);
        }
    }
    for (uint32_t r = 0; r < c->world; r++) {
        struct share *s = &c->shares[r][o];
        size_t all = sum_of(op->parts[0], c->world), column = 0;
        for (uint32_t t = 0; t < c->world; t++) {
            column += op->parts[t][r];
        }
        const size_t in[PLAN_KINDS] = {choice->count, all, op->parts[0][r], r == op->params.root ? choice->count : 0,
                                       r == op->params.root ? all : 0, sum_of(op->parts[r], c->world), choice->count, op->parts[0][r]};
        bool root = r == op->params.root;
        const size_t out[PLAN_KINDS] = {choice->count, op->parts[0][r], all, choice->count, op->parts[0][r], column,
                                        root ? choice->count : 0, root ? all : 0};
        s->in_count = in[choice->kind];
        s->out_count = out[choice->kind];
        s->in_bytes = numeric_user_bytes(&op->numeric, s->in_count);
        s->out_bytes = numeric_user_bytes(&op->numeric, s->out_count);
    }
}

static void share_make(struct cluster *c, uint32_t r, uint32_t o, const struct op_choice *choice)
{
    struct operation *op = &c->ops[o];
    struct share *s = &c->shares[r][o];
    struct plan_params *p = &op->params;
    bool sums = plan_kind_sums((uint8_t)p->kind), pairs = p->kind == PLAN_ALL_TO_ALL;
    p->rank = r;
    s->numeric = share_numeric(c, r, o);
    for (uint32_t t = 0; t < c->world; t++) {
        op->out_parts[t] = op->parts[t][r];
    }
    p->parts.counts = pairs ? op->parts[r] : p->kind == PLAN_ALL_REDUCE || p->kind == PLAN_BROADCAST || p->kind == PLAN_REDUCE ? NULL : op->parts[0];
    p->out_parts.counts = pairs ? op->out_parts : NULL;
    EXPECT(plan_max_pieces(p) <= sizeof s->pieces / sizeof s->pieces[0]);
    s->segments = calloc(plan_max_segments(p) + 1, sizeof *s->segments);
    s->steps = calloc(plan_max_steps(p) + 1, sizeof *s->steps);
    plan_make(&s->plan, p, s->segments, s->steps, s->pieces, s->partners);
    bool over = p->kind == PLAN_ALL_REDUCE || (p->kind == PLAN_REDUCE && r == p->root); /* sums may be written where the input lies */
    s->in_place = (over || p->kind == PLAN_ALL_GATHER || (p->kind == PLAN_BROADCAST && r == p->root)) && draw(c, 2) == 0;
    if (over && s->in_place) {
        s->backup = malloc(s->in_bytes + 1);
        memset(s->backup, 0xB5, s->in_bytes + 1);
        s->saved = calloc(s->plan.frame_count + 1, 1);
    }
    s->out = malloc(s->out_bytes + 1);
    memset(s->out, 0xA5, s->out_bytes + 1);
    s->scratch = malloc(numeric_user_bytes(&s->numeric, s->plan.scratch) + 1); /* exactly: sanitizers see who goes beyond */
    size_t place = p->kind == PLAN_ALL_GATHER ? sum_of(op->parts[0], r) * dtype_size(choice->dtype) : 0;
    s->in = s->in_place ? s->out + place : malloc(s->in_bytes + 1);
    s->in_copy = malloc(s->in_bytes + 1);
    s->expected = malloc(s->out_bytes + 1);
    fill(c, choice->dtype, s->in, s->in_count, sums && choice->algorithm == PLAN_TINY && is_float(choice->dtype) && choice->quant == QUANT_NONE);
    memcpy(s->in_copy, s->in, s->in_bytes);
}

static void op_make(struct cluster *c, uint32_t o, const struct op_choice *choice)
{
    struct operation *op = &c->ops[o];
    EXPECT(numeric_init(&op->numeric, choice->dtype, choice->op, choice->quant, choice->quant_dtype, kernels_get()));
    if (!op->numeric.plain) {
        EXPECT(!plan_sends_sums(choice->algorithm) || !plan_kind_sums((uint8_t)choice->kind));
    }
    op->params = (struct plan_params){.kind = choice->kind, .algorithm = choice->algorithm, .world = c->world, .count = choice->count,
                                      .root = draw(c, c->world), .lanes = plan_packs(choice->kind, choice->algorithm) ? 1 : c->lane_count};
    op->params.align = choice->quant != QUANT_NONE ? NUMERIC_BLOCK : 1;
    op->params.frame_elements = op->params.align * (1 + draw(c, choice->quant != QUANT_NONE ? 2 : 16));
    for (uint32_t i = 0; i < c->world; i++) {
        uint32_t j = draw(c, i + 1);
        op->ring[i] = op->ring[j];
        op->ring[j] = i;
        op->weights[i] = draw(c, 3) == 0 ? 0 : draw(c, 50);
    }
    op->weights[draw(c, c->world)] = 9;
    draw_trees(&c->rng, c->world, draw(c, 3) == 0 ? TREE_SET_MOST : 4, &op->trees, op->parent);
    op->params.trees = &op->trees;
    op->params.ring = op->ring;
    op->params.weights = choice->even || draw(c, 2) == 0 ? NULL : op->weights;
    size_t wire = numeric_wire_bytes(&op->numeric, op->params.frame_elements);
    c->slot_bytes = wire > c->slot_bytes ? wire : c->slot_bytes;
    op_sizes(c, o, choice);
    for (uint32_t r = 0; r < c->world; r++) {
        share_make(c, r, o, choice);
    }
    op_expect(c, o);
}

static bool op_possible(const struct op_choice *choice, const struct numeric *n)
{
    bool sums = plan_kind_sums((uint8_t)choice->kind);
    bool partial = plan_sends_sums(choice->algorithm);
    bool possible = plan_kind_sums((uint8_t)choice->kind) ? redop_for(choice->op, choice->dtype) : n->op != REDOP_PREMUL;
    return possible && plan_offers(choice->kind, choice->algorithm) && (choice->kind == PLAN_ALL_REDUCE || choice->quant == QUANT_NONE) &&
           (!sums || !partial || n->plain);
}

/* A random combination that plans and numeric offer. */
static struct op_choice op_draw(struct cluster *c)
{
    const size_t counts[] = {0, 1, c->world - 1, c->world, c->world + 1, 97, 256, 611, 1000};
    struct op_choice choice;
    struct numeric n;
    do {
        choice = (struct op_choice){.kind = draw(c, 2) ? PLAN_ALL_REDUCE : (enum plan_kind)draw(c, PLAN_SEND),
                                    .algorithm = (enum plan_algorithm)draw(c, PLAN_ALGORITHMS),
                                    .dtype = (enum dtype)draw(c, DTYPE_COUNT),
                                    .op = (enum redop)draw(c, REDOP_COUNT),
                                    .quant = draw(c, 2) ? QUANT_NONE : (enum quant)draw(c, QUANT_COUNT),
                                    .quant_dtype = (enum dtype)draw(c, DTYPE_COUNT),
                                    .count = counts[draw(c, sizeof(counts) / sizeof(counts[0]))]};
    } while (!numeric_init(&n, choice.dtype, choice.op, choice.quant, choice.quant_dtype, kernels_get()) ||
             !op_possible(&choice, &n));
    return choice;
}

#endif
