/* outboxes.c - see outboxes.h.
 * SPDX-License-Identifier: MIT */
#include "engine/threads/outboxes.h"

#include <sched.h>

#include "core/pages.h"

static struct outbox_box *box_new(size_t bytes)
{
    size_t all = offsetof(struct outbox_box, memory) + bytes;
    struct outbox_box *box = pages_new(all);
    if (box != NULL) {
        box->bytes = all;
    }
    return box;
}

static void box_free(struct outbox_box *box)
{
    if (box != NULL) {
        pages_free(box, box->bytes);
    }
}

static struct outbox_box *take_one(struct outboxes *o, uint32_t place)
{
    for (uint32_t i = 0; i < OUTBOXES; i++) {
        struct outbox_box *_Atomic *at = &o->place[(place + i) % OUTBOXES];
        struct outbox_box *box = atomic_load_explicit(at, memory_order_relaxed) != NULL ? atomic_exchange(at, NULL) : NULL;
        if (box != NULL) {
            return box;
        }
    }
    return NULL;
}

/* One with so much room; without memory for that a smaller one, or none. */
static struct outbox_box *take_room(struct outboxes *o, uint32_t place, size_t bytes)
{
    struct outbox_box *box = take_one(o, place);
    if (box != NULL && outbox_box_room(box) >= bytes) {
        return box;
    }
    struct outbox_box *larger = box_new(bytes);
    if (larger == NULL) {
        return box;
    }
    box_free(box);
    return larger;
}

struct outbox_box *outboxes_take(struct outboxes *o, uint32_t place, size_t bytes)
{
    for (;;) {
        struct outbox_box *box = take_room(o, place, bytes);
        if (box != NULL) {
            return box;
        }
        sched_yield(); /* those in use come back after a step each */
    }
}

void outboxes_give(struct outboxes *o, uint32_t place, struct outbox_box *box)
{
    for (uint32_t i = 0; i < OUTBOXES; i++) {
        struct outbox_box *none = NULL;
        if (atomic_compare_exchange_strong(&o->place[(place + i) % OUTBOXES], &none, box)) {
            return;
        }
    }
    box_free(box);
}

bool outboxes_reserve(struct outboxes *o, size_t bytes)
{
    struct outbox_box *box = take_room(o, 0, bytes);
    bool fits = box != NULL && outbox_box_room(box) >= bytes;
    if (box != NULL) {
        outboxes_give(o, 0, box);
    }
    return fits;
}

void outboxes_clear(struct outboxes *o)
{
    for (uint32_t i = 0; i < OUTBOXES; i++) {
        box_free(atomic_exchange(&o->place[i], NULL));
    }
}
