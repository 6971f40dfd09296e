/* phase.h - the table of a state machine: names of its phases and the edges that are allowed.
 *
 * Whoever writes a phase checks the edge against the table; the same tables print the diagrams of docs/internals/PROTOCOL.md, so the
 * document shows what the code does.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_PHASE_H
#define PCCL_CORE_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum { PHASE_MOST = 5 };

struct phase_table {
    char machine[12];
    uint32_t count;
    char name[PHASE_MOST][12];
    uint8_t next[PHASE_MOST]; /* bit 1 << to: allowed */
};

static inline bool phase_allowed(const struct phase_table *t, uint32_t from, uint32_t to)
{
    return from < t->count && to < t->count && ((t->next[from] >> to) & 1) != 0;
}

#endif
