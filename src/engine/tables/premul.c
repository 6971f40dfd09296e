/* premul.c - operators that a program made of a factor of its own: pre-multiplied sums, by number.
 *
 * A number is a place and how often that was used before, so that one that was dropped is not taken for its place's next.
 * Invariant: a number is used from premul_add to premul_drop, and is given out again after 16,384 others of its place at the earliest.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/bounds.h"
#include "engine/comm.h"

enum { PREMUL_ROOM_FIRST = 8, PREMUL_USES = 1 << 14 };

static bool premul_grow(struct premul_ops *ops)
{
    uint32_t room = ops->room == 0 ? PREMUL_ROOM_FIRST : 2 * ops->room;
    struct premul_op *at = ops->room < BOUNDS_PREMUL_OPS ? realloc(ops->at, room * sizeof *at) : NULL;
    if (at == NULL) {
        return false;
    }
    memset(at + ops->room, 0, (room - ops->room) * sizeof *at);
    ops->at = at;
    ops->room = room;
    return true;
}

bool premul_add(struct comm *c, enum dtype dtype, const void *factor, bool by_pointer, uint32_t *number_out)
{
    struct premul_op op = {.used = true, .dtype = dtype, .from = by_pointer ? factor : NULL};
    memcpy(&op.factor, factor, by_pointer ? 0 : dtype_size(dtype));
    pthread_mutex_lock(&c->lock);
    struct premul_ops *ops = &c->premul;
    uint32_t place = 0;
    while (place < ops->room && ops->at[place].used) {
        place++;
    }
    bool fits = place < ops->room || premul_grow(ops);
    if (fits) {
        op.uses = ops->at[place].uses;
        ops->at[place] = op;
        *number_out = op.uses * BOUNDS_PREMUL_OPS + place;
    }
    pthread_mutex_unlock(&c->lock);
    return fits;
}

/* Null: there is none of that number. */
static struct premul_op *premul_at(struct comm *c, uint32_t number)
{
    uint32_t place = number % BOUNDS_PREMUL_OPS;
    struct premul_op *op = place < c->premul.room ? &c->premul.at[place] : NULL;
    return op != NULL && op->used && op->uses == number / BOUNDS_PREMUL_OPS ? op : NULL;
}

bool premul_find(struct comm *c, uint32_t number, struct premul_op *out)
{
    pthread_mutex_lock(&c->lock);
    const struct premul_op *found = premul_at(c, number);
    if (found != NULL) {
        *out = *found;
    }
    pthread_mutex_unlock(&c->lock);
    if (found != NULL && out->from != NULL) {
        memcpy(&out->factor, out->from, dtype_size(out->dtype));
    }
    return found != NULL;
}

bool premul_drop(struct comm *c, uint32_t number)
{
    pthread_mutex_lock(&c->lock);
    struct premul_op *found = premul_at(c, number);
    if (found != NULL) {
        found->used = false;
        found->uses = (found->uses + 1) % PREMUL_USES;
    }
    pthread_mutex_unlock(&c->lock);
    return found != NULL;
}

void premul_fini(struct comm *c)
{
    free(c->premul.at);
    c->premul = (struct premul_ops){0};
}
