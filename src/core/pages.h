/* pages.h - memory in pages of its own, for large blocks: what is not touched costs nothing, and all of it is given back.
 *
 * Of the heap they would be a burden to the program: a large block given back there makes its malloc keep all that follow.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_PAGES_H
#define PCCL_CORE_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeroed; null: there is no memory. */
static inline void *pages_new(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at != MAP_FAILED ? at : NULL;
}

/* What lies in it is lost, and reads as zero. */
static inline void pages_clear(void *at, size_t bytes)
{
    int rc = madvise(at, bytes, MADV_DONTNEED);
    (void)rc; /* only memory */
}

/* All of a block; null is none. */
static inline void pages_free(void *at, size_t bytes)
{
    if (at != NULL) {
        munmap(at, bytes);
    }
}

#endif
