/* api_overlap.c - memory of calls that run at the same time.
 *
 * A result of one call must not lie over an operand of another one, which would send or receive other bytes then.  A set of operands
 * holds the extents that are read and those that are written, each as a sorted list.
 * Invariant: the extents of a list are apart from each other.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

/* The first extent of the list that ends at `from` or later. */
static size_t extents_find(const struct api_extents *e, uintptr_t from)
{
    size_t low = 0, high = e->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->list[middle].end < from) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool extents_meet(const struct api_extents *e, struct api_extent one)
{
    for (size_t i = extents_find(e, one.from); i < e->count && e->list[i].from < one.end; i++) {
        if (one.from < e->list[i].end) {
            return true;
        }
    }
    return false;
}

/* Joins the extent with those that it touches.  False: no memory, and nothing has changed. */
static bool extents_add(struct api_extents *e, struct api_extent one)
{
    if (e->count == e->capacity) {
        size_t more = e->capacity == 0 ? 16 : 2 * e->capacity;
        struct api_extent *larger = realloc(e->list, more * sizeof *larger);
        if (larger == NULL) {
            return false;
        }
        e->list = larger;
        e->capacity = more;
    }
    size_t first = extents_find(e, one.from), last = first;
    for (; last < e->count && e->list[last].from <= one.end; last++) {
        one.from = e->list[last].from < one.from ? e->list[last].from : one.from;
        one.end = e->list[last].end > one.end ? e->list[last].end : one.end;
    }
    memmove(&e->list[first + 1], &e->list[last], (e->count - last) * sizeof *e->list);
    e->list[first] = one;
    e->count += 1 - (last - first);
    return true;
}

struct api_extent api_extent_of(const void *buffer, size_t bytes)
{
    uintptr_t at = (uintptr_t)buffer;
    return (struct api_extent){at, at + bytes};
}

bool api_operands_meet(const struct api_operands *o, struct api_extent one, bool written)
{
    return one.from < one.end && (extents_meet(&o->written, one) || (written && extents_meet(&o->read, one)));
}

bool api_operands_add(struct api_operands *o, struct api_extent one, bool written)
{
    return one.from == one.end || extents_add(written ? &o->written : &o->read, one);
}

void api_operands_fini(struct api_operands *o)
{
    free(o->read.list);
    free(o->written.list);
    *o = (struct api_operands){0};
}

/* ---- Many at once --------------------------------------------------------------------------------------------------------------- */

static int use_order(const void *a, const void *b)
{
    const struct api_use *x = a, *y = b;
    return x->extent.from != y->extent.from ? (x->extent.from > y->extent.from) - (x->extent.from < y->extent.from)
                                            : (x->index > y->index) - (x->index < y->index);
}

bool api_uses_meet(struct api_use *uses, size_t count, size_t *one_out, size_t *other_out)
{
    const struct api_use *reach = NULL, *written = NULL; /* those that end last, so far */
    qsort(uses, count, sizeof *uses, use_order);
    for (size_t i = 0; i < count; i++) {
        const struct api_use *u = &uses[i], *before = u->written ? reach : written;
        if (u->extent.from == u->extent.end) {
            continue;
        }
        if (before != NULL && u->extent.from < before->extent.end) {
            *one_out = before->index < u->index ? before->index : u->index;
            *other_out = before->index < u->index ? u->index : before->index;
            return true;
        }
        reach = reach == NULL || u->extent.end > reach->extent.end ? u : reach;
        written = u->written && (written == NULL || u->extent.end > written->extent.end) ? u : written;
    }
    return false;
}
