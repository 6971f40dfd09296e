/* spares.c - memory of calls that have ended, kept for the next ones.
 *
 * Invariant: a block in first[k] has exactly the bytes of class k; links lie in the blocks themselves.
 * SPDX-License-Identifier: MIT */
#include "engine/tables/spares.h"

#include <stdint.h>

#include "core/pages.h"

struct spare {
    struct spare *next;
};

enum { LEAST_SHIFT = 14, NOT_KEPT = SPARES_CLASSES, LARGER = 8 /* classes: four times as large */ };

/* Rounds up to the bytes of a class, and says which; NOT_KEPT: beyond all of them. */
static uint32_t class_of(size_t *bytes)
{
    uint32_t octave = LEAST_SHIFT;
    while (octave < 60 && *bytes >> octave > 1) {
        octave++;
    }
    size_t step = (size_t)1 << (octave - 2), quarters = (*bytes + step - 1) / step;
    quarters = quarters > 4 ? quarters : 4;
    *bytes = quarters * step;
    uint32_t k = (octave - LEAST_SHIFT) * 4 + (uint32_t)quarters - 4; /* 8 quarters are the next octave's first */
    return k < SPARES_CLASSES ? k : NOT_KEPT;
}

static size_t bytes_of(uint32_t k)
{
    return (size_t)(4 + k % 4) << (LEAST_SHIFT - 2 + k / 4);
}

static void drop(struct spares *s, uint32_t k)
{
    struct spare *at = s->first[k];
    s->first[k] = at->next;
    s->kept -= bytes_of(k);
    pages_free(at, bytes_of(k));
}

/* The largest first: they make room with the fewest calls. */
static void drop_beyond(struct spares *s, size_t most)
{
    for (uint32_t k = SPARES_CLASSES; k > 0 && s->kept > most; k--) {
        while (s->first[k - 1] != NULL && s->kept > most) {
            drop(s, k - 1);
        }
    }
}

/* Its own, or, where one more would have some dropped, the next larger. */
static uint32_t class_that_serves(const struct spares *s, uint32_t k, size_t bytes)
{
    size_t used = s->used + bytes, most = s->most > used ? s->most : used;
    uint32_t end = s->kept <= most - used ? k + 1 : k + 1 + LARGER;
    for (uint32_t i = k; i < end && i < SPARES_CLASSES; i++) {
        if (s->first[i] != NULL) {
            return i;
        }
    }
    return NOT_KEPT;
}

void *spares_take(struct spares *s, size_t *bytes)
{
    uint32_t k = class_of(bytes), serves = class_that_serves(s, k, *bytes);
    if (serves != NOT_KEPT) {
        struct spare *at = s->first[serves];
        s->first[serves] = at->next;
        *bytes = bytes_of(serves);
        s->kept -= *bytes;
        s->used += *bytes;
        return at;
    }
    void *at = pages_new(*bytes);
    if (at == NULL) {
        return NULL;
    }
    s->used += *bytes;
    s->most = s->used > s->most ? s->used : s->most;
    drop_beyond(s, s->most - s->used);
    return at;
}

void spares_give(struct spares *s, void *at, size_t bytes)
{
    uint32_t k = class_of(&bytes);
    s->used -= bytes;
    if (k == NOT_KEPT) {
        pages_free(at, bytes);
        return;
    }
    struct spare *spare = at;
    spare->next = s->first[k];
    s->first[k] = spare;
    s->kept += bytes;
}

void spares_rest(struct spares *s)
{
    drop_beyond(s, 0);
    s->most = s->used;
}
