/* mix.h - a small 64-bit mixer for parameter hashes, digests and tables; never for secrets.
 *
 * The finaliser of splitmix64 over a running value, so that order matters and every bit of an input
 * moves about half of the output.  The same on every machine: its results travel.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_MIX_H
#define PCCL_CORE_MIX_H

#include <stdint.h>
#include <string.h>

/* Adds `v` to the hash `h` of what came before.  Begin with a constant or a seed: of two raw values only
 * their exclusive or would count. */
static inline uint64_t mix64(uint64_t h, uint64_t v)
{
    uint64_t z = (h ^ v) + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Of a text, in a table of whoever draws the seed. */
static inline uint64_t mix_text(uint64_t seed, const char *text)
{
    uint64_t h = mix64(seed, strlen(text));
    for (; *text != 0; text++) {
        h = mix64(h, (unsigned char)*text);
    }
    return h;
}

#endif
