/* plan.h - a collective is data: what one rank does with each range of the elements.
 *
 * A plan is a list of segments; a segment is a range of the input, a range of the output and a short program of steps.  The
 * executor cuts each segment into frames and runs the program once per frame, many frames at a time.  The value of a frame
 * begins as this rank's own input.  GIVE hands on a part of a sum (the input, or what is folded so far), which the other rank
 * FOLDs; SEND hands on what is final, which the other rank RECVs into its output.  FINISH makes a sum final, COPY makes the
 * own input final.  PACK puts a range together from pieces of the input and of scratch: once all frames before it are complete, since
 * what it takes may have come in any of them; so frames of plans that pack are all on one lane.
 *
 *   direct all-reduce, not owner:  GIVE owner, RECV owner
 *   direct all-reduce, owner:      FOLD 0 .. FOLD n-1 (own rank included, in its place), FINISH, SEND every other rank
 *   ring all-reduce, first of the chain:  GIVE next, RECV prev, [SEND next]
 *   ring all-reduce, middle:              FOLD prev, FOLD self, GIVE next, RECV prev, [SEND next]
 *   ring all-reduce, last (owner):        FOLD prev, FOLD self, FINISH, SEND next
 *   all-gather, owner:             SEND every other rank (or the next one), COPY
 *   broadcast, root:               SEND those behind it in chain or tree, COPY
 *   what is only handed on:        RECV one, SEND another, in scratch
 *   a round of Bruck's all-to-all: PACK, SEND one, in scratch; in the next segment RECV another, in scratch
 *   chain reduce, middle:          FOLD prev, FOLD self, GIVE next, in scratch
 *   tree of a forest, inner node:  FOLD self, FOLD each child, GIVE parent, RECV parent, SEND each child
 *
 * Invariant, checked symbolically for every world size: each element of an output holds what its kind promises, each
 * contribution exactly once, folded in the same order wherever it is computed; every GIVE meets exactly one FOLD, every
 * SEND exactly one RECV of the other rank over the same range.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_PLAN_H
#define PCCL_COLLECTIVES_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/part_lists.h"
#include "core/plan_kind.h"
#include "topology/tree_set.h"

enum { PLAN_RING_LEAST = 3 }; /* of two members a ring is no other plan than direct */
enum { PLAN_NOBODY = UINT32_MAX }; /* in place of a partner's number */

enum step_kind { STEP_FOLD, STEP_FINISH, STEP_GIVE, STEP_SEND, STEP_RECV, STEP_COPY, STEP_PACK };

struct plan_step {
    uint32_t kind;    /* enum step_kind */
    uint32_t rank;    /* FOLD: own rank means the own input; FINISH, COPY, PACK: unused */
    uint32_t partner; /* its number among plan.partners; PLAN_NOBODY where no other rank is meant */
};

struct plan_segment {
    size_t in, out, count;   /* first element of the range in the input, in the output (where there is one); count may be 0 */
    uint32_t step, steps;    /* into plan.steps */
    uint32_t frame, frames;  /* frames of this segment, numbered through the whole plan */
    uint32_t wire;           /* what the first one is called between ranks: alike at both ends */
    uint32_t scratch;        /* 1: `out` is a range of the operation's scratch: what this rank only sums up or hands on for others */
    uint32_t piece, pieces;  /* into plan.pieces: what is packed here, of all of it each element once */
};

/* `count` elements of a packed segment, from its element `at` on: those of the input, or of scratch, from `from` on. */
struct plan_piece {
    size_t at, from, count;
    uint32_t scratch; /* 1: of scratch, where a segment before this one put them */
};

/* What the view and the operation say; equal on all members but for `rank` and, of pairwise plans, the counts. */
struct plan_params {
    enum plan_kind kind;
    enum plan_algorithm algorithm;
    uint32_t world, rank, root;
    uint32_t lanes;          /* of the operation, at least 1: PLAN_PAIRWISE, and all-to-all, only */
    const uint32_t *ring;    /* borrowed: rank at each ring position; null: identity.  PLAN_RING, PLAN_CHAIN */
    const uint32_t *places;  /* borrowed: position of each rank in the ring; null: it is looked for */
    const uint32_t *weights; /* borrowed: shard weight per rank, null: all equal, any two are linked; at least one is positive: those are
                              * linked with all, the others with them.  PLAN_DIRECT only */
    const struct tree_set *trees; /* borrowed: a valid set of `world` members.  PLAN_FOREST only, which needs it */
    const uint64_t *apart;   /* borrowed: a bit for each rank that this one has no link with, null: none; what goes between such two is not
                              * in the plan.  PLAN_PAIRWISE only */
    const uint32_t *shown;   /* borrowed: what lists, and equal parts, count each rank as; null: as itself */
    size_t count;            /* elements, see enum plan_kind */
    struct part_lists parts; /* of `count` where they are equal: of the input where that has parts, else of the output */
    struct part_lists out_parts; /* of the output of an all-to-all */
    size_t align;            /* of a buffer, or of each part: segment borders and frames are multiples of so many elements (quantisation block), or 1 */
    size_t frame_elements;   /* multiple of align: most elements per frame */
};

