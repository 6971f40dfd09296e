/* journal.c - see journal.h.
 *
 * Record: magic u32, kind u8, zero u8 x3, length u32 (of the whole record), left u32, run u64, epoch u32, group u32, number
 * u64, value u64, body, check sum u64 over all before it.  What is published stands in one of them first (M4).
 * Invariant: nothing is read past `size`.
 * SPDX-License-Identifier: MIT */
#include "world/journal.h"

#include <string.h>

#include "core/mix.h"
#include "world/master.h"

#define JOURNAL_MAGIC 0x4A4C4350u /* "PCLJ" */

static uint64_t journal_sum(const unsigned char *bytes, size_t size)
{
    uint64_t h = mix64(0, size);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        h = mix64(h, word);
    }
    return h;
}

size_t journal_begin(struct writer *w, const struct journal_record *head)
{
    size_t at = w->used;
    put_u32(w, JOURNAL_MAGIC);
    put_u32(w, head->kind);
    put_u32(w, 0);
    put_u32(w, head->left);
    put_u64(w, head->run);
    put_u32(w, head->epoch);
    put_u32(w, head->group);
    put_u64(w, head->number);
    put_u64(w, head->value);
    return at;
}

void journal_end(struct writer *w, size_t at)
{
    if (w->bad) {
        return;
    }
    struct writer length;
    writer_init(&length, w->start + at + 8, 4);
    put_u32(&length, (uint32_t)(w->used - at + JOURNAL_TAIL_BYTES));
    put_u64(w, journal_sum(w->start + at, w->used - at));
}

void journal_persist(struct outbox *o, uint64_t number)
{
    struct action *a = outbox_add(o, MASTER_PERSIST);
    a->frame = o->used;
    a->frame_bytes = (uint32_t)o->writer.used;
    a->value = number;
    o->used += a->frame_bytes;
    o->overflow = o->overflow || o->writer.bad;
}

bool journal_next(const void *bytes, size_t size, size_t *at, struct journal_record *out)
{
    const unsigned char *start = (const unsigned char *)bytes + *at;
    struct reader r;
    reader_init(&r, start, size - *at);
    bool magic = get_u32(&r) == JOURNAL_MAGIC;
    uint32_t kind = get_u32(&r);
    uint32_t length = get_u32(&r);
    if (r.bad || !magic || kind < JOURNAL_VIEW || kind > JOURNAL_REVISION || length > size - *at ||
        length < JOURNAL_HEAD_BYTES + JOURNAL_TAIL_BYTES) {
        return false;
    }
    out->kind = (uint8_t)kind;
    out->left = get_u32(&r);
    out->run = get_u64(&r);
    out->epoch = get_u32(&r);
    out->group = get_u32(&r);
    out->number = get_u64(&r);
    out->value = get_u64(&r);
    out->body_bytes = length - JOURNAL_HEAD_BYTES - JOURNAL_TAIL_BYTES;
    out->body = get_bytes(&r, out->body_bytes);
    if (get_u64(&r) != journal_sum(start, length - JOURNAL_TAIL_BYTES) || r.bad) {
        return false;
    }
    *at += length;
    return true;
}

void journal_init(struct journal *j, void *bytes, size_t capacity)
{
    j->bytes = bytes;
    j->capacity = capacity;
    j->used = 0;
}

/* Whole records, counting down to the last of the batch. */
static bool batch_whole(const void *batch, size_t size)
{
    struct journal_record r = {0};
    size_t at = 0;
    uint32_t left = 0;
    for (bool first = true; first || left > 0; first = false) {
        if (!journal_next(batch, size, &at, &r) || (!first && r.left != left - 1)) {
            return false;
        }
        left = r.left;
    }
    return at == size;
}

/* Whether the batch holds a record that takes the place of `old`. */
static bool batch_replaces(const void *batch, size_t size, const struct journal_record *old)
{
    struct journal_record r;
    for (size_t at = 0; journal_next(batch, size, &at, &r);) {
        if (r.kind == old->kind && r.group == old->group) {
            return true;
        }
    }
    return false;
}

bool journal_append(struct journal *j, const void *batch, size_t size)
{
    if (!batch_whole(batch, size)) {
        return false;
    }
    struct journal_record old;
    size_t kept = 0;
    for (size_t at = 0, from = 0; journal_next(j->bytes, j->used, &at, &old); from = at) {
        kept += batch_replaces(batch, size, &old) ? 0 : at - from;
    }
    if (size > j->capacity - kept) {
        return false;
    }
    size_t to = 0;
    for (size_t at = 0, from = 0; journal_next(j->bytes, j->used, &at, &old); from = at) {
        if (!batch_replaces(batch, size, &old)) {
            memmove(j->bytes + to, j->bytes + from, at - from);
            to += at - from;
        }
    }
    memcpy(j->bytes + to, batch, size);
    j->used = to + size;
    return true;
}
