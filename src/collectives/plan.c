/* plan.c - what all algorithms share: cutting the elements into segments and frames, and reading a plan.
 *
 * Its one idea: the cut depends on what all members know (counts, weights, align, frame size) and never on the own rank,
 * so a frame number names the same elements everywhere; where only two know a count, frames are numbered between these two
 * (pairwise.c).  Invariant: what plan_cut makes lies one after the other, covers [0, count) exactly, and begins at multiples
 * of `align`; so do frames.
 * SPDX-License-Identifier: MIT */
#include "collectives/plan.h"

#include "core/check.h"

/* floor(units x part / whole) for part <= whole < 2^32, without a 128-bit product. */
static size_t share_floor(size_t units, uint64_t part, uint64_t whole)
{
    uint64_t u = units;
    return (size_t)(u / whole * part + u % whole * part / whole);
}

size_t plan_border(const struct plan_params *q, uint64_t part, uint64_t whole)
{
    size_t units = q->count / q->align + (q->count % q->align != 0), end = share_floor(units, part, whole);
    return end == units ? q->count : end * q->align;
}

/* Borders lie at the rounded-down running sums of the weights: no shard is off by more than one unit of `align`, and
 * the remainder goes where the fractions carry over, the same on every rank. */
void plan_cut(struct plan *plan, uint32_t parts, const uint32_t *weights)
{
    const struct plan_params *q = &plan->params;
    uint64_t whole = parts;
    unsigned shift = 0;
    if (weights != NULL) {
        whole = 0;
        for (uint32_t i = 0; i < parts; i++) {
            whole += weights[i];
        }
        while (whole >> shift > UINT32_MAX - parts) {
            shift++; /* the largest weight is at least whole / parts, so it stays positive */
        }
        whole = 0;
        for (uint32_t i = 0; i < parts; i++) {
            whole += weights[i] >> shift;
        }
    }
    PCCL_ASSERT(whole > 0);
    uint64_t sum = 0;
    size_t first = 0;
    for (uint32_t i = 0; i < parts; i++) {
        sum += weights != NULL ? weights[i] >> shift : 1;
        size_t end = plan_border(q, sum, whole);
        plan_add_segment(plan, first, first, end - first);
        first = end;
    }
}

struct plan_segment *plan_add_segment(struct plan *plan, size_t in, size_t out, size_t count)
{
    size_t most = plan->params.frame_elements, frames = count / most + (count % most != 0);
    PCCL_ASSERT(frames <= UINT32_MAX - plan->frame_count);
    struct plan_segment *s = &plan->segments[plan->segment_count++];
    *s = (struct plan_segment){.in = in, .out = out, .count = count, .step = plan->step_count, .frame = plan->frame_count,
                               .frames = (uint32_t)frames, .wire = plan->frame_count};
    plan->frame_count += s->frames;
    return s;
}

uint32_t plan_power(uint32_t world)
{
    uint32_t power = 1;
    while (power <= world / 2) {
        power *= 2;
    }
    return power;
}

uint32_t plan_ring_rank(const struct plan_params *q, uint32_t position)
{
    return q->ring != NULL ? q->ring[position % q->world] : position % q->world;
}

uint32_t plan_ring_position(const struct plan_params *q, uint32_t rank)
{
    uint32_t position = q->places != NULL ? q->places[rank] : 0;
    while (position < q->world && plan_ring_rank(q, position) != rank) {
        position++;
    }
    PCCL_ASSERT(position < q->world);
    return position;
}

uint32_t plan_shown(const struct plan_params *q, uint32_t rank)
{
    return q->shown != NULL ? q->shown[rank] : rank;
}

uint32_t plan_add_part(struct plan *plan, uint32_t rank)
{
    const struct plan_params *q = &plan->params;
    bool gather = q->kind == PLAN_ALL_GATHER || q->kind == PLAN_GATHER;
    uint32_t shown = plan_shown(q, rank);
    size_t place = part_place(&q->parts, q->count, shown), count = part_count(&q->parts, q->count, shown);
    plan_add_segment(plan, gather ? 0 : place, gather ? place : 0, count);
    return plan->segment_count - 1;
}

