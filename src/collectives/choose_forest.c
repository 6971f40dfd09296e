/* choose_forest.c - how long a sum takes along a view's trees.
 *
 * Its one idea: whoever makes the trees knows the links and predicts what they allow; the members' own processors are a second limit, the same
 * as of direct, since trees with shares move as many bytes in all.  The slower one of the two decides.
 * Invariant: nothing overflows: the caller cuts `bytes` at 64 MiB (choose.c), where time goes on as the bytes do.
 * SPDX-License-Identifier: MIT */
#include "collectives/choose.h"

#define FOREST_MIB (UINT64_C(1) << 20)

uint64_t choose_forest_ns(const struct forest *forest, uint64_t bytes, uint64_t own_ns)
{
    uint64_t links = bytes * forest->mib_ns / FOREST_MIB + (uint64_t)forest->delay_us * 1000;
    return links > own_ns ? links : own_ns;
}
