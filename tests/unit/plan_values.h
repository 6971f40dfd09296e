/* plan_values.h - runs the programs of all ranks over symbolic values: a value is who gave what to it, and how it was folded.
 *
 * Each rank must end with what the kind promises, each contribution exactly once, by the same expression everywhere, and every GIVE
 * and SEND must meet its FOLD or RECV over a range of the same size, under the same names and on the same lane.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_UNIT_PLAN_VALUES_H
#define PCCL_TESTS_UNIT_PLAN_VALUES_H

#include "collectives/plan.h"

#include "core/mix.h"
#include "core/random.h"
#include "tests/testing.h"

enum { MAX_WORLD = 128, GUARD = 0x5A5A5A5A };

struct value {
    uint64_t ranks[MAX_WORLD / 64]; /* whose contributions are in */
    uint64_t expression;            /* hash of how they were folded */
    size_t place;                   /* of the contribution in the input of each of them */
    bool own, final;                /* own: still the own input */
};

/* One value in flight per pair is all that a segment's program can have; of pairs, one that others wait for. */
struct mailbox {
    struct value value[2]; /* by phase */
    uint32_t wire[2];      /* under this name */
    bool full[2];
};

struct world {
    struct plan_params params;
    struct plan plans[MAX_WORLD];
    struct plan_segment *segments;
    struct plan_step *steps;
    struct plan_piece *pieces;
    uint32_t *partners;
    uint32_t max_segments, max_steps, max_pieces, max_partners;
};

static struct mailbox mail[MAX_WORLD][MAX_WORLD]; /* from, to */
static size_t mail_full;                          /* of them, by phase */

/* What differs by rank in a plan whose counts only pairs know. */
typedef void params_of(struct plan_params *params, const void *user);

static struct world world_make(struct plan_params params, params_of *of, const void *user)
{
    struct plan_params most = params; /* no rank has more to do than the root, but for forests */
    most.rank = params.root;
    struct world w = {.params = params,
                      .max_segments = plan_max_segments(&most),
                      .max_steps = plan_max_steps(&most),
                      .max_pieces = plan_max_pieces(&most),
                      .max_partners = plan_max_partners(&most)};
    for (most.rank = 0; params.trees != NULL && most.rank < params.world; most.rank++) {
        w.max_steps = plan_max_steps(&most) > w.max_steps ? plan_max_steps(&most) : w.max_steps;
        w.max_partners = plan_max_partners(&most) > w.max_partners ? plan_max_partners(&most) : w.max_partners;
    }
    w.segments = calloc((size_t)params.world * (w.max_segments + 1), sizeof(*w.segments));
    w.steps = calloc((size_t)params.world * (w.max_steps + 1), sizeof(*w.steps));
    w.pieces = calloc((size_t)params.world * (w.max_pieces + 1), sizeof(*w.pieces));
    w.partners = calloc((size_t)params.world * (w.max_partners + 1), sizeof(*w.partners));
    for (uint32_t r = 0; r < params.world; r++) {
        struct plan_segment *segments = w.segments + (size_t)r * (w.max_segments + 1);
        struct plan_step *steps = w.steps + (size_t)r * (w.max_steps + 1);
        struct plan_piece *pieces = w.pieces + (size_t)r * (w.max_pieces + 1);
        uint32_t *partners = w.partners + (size_t)r * (w.max_partners + 1);
        segments[w.max_segments].frame = GUARD;
        steps[w.max_steps].kind = GUARD;
        pieces[w.max_pieces].scratch = GUARD;
        partners[w.max_partners] = GUARD;
        params.rank = r;
        if (of != NULL) {
            of(&params, user);
        }
        plan_make(&w.plans[r], &params, segments, steps, pieces, partners);
        EXPECT_EQ(segments[w.max_segments].frame, GUARD);
        EXPECT_EQ(steps[w.max_steps].kind, GUARD);
        EXPECT_EQ(pieces[w.max_pieces].scratch, GUARD);
        EXPECT_EQ(partners[w.max_partners], GUARD);
        EXPECT(w.plans[r].segment_count <= w.max_segments && w.plans[r].step_count <= w.max_steps);
        EXPECT(w.plans[r].params.ring == NULL && w.plans[r].params.weights == NULL && w.plans[r].params.parts.counts == NULL);
        EXPECT(w.plans[r].params.apart == NULL && w.plans[r].params.trees == NULL);
    }
    return w;
}

