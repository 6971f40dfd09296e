/* journal.h - records of worlds, in memory: what a master would read when it starts again.
 *
 * Its one idea: a batch that comes drops what it replaces, so a journal is as large as what there is, however long it goes on.
 * Invariant: a journal holds whole batches only.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_MASTER_JOURNAL_H
#define PCCL_MASTER_JOURNAL_H

#include "wire/record.h"

struct journal {
    unsigned char *bytes; /* borrowed */
    size_t capacity, used;
};
void journal_init(struct journal *j, void *bytes, size_t capacity);
/* Adds a batch and drops what it replaces.  False, nothing changed, if it is not a whole batch or does not fit. */
bool journal_append(struct journal *j, const void *batch, size_t size);

/* The same where each world has a journal of its own: what several begin with is one batch (W10).  Whether it is whole; */
bool journal_whole(const void *batch, size_t size);
/* ... the bytes from there on that are of one world, and the place of that; 0 at the end; */
size_t journal_piece(const void *batch, size_t size, size_t from, uint32_t *place);
/* ... what of a batch is for this one.  False, nothing changed, if it does not fit. */
bool journal_keep(struct journal *j, const void *piece, size_t size);

#endif
