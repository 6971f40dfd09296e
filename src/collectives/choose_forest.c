/* choose_forest.c - how long a sum takes along a view's trees.
 *
 * Its one idea: whoever makes the trees knows the links and predicts what they allow; the members' own processors are a second limit, the same
 * as of direct, since trees with shares move as many bytes in all.  The slower one of the two decides.
 * Invariant: nothing overflows: the caller cuts `bytes` at 64 MiB (choose.c), where time but for delays goes on as the bytes do.
 * SPDX-License-Identifier: MIT */
#include "collectives/choose.h"

#define FOREST_MIB (UINT64_C(1) << 20)

struct choose_answer choose_forest(const struct forest *forest, uint64_t bytes, struct choose_answer own, uint64_t hold_ns)
{
    uint64_t delay = (uint64_t)forest->delay_us * 1000 + 2 * hold_ns, ns = bytes * forest->mib_ns / FOREST_MIB + delay;
    return ns > own.ns ? (struct choose_answer){PLAN_FOREST, ns, delay, hold_ns, own.measured, true} : own;
}
