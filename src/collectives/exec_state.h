/* exec_state.h - what the files of the executor share and nobody else sees.
 *
 * exec.c lays the state out and dispatches, exec_flow.c moves frames in and out, exec_frame.c runs a frame's program,
 * exec_work.c copies and packs, exec_grant.c grants room for contributions, exec_view.c says where a frame's bytes are.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_EXEC_STATE_H
#define PCCL_COLLECTIVES_EXEC_STATE_H

#include "collectives/exec.h"

enum { EXEC_NONE = UINT32_MAX };

/* Frames to be sent to one partner, in order; its capacity is what the plan sends, so it never wraps. */
struct exec_queue {
    uint32_t *frames; /* in exec.queues */
    uint32_t head, tail;
};

struct exec_peer {
    /* Out. */
    uint32_t credit;               /* phase 0 frames it lets us send */
    uint32_t gave, ready_told;     /* contributions sent; those that it was told to be ready, sent ones among them */
    uint32_t lead_next, lead_end;  /* what leaves straight from the input: next frame, end of their segment */
    uint32_t lead_phase;           /* 0: given, 1: sent */
    bool lead_alone;               /* it goes to this partner only, and nothing is folded there: see exec_on_pull */
    struct exec_queue queue[2];    /* 0: later GIVEs (ordered: all of them, `tail` before the first that is not ready), 1: later SENDs; all peers may share the memory of the latter, see exec.c */
    uint32_t out_frame, out_phase, out_bytes; /* with `busy` */
    unsigned char *out_buffer;     /* quantised: the contribution in hand, of the pool */
    /* In. */
    uint32_t in_frame, in_phase, in_bytes, in_slot; /* with `receiving`; in_slot: EXEC_NONE if not staged */
    uint32_t in_folded;            /* bytes of it that were lent */
    unsigned char *in_buffer;      /* quantised: the final frame in hand, of the pool */
    uint32_t expected;             /* contributions it will send in all */
    uint32_t granted, announced, folded; /* contributions, each at most the one before (granted: at most expected) */
    uint32_t window;               /* grants that it should have, with what has come and is not folded */
    uint32_t held_a, held_b;       /* of each half: grants outstanding + slots in use */
    uint32_t untold;               /* grants that exec_take_credit will take */
    struct exec_move tell;         /* ... and the move of the operation that it is to be told of; at 0: none */
    uint32_t sums;                 /* contributions that it has said to be ready, folded ones among them */
    uint32_t slot_head, slot_tail; /* arrived, not folded, in order of frames */
    uint32_t fold_first;           /* first frame of the segment that it contributes to */
    uint32_t gives;                /* ordered: contributions to it in all */
    uint32_t *folds;               /* ordered: the frames that it contributes to, in exec.folds; else null */
    bool contributes; /* on any lane: the launcher reserved its window */
    bool ready;     /* its READY is in */
    bool busy;      /* a frame was pulled and has not left */
    bool receiving; /* a header came, its bytes have not all arrived */
    bool in_lend;   /* ... and may be lent: nothing else comes before it */
    bool starved;
    bool starved_next; /* ... for a frame that would be folded on arrival: half B may serve it */
    bool touched;   /* in exec.touched */
    bool in_place;  /* its contributions arrive in `out` */
};

enum exec_value { VALUE_NONE, VALUE_INPUT, VALUE_BUFFER }; /* BUFFER: `out` for plain types, else the accumulator */

struct exec_frame {
    uint16_t step;  /* within the segment's program: the next one to do */
    uint8_t value;  /* enum exec_value */
    bool complete;  /* final in `out`, or nothing of it becomes final here */
    bool queued;    /* its partial sum waits in a queue, in `out` */
};

/* A frame with all that follows from its number. */
struct exec_view {
    const struct plan_segment *segment;
    struct exec_frame *state;
    uint32_t frame;
    size_t offset, count; /* elements of the segment */
};

