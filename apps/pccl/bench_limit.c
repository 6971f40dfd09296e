/* bench_limit.c - the plain form of each collective: a ring with the reduction done, a chain, or a direct exchange.
 *
 * One idea: a leg is a range of bytes that goes out to one rank or comes in from one; legs with one rank and direction follow
 * one another, and a leg may follow another one byte by byte, as a ring sends on what it has just reduced.  Everything is
 * moved by one thread that never sleeps, in pieces that stay in cache; small all-reduces take one hop, since their time
 * is that of hops.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_limit.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LEGS = 4 * BENCH_LINKS_MOST, IDLE_PASSES = 64, ONE_HOP_BYTES = 16 << 10, COPY_PIECE = 64 << 10, NOTHING = -1 };

struct leg {
    unsigned peer;
    bool out;
    unsigned char *at;         /* from where, or to where */
    const unsigned char *with; /* in: folded with what stands there; null: comes as it is */
    size_t bytes, done;
    int after;                 /* out: not beyond what this leg has done; NOTHING: free */
};

struct bench_limit {
    struct leg legs[MOST_LEGS];
    int count;
    struct bench_links *links; /* borrowed */
    struct numeric numeric;
    size_t element;
    unsigned char *scratch;    /* owned; null: not needed */
    unsigned char *copy_to;    /* the own part goes there; null: it is there */
    const unsigned char *copy_from;
    size_t copy_bytes, copied;
    bool copy_first;           /* what comes is folded with it */
};

static int add(struct bench_limit *m, struct leg leg)
{
    m->legs[m->count] = leg;
    return m->count++;
}

static int add_out(struct bench_limit *m, unsigned to, unsigned char *at, size_t bytes, int after)
{
    return add(m, (struct leg){.peer = to, .out = true, .at = at, .bytes = bytes, .after = after});
}

static int add_in(struct bench_limit *m, unsigned from, unsigned char *at, const unsigned char *with, size_t bytes)
{
    return add(m, (struct leg){.peer = from, .at = at, .with = with, .bytes = bytes, .after = NOTHING});
}

static void set_copy(struct bench_limit *m, unsigned char *to, const unsigned char *from, size_t bytes)
{
    m->copy_to = to;
    m->copy_from = from;
    m->copy_bytes = bytes;
}

/* Where chunk c of an all-reduce begins, in bytes; that of chunk W is the end. */
static size_t cut(const struct bench_args *a, unsigned c, size_t element)
{
    return a->count * c / a->world * element;
}

/* The rank that many steps before this one in the ring. */
static unsigned before(const struct bench_args *a, unsigned steps)
{
    return (a->rank + 2 * a->world - steps) % a->world;
}

static void plan_ring_all_reduce(struct bench_limit *m, const struct bench_args *a)
{
    int last = NOTHING;
    for (unsigned s = 0; s < 2 * (a->world - 1); s++) {
        bool folds = s < a->world - 1;
        unsigned goes = before(a, s), comes = before(a, s + 1);
        size_t from = cut(a, goes, m->element), to = cut(a, comes, m->element);
        (void)add_out(m, before(a, a->world - 1), (s == 0 ? a->send : a->recv) + from, cut(a, goes + 1, m->element) - from,
                      last);
        last = add_in(m, before(a, 1), a->recv + to, folds ? a->send + to : NULL, cut(a, comes + 1, m->element) - to);
    }
}

static void plan_one_hop(struct bench_limit *m, const struct bench_args *a)
{
    size_t bytes = a->count * m->element;
    set_copy(m, a->recv, a->send, bytes);
    m->copy_first = true;
    for (unsigned d = 1; d < a->world; d++) {
        (void)add_out(m, before(a, d), a->send, bytes, NOTHING);
        (void)add_in(m, before(a, a->world - d), a->recv, a->recv, bytes);
    }
}

