/* heap.c - see heap.h.
 * SPDX-License-Identifier: MIT */
#include "core/heap.h"

#include <string.h>

#include "core/check.h"

size_t heap_bytes(uint32_t count)
{
    size_t bytes = count * (sizeof(int64_t) + 2 * sizeof(uint32_t));
    return (bytes + 7) / 8 * 8;
}

void heap_use(struct heap *h, void *storage, uint32_t count)
{
    int64_t *key = storage;
    uint32_t *at = (uint32_t *)(void *)(key + count), *order = at + count;
    if (h->count > 0) {
        memcpy(key, h->key, h->count * sizeof *key);
        memcpy(at, h->at, h->count * sizeof *at);
        memcpy(order, h->order, h->used * sizeof *order);
    }
    for (uint32_t i = h->count; i < count; i++) {
        key[i] = INT64_MAX;
    }
    h->key = key;
    h->at = at;
    h->order = order;
    h->count = count;
}

static void place(struct heap *h, uint32_t at, uint32_t index)
{
    h->order[at] = index;
    h->at[index] = at;
}

/* Of equal times the lower index is first, so that what follows does not depend on what was in the heap before. */
static bool sooner(const struct heap *h, uint32_t a, uint32_t b)
{
    return h->key[a] < h->key[b] || (h->key[a] == h->key[b] && a < b);
}

static void rise(struct heap *h, uint32_t at)
{
    uint32_t index = h->order[at];
    while (at > 0 && sooner(h, index, h->order[(at - 1) / 2])) {
        place(h, at, h->order[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(h, at, index);
}

static void sink(struct heap *h, uint32_t at)
{
    uint32_t index = h->order[at];
    for (uint32_t child = 2 * at + 1; child < h->used; child = 2 * at + 1) {
        child += child + 1 < h->used && sooner(h, h->order[child + 1], h->order[child]);
        if (sooner(h, index, h->order[child])) {
            break;
        }
        place(h, at, h->order[child]);
        at = child;
    }
    place(h, at, index);
}

void heap_set(struct heap *h, uint32_t index, int64_t key)
{
    PCCL_ASSERT(index < h->count);
    int64_t before = h->key[index];
    h->key[index] = key;
    if (before == key) {
        return;
    }
    if (before == INT64_MAX) {
        place(h, h->used++, index);
        rise(h, h->used - 1);
    } else if (key != INT64_MAX) {
        rise(h, h->at[index]);
        sink(h, h->at[index]);
    } else {
        uint32_t at = h->at[index], last = h->order[--h->used];
        if (last != index) {
            place(h, at, last);
            rise(h, at);
            sink(h, h->at[last]);
        }
    }
}

bool heap_sound(const struct heap *h)
{
    uint32_t in = 0;
    for (uint32_t i = 0; i < h->count; i++) {
        in += h->key[i] != INT64_MAX;
    }
    for (uint32_t k = 0; k < h->used; k++) {
        uint32_t i = h->order[k];
        if (i >= h->count || h->at[i] != k || h->key[i] == INT64_MAX || h->key[h->order[(k + 1) / 2 - (k > 0)]] > h->key[i]) {
            return false;
        }
    }
    return in == h->used;
}