static void world_free(struct world *w)
{
    free(w->segments);
    free(w->steps);
    free(w->pieces);
    free(w->partners);
}

/* Frames tile the segments. */
static void check_frames(const struct plan *p)
{
    uint32_t frame = 0;
    size_t most = p->params.frame_elements;
    for (uint32_t i = 0; i < p->segment_count; i++) {
        const struct plan_segment *s = &p->segments[i];
        EXPECT(s->frame >= frame && (p->pairwise || s->frame == frame));
        EXPECT_EQ(s->frames, (s->count + most - 1) / most);
        for (uint32_t f = 0; f < s->frames; f += f + 1 < s->frames && s->frames > 20 ? s->frames - f - 1 : 1) {
            size_t offset, count;
            EXPECT(plan_frame(p, s->frame + f, &offset, &count) == s);
            EXPECT_EQ(offset, f * most);
            EXPECT(count > 0 && count <= most);
            EXPECT(f + 1 < s->frames ? count == most : offset + count == s->count);
        }
        frame = s->frame + s->frames;
    }
    EXPECT_EQ(frame, p->frame_count);
}

/* Segments of a cut tile the elements at multiples of align; all ranks agree on segments that are not of pairs. */
static void check_layout(const struct world *w)
{
    const struct plan_params *q = &w->params;
    const struct plan *a = &w->plans[0];
    bool cut = q->kind == PLAN_ALL_REDUCE || q->kind == PLAN_BROADCAST || q->kind == PLAN_REDUCE;
    size_t next = 0;
    for (uint32_t i = 0; cut && i < a->segment_count; i++) {
        const struct plan_segment *s = &a->segments[i];
        EXPECT(s->in == next && (s->scratch || s->out == next));
        EXPECT(s->in % q->align == 0 || s->count == 0);
        next += s->count;
    }
    EXPECT(!cut || next == q->count);
    for (uint32_t r = 0; r < q->world; r++) {
        const struct plan *b = &w->plans[r];
        check_frames(b);
        EXPECT(a->pairwise || (b->segment_count == a->segment_count && b->frame_count == a->frame_count));
        for (uint32_t i = 0; !a->pairwise && i < a->segment_count; i++) {
            const struct plan_segment *s = &a->segments[i], *t = &b->segments[i];
            EXPECT(s->in == t->in && s->count == t->count && s->frame == t->frame && s->wire == t->wire);
            EXPECT(s->wire == s->frame || s->pieces > 0); /* what is packed has the name under which it comes */
            EXPECT(s->scratch || t->scratch || s->out == t->out);
        }
    }
}

/* The two ends of what `from` sends: the same bytes, under a name that leads to them, on the same lane. */
static void check_names(const struct world *w, uint32_t from, const struct plan_segment *s, uint32_t to)
{
    uint32_t lanes = w->params.lanes > 0 ? w->params.lanes : 1, first = UINT32_MAX;
    const struct plan *there = &w->plans[to];
    for (uint32_t f = 0; f < s->frames; f += s->frames > 1 && f == 0 ? s->frames - 1 : 1) {
        size_t offset, count;
        uint32_t wire = plan_wire(&w->plans[from], s, s->frame + f), heard = plan_heard(there, from, wire);
        EXPECT(heard < there->frame_count);
        const struct plan_segment *t = heard < there->frame_count ? plan_frame(there, heard, &offset, &count) : s;
        EXPECT(s->count == t->count && heard == t->frame + f);
        EXPECT_EQ(heard % lanes, (s->frame + f) % lanes);
        first = f == 0 ? t->frame : first;
        EXPECT(first == t->frame && (there->pairwise || t->frame == s->wire));
    }
    if (there->pairwise) {
        EXPECT_EQ(plan_heard(there, from, s->wire + s->frames), UINT32_MAX);
    }
}

static void fold(struct value *v, const struct value *a, const struct value *b)
{
    struct value sum = {.expression = mix64(a->expression, b->expression), .place = a->place};
    EXPECT_EQ(a->place, b->place);
    for (int i = 0; i < MAX_WORLD / 64; i++) {
        EXPECT((a->ranks[i] & b->ranks[i]) == 0); /* nobody twice */
        sum.ranks[i] = a->ranks[i] | b->ranks[i];
    }
    *v = sum;
}

static struct value input(uint32_t rank, const struct plan_segment *s)
{
    struct value v = {.expression = rank + 1, .place = s->in, .own = true};
    v.ranks[rank / 64] = UINT64_C(1) << rank % 64;
    return v;
}

