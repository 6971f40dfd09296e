/* used_names.h - names of worlds that were created to be the only one of their name: nobody creates another (W12).
 *
 * Its one idea: a name is as good as a hash of it; of so many that a master could not keep them all, the oldest are forgotten.
 * Invariant: whatever is in the ring is found by the index, and nothing else is.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_MASTER_USED_NAMES_H
#define PCCL_MASTER_USED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct used_names {
    uint32_t most;         /* names kept, however much memory there is */
    uint32_t room, count;
    uint32_t oldest;       /* its place in the ring */
    uint32_t index_size;   /* twice the room or more, a power of two */
    uint64_t *hash;        /* the ring, in memory that the shell owns; null: none yet */
    uint32_t *index;       /* place + 1 by hash, behind it */
};

bool used_has(const struct used_names *u, uint64_t hash);
/* For so many more names there is room, or the oldest make it. */
bool used_fits(const struct used_names *u, uint32_t more);
/* Takes it; the oldest goes if the ring is full. */
void used_note(struct used_names *u, uint64_t hash);

/* The room to be wanted for so many more, and the bytes of such a table. */
uint32_t used_wanted(const struct used_names *u, uint32_t more);
size_t used_bytes(uint32_t room);
/* Moves into larger memory; returns what it has left, null if nothing. */
void *used_move(struct used_names *u, uint32_t room, void *memory);

#endif
