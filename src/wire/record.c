/* record.c - the records of a master's journal.
 *
 * Record: magic u32, kind u32, length u32 (of the whole record), left u32, run u64, epoch u32, group u32, number u64, value
 * u64, the world's name (length u8, bytes), body, check sum u64 over all before it.  What is published stands in one of them first (M4).
 * Invariant: nothing is read past `size`.
 * SPDX-License-Identifier: MIT */
#include "wire/record.h"

#include <string.h>

#include "core/mix.h"
#include "wire/parts.h"

enum { RECORD_SEAT_BYTES = 16 };

#define RECORD_MAGIC 0x4A4C4350u /* "PCLJ" */

static uint64_t record_sum(const unsigned char *bytes, size_t size)
{
    uint64_t h = mix64(0, size);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        h = mix64(h, word);
    }
    return h;
}

size_t record_begin(struct writer *w, const struct record *head)
{
    size_t at = w->used;
    put_u32(w, RECORD_MAGIC);
    put_u32(w, head->kind);
    put_u32(w, 0);
    put_u32(w, head->left);
    put_u64(w, head->run);
    put_u32(w, head->epoch);
    put_u32(w, head->group);
    put_u64(w, head->number);
    put_u64(w, head->value);
    put_world_name(w, head->name);
    return at;
}

void record_end(struct writer *w, size_t at)
{
    if (w->bad) {
        return;
    }
    struct writer length;
    writer_init(&length, w->start + at + 8, 4);
    put_u32(&length, (uint32_t)(w->used - at + RECORD_TAIL_BYTES));
    put_u64(w, record_sum(w->start + at, w->used - at));
}

/* known: that it is what its sum says. */
static bool read_record(const void *bytes, size_t size, size_t *at, bool known, struct record *out)
{
    if (*at >= size) {
        return false; /* there may be no bytes at all */
    }
    const unsigned char *start = (const unsigned char *)bytes + *at;
    struct reader r;
    reader_init(&r, start, size - *at);
    bool magic = get_u32(&r) == RECORD_MAGIC;
    uint32_t kind = get_u32(&r);
    uint32_t length = get_u32(&r);
    if (r.bad || !magic || kind < RECORD_VIEW || kind > RECORD_USED || length > size - *at ||
        length < RECORD_HEAD_BYTES + RECORD_TAIL_BYTES) {
        return false;
    }
    out->kind = (uint8_t)kind;
    out->left = get_u32(&r);
    out->run = get_u64(&r);
    out->epoch = get_u32(&r);
    out->group = get_u32(&r);
    out->number = get_u64(&r);
    out->value = get_u64(&r);
    get_world_name(&r, out->name);
    size_t left = length - (size_t)(r.at - start);
    if (r.bad || left < RECORD_TAIL_BYTES) {
        return false;
    }
    out->body_bytes = (uint32_t)(left - RECORD_TAIL_BYTES);
    out->body = get_bytes(&r, out->body_bytes);
    uint64_t sum = get_u64(&r);
    if (r.bad || (!known && sum != record_sum(start, length - RECORD_TAIL_BYTES))) {
        return false;
    }
    *at += length;
    return true;
}

bool record_next(const void *bytes, size_t size, size_t *at, struct record *out)
{
    return read_record(bytes, size, at, false, out);
}

bool record_again(const void *bytes, size_t size, size_t *at, struct record *out)
{
    return read_record(bytes, size, at, true, out);
}

/* ---- bodies ---- */

void put_record_view(struct writer *w, const struct record_view *m)
{
    put_u64(w, m->parent);
    put_u8(w, m->answers);
    put_u8(w, m->over);
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
    put_text(w, m->text);
    put_u64(w, m->revision);
    put_u32(w, m->members);
    put_u32(w, m->decisions);
    put_u32(w, m->seats);
    put_u8(w, m->loss);
    put_u8(w, m->once);
}

bool get_record_view(struct reader *r, struct record_view *m)
{
    m->parent = get_u64(r);
    m->answers = parts_get_u8(r, VOTE_NONE, VOTE_SYNC);
    m->over = parts_get_u8(r, 0, 1) != 0;
    m->cause = parts_get_cause(r);
    m->culprit = get_u64(r);
    get_text(r, m->text, sizeof m->text);
    m->revision = get_u64(r);
    m->members = get_u32(r);
    m->decisions = get_u32(r);
    m->seats = get_u32(r);
    m->loss = parts_get_u8(r, LOSS_END, LOSS_SHRINK);
    m->once = parts_get_u8(r, 0, 1) != 0;
    uint64_t least = (uint64_t)m->members * PARTS_MEMBER_BYTES + (uint64_t)m->seats * RECORD_SEAT_BYTES;
    r->bad = r->bad || m->members > PARTS_MEMBERS || m->seats > PARTS_MEMBERS || m->decisions > BOUNDS_DECISIONS || least > r->left;
    return !r->bad;
}

void put_record_seat(struct writer *w, const struct record_seat *m)
{
    put_u64(w, m->attempt);
    put_u64(w, m->id);
}

bool get_record_seat(struct reader *r, struct record_seat *m)
{
    m->attempt = get_u64(r);
    m->id = get_u64(r);
    return !r->bad;
}

void put_record_revision(struct writer *w, const struct record_revision *m)
{
    put_u64(w, m->elected);
    put_u32(w, m->round);
}

bool get_record_revision(struct reader *r, struct record_revision *m)
{
    m->elected = get_u64(r);
    m->round = get_u32(r);
    return !r->bad;
}

void put_record_end(struct writer *w, const struct record_end *m)
{
    put_u32(w, m->seats);
}

bool get_record_end(struct reader *r, struct record_end *m)
{
    m->seats = get_count(r, RECORD_SEAT_BYTES, PARTS_MEMBERS);
    return !r->bad;
}