struct plan {
    struct plan_params params; /* what was borrowed is not kept (null) */
    struct plan_segment *segments; /* the caller's storage */
    struct plan_step *steps;
    struct plan_piece *pieces;
    uint32_t *partners;        /* the other ranks that steps name, each once, ascending */
    uint32_t segment_count, step_count, piece_count, partner_count;
    uint32_t frame_count;      /* of all segments, and of gaps between those of pairwise plans */
    size_t scratch;            /* elements of scratch memory that this rank needs */
    bool pairwise;             /* frames are named per pair of ranks */
    uint32_t taken;            /* of pairwise plans: so many segments come first, each what one rank has for this one, by rank */
    uint32_t relayed;          /* of pairwise plans: from this segment on others that come from a rank, by rank and name; 0: none */
};

/* Whether the algorithm has a plan for the kind. */
bool plan_offers(enum plan_kind kind, enum plan_algorithm algorithm);

/* Whether it sends parts of a sum on as they are, of kinds that sum: for plain types only. */
static inline bool plan_sends_sums(enum plan_algorithm algorithm)
{
    return algorithm == PLAN_RING || algorithm == PLAN_TREE || algorithm == PLAN_HALVING || algorithm == PLAN_CHAIN ||
           algorithm == PLAN_FOREST;
}

/* Whether few exchange data with each other, in a sum of all: the rest would see that it is missing, not whose program is late. */
static inline bool plan_hides_late(enum plan_kind kind, enum plan_algorithm algorithm)
{
    bool sum = kind == PLAN_ALL_REDUCE || kind == PLAN_REDUCE;
    return sum && (algorithm == PLAN_TREE || algorithm == PLAN_HALVING || algorithm == PLAN_CHAIN);
}

/* Whether it packs what came in other frames: all of them are on one lane then, and all parts have to be equal. */
static inline bool plan_packs(enum plan_kind kind, enum plan_algorithm algorithm)
{
    return kind == PLAN_ALL_TO_ALL && algorithm == PLAN_BRUCK;
}

/* Whether contributions between two members go in the order of frames, and not as each segment is ready. */
static inline bool plan_orders(enum plan_algorithm algorithm)
{
    return algorithm == PLAN_FOREST;
}

/* Worst case storage: looks at kind, algorithm, world, rank, root and weights only; of a forest also at count, frames and trees. */
uint32_t plan_max_segments(const struct plan_params *params);
uint32_t plan_max_steps(const struct plan_params *params);
uint32_t plan_max_pieces(const struct plan_params *params);
uint32_t plan_max_partners(const struct plan_params *params);

/* Whether two ranks exchange anything under the algorithm, empty parts counted; of a ring, chain or forest, whose order is not known
 * here, true for any two. */
bool plan_partners(enum plan_algorithm algorithm, uint32_t world, uint32_t root, uint32_t a, uint32_t b);
/* The partners of a rank one by one, where all are not looked at: each is one of so many, once; in place of the others stands the rank itself. */
uint32_t plan_partner_count(enum plan_algorithm algorithm, uint32_t world);
uint32_t plan_partner(enum plan_algorithm algorithm, uint32_t world, uint32_t root, uint32_t rank, uint32_t i);
/* How many others give this rank something to fold.  Looks at kind, algorithm, world, rank, root, ring, weights and trees only. */
uint32_t plan_senders(const struct plan_params *params);

/* Makes the plan of one rank into the caller's storage, of at least the sizes above; null where that is 0. */
void plan_make(struct plan *plan, const struct plan_params *params, struct plan_segment *segments, struct plan_step *steps,
               struct plan_piece *pieces, uint32_t *partners);
/* A partner's number; PLAN_NOBODY: no step is with that rank. */
uint32_t plan_number(const struct plan *plan, uint32_t rank);

/* One file per algorithm; called by plan_make. */
void plan_make_tiny(struct plan *plan);
void plan_make_direct(struct plan *plan);
void plan_make_hosts(struct plan *plan);   /* direct, of members with weights; but for all-reduce */
void plan_make_relayed(struct plan *plan); /* ... all-to-all, of equal parts */
void plan_make_ring(struct plan *plan);
void plan_make_tree(struct plan *plan);
void plan_make_chain(struct plan *plan);
void plan_make_bruck(struct plan *plan);
void plan_make_bruck_index(struct plan *plan); /* of all-to-all */
void plan_make_pairwise(struct plan *plan);
void plan_make_halving(struct plan *plan);
void plan_make_forest(struct plan *plan);

