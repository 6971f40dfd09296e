/* journal.c - see journal.h.
 * SPDX-License-Identifier: MIT */
#include "master/journal.h"

#include <string.h>

#include "world/common.h"

void journal_init(struct journal *j, void *bytes, size_t capacity)
{
    j->bytes = bytes;
    j->capacity = capacity;
    j->used = 0;
}

/* Whole records, counting down to the last of the batch. */
bool journal_whole(const void *batch, size_t size)
{
    struct record r = {0};
    size_t at = 0;
    uint32_t left = 0;
    for (bool first = true; first || left > 0; first = false) {
        if (!record_next(batch, size, &at, &r) || (!first && r.left != left - 1)) {
            return false;
        }
        left = r.left;
    }
    return at == size;
}

static bool record_replaces(const struct record *r, const struct record *old)
{
    if (r->kind == RECORD_USED || old->kind == RECORD_USED) { /* of so many names the oldest is forgotten; a world's end changes nothing */
        return r->kind == old->kind && r->value == old->value;
    }
    return r->run == old->run && (r->kind == RECORD_END || (r->kind == old->kind && r->group == old->group));
}

/* Whether the batch holds a record that takes the place of `old`. */
static bool batch_replaces(const void *batch, size_t size, const struct record *old)
{
    struct record r;
    for (size_t at = 0; record_again(batch, size, &at, &r);) {
        if (record_replaces(&r, old)) {
            return true;
        }
    }
    return false;
}

/* Whether it says that a world has ended: a record that comes alone. */
static bool batch_ends(const void *batch, size_t size)
{
    struct record r;
    size_t at = 0;
    return record_again(batch, size, &at, &r) && r.kind == RECORD_END;
}

bool journal_append(struct journal *j, const void *batch, size_t size)
{
    return journal_whole(batch, size) && journal_keep(j, batch, size);
}

size_t journal_piece(const void *batch, size_t size, size_t from, uint32_t *place)
{
    struct record r;
    size_t at = from, end = from;
    while (record_again(batch, size, &at, &r) && (end == from || common_world_of(r.number) == *place)) {
        *place = common_world_of(r.number);
        end = at;
    }
    return end - from;
}

bool journal_keep(struct journal *j, const void *batch, size_t size)
{
    struct record old;
    size_t added = batch_ends(batch, size) ? 0 : size; /* of what nothing is left nothing has to be told */
    size_t kept = 0;
    for (size_t at = 0, from = 0; record_again(j->bytes, j->used, &at, &old); from = at) {
        kept += batch_replaces(batch, size, &old) ? 0 : at - from;
    }
    if (added > j->capacity - kept) {
        return false;
    }
    size_t to = 0;
    for (size_t at = 0, from = 0; record_again(j->bytes, j->used, &at, &old); from = at) {
        if (!batch_replaces(batch, size, &old)) {
            memmove(j->bytes + to, j->bytes + from, at - from);
            to += at - from;
        }
    }
    if (added > 0) { /* else there may be no bytes at all */
        memcpy(j->bytes + to, batch, added);
    }
    j->used = to + added;
    return true;
}
