/* buckets.h - a hash table of links, whose heads grow with what is in it.
 *
 * Of hundreds of tables in a process few hold more than a handful, so the first heads lie in the table itself.  What finds a long chain
 * doubles the heads, up to BUCKETS_MOST; without memory for them the chains grow.  Takes whatever list_remove takes out.
 *
 * Invariant: every link is in the chain of its hash.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_BUCKETS_H
#define PCCL_CORE_BUCKETS_H

#include <stdint.h>
#include <stdlib.h>

#include "core/list.h"

enum { BUCKETS_FIRST = 8, BUCKETS_MOST = 16384 /* as many as a view has members */, BUCKETS_CHAIN = 4 };

struct buckets {
    struct list *at; /* `first`, or owned */
    uint32_t count;  /* a power of two */
    uint32_t (*hash)(struct list *link);
    struct list first[BUCKETS_FIRST];
};

/* It may not be moved from then on. */
static inline void buckets_init(struct buckets *b, uint32_t (*hash)(struct list *link))
{
    b->at = b->first;
    b->count = BUCKETS_FIRST;
    b->hash = hash;
    for (uint32_t i = 0; i < BUCKETS_FIRST; i++) {
        list_init(&b->first[i]);
    }
}

/* Of an empty one. */
static inline void buckets_fini(struct buckets *b)
{
    if (b->at != b->first) {
        free(b->at);
    }
    b->at = NULL;
}

static inline struct list *buckets_chain(struct buckets *b, uint32_t hash)
{
    return &b->at[hash & (b->count - 1)];
}

static inline void buckets_double(struct buckets *b)
{
    struct list *old = b->at, *at = malloc(2 * (size_t)b->count * sizeof *at);
    uint32_t before = b->count;
    if (at == NULL) {
        return;
    }
    b->at = at;
    b->count *= 2;
    for (uint32_t i = 0; i < b->count; i++) {
        list_init(&at[i]);
    }
    for (uint32_t i = 0; i < before; i++) {
        LIST_FOR_EACH(l, after, &old[i]) {
            list_remove(l);
            list_append(buckets_chain(b, b->hash(l)), l);
        }
    }
    if (old != b->first) {
        free(old);
    }
}

static inline void buckets_add(struct buckets *b, struct list *link)
{
    struct list *chain = buckets_chain(b, b->hash(link));
    uint32_t length = 0;
    LIST_FOR_EACH(l, after, chain) {
        length++;
    }
    if (length >= BUCKETS_CHAIN && b->count < BUCKETS_MOST) {
        buckets_double(b);
        chain = buckets_chain(b, b->hash(link));
    }
    list_append(chain, link);
}

#endif