/* exec_view.c */
/* First frame of a segment on this lane (may lie beyond its end), and how many there are. */
uint32_t exec_first_frame(const struct exec *x, const struct plan_segment *segment);
uint32_t exec_frame_count(const struct exec *x, const struct plan_segment *segment);
struct exec_view exec_view(const struct exec *x, uint32_t frame);
/* The k-th frame that this partner contributes to and that is not folded on its way; k < expected. */
uint32_t exec_contribution(const struct exec *x, const struct exec_peer *p, uint32_t k);
unsigned char *exec_out_bytes(const struct exec *x, const struct exec_view *v);
const unsigned char *exec_in_bytes(const struct exec *x, const struct exec_view *v);
const unsigned char *exec_own_bytes(const struct exec *x, const struct exec_view *v); /* where the program put it, as long as nothing was written there */
/* exec_frame.c: the input of a frame that is about to be written, or sent; `read`: the saved one is read soon. */
void exec_save(struct exec *x, const struct exec_view *v, bool read);
unsigned char *exec_wire(const struct exec *x, uint32_t frame, uint32_t *index); /* result buffer of a frame */
/* Place of a frame among those that are reduced here through accumulators. */
uint32_t exec_fold_place(const struct exec *x, uint32_t frame);
/* Whether its accumulator is, or will be with its turn, free; plain types need none. */
bool exec_may_begin(const struct exec *x, uint32_t frame);
/* Whether a contribution of that partner to this frame would be folded on arrival. */
bool exec_wants(const struct exec *x, uint32_t frame, uint32_t partner);

/* exec_grant.c */
void exec_touch(struct exec *x, uint32_t partner);
void exec_grant(struct exec *x, uint32_t partner);
/* Whether the next contribution to be granted comes as soon as it is: it needs no more than its sender has. */
bool exec_next_is_ready(const struct exec *x, const struct exec_peer *p);
void exec_release_slot(struct exec *x, uint32_t partner, uint32_t slot);

/* exec_frame.c */
/* Runs the frame's program as far as it goes. */
void exec_advance(struct exec *x, uint32_t frame);
/* Not plain: runs the frames that may hold accumulators until none moves. */
void exec_resume(struct exec *x);
/* It is final where it belongs, or what is done here for others is done. */
void exec_complete(struct exec *x, const struct exec_view *v);
/* A contribution that arrived in place, or the final value, is in `out`. */
void exec_landed(struct exec *x, const struct exec_view *v);
/* Whether what comes of that partner is the next to be folded; folds so many bytes of it; all of it has been. */
bool exec_lends(struct exec *x, const struct exec_view *v, uint32_t partner);
void exec_fold_lent(struct exec *x, const struct exec_view *v, size_t at, const void *wire, size_t bytes);
void exec_folded(const struct exec_view *v);

/* exec_work.c: whether a frame could be copied or packed now; does so with one */
bool exec_has_work(const struct exec *x);
void exec_work(struct exec *x);

/* exec_flow.c */
void exec_on_header(struct exec *x, const struct exec_event *event, struct exec_out *out);
void exec_on_lent(struct exec *x, const struct exec_event *event);
void exec_on_arrived(struct exec *x, uint32_t partner);
void exec_on_pull(struct exec *x, uint32_t partner, struct exec_out *out);
void exec_on_sent(struct exec *x, uint32_t partner);
void exec_stop(struct exec *x);

/* exec_order.c: of plans that order contributions, once queues have places; a sum to that partner is ready; takes what
 * has come of it to a frame out of its slots, EXEC_NONE if nothing has */
void exec_order_init(struct exec *x);
void exec_order_ready(struct exec *x, struct exec_peer *p);
uint32_t exec_order_take(struct exec *x, struct exec_peer *p, uint32_t frame);

/* exec_check.c: asserts what must hold between two steps */
void exec_check(struct exec *x);

/* room.c */
bool room_take_a(struct room *room);
bool room_take_b(struct room *room);
void room_give_b(struct room *room, uint32_t count);
uint32_t room_slot_take(struct room *room);
void room_slot_give(struct room *room, uint32_t slot);
unsigned char *room_slot(const struct room *room, uint32_t slot); /* its bytes */

#endif