void plan_parts(struct plan *plan)
{
    for (uint32_t r = 0; r < plan->params.world; r++) {
        plan_add_part(plan, r);
    }
}

void plan_to_scratch(struct plan *plan, uint32_t segment)
{
    struct plan_segment *s = &plan->segments[segment];
    s->scratch = 1;
    s->out = plan->scratch;
    PCCL_ASSERT(s->count <= SIZE_MAX - plan->scratch);
    plan->scratch += s->count;
}

uint32_t plan_host(const struct plan_params *q, uint32_t rank)
{
    uint32_t host = rank;
    while (q->weights != NULL && q->weights[host] == 0) {
        host = (host + 1) % q->world;
    }
    return host;
}

size_t plan_place_in(const struct plan_params *q, uint32_t rank)
{
    return part_place(&q->parts, q->count, plan_shown(q, rank));
}

size_t plan_place_out(const struct plan_params *q, uint32_t rank)
{
    return part_place(&q->out_parts, q->count, plan_shown(q, rank));
}

void plan_begin_segment(struct plan *plan, uint32_t segment)
{
    plan->segments[segment].step = plan->step_count;
}

void plan_add_step(struct plan *plan, uint32_t segment, enum step_kind kind, uint32_t rank)
{
    plan->steps[plan->step_count].kind = kind;
    plan->steps[plan->step_count].rank = rank;
    plan->step_count++;
    plan->segments[segment].steps++;
}

void plan_add_piece(struct plan *plan, uint32_t segment, const struct plan_piece *piece)
{
    struct plan_segment *s = &plan->segments[segment];
    struct plan_piece *last = s->pieces > 0 ? &plan->pieces[plan->piece_count - 1] : NULL;
    if (piece->count == 0) {
        return;
    }
    if (last != NULL && last->scratch == piece->scratch && last->at + last->count == piece->at && last->from + last->count == piece->from) {
        last->count += piece->count;
        return;
    }
    s->piece = s->pieces == 0 ? plan->piece_count : s->piece;
    s->pieces++;
    plan->pieces[plan->piece_count++] = *piece;
}

void plan_fold_all(struct plan *plan, uint32_t segment)
{
    for (uint32_t r = 0; r < plan->params.world; r++) {
        plan_add_step(plan, segment, STEP_FOLD, r);
    }
    plan_add_step(plan, segment, STEP_FINISH, 0);
}

void plan_send_others(struct plan *plan, uint32_t segment, uint32_t but)
{
    uint32_t world = plan->params.world, rank = plan->params.rank;
    for (uint32_t i = 1; i < world; i++) {
        if ((rank + i) % world != but) {
            plan_add_step(plan, segment, STEP_SEND, (rank + i) % world);
        }
    }
}

size_t plan_largest(const struct plan_params *q)
{
    bool cut = (q->algorithm == PLAN_DIRECT || q->algorithm == PLAN_RING) && q->kind != PLAN_REDUCE;
    size_t parts = cut ? q->world : q->algorithm == PLAN_HALVING ? plan_power(q->world) : 1, most = 0;
    if (q->algorithm == PLAN_FOREST) {
        uint64_t share = 0;
        for (uint32_t t = 0; t < q->trees->count; t++) {
            share = q->trees->share[t] > share ? q->trees->share[t] : share;
        }
        return share_floor(q->count, share, TREE_SET_WHOLE);
    }
    if (q->algorithm == PLAN_PAIRWISE || plan_packs(q->kind, q->algorithm)) { /* a frame that is packed waits for all of those before it */
        return SIZE_MAX;
    }
    if (q->kind == PLAN_REDUCE_SCATTER || q->kind == PLAN_ALL_GATHER) {
        for (uint32_t r = 0; q->parts.counts != NULL && r < q->world; r++) {
            most = q->parts.counts[r] > most ? q->parts.counts[r] : most;
        }
        return q->parts.counts != NULL ? most : q->count;
    }
    if (plan_kind_pairs((uint8_t)q->kind)) {
        return q->count;
    }
    return q->count / parts + (q->count % parts != 0);
}

