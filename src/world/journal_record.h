/* journal_record.h - what a master must not forget of a world, as bytes.
 *
 * A batch is what one decision needs: the next view of each group it touches, or a group's new revision.  It becomes
 * durable as a whole (each record says how many follow), before anything of it is published (M4).  Of each group only
 * the last view and the last revision matter: a survivor is never more than one view behind (M5).  Of a world that has
 * ended nothing does, but that its name was for one world and is used (W12).
 * Invariant: what cannot be read ends the reading.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_JOURNAL_RECORD_H
#define PCCL_WORLD_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"
#include "wire/outbox.h"

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
    const void *body;   /* borrowed: member ids, decisions, as view.c puts them; empty for the others */
    uint32_t body_bytes;
};

/* Begins a record at the writer's place; returns that place for record_end. */
size_t record_begin(struct writer *w, const struct record *head);
/* Ends it: fills in the length and adds the check sum. */
void record_end(struct writer *w, size_t at);

/* The record at *at; moves *at behind it.  False at the end and at anything that is not a whole record. */
bool record_next(const void *bytes, size_t size, size_t *at, struct record *out);
/* The same of bytes that have been read so before: their sums are not computed again. */
bool record_again(const void *bytes, size_t size, size_t *at, struct record *out);

/* What is in the writer of `o` is to be made durable: MASTER_PERSIST of this number. */
void record_persist(struct outbox *o, uint64_t number);

#endif
