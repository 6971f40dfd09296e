/* dispatch.c - picks the kernel table once, by processor and by the environment mask PCCL_CPU.
 *
 * PCCL_CPU names the best level allowed (scalar | avx2 | avx512 | neon); unset or unknown allows all.  Invariant: a table
 * is offered only if the processor runs it; "scalar" always is.  The chosen pointer is the only writable data.
 * SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/levels.h"

/* Worst first, so that a mask is a prefix. */
static const struct {
    const struct kernels *table;
    unsigned needs;
} dispatch_levels[] = {
    {&kernels_scalar, 0},
#if defined(__x86_64__)
    {&kernels_avx2, CPU_AVX2},
    {&kernels_avx512, CPU_AVX512},
#elif defined(__aarch64__)
    {&kernels_neon, CPU_NEON},
#endif
};

enum { DISPATCH_LEVELS = sizeof(dispatch_levels) / sizeof(dispatch_levels[0]) };

static _Atomic(const struct kernels *) dispatch_chosen;

const struct kernels *kernels_level(const char *name)
{
    const unsigned have = cpu_features();
    for (int i = 0; i < DISPATCH_LEVELS; i++) {
        if (strcmp(dispatch_levels[i].table->name, name) == 0) {
            return (dispatch_levels[i].needs & ~have) == 0 ? dispatch_levels[i].table : NULL;
        }
    }
    return NULL;
}

bool kernels_known(const char *name)
{
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static const struct kernels *dispatch_choose(const char *mask)
{
    const unsigned have = cpu_features();
    const struct kernels *best = &kernels_scalar, *allowed = NULL;
    for (int i = 0; i < DISPATCH_LEVELS; i++) {
        if ((dispatch_levels[i].needs & ~have) == 0) {
            best = dispatch_levels[i].table;
        }
        if (mask != NULL && strcmp(mask, dispatch_levels[i].table->name) == 0) {
            allowed = best; /* the best up to the mask, should the processor lack the level itself */
        }
    }
    return allowed != NULL ? allowed : best;
}

const struct kernels *kernels_get(void)
{
    const struct kernels *chosen = atomic_load_explicit(&dispatch_chosen, memory_order_acquire);
    if (chosen == NULL) {
        chosen = dispatch_choose(getenv("PCCL_CPU"));
        atomic_store_explicit(&dispatch_chosen, chosen, memory_order_release);
    }
    return chosen;
}
