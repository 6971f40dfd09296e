/* outbox.h - what a step function wants done: a list of actions and the bytes that go with them.
 *
 * A step appends; its shell carries out the actions in order and then resets the box.  Frames are encoded here, by the
 * real encoders, so that every shell moves bytes only.  "Send to many" is one action with a list of destinations.  Storage is the
 * caller's; a box that overflows sets `overflow`, which the step asserts against (its size has a computed worst case).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_OUTBOX_H
#define PCCL_WIRE_OUTBOX_H

#include "wire/frame.h"

struct action {
    uint32_t kind;          /* enum of the machine: master_action or session_action */
    uint32_t slot;          /* operation slot, connection, group: by kind */
    uint64_t id;            /* peer id: by kind */
    uint64_t value, order;  /* by kind */
    uint32_t frame, frame_bytes; /* into bytes: a whole frame, header included, or a text; a list that travels in parts is several frames */
    uint32_t dest, dests;   /* into dest_ids */
    const void *data;       /* borrowed payload that follows the frame (inputs, leaves of a state), or null */
    uint64_t data_bytes;    /* counted in the frame header's length */
};

struct outbox {
    struct action *actions;
    uint32_t count, capacity;
    unsigned char *bytes;
    uint32_t used, bytes_capacity;
    uint64_t *dest_ids;     /* connection numbers (master) or peer ids (session) */
    uint32_t dests, dest_capacity;
    struct writer writer;   /* of the frame being written */
    uint32_t frame_at;
    uint32_t part_bytes;    /* payload beyond which a frame travels in parts, if its type may; 0: the limit of its type */
    bool overflow;
};

/* How much a box can hold. */
struct outbox_bounds {
    uint32_t actions, bytes, dests;
};

/* Bytes of a box in one piece: actions, then destinations, then frames, so that what no step fills stays untouched. */
size_t outbox_memory(const struct outbox_bounds *b);
/* An empty one in so much memory, which is aligned for integers of 64 bits. */
void outbox_use(struct outbox *o, void *memory, const struct outbox_bounds *b);
/* An empty one in three pieces. */
void outbox_init(struct outbox *o, struct action *actions, uint32_t capacity, void *bytes, uint32_t bytes_capacity,
                 uint64_t *dest_ids, uint32_t dest_capacity);
void outbox_reset(struct outbox *o);
bool outbox_holds(const struct outbox *o, const struct outbox_bounds *b);
/* It overflows beyond these bounds, which its memory has room for: to see that a step keeps within them. */
void outbox_limit(struct outbox *o, const struct outbox_bounds *b);

/* Whether at least half of it is free: who has much to say stops otherwise, and goes on in a step of its own. */
bool outbox_half_free(const struct outbox *o);

/* Appends an action without a frame; never null (a scratch action if the box is full). */
struct action *outbox_add(struct outbox *o, uint32_t kind);

/* Appends an action with a text, zero included, where others have their frame.  Not while a frame is being written. */
void outbox_text(struct outbox *o, uint32_t kind, uint64_t value, const char *text);

/* Starts a frame; put its payload into the writer returned, then call outbox_send or outbox_send_many. */
struct writer *outbox_frame(struct outbox *o, uint8_t type, uint64_t run, uint64_t view);
/* Ends the frame: an action of `kind` to one destination. */
struct action *outbox_send(struct outbox *o, uint32_t kind, uint64_t dest);
/* Ends the frame: destinations are added with outbox_dest before the next action; an action without any is dropped by the shell. */
struct action *outbox_send_many(struct outbox *o, uint32_t kind);
void outbox_dest(struct outbox *o, struct action *a, uint64_t dest);
/* Bytes that stay where they are become the last of an action's frame. */
void outbox_lend(struct outbox *o, struct action *a, const void *data, uint32_t bytes);

#endif
