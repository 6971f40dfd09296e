/* ranks.h - which ranks of a world that is being created have been claimed, for people.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_RANKS_H
#define PCCL_WIRE_RANKS_H

#include "wire/control.h"

static inline bool ranks_claimed(const struct seats *s, uint32_t rank)
{
    return (s->claimed[rank / 8] >> (rank % 8) & 1) != 0;
}

uint32_t ranks_missing(const struct seats *s);
/* "1, 3 and 12 more": those that have not been claimed; "" if all have. */
void ranks_text(const struct seats *s, char *out, size_t size);

#endif