/* Part r of what is summed ends at rank r; sums on their way lie in scratch. */
static bool plan_reduce_scatter(struct bench_limit *m, const struct bench_args *a)
{
    size_t bytes = a->count * m->element;
    m->scratch = malloc(bytes * a->world + 1);
    int last = NOTHING;
    for (unsigned s = 0; s < a->world - 1; s++) {
        unsigned goes = before(a, s + 1), comes = before(a, s + 2);
        (void)add_out(m, before(a, a->world - 1), s == 0 ? a->send + goes * bytes : m->scratch + goes * bytes, bytes, last);
        last = add_in(m, before(a, 1), s == a->world - 2 ? a->recv : m->scratch + comes * bytes, a->send + comes * bytes,
                      bytes);
    }
    return m->scratch != NULL;
}

static void plan_all_gather(struct bench_limit *m, const struct bench_args *a)
{
    size_t bytes = a->count * m->element;
    int last = NOTHING;
    set_copy(m, a->recv + a->rank * bytes, a->send, bytes);
    for (unsigned s = 0; s < a->world - 1; s++) {
        (void)add_out(m, before(a, a->world - 1), s == 0 ? a->send : a->recv + before(a, s) * bytes, bytes, last);
        last = add_in(m, before(a, 1), a->recv + before(a, s + 1) * bytes, NULL, bytes);
    }
}

/* From the root on: each sends on what comes.  To the root: the same, begun at the one behind it, and folded. */
static void plan_chain(struct bench_limit *m, const struct bench_args *a, bool folds)
{
    size_t bytes = a->count * m->element;
    unsigned at = (a->rank + a->world - a->root + (folds ? a->world - 1 : 0)) % a->world;
    unsigned char *own = folds || a->rank == a->root ? a->send : a->recv;
    int last = NOTHING;
    if (at > 0) {
        last = add_in(m, before(a, 1), a->recv, folds ? own : NULL, bytes);
        own = a->recv;
    }
    if (at < a->world - 1) {
        (void)add_out(m, before(a, a->world - 1), own, bytes, last);
    }
    if (!folds && a->rank == a->root) {
        set_copy(m, a->recv, a->send, bytes);
    }
}

/* Each part from whom it is to whom it goes, at once. */
static void plan_exchange(struct bench_limit *m, const struct bench_call *call, const struct bench_args *a)
{
    size_t bytes = a->count * m->element;
    bool gives = !call->in_root || a->rank == a->root, gets = !call->out_root || a->rank == a->root;
    for (unsigned d = 1; d < a->world; d++) {
        unsigned to = before(a, a->world - d), from = before(a, d);
        if (gives && (!call->out_root || to == a->root)) {
            (void)add_out(m, to, a->send + (call->in == BENCH_ALL ? to * bytes : 0), bytes, NOTHING);
        }
        if (gets && (!call->in_root || from == a->root)) {
            (void)add_in(m, from, a->recv + (call->out == BENCH_ALL ? from * bytes : 0), NULL, bytes);
        }
    }
    if (gives && gets) {
        set_copy(m, a->recv + (call->out == BENCH_ALL ? a->rank * bytes : 0),
                 a->send + (call->in == BENCH_ALL ? a->rank * bytes : 0), bytes);
    }
}

static bool plan(struct bench_limit *m, const struct bench_call *call, const struct bench_args *a)
{
    if (call->reduces && call->both_ways) {
        if (a->count * m->element <= ONE_HOP_BYTES) {
            plan_one_hop(m, a);
        } else {
            plan_ring_all_reduce(m, a);
        }
    } else if (call->messages) {
        (void)add_out(m, before(a, a->world - 1), a->send, a->count * m->element, NOTHING);
        (void)add_in(m, before(a, 1), a->recv, NULL, a->count * m->element);
    } else if (call->in == BENCH_ONE && call->out == BENCH_ONE) {
        plan_chain(m, a, call->reduces);
    } else if (call->reduces) {
        return plan_reduce_scatter(m, a);
    } else if (call->in == BENCH_ONE && !call->out_root) {
        plan_all_gather(m, a);
    } else {
        plan_exchange(m, call, a);
    }
    return true;
}