/* Of a forest: segments, steps of this rank, and who gives it something to fold. */
uint32_t forest_segments(const struct plan_params *params);
uint32_t forest_steps(const struct plan_params *params);
uint32_t forest_senders(const struct plan_params *params);

void plan_number_partners(struct plan *plan); /* ... once the steps are made */

/* For them: cuts [0, count) into `parts` segments (weights null: equal), at the same place in input and output; makes a segment of each
 * rank's part instead; opens the program of a segment; appends a step to the segment opened last. */
void plan_cut(struct plan *plan, uint32_t parts, const uint32_t *weights);
void plan_parts(struct plan *plan);
/* The element at which the first `part` of `whole` parts of the count end; part <= whole < 2^32. */
size_t plan_border(const struct plan_params *params, uint64_t part, uint64_t whole);
/* One more segment, its frames behind those of the others. */
struct plan_segment *plan_add_segment(struct plan *plan, size_t in, size_t out, size_t count);
/* Another one for a rank's part; returns which segment it is, opened. */
uint32_t plan_add_part(struct plan *plan, uint32_t rank);
/* What becomes final in this segment, or is summed up, is not for this rank's output. */
void plan_to_scratch(struct plan *plan, uint32_t segment);
/* Who stands in for a rank where not all are linked: itself if it has a weight, else the next one that has. */
uint32_t plan_host(const struct plan_params *params, uint32_t rank);
/* The largest power of two that is not above `world`. */
uint32_t plan_power(uint32_t world);
/* The rank at a position of the ring, counted on around it; where a rank stands in it. */
uint32_t plan_ring_rank(const struct plan_params *params, uint32_t position);
uint32_t plan_ring_position(const struct plan_params *params, uint32_t rank);
/* As what the lists count a rank. */
uint32_t plan_shown(const struct plan_params *params, uint32_t rank);
/* Where a rank's part begins in the input, and in the output of an all-to-all. */
size_t plan_place_in(const struct plan_params *params, uint32_t rank);
size_t plan_place_out(const struct plan_params *params, uint32_t rank);
/* How many parts a member sends in the round of that bit of Bruck's all-to-all. */
uint32_t plan_round_blocks(uint32_t world, uint32_t bit);
void plan_begin_segment(struct plan *plan, uint32_t segment);
void plan_add_step(struct plan *plan, uint32_t segment, enum step_kind kind, uint32_t rank);
/* Another piece of the segment opened last; what goes on where the one before it ends, at both ends, is one with it. */
void plan_add_piece(struct plan *plan, uint32_t segment, const struct plan_piece *piece);
/* FOLD of all in rank order, and FINISH; SEND to all others but one, each rank beginning behind itself. */
void plan_fold_all(struct plan *plan, uint32_t segment);
void plan_send_others(struct plan *plan, uint32_t segment, uint32_t but);

enum {
    PLAN_MIN_FRAME_BYTES = 32768, /* below this a frame's header and system calls cost more than the overlap gains */
    PLAN_FRAMES_PER_SEGMENT = 4, /* enough that sending, receiving and reducing overlap */
};
/* Frame size that keeps a pipeline busy: a multiple of align, wire bytes at most `max_bytes`, and smaller for small
 * operations (at least so many frames per segment while frames stay above that).  `largest`: elements of the largest segment, alike on
 * all ranks; SIZE_MAX: not known to all. */
size_t plan_frame_elements(size_t largest, size_t wire_bytes_per_1024, size_t align, size_t max_bytes);
/* The elements of the largest segment of a plan that cuts `count`. */
size_t plan_largest(const struct plan_params *params);

/* A frame's segment; its elements are [offset, offset + count) of it. */
const struct plan_segment *plan_frame(const struct plan *plan, uint32_t frame, size_t *offset, size_t *count);
/* What a frame is called between ranks, and which one `rank` calls so when it sends it here; UINT32_MAX: none. */
uint32_t plan_wire(const struct plan *plan, const struct plan_segment *segment, uint32_t frame);
uint32_t plan_heard(const struct plan *plan, uint32_t rank, uint32_t wire);
/* Whether the output of a segment becomes final here, or what is done here for others is done in it. */
bool plan_completes(const struct plan *plan, const struct plan_segment *segment);

/* Payload bytes that this rank will send and receive under the plan, in elements. */
void plan_traffic(const struct plan *plan, size_t *sent_elements, size_t *received_elements);

#endif
