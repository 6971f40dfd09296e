/* api_handle.c - handles of communicators, masters and queues, whose memory is never freed: what was destroyed is known as such.
 *
 * A call pins the handle while it looks at the object.  Whoever closes the handle owns the object, once all pins are gone.
 * Invariant: an object is reached through an open, pinned handle only, or through a count of its own taken under such a pin.
 * SPDX-License-Identifier: MIT */
#include "api/api_handle.h"

#include <stdlib.h>

#include "engine/engine.h"

/* So many handles come and go before one is given out again: a call on an old one is not taken for one on the new. */
enum { HANDLE_SPARES = 1024 };

static struct {
    struct api_handle *first, *last;
    unsigned count;
    unsigned generation; /* a fork may have come in the middle of a change: its child begins with none */
} handle_spares[HANDLE_KINDS]; /* under life_lock */

static unsigned handle_generation(void)
{
    return atomic_load(&engine_global.generation);
}

static void handle_lock(enum handle_kind kind)
{
    engine_prepare();
    pthread_mutex_lock(&engine_global.life_lock);
    if (handle_spares[kind].generation != handle_generation()) {
        handle_spares[kind].first = handle_spares[kind].last = NULL;
        handle_spares[kind].count = 0;
        handle_spares[kind].generation = handle_generation();
    }
}

struct api_handle *handle_take(enum handle_kind kind, size_t size)
{
    handle_lock(kind);
    struct api_handle *h = handle_spares[kind].count > HANDLE_SPARES ? handle_spares[kind].first : NULL;
    if (h != NULL) {
        handle_spares[kind].first = h->next;
        handle_spares[kind].count--;
    }
    pthread_mutex_unlock(&engine_global.life_lock);
    return h != NULL ? h : calloc(1, size);
}

void handle_give(enum handle_kind kind, struct api_handle *h)
{
    handle_lock(kind);
    h->next = NULL;
    if (handle_spares[kind].count++ == 0) {
        handle_spares[kind].first = h;
    } else {
        handle_spares[kind].last->next = h;
    }
    handle_spares[kind].last = h;
    pthread_mutex_unlock(&engine_global.life_lock);
}

void handle_open(struct api_handle *h)
{
    h->generation = handle_generation();
    atomic_store(&h->open, true);
}

bool handle_pin(struct api_handle *h)
{
    atomic_fetch_add(&h->pins, 1);
    if (!atomic_load(&h->open)) {
        atomic_fetch_sub(&h->pins, 1);
        return false;
    }
    return true;
}

void handle_unpin(struct api_handle *h)
{
    atomic_fetch_sub(&h->pins, 1);
}

bool handle_inherited(const struct api_handle *h)
{
    return h->generation != handle_generation();
}

bool handle_close(struct api_handle *h)
{
    if (!atomic_exchange(&h->open, false)) {
        return false;
    }
    if (handle_inherited(h)) {
        atomic_store(&h->pins, 0); /* they are of threads that only the parent has */
    }
    return true;
}

bool handle_pinned(const struct api_handle *h)
{
    return atomic_load(&h->pins) > 0;
}
