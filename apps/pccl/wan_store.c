/* wan_store.c - see wan_store.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_store.h"

#include <stdlib.h>

static const size_t sizes[WAN_STORE_CLASSES] = {256, 1024, 4096, 16384, 66560};

static int class_of(size_t bytes)
{
    int i = 0;
    while (i < WAN_STORE_CLASSES - 1 && sizes[i] < bytes) {
        i++;
    }
    return i;
}

void *wan_store_take(struct wan_store *s, size_t bytes)
{
    int i = class_of(bytes);
    struct wan_slot *slot = s->spare[i];
    if (bytes > sizes[i] || s->used_bytes + sizes[i] > s->most_bytes) {
        return NULL;
    }
    if (slot != NULL) {
        s->spare[i] = slot->next;
    } else {
        slot = malloc(sizes[i]);
    }
    s->used_bytes += slot != NULL ? sizes[i] : 0;
    return slot;
}

void wan_store_give(struct wan_store *s, void *slot, size_t bytes)
{
    int i = class_of(bytes);
    struct wan_slot *spare = slot;
    spare->next = s->spare[i];
    s->spare[i] = spare;
    s->used_bytes -= sizes[i];
}

void wan_store_fini(struct wan_store *s)
{
    for (int i = 0; i < WAN_STORE_CLASSES; i++) {
        while (s->spare[i] != NULL) {
            struct wan_slot *next = s->spare[i]->next;
            free(s->spare[i]);
            s->spare[i] = next;
        }
    }
}
