/* journal.h - the records that a master must not forget, and a journal of them in memory.
 *
 * A batch is what one decision needs: the next view of each group it touches, or a group's new revision.  It becomes
 * durable as a whole (each record says how many follow), before anything of it is published (M4).  Of each group only
 * the last view and the last revision matter: a survivor is never more than one view behind (M5).
 * Invariant: a journal holds whole batches only; records it cannot read end the reading.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_JOURNAL_H
#define PCCL_WORLD_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"
#include "wire/outbox.h"

enum journal_kind { JOURNAL_VIEW = 1, JOURNAL_REVISION = 2 };

enum { JOURNAL_HEAD_BYTES = 48, JOURNAL_TAIL_BYTES = 8 };

struct journal_record {
    uint8_t kind;
    uint32_t left;      /* records of this batch behind this one */
    uint64_t run;
    uint32_t epoch, group;
    uint64_t number;    /* of the batch */
    uint64_t value;     /* view, or revision expected next */
    const void *body;   /* borrowed: member ids, decisions, as view.c puts them; empty for a revision */
    uint32_t body_bytes;
};

/* Begins a record at the writer's place; returns that place for journal_end. */
size_t journal_begin(struct writer *w, const struct journal_record *head);
/* Ends it: fills in the length and adds the check sum. */
void journal_end(struct writer *w, size_t at);

/* The record at *at; moves *at behind it.  False at the end and at anything that is not a whole record. */
bool journal_next(const void *bytes, size_t size, size_t *at, struct journal_record *out);

/* What is in the writer of `o` is to be made durable: MASTER_PERSIST of this number. */
void journal_persist(struct outbox *o, uint64_t number);

/* A journal in the caller's memory. */
struct journal {
    unsigned char *bytes; /* borrowed */
    size_t capacity, used;
};
void journal_init(struct journal *j, void *bytes, size_t capacity);
/* Adds a batch and drops what it replaces.  False, nothing changed, if it is not a whole batch or does not fit. */
bool journal_append(struct journal *j, const void *batch, size_t size);

#endif
