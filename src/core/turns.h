/* turns.h - whose turn it is: elements by number, the least first, with links that live in the elements.
 *
 * A pairing heap: joining takes one comparison, leaving, from anywhere, the logarithm of how many are in, amortised.  No memory is
 * needed, so neither ever fails.  Invariant: no turn has a lower number than its parent; a turn in no heap has no owner.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_TURNS_H
#define PCCL_CORE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turns;

struct turn {
    struct turn *child, *next; /* borrowed: the first child; the next child of the same parent */
    struct turn *before;       /* borrowed: the child before, of the first one the parent; null: first of all, or in none */
    struct turns *in;          /* borrowed; null: none */
    uint64_t number;
};

struct turns {
    struct turn *first; /* borrowed; null: empty */
};

static inline bool turn_waits(const struct turn *t)
{
    return t->in != NULL;
}

/* `t` is in none. */
void turns_add(struct turns *all, struct turn *t, uint64_t number);
/* Takes `t` out; does nothing if it is in none. */
void turn_leave(struct turn *t);
/* The first one, taken out; null if there is none. */
struct turn *turns_pop(struct turns *all);

#endif
