/* dice.h - numbers drawn from a seed: the same on every machine, for the runner and for every peer program.
 *
 * Invariant: a draw depends on the seed and on the draws before it alone; dice_hash on its arguments alone, so that two
 * processes that know the same names draw the same.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_DICE_H
#define PCCL_TESTS_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

/* The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static inline uint64_t dice_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t dice_hash(uint64_t a, uint64_t b)
{
    return dice_mix(dice_mix(a) ^ b);
}

static inline uint64_t dice_next(struct dice *d)
{
    d->state = dice_mix(d->state);
    return d->state;
}

/* 0 .. below - 1 */
static inline uint64_t dice_below(struct dice *d, uint64_t below)
{
    return dice_next(d) % below;
}

/* from .. to, both included */
static inline int dice_from(struct dice *d, int from, int to)
{
    return from + (int)dice_below(d, (uint64_t)(to - from + 1));
}

/* True in `of` out of a hundred draws. */
static inline bool dice_percent(struct dice *d, int of)
{
    return (int)dice_below(d, 100) < of;
}

#endif
