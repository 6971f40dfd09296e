/* wan_store.h - memory for packets on their way: slots of a few sizes, kept for the next packet, up to a bound in all.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_STORE_H
#define PCCL_WAN_STORE_H

#include <stddef.h>

enum { WAN_STORE_CLASSES = 5 };

struct wan_slot {
    struct wan_slot *next;
};

struct wan_store {
    size_t used_bytes, most_bytes;
    struct wan_slot *spare[WAN_STORE_CLASSES]; /* owned; by size */
};

/* Null: the bound is reached, or there is no memory. */
void *wan_store_take(struct wan_store *s, size_t bytes);
/* With the size that it was taken with. */
void wan_store_give(struct wan_store *s, void *slot, size_t bytes);
/* Only what has been given back. */
void wan_store_fini(struct wan_store *s);

#endif
