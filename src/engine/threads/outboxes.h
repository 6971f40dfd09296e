/* outboxes.h - memory for what a step says: borrowed for one step, by whichever communicator makes it.
 *
 * A box is as large as the largest step there is, and hardly any of it is ever touched; but a process may be in hundreds of worlds, of
 * which few step at a time.  Boxes wait in places, each taken by one exchange of a pointer; a communicator begins to look at its own, so
 * that what it steps in again is likely in its cache.
 *
 * Invariant: once outboxes_reserve has succeeded there is a box, in a place or in use, so whoever finds none gets one soon.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_OUTBOXES_H
#define PCCL_ENGINE_OUTBOXES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTBOXES = 8 };

struct outbox_box {
    size_t bytes;        /* mapped, with this head */
    _Alignas(64) unsigned char memory[];
};

struct outboxes {
    struct outbox_box *_Atomic place[OUTBOXES]; /* owned; null: in use, or never made */
};

static inline size_t outbox_box_room(const struct outbox_box *b)
{
    return b->bytes - offsetof(struct outbox_box, memory);
}

/* There is one with room for so many bytes; false: no memory. */
bool outboxes_reserve(struct outboxes *o, size_t bytes);
/* `place`: where to look first.  With less room if there is no memory for more. */
struct outbox_box *outboxes_take(struct outboxes *o, uint32_t place, size_t bytes);
void outboxes_give(struct outboxes *o, uint32_t place, struct outbox_box *box);
/* Nobody steps any more. */
void outboxes_clear(struct outboxes *o);

#endif
