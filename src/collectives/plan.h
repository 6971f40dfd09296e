/* plan.h - a collective is data: what one rank does with each range of the elements.
 *
 * A plan is a list of segments; a segment is a range of elements and a short program of steps.  The executor cuts each
 * segment into frames and runs the program once per frame, many frames at a time.  The value of a frame begins as this
 * rank's own input; FOLD adds up contributions in the order of the steps; SEND passes on the value as it is at
 * that point (input, partial sum, or final); RECV takes the final value from a neighbour.
 *
 *   direct, not owner:  SEND owner, RECV owner
 *   direct, owner:      FOLD 0 .. FOLD n-1 (own rank included, in its place), FINISH, SEND every other rank
 *   ring, first of the chain:   SEND next, RECV prev, [SEND next]
 *   ring, middle:               FOLD prev, FOLD self, SEND next, RECV prev, [SEND next]
 *   ring, last (owner):         FOLD prev, FOLD self, FINISH, SEND next
 *   tiny:               SEND every other rank, FOLD 0 .. FOLD n-1, FINISH
 *
 * A SEND before any FINISH or RECV is a contribution (phase 0: the receiver FOLDs it), one after it is final (phase 1: the
 * receiver RECVs it).  Invariant, checked symbolically for every world size: each element's final value holds each
 * rank's contribution exactly once, folded in the same order wherever it is computed; every SEND meets exactly one
 * FOLD or RECV of the other rank over the same range.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_PLAN_H
#define PCCL_COLLECTIVES_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plan_algorithm { PLAN_TINY = 0, PLAN_DIRECT = 1, PLAN_RING = 2 };
enum { PLAN_RING_LEAST = 3 }; /* of two members a ring is no other plan than direct */

enum step_kind { STEP_FOLD, STEP_FINISH, STEP_SEND, STEP_RECV };

struct plan_step {
    uint32_t kind; /* enum step_kind */
    uint32_t rank; /* FOLD: own rank means the own input; FINISH: unused */
};

struct plan_segment {
    size_t first, count;     /* elements; count may be 0 */
    uint32_t step, steps;    /* into plan.steps */
    uint32_t frame, frames;  /* frames of this segment, numbered through the whole plan: the same on every rank */
};

/* What the view and the operation say; equal on all members but for `rank`. */
struct plan_params {
    enum plan_algorithm algorithm;
    uint32_t world, rank;
    const uint32_t *ring;    /* borrowed: rank at each ring position; null: identity.  PLAN_RING only */
    const uint32_t *weights; /* borrowed: shard weight per rank, null: all equal; at least one is positive.  PLAN_DIRECT only */
    size_t count;            /* elements */
    size_t align;            /* segment borders and frames are multiples of this many elements (quantisation block), or 1 */
    size_t frame_elements;   /* multiple of align: most elements per frame */
};

struct plan {
    struct plan_params params; /* ring and weights are not kept (null) */
    struct plan_segment *segments; /* the caller's storage */
    struct plan_step *steps;
    uint32_t segment_count, step_count;
    uint32_t frame_count;      /* of all segments */
};

/* Worst case storage for a world size. */
uint32_t plan_max_segments(enum plan_algorithm algorithm, uint32_t world);
uint32_t plan_max_steps(enum plan_algorithm algorithm, uint32_t world);

/* Makes the plan of one rank into the caller's storage (`segments`, `steps` of at least the sizes above). */
void plan_make(struct plan *plan, const struct plan_params *params, struct plan_segment *segments,
               struct plan_step *steps);

/* One file per algorithm; called by plan_make. */
void plan_make_direct(struct plan *plan);
void plan_make_ring(struct plan *plan);
void plan_make_tiny(struct plan *plan);

/* For them: cuts [0, count) into `parts` segments (weights null: equal) with their frames; opens the program of a segment;
 * appends a step to the segment opened last. */
void plan_cut(struct plan *plan, uint32_t parts, const uint32_t *weights);
void plan_begin_segment(struct plan *plan, uint32_t segment);
void plan_add_step(struct plan *plan, uint32_t segment, enum step_kind kind, uint32_t rank);

/* Frame size that keeps a pipeline busy: a multiple of align, wire bytes at most `max_bytes`, and smaller for small
 * operations (at least 8 frames per segment while frames stay above 32 KiB). */
size_t plan_frame_elements(enum plan_algorithm algorithm, uint32_t world, size_t count, size_t wire_bytes_per_1024,
                           size_t align, size_t max_bytes);

/* Elements [first, first+count) of a frame, and its segment. */
const struct plan_segment *plan_frame(const struct plan *plan, uint32_t frame, size_t *first, size_t *count);

/* Payload bytes that this rank will send and receive under the plan, in elements. */
void plan_traffic(const struct plan *plan, size_t *sent_elements, size_t *received_elements);

#endif
