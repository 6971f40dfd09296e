/* record.h - the records of a master's journal: what it must not forget of a world, as bytes.
 *
 * A batch is what one decision needs: the next view of each group it touches, or a group's new revision.  It becomes
 * durable as a whole (each record says how many follow), before anything of it is published (M4).  Of each group only
 * the last view and the last revision matter: a survivor is never more than one view behind (M5).  Of a world that has
 * ended nothing does, but that its name was for one world and is used (W12).
 * Invariant: what cannot be read ends the reading.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_RECORD_H
#define PCCL_WIRE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"

enum record_kind { RECORD_VIEW = 1, RECORD_REVISION = 2, RECORD_END = 3, RECORD_USED = 4 };

enum { RECORD_HEAD_BYTES = 48, RECORD_TAIL_BYTES = 8 };

struct record {
    uint8_t kind;
    uint32_t left;      /* records of this batch behind this one */
    uint64_t run;
    char name[BOUNDS_WORLD_NAME]; /* of the world */
    uint32_t epoch, group;
    uint64_t number;    /* of the batch, with the place of this world */
    uint64_t value;     /* view, or revision expected next; USED: its place among so many that are kept; END: 0 */
    const void *body;   /* borrowed: one of the structs below, with its lists; USED has none */
    uint32_t body_bytes;
};

/* VIEW.  Behind it: member_info of its members by rank, op_decision of its decisions on the parent, record_seat of its seats. */
struct record_view {
    uint64_t parent;
    uint8_t answers;    /* enum vote_kind: the vote that it answers */
    bool over;          /* the world ends with it */
    uint8_t cause;      /* why the parent ended */
    uint64_t culprit;
    char text[BOUNDS_TEXT];
    uint64_t revision;  /* that the next sync of the group must exceed */
    uint32_t members, decisions;
    uint32_t seats;     /* of a world of a given size, with its first view; else 0 */
    uint8_t loss;       /* enum loss_rule, with seats */
    bool once;          /* its name is for one world only, with seats */
};

/* A place in a world of a given size: a member that has lost its connection calls again by its attempt, and gets no other answer. */
struct record_seat {
    uint64_t attempt;   /* 0: no call has claimed it */
    uint64_t id;        /* of its peer; 0: none has been made */
};

/* REVISION: a sync is elected; its answer is about to leave. */
struct record_revision {
    uint64_t elected;
    uint32_t round;
};

/* END.  Behind it: record_seat of its seats, which are asked for after the world has gone. */
struct record_end {
    uint32_t seats;
};

/* Begins a record at the writer's place; returns that place for record_end. */
size_t record_begin(struct writer *w, const struct record *head);
/* Ends it: fills in the length and adds the check sum. */
void record_end(struct writer *w, size_t at);

/* The record at *at; moves *at behind it.  False at the end and at anything that is not a whole record. */
bool record_next(const void *bytes, size_t size, size_t *at, struct record *out);
/* The same of bytes that have been read so before: their sums are not computed again. */
bool record_again(const void *bytes, size_t size, size_t *at, struct record *out);

/* Bodies; false: what was read cannot be.  Lists are read one by one behind them. */
void put_record_view(struct writer *w, const struct record_view *m);
bool get_record_view(struct reader *r, struct record_view *m);
void put_record_seat(struct writer *w, const struct record_seat *m);
bool get_record_seat(struct reader *r, struct record_seat *m);
void put_record_revision(struct writer *w, const struct record_revision *m);
bool get_record_revision(struct reader *r, struct record_revision *m);
void put_record_end(struct writer *w, const struct record_end *m);
bool get_record_end(struct reader *r, struct record_end *m);

#endif
