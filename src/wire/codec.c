/* codec.c - the two cursors that all bytes of the wire go through.
 *
 * Integers are put together from single bytes: no alignment, no byte order of the machine, and
 * compilers make one load of it.  Invariant: `left` and `capacity - used` are what may still be
 * touched, whatever the bytes say; a bad cursor touches nothing.
 * SPDX-License-Identifier: MIT */
#include "wire/codec.h"

#include <string.h>

#include "core/bounds.h"

void reader_init(struct reader *r, const void *data, size_t size)
{
    r->at = data;
    r->left = size;
    r->bad = false;
}

const void *get_bytes(struct reader *r, size_t size)
{
    if (r->bad || size > r->left) {
        r->bad = true;
        return NULL;
    }
    const unsigned char *at = r->at;
    if (size > 0) { /* an empty input may be null, to which nothing is added, not even 0 */
        r->at += size;
        r->left -= size;
    }
    return at;
}

/* An integer of `size` bytes, at most 8. */
static uint64_t get_integer(struct reader *r, size_t size)
{
    const unsigned char *at = get_bytes(r, size);
    if (at == NULL) {
        return 0;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v |= (uint64_t)at[i] << (8 * i);
    }
    return v;
}

uint8_t get_u8(struct reader *r)
{
    return (uint8_t)get_integer(r, 1);
}

uint16_t get_u16(struct reader *r)
{
    return (uint16_t)get_integer(r, 2);
}

uint32_t get_u32(struct reader *r)
{
    return (uint32_t)get_integer(r, 4);
}

uint64_t get_u64(struct reader *r)
{
    return get_integer(r, 8);
}

void get_text(struct reader *r, char *out, size_t capacity)
{
    size_t size = get_u16(r);
    const unsigned char *at = get_bytes(r, size);
    if (capacity == 0) {
        return;
    }
    size_t used = 0;
    if (at != NULL) {
        for (; used < size && used < capacity - 1; used++) {
            /* Texts end up in logs and terminals: nothing in them may move a cursor. */
            out[used] = at[used] < 0x20 || at[used] == 0x7F ? '?' : (char)at[used];
        }
    }
    out[used] = '\0';
}

uint32_t get_count(struct reader *r, size_t item_bytes, uint32_t most)
{
    uint32_t count = get_u32(r);
    if (!r->bad && (count > most || (item_bytes > 0 && count > r->left / item_bytes))) {
        r->bad = true;
    }
    return r->bad ? 0 : count;
}

bool reader_done(const struct reader *r)
{
    return !r->bad && r->left == 0;
}

void writer_init(struct writer *w, void *data, size_t capacity)
{
    w->start = data;
    w->used = 0;
    w->capacity = capacity;
    w->bad = false;
}

void put_bytes(struct writer *w, const void *data, size_t size)
{
    if (w->bad || size > w->capacity - w->used) {
        w->bad = true;
        return;
    }
    if (size > 0) {
        memcpy(w->start + w->used, data, size);
        w->used += size;
    }
}

/* The low `size` bytes of `v`, at most 8. */
static void put_integer(struct writer *w, uint64_t v, size_t size)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(v >> (8 * i));
    }
    put_bytes(w, bytes, size);
}

void put_u8(struct writer *w, uint8_t v)
{
    put_integer(w, v, 1);
}

void put_u16(struct writer *w, uint16_t v)
{
    put_integer(w, v, 2);
}

void put_u32(struct writer *w, uint32_t v)
{
    put_integer(w, v, 4);
}

void put_u64(struct writer *w, uint64_t v)
{
    put_integer(w, v, 8);
}

void put_text(struct writer *w, const char *text)
{
    size_t size = 0;
    while (size < BOUNDS_TEXT - 1 && text[size] != '\0') {
        size++;
    }
    put_u16(w, (uint16_t)size);
    put_bytes(w, text, size);
}