/* Does one step if it can; false if it must wait.  `folded`: something was folded already. */
static bool run_step(const struct plan *p, const struct plan_segment *s, const struct plan_step *step, struct value *v, bool *folded)
{
    uint32_t rank = p->params.rank;
    struct value own = input(rank, s);
    struct mailbox *in = &mail[step->rank][rank], *to = &mail[rank][step->rank];
    switch ((enum step_kind)step->kind) {
    case STEP_FOLD:
        EXPECT(!v->final);
        if (step->rank != rank && !in->full[0]) {
            return false;
        }
        const struct value *other = step->rank == rank ? &own : &in->value[0];
        if (!*folded) {
            *v = *other;
            v->own = false;
        } else {
            fold(v, v, other);
        }
        *folded = true;
        if (step->rank != rank) {
            in->full[0] = false;
            mail_full--;
        }
        return true;
    case STEP_FINISH:
        EXPECT(!v->final && *folded);
        v->final = true;
        return true;
    case STEP_COPY:
        EXPECT(!v->final && !*folded);
        v->final = true;
        return true;
    case STEP_GIVE:
    case STEP_SEND:
        EXPECT(step->rank != rank && (p->relayed > 0 || !to->full[step->kind == STEP_SEND]));
        EXPECT(v->final ? step->kind == STEP_SEND : step->kind == STEP_GIVE || !*folded);
        if (to->full[step->kind == STEP_SEND]) {
            return false;
        }
        to->wire[step->kind == STEP_SEND] = s->wire;
        to->value[step->kind == STEP_SEND] = *v;
        to->full[step->kind == STEP_SEND] = true;
        mail_full++;
        return true;
    case STEP_RECV:
        EXPECT(!v->final);
        if (!in->full[1] || in->wire[1] != s->wire) {
            return false;
        }
        *v = in->value[1];
        v->final = true;
        in->full[1] = false;
        mail_full--;
        return true;
    case STEP_PACK:
        break; /* plan_packed.h */
    }
    return false;
}

/* A rank has all of [out, out + count) of what `ranks` contributed from `place` of theirs on; null: of all. */
static void check_value(const struct world *w, uint32_t rank, const struct plan_segment *s, const struct value *v)
{
    const struct plan_params *q = &w->params;
    uint64_t all[MAX_WORLD / 64] = {0};
    uint32_t from = 0;
    for (uint32_t r = 0; r < q->world; r++) {
        all[r / 64] |= UINT64_C(1) << r % 64;
        from = v->ranks[r / 64] >> r % 64 & 1 ? r : from;
    }
    struct value one = input(from, s);
    bool single = memcmp(one.ranks, v->ranks, sizeof one.ranks) == 0;
    EXPECT((v->final || s->scratch) && plan_completes(&w->plans[rank], s));
    if (s->scratch) { /* for another one, which looks at it */
        EXPECT(!v->final || single || (plan_kind_sums((uint8_t)q->kind) && memcmp(v->ranks, all, sizeof all) == 0));
        EXPECT(w->plans[rank].steps[s->step + s->steps - 1].kind == (v->final ? STEP_SEND : STEP_GIVE));
        return;
    }
    switch ((int)q->kind) {
    case PLAN_ALL_REDUCE:
        EXPECT(memcmp(v->ranks, all, sizeof all) == 0 && v->place == s->out);
        break;
    case PLAN_REDUCE_SCATTER:
        EXPECT(memcmp(v->ranks, all, sizeof all) == 0 && s->out == 0);
        EXPECT_EQ(v->place, part_place(&q->parts, q->count, rank));
        EXPECT_EQ(s->count, part_count(&q->parts, q->count, rank));
        break;
    case PLAN_ALL_GATHER:
        EXPECT(single && v->place == 0);
        EXPECT_EQ(s->out, part_place(&q->parts, q->count, from));
        EXPECT_EQ(s->count, part_count(&q->parts, q->count, from));
        break;
    case PLAN_BROADCAST:
        EXPECT(single && from == q->root && v->place == s->out);
        break;
    case PLAN_SCATTER:
        EXPECT(single && from == q->root && s->out == 0);
        EXPECT_EQ(v->place, part_place(&q->parts, q->count, rank));
        EXPECT_EQ(s->count, part_count(&q->parts, q->count, rank));
        break;
    case PLAN_REDUCE:
        EXPECT(rank == q->root && memcmp(v->ranks, all, sizeof all) == 0 && v->place == s->out);
        break;
    case PLAN_GATHER:
        EXPECT(rank == q->root && single && v->place == 0);
        EXPECT_EQ(s->out, part_place(&q->parts, q->count, from));
        EXPECT_EQ(s->count, part_count(&q->parts, q->count, from));
        break;
    default:
        EXPECT(single);
        if (q->parts.counts == NULL && q->out_parts.counts == NULL) {
            EXPECT(v->place == rank * q->count && s->out == from * q->count && s->count == q->count);
        }
        break;
    }
}

