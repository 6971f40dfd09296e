/* heap.h - which of many numbered things is due first: a heap of times, by index.
 *
 * Any index may be set, moved or taken out at any time, in steps of the logarithm of how many are in.  Storage is the caller's, and may
 * be changed for larger.  Of equal times the lower index is first.  Invariant: a parent is due no later than its children, and
 * at[order[i]] == i.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_HEAP_H
#define PCCL_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap {
    int64_t *key;      /* by index: INT64_MAX is not in it */
    uint32_t *at;      /* by index that is in it: its place in `order` */
    uint32_t *order;   /* indices; the first `used` are in it */
    uint32_t count, used;
};

/* A multiple of 8. */
size_t heap_bytes(uint32_t count);
/* `storage`, of so many bytes, in place of the present one, with all that is in it. */
void heap_use(struct heap *h, void *storage, uint32_t count);
/* INT64_MAX takes it out. */
void heap_set(struct heap *h, uint32_t index, int64_t key);
bool heap_sound(const struct heap *h);

/* INT64_MAX: nothing is in it. */
static inline int64_t heap_least(const struct heap *h)
{
    return h->used == 0 ? INT64_MAX : h->key[h->order[0]];
}

/* Whose that is; only if something is in it. */
static inline uint32_t heap_first(const struct heap *h)
{
    return h->order[0];
}

#endif
