/* holding.h - the shared state of a member: tensors that are a known function of (lineage, step).
 *
 * A run of the state that has no ancestor is a lineage; the process that starts one draws its number.  Whoever has received
 * the state can check every byte of it from the two numbers in its first entry.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_HOLDING_H
#define PCCL_TESTS_HOLDING_H

#include "chaos_member.h"

enum { HOLDING_NAME = 48 };

struct holding *holding_new(const struct plan *plan, unsigned key, uint64_t own_lineage);
void holding_free(struct holding *h);

uint64_t holding_lineage(const struct holding *h);
uint64_t holding_step(const struct holding *h);
uint64_t holding_revision(const struct holding *h);

/* The step is done: the tensors move on to what they are after it. */
void holding_advance(struct holding *h);

/* The master has refused what this peer said of its state: next time it says that it has none. */
void holding_forget(struct holding *h);

/* pcclSynchronizeSharedState, checked: whole and right after success, untouched after an error. */
pcclResult_t holding_synchronise(struct holding *h, struct member *m, int rank);

/* A revision may come twice, when all members have left and a run starts afresh from what they held: a number that the
 * members have agreed on since tells the two apart.  Writes the outcome of the last synchronisation under that name. */
void holding_name(struct holding *h, struct member *m, uint64_t nonce);
const char *holding_get_name(const struct holding *h);

#endif
