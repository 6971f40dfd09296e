/* plan_packed.h - runs the programs of plans that pack, element by element: an element is whose input it comes from, and which one of it.
 *
 * A PACK waits for all segments before its own, as in the executor; each element that is packed is packed once, of something that is
 * there, and in the end each rank has of each other one, in its place, what that one has for it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_UNIT_PLAN_PACKED_H
#define PCCL_TESTS_UNIT_PLAN_PACKED_H

#include "tests/unit/plan_values.h"

/* Of one rank; 0: nothing is there. */
struct packed_rank {
    uint64_t *scratch, *out;
    uint32_t at[MAX_WORLD]; /* by segment */
};

struct packed_world {
    const struct world *w;
    struct packed_rank ranks[MAX_WORLD];
    bool sent[MAX_WORLD][MAX_WORLD]; /* [rank][segment]: so far as it goes, and not taken */
};

static uint64_t label(uint32_t rank, size_t element)
{
    return ((uint64_t)rank << 32 | element) + 1;
}

static uint64_t *packed_range(const struct packed_world *p, uint32_t rank, const struct plan_segment *s)
{
    return (s->scratch ? p->ranks[rank].scratch : p->ranks[rank].out) + s->out;
}

/* Segments of the program before this one; what they have made is there. */
static bool all_before(const struct packed_world *p, uint32_t rank, uint32_t segment)
{
    for (uint32_t i = 0; i < segment; i++) {
        if (p->ranks[rank].at[i] == 0) {
            return false;
        }
    }
    return true;
}

static void pack(const struct packed_world *p, uint32_t rank, const struct plan_segment *s)
{
    const struct plan *plan = &p->w->plans[rank];
    uint64_t *to = packed_range(p, rank, s);
    size_t packed = 0;
    for (uint32_t i = s->piece; i < s->piece + s->pieces; i++) {
        const struct plan_piece *piece = &plan->pieces[i];
        EXPECT(piece->count > 0 && piece->at + piece->count <= s->count);
        EXPECT(piece->from + piece->count <= (piece->scratch ? plan->scratch : p->w->params.count * p->w->params.world));
        for (size_t e = 0; e < piece->count; e++) {
            uint64_t from = piece->scratch ? p->ranks[rank].scratch[piece->from + e] : label(rank, piece->from + e);
            EXPECT(from != 0 && to[piece->at + e] == 0);
            to[piece->at + e] = from;
        }
        packed += piece->count;
    }
    EXPECT_EQ(packed, s->count);
}

/* The segment of `to` in which it takes what this rank sends in that one. */
static uint32_t taken_in(const struct packed_world *p, uint32_t rank, const struct plan_segment *s, uint32_t to)
{
    const struct plan *plan = &p->w->plans[to];
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        const struct plan_step *step = &plan->steps[plan->segments[i].step];
        if (plan->segments[i].frame == s->wire && step->kind == STEP_RECV && step->rank == rank) {
            check_names(p->w, rank, s, to);
            return i;
        }
    }
    EXPECT(!"nobody takes it");
    return 0;
}

/* Does one step if it can. */
static bool packed_step(struct packed_world *p, uint32_t rank, uint32_t segment)
{
    const struct plan *plan = &p->w->plans[rank];
    const struct plan_segment *s = &plan->segments[segment];
    const struct plan_step *step = &plan->steps[s->step + p->ranks[rank].at[segment]];
    if (step->kind == STEP_PACK && all_before(p, rank, segment)) {
        pack(p, rank, s);
        return true;
    }
    if (step->kind == STEP_SEND) {
        uint32_t there = taken_in(p, rank, s, step->rank);
        EXPECT(!p->sent[step->rank][there]);
        p->sent[step->rank][there] = true;
        memcpy(packed_range(p, step->rank, &p->w->plans[step->rank].segments[there]), packed_range(p, rank, s), s->count * sizeof(uint64_t));
        return true;
    }
    EXPECT(step->kind == STEP_PACK || step->kind == STEP_RECV);
    return step->kind == STEP_RECV && p->sent[rank][segment];
}

static void packed_run(struct packed_world *p)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < p->w->params.world; r++) {
            for (uint32_t i = 0; i < p->w->plans[r].segment_count; i++) {
                while (p->ranks[r].at[i] < p->w->plans[r].segments[i].steps && packed_step(p, r, i)) {
                    p->ranks[r].at[i]++;
                    moved = true;
                }
            }
        }
    }
}

/* Each rank's own part of every other one's input, by the ranks that programs count. */
static void check_packed(const struct world *w)
{
    const struct plan_params *q = &w->params;
    struct packed_world *p = calloc(1, sizeof *p);
    p->w = w;
    for (uint32_t r = 0; r < q->world; r++) {
        p->ranks[r].scratch = calloc(w->plans[r].scratch + 1, sizeof(uint64_t));
        p->ranks[r].out = calloc(q->count * q->world + 1, sizeof(uint64_t));
    }
    packed_run(p);
    for (uint32_t r = 0; r < q->world; r++) {
        for (uint32_t i = 0; i < w->plans[r].segment_count; i++) {
            EXPECT_EQ(p->ranks[r].at[i], w->plans[r].segments[i].steps);
            EXPECT(plan_completes(&w->plans[r], &w->plans[r].segments[i]));
        }
        for (uint32_t from = 0; from < q->world; from++) {
            const uint64_t *part = p->ranks[r].out + (q->shown != NULL ? q->shown[from] : from) * q->count;
            for (size_t e = 0; e < q->count; e++) {
                EXPECT(part[e] == label(from, (q->shown != NULL ? q->shown[r] : r) * q->count + e));
            }
        }
        free(p->ranks[r].scratch);
        free(p->ranks[r].out);
    }
    free(p);
}

/* A block goes a step for each bit of its way. */
static void check_blocks_sent(const struct world *w)
{
    size_t blocks = 0;
    for (uint32_t ahead = 1; ahead < w->params.world; ahead++) {
        blocks += (size_t)__builtin_popcount(ahead);
    }
    for (uint32_t r = 0; r < w->params.world; r++) {
        size_t sent, received;
        plan_traffic(&w->plans[r], &sent, &received);
        EXPECT(sent == blocks * w->params.count && received == sent);
    }
}

static void check_packing(struct plan_params params)
{
    struct world w = world_make(params, NULL, NULL);
    check_layout(&w);
    check_packed(&w);
    for (uint32_t r = 0; r < params.world; r++) {
        check_coverage(&w, r);
    }
    check_blocks_sent(&w);
    check_edges(&w);
    world_free(&w);
}

#endif
