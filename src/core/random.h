/* random.h - small seeded generator (splitmix64), for simulation, jitter and searches; never for secrets.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_RANDOM_H
#define PCCL_CORE_RANDOM_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Uniform in [0, bound); bound > 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t bound)
{
    return rng_next(r) % bound;
}

#endif
