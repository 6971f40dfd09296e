/* storage.h - how a table moves to larger storage, which the shell has made.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_STORAGE_H
#define PCCL_SESSION_STORAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The next array of a block, with the first `used` entries of the present one. */
static inline void *storage_moved(unsigned char **at, size_t size, uint32_t count, const void *from, uint32_t used)
{
    void *to = *at;
    *at += size * count;
    if (used > 0) {
        memcpy(to, from, size * used);
    }
    return to;
}

/* Blocks that follow each other begin where any type may. */
static inline size_t storage_whole(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* The same where each begins a line of the cache. */
static inline size_t storage_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif
