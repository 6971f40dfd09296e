/* premul.c - operators that a program made of a factor of its own: pre-multiplied sums, by number.
 *
 * Invariant: a number is used from premul_add to premul_drop, and may be given out again after it.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/bounds.h"
#include "engine/comm.h"

enum { PREMUL_ROOM_FIRST = 8 };

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
    uint32_t number = 0;
    while (number < ops->room && ops->at[number].used) {
        number++;
    }
    bool fits = number < ops->room || premul_grow(ops);
    if (fits) {
        ops->at[number] = op;
        *number_out = number;
    }
    pthread_mutex_unlock(&c->lock);
    return fits;
}

bool premul_find(struct comm *c, uint32_t number, struct premul_op *out)
{
    pthread_mutex_lock(&c->lock);
    bool found = number < c->premul.room && c->premul.at[number].used;
    if (found) {
        *out = c->premul.at[number];
    }
    pthread_mutex_unlock(&c->lock);
    if (found && out->from != NULL) {
        memcpy(&out->factor, out->from, dtype_size(out->dtype));
    }
    return found;
}

bool premul_drop(struct comm *c, uint32_t number)
{
    pthread_mutex_lock(&c->lock);
    bool found = number < c->premul.room && c->premul.at[number].used;
    if (found) {
        c->premul.at[number].used = false;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

void premul_fini(struct comm *c)
{
    free(c->premul.at);
    c->premul = (struct premul_ops){0};
}
