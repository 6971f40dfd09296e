/* op_class.h - what differs between the classes of operations: one row of handlers for each space of names.
 *
 * Collectives are by tag or in the order of issue, and all members agree on their outcome.  Messages and those of windows have two
 * members, and the receiver decides (pair.c).  A relayed part is no operation: it is what two members without a link move in one (path.c).
 * The class is chosen once, where a call or a frame enters, and each operation knows its own.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_OP_CLASS_H
#define PCCL_SESSION_OP_CLASS_H

#include "session/session.h"

struct op;
struct tag;

/* The member that a message between two goes to. */
enum word_to { TO_EITHER, TO_RECEIVER, TO_SENDER };

/* A frame about an operation: the link that brought it, and its bytes for the members that it is passed on to. */
struct said {
    uint32_t from;       /* index of the peer */
    const struct frame_header *header;
    const void *payload;
};

/* What a call is about. */
struct call_of {
    struct tag *tag;     /* that its number is of; null: known later */
    uint64_t partner;    /* peer id of the other member of two; 0: any source, or all members */
};

struct op_class {
    bool two;            /* it has two members */
    bool beside_votes;   /* the program may call it while a vote is open */
    uint8_t tags_called; /* entries of the table of tags that a call may add, */
    uint8_t tags_later;  /* ... and that the launch of a deferred call, or a frame, may add */

    /* Calls of the program.  check: RESULT_PENDING if the call may be made.  no_memory: what this peer does about a call that its memory
     * cannot hold; null: the call fails and nobody else is told.  launch: the turn of the call has come. */
    enum session_result (*check)(struct session *s, const struct session_launch *l, struct call_of *call);
    void (*no_memory)(struct session *s);
    void (*launch)(struct session *s, uint32_t slot, struct outbox *out);
    void (*request)(struct session *s, struct op *op, uint8_t cause, struct outbox *out); /* its deadline, or the program, gives it up */

    /* Frames.  speaker: the rank that says it; false: that peer may not.  hold, refuse, finished: false if it cannot be true, whoever
     * relayed it, so that the peer of the link must have made it up. */
    bool (*speaker)(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
    void (*ready)(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out);
    void (*eager)(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out);
    bool (*hold)(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out);
    bool (*refuse)(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out);
    bool (*finished)(struct session *s, struct op *op, uint32_t rank, struct outbox *out);

    /* Progress.  complete: lanes are done.  arrived: all that a relay brings from that rank is here.  wanted: it may ask for parts now. */
    void (*complete)(struct session *s, struct op *op, uint64_t digest, struct outbox *out);
    void (*arrived)(struct session *s, struct op *op, struct outbox *out);
    bool (*wanted)(const struct session *s, const struct op *op, uint32_t rank);
    bool (*in_place)(const struct session *s, const struct op *op); /* of collectives: all that relays bring, from all members */
    uint64_t (*given)(const struct session *s, const struct op *op); /* of collectives: bytes that relays have taken to all members */
    void (*stop)(struct session *s, struct op *op); /* nothing more is moved, and no line holds it */
    void (*replay)(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* the link with that member is new */

    /* Members.  concerns: it is one of them.  neighbour: it exchanges data with this one.  hears: it is told of the launch, and tells of its
     * own.  tells: this peer has something to tell.  apart: no other member knows how much these two move. */
    bool (*concerns)(const struct session *s, const struct op *op, uint32_t rank);
    bool (*neighbour)(const struct session *s, const struct op *op, uint32_t rank);
    bool (*hears)(const struct session *s, const struct op *op, uint32_t rank);
    bool (*tells)(const struct session *s, const struct op *op);
    bool (*apart)(const struct session *s, const struct op *op, uint32_t rank);

    /* One member of it.  announce: tells it of the launch.  feed: lanes, or its relay, are told that it has launched. */
    void (*announce)(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
    void (*feed)(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
};

extern const struct op_class op_classes[OP_SPACES]; /* by enum op_space */

#endif
