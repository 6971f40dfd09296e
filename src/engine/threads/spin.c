/* spin.c - see spin.h.
 * SPDX-License-Identifier: MIT */
#include "engine/threads/spin.h"

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t spin_learn(const struct spin_wait *w)
{
    int64_t next_ns = w->spin_ns / 2;
    if (w->crowded) {
        next_ns = at_most(w->slept ? next_ns : 2 * w->spin_ns, SPIN_MOST_CROWDED_NS);
    } else if (w->waited_ns <= SPIN_MOST_NS) {
        next_ns = at_most(at_least(2 * w->waited_ns, w->spin_ns - w->spin_ns / 64), SPIN_MOST_NS);
    }
    return at_least(next_ns, SPIN_LEAST_NS);
}