size_t plan_frame_elements(size_t largest, size_t wire_bytes_per_1024, size_t align, size_t max_bytes)
{
    PCCL_ASSERT(wire_bytes_per_1024 > 0 && align > 0);
    size_t most = max_bytes * 1024 / wire_bytes_per_1024 / align * align;
    size_t least = ((size_t)PLAN_MIN_FRAME_BYTES * 1024 / wire_bytes_per_1024 + align - 1) / align * align;
    size_t want = largest / PLAN_FRAMES_PER_SEGMENT / align * align;
    want = want < least ? least : want;
    want = want > most ? most : want;
    return want < align ? align : want; /* a block is never cut, even if it is larger than max_bytes */
}

const struct plan_segment *plan_frame(const struct plan *plan, uint32_t frame, size_t *offset, size_t *count)
{
    PCCL_ASSERT(frame < plan->frame_count);
    /* The last segment that begins at or before the frame; empty ones share their number with the next and come first. */
    uint32_t low = 0, high = plan->segment_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->segments[middle].frame <= frame) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct plan_segment *s = &plan->segments[low];
    *offset = (size_t)(frame - s->frame) * plan->params.frame_elements;
    size_t left = s->count - *offset;
    *count = left < plan->params.frame_elements ? left : plan->params.frame_elements;
    return s;
}

uint32_t plan_wire(const struct plan *plan, const struct plan_segment *segment, uint32_t frame)
{
    (void)plan;
    return segment->wire + (frame - segment->frame);
}

/* Of the segments [low, high), which stand by the rank that they come from and by name: the last one of `rank` that begins at or before
 * this name; null: there is none. */
static const struct plan_segment *sent_by(const struct plan *plan, uint32_t low, uint32_t high, uint32_t rank, uint32_t wire)
{
    const struct plan_segment *found = NULL;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct plan_segment *s = &plan->segments[middle];
        uint32_t from = plan->steps[s->step].rank;
        if (from < rank || (from == rank && s->wire <= wire)) {
            found = from == rank ? s : NULL;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return found;
}

uint32_t plan_heard(const struct plan *plan, uint32_t rank, uint32_t wire)
{
    if (!plan->pairwise) {
        return wire < plan->frame_count ? wire : UINT32_MAX;
    }
    const struct plan_segment *s = sent_by(plan, 0, plan->taken, rank, wire);
    if (plan->relayed > 0 && (s == NULL || wire >= s->frames)) {
        s = sent_by(plan, plan->relayed, plan->segment_count, rank, wire);
    }
    return s != NULL && wire - s->wire < s->frames ? s->frame + (wire - s->wire) : UINT32_MAX;
}

bool plan_completes(const struct plan *plan, const struct plan_segment *segment)
{
    if (segment->scratch) {
        return true;
    }
    for (uint32_t j = segment->step; j < segment->step + segment->steps; j++) {
        uint32_t kind = plan->steps[j].kind;
        if (kind == STEP_RECV || kind == STEP_FINISH || kind == STEP_COPY || kind == STEP_PACK) {
            return true;
        }
    }
    return false;
}

void plan_traffic(const struct plan *plan, size_t *sent_elements, size_t *received_elements)
{
    size_t sent = 0, received = 0;
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        const struct plan_segment *s = &plan->segments[i];
        for (uint32_t j = s->step; j < s->step + s->steps; j++) {
            const struct plan_step *step = &plan->steps[j];
            if (step->kind == STEP_SEND || step->kind == STEP_GIVE) {
                sent += s->count;
            } else if (step->kind == STEP_RECV || (step->kind == STEP_FOLD && step->rank != plan->params.rank)) {
                received += s->count;
            }
        }
    }
    *sent_elements = sent;
    *received_elements = received;
}