struct running {
    struct value value;
    uint32_t at;
    bool folded;
};

/* Runs the segments [first, first + n) of all ranks, one for plans that all cut alike; all of them (n 0) for pairs. */
static void check_segments(const struct world *w, uint32_t first, uint32_t n)
{
    struct running *running[MAX_WORLD];
    uint32_t world = w->params.world, counts[MAX_WORLD];
    bool moved = true;
    for (uint32_t r = 0; r < world; r++) {
        counts[r] = n > 0 ? n : w->plans[r].segment_count;
        running[r] = calloc(counts[r], sizeof *running[r]);
        for (uint32_t i = 0; i < counts[r]; i++) {
            running[r][i].value = input(r, &w->plans[r].segments[first + i]);
        }
    }
    while (moved) {
        moved = false;
        for (uint32_t r = 0; r < world; r++) {
            for (uint32_t i = 0; i < counts[r]; i++) {
                const struct plan_segment *s = &w->plans[r].segments[first + i];
                const struct plan_step *step = &w->plans[r].steps[s->step];
                struct running *run = &running[r][i];
                while (run->at < s->steps && run_step(&w->plans[r], s, &step[run->at], &run->value, &run->folded)) {
                    uint32_t k = run->at++;
                    if (step[k].kind == STEP_GIVE || step[k].kind == STEP_SEND) {
                        check_names(w, r, s, step[k].rank);
                    }
                    moved = true;
                }
            }
        }
    }
    for (uint32_t r = 0; r < world; r++) {
        for (uint32_t i = 0; i < counts[r]; i++) {
            const struct plan_segment *s = &w->plans[r].segments[first + i];
            EXPECT_EQ(running[r][i].at, s->steps);
            if (plan_completes(&w->plans[r], s)) {
                check_value(w, r, s, &running[r][i].value);
                EXPECT(w->params.kind != PLAN_ALL_REDUCE || running[r][i].value.expression == running[0][i].value.expression);
            }
        }
    }
    for (uint32_t r = 0; r < world; r++) {
        free(running[r]);
    }
    EXPECT_EQ(mail_full, 0); /* all that was sent was taken */
    if (mail_full > 0) {
        memset(mail, 0, sizeof mail);
        mail_full = 0;
    }
}

/* How much of its output each rank has, once. */
static void check_coverage(const struct world *w, uint32_t rank)
{
    const struct plan_params *q = &w->params;
    const struct plan *p = &w->plans[rank];
    size_t has = 0, due = q->count, scratch = 0;
    for (uint32_t i = 0; i < p->segment_count; i++) {
        const struct plan_segment *s = &p->segments[i];
        has += plan_completes(p, s) && !s->scratch ? s->count : 0;
        EXPECT(!s->scratch || s->out == scratch);
        scratch += s->scratch ? s->count : 0;
    }
    EXPECT_EQ(scratch, p->scratch);
    if (q->kind == PLAN_REDUCE_SCATTER || q->kind == PLAN_SCATTER) {
        due = part_count(&q->parts, q->count, rank);
    } else if (q->kind == PLAN_REDUCE) {
        due = rank == q->root ? due : 0;
    } else if (q->kind == PLAN_ALL_GATHER || q->kind == PLAN_GATHER) {
        due = 0;
        for (uint32_t r = 0; r < q->world && (q->kind == PLAN_ALL_GATHER || rank == q->root); r++) {
            due += part_count(&q->parts, q->count, r);
        }
    }
    if (q->kind == PLAN_ALL_TO_ALL) {
        due = q->parts.counts == NULL && q->out_parts.counts == NULL ? q->world * q->count : has;
    }
    EXPECT_EQ(has, due);
}