struct bench_limit *bench_limit_new(const struct bench_call *call, const struct bench_args *a, struct bench_links *links)
{
    bool plain = links != NULL && a->world > 1 && !call->uneven && !call->barrier;
    struct bench_limit *m = plain ? calloc(1, sizeof *m) : NULL;
    if (m == NULL) {
        return NULL;
    }
    m->links = links;
    m->element = dtype_size(a->type);
    bool ok = numeric_init(&m->numeric, a->type, a->op, QUANT_NONE, DTYPE_F32, kernels_get());
    if (!ok || (call->reduces && (!m->numeric.plain || a->op == REDOP_AVG)) || !plan(m, call, a)) {
        bench_limit_free(m);
        return NULL;
    }
    return m;
}

void bench_limit_free(struct bench_limit *m)
{
    if (m != NULL) {
        free(m->scratch);
        free(m);
    }
}

/* The bytes that moved; -1: the link broke. */
static long move_out(struct bench_limit *m, struct leg *leg)
{
    size_t there = leg->after == NOTHING ? leg->bytes : m->legs[leg->after].done;
    there = there < leg->bytes ? there : leg->bytes;
    return there > leg->done ? bench_links_send(m->links, leg->peer, leg->at + leg->done, there - leg->done) : 0;
}

static long move_in(struct bench_limit *m, struct leg *leg)
{
    const unsigned char *lent = NULL;
    size_t left = leg->bytes - leg->done;
    if (leg->with == NULL) {
        return bench_links_receive(m->links, leg->peer, leg->at + leg->done, left);
    }
    long n = bench_links_lend(m->links, leg->peer, m->element, left, &lent);
    if (n > 0) {
        numeric_fold_plain(&m->numeric, leg->at + leg->done, leg->with + leg->done, lent, (size_t)n / m->element);
        bench_links_return(m->links, leg->peer, (size_t)n);
    }
    return n;
}

/* Whether an earlier leg of the same rank and direction is still under way. */
static bool waits(const struct bench_limit *m, int index)
{
    const struct leg *leg = &m->legs[index];
    for (int i = 0; i < index; i++) {
        const struct leg *other = &m->legs[i];
        if (other->peer == leg->peer && other->out == leg->out && other->done < other->bytes) {
            return true;
        }
    }
    return false;
}

/* Of the own part, beside what moves. */
static size_t copy(struct bench_limit *m, size_t most)
{
    size_t left = m->copy_to != NULL ? m->copy_bytes - m->copied : 0, n = left < most ? left : most;
    if (n > 0) {
        memcpy(m->copy_to + m->copied, m->copy_from + m->copied, n);
        m->copied += n;
    }
    return n;
}

static void begin(struct bench_limit *m)
{
    for (int i = 0; i < m->count; i++) {
        m->legs[i].done = 0;
    }
    m->copied = 0;
    if (m->copy_first) {
        (void)copy(m, m->copy_bytes);
    }
}

bool bench_limit_run(struct bench_limit *m)
{
    int first = 0, idle = 0;
    bool ok = true, copied = false;
    begin(m);
    while (ok && (first < m->count || !copied)) {
        long all = (long)copy(m, COPY_PIECE);
        copied = all == 0;
        for (int i = first; i < m->count && ok; i++) {
            struct leg *leg = &m->legs[i];
            if (leg->done == leg->bytes || waits(m, i)) {
                continue;
            }
            long n = leg->out ? move_out(m, leg) : move_in(m, leg);
            ok = n >= 0;
            leg->done += ok ? (size_t)n : 0;
            all += n;
        }
        while (first < m->count && m->legs[first].done == m->legs[first].bytes) {
            first++;
        }
        idle = all > 0 ? 0 : idle + 1;
        if (idle > IDLE_PASSES) {
            sched_yield(); /* there may be more ranks than processors */
        }
    }
    return ok;
}
