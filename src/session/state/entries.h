/* entries.h - how a list of entries that comes piece by piece differs from the own one.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_ENTRIES_H
#define PCCL_SESSION_ENTRIES_H

#include "session/session_state.h"

void entries_begin(struct entries_diff *d);
struct entry_key entries_key(const struct sync_entry *e, uint32_t index);
/* The next of their entries; false: it is known what differs, d->text says it. */
bool entries_next(struct entries_diff *d, const struct sync_state *own, const struct entry_key *theirs);
void entries_end(struct entries_diff *d, const struct sync_state *own); /* that was all of them */

#endif