/* Bytes in and out, by the cost that the algorithm's file tells. */
static void check_traffic(const struct world *w)
{
    const struct plan_params *q = &w->params;
    size_t sent = 0, received = 0;
    bool even = q->weights == NULL && q->parts.counts == NULL && q->count % (q->world * q->align) == 0;
    bool split = q->algorithm == PLAN_DIRECT || q->algorithm == PLAN_RING;
    for (uint32_t r = 0; r < q->world; r++) {
        size_t s, g;
        plan_traffic(&w->plans[r], &s, &g);
        sent += s;
        received += g;
        if (even && q->kind == PLAN_ALL_REDUCE && split) {
            EXPECT_EQ(s, 2 * (q->world - 1) * (q->count / q->world));
            EXPECT_EQ(g, s);
        } else if (even && (q->kind == PLAN_ALL_GATHER || q->kind == PLAN_REDUCE_SCATTER || q->kind == PLAN_ALL_TO_ALL)) {
            EXPECT_EQ(s, (q->world - 1) * q->count);
            EXPECT_EQ(g, s);
        } else if (q->kind == PLAN_BROADCAST) {
            EXPECT_EQ(g, r == q->root ? 0 : q->count);
        }
    }
    EXPECT_EQ(sent, received);
}

/* Of two ranks that may lack a link one has a weight; an all-reduce has parts for all, which are empty without one. */
static bool linked(const struct plan_params *q, uint32_t a, uint32_t b)
{
    return q->weights == NULL || q->kind == PLAN_ALL_REDUCE || q->weights[a] > 0 || q->weights[b] > 0;
}

/* What is known of a plan before it is made. */
static void check_edges(const struct world *w)
{
    for (uint32_t r = 0; r < w->params.world; r++) {
        const struct plan *p = &w->plans[r];
        uint64_t senders[MAX_WORLD / 64] = {0};
        uint32_t count = 0;
        for (uint32_t i = 0; i < p->step_count; i++) {
            const struct plan_step *s = &p->steps[i];
            if (s->kind == STEP_FINISH || s->kind == STEP_COPY || s->kind == STEP_PACK || s->rank == r) {
                continue;
            }
            EXPECT(plan_partners(p->params.algorithm, p->params.world, p->params.root, r, s->rank));
            EXPECT(linked(&w->params, r, s->rank));
            senders[s->rank / 64] |= s->kind == STEP_FOLD ? UINT64_C(1) << s->rank % 64 : 0;
        }
        for (int i = 0; i < MAX_WORLD / 64; i++) {
            count += (uint32_t)__builtin_popcountll(senders[i]);
        }
        struct plan_params own = w->params;
        own.rank = r;
        EXPECT_EQ(count, plan_senders(&own));
    }
}

/* Who is named by a step has a number, in the order of ranks, and nobody else has one. */
static void check_partners(const struct plan *p)
{
    uint32_t named[MAX_WORLD] = {0};
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct plan_step *s = &p->steps[i];
        bool other = s->kind == STEP_GIVE || s->kind == STEP_SEND || s->kind == STEP_RECV || (s->kind == STEP_FOLD && s->rank != p->params.rank);
        EXPECT_EQ(s->partner, other ? plan_number(p, s->rank) : PLAN_NOBODY);
        EXPECT(!other || (s->partner < p->partner_count && p->partners[s->partner] == s->rank));
        named[s->rank] += other;
    }
    for (uint32_t r = 0, number = 0; r < p->params.world; r++) {
        EXPECT_EQ(plan_number(p, r), named[r] > 0 ? number : PLAN_NOBODY);
        number += named[r] > 0;
        EXPECT(r + 1 < p->params.world || number == p->partner_count);
    }
    EXPECT(plan_number(p, p->params.world) == PLAN_NOBODY && plan_number(p, UINT32_MAX) == PLAN_NOBODY);
}

static void check_made(struct world *w)
{
    bool pairwise = w->plans[0].pairwise;
    check_layout(w);
    for (uint32_t i = 0; i < (pairwise ? 1 : w->plans[0].segment_count); i++) {
        check_segments(w, i, pairwise ? 0 : 1);
    }
    for (uint32_t r = 0; r < w->params.world; r++) {
        check_coverage(w, r);
        check_partners(&w->plans[r]);
    }
    check_traffic(w);
    check_edges(w);
    world_free(w);
}

static void check_world(struct plan_params params)
{
    struct world w = world_make(params, NULL, NULL);
    check_made(&w);
}

#endif
