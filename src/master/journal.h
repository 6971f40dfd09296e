/* journal.h - records of worlds, in memory: what a master would read when it starts again.
 *
 * Its one idea: a batch that comes drops what it replaces, so a journal is as large as what there is, however long it goes on.
 * Invariant: a journal holds whole batches only.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_MASTER_JOURNAL_H
#define PCCL_MASTER_JOURNAL_H

#include "world/journal_record.h"

struct journal {
    unsigned char *bytes; /* borrowed */
    size_t capacity, used;
};
void journal_init(struct journal *j, void *bytes, size_t capacity);
/* Adds a batch and drops what it replaces.  False, nothing changed, if it is not a whole batch or does not fit. */
bool journal_append(struct journal *j, const void *batch, size_t size);

#endif
