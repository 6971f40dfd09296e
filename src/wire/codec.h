/* codec.h - cursors over bytes: a reader that never reads past its end and a writer that never writes past its end.
 *
 * Both have a sticky error: after the first failure every get returns zero and every put does nothing, so that parsing reads
 * like the schema and is checked once at the end.  Everything is little-endian.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_CODEC_H
#define PCCL_WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
    const unsigned char *at; /* borrowed */
    size_t left;
    bool bad;
};

struct writer {
    unsigned char *start; /* borrowed */
    size_t used, capacity;
    bool bad;
};

void reader_init(struct reader *r, const void *data, size_t size);
uint8_t get_u8(struct reader *r);
uint16_t get_u16(struct reader *r);
uint32_t get_u32(struct reader *r);
uint64_t get_u64(struct reader *r);
/* Borrowed bytes inside the input; null and bad if fewer are left. */
const void *get_bytes(struct reader *r, size_t size);
/* A text of u16 length and bytes: copied, cut at capacity-1, terminated; control characters become '?'. */
void get_text(struct reader *r, char *out, size_t capacity);
/* A u32 count of items that each take at least `item_bytes`: bad if more than what is left could hold or than `most`. */
uint32_t get_count(struct reader *r, size_t item_bytes, uint32_t most);
/* Good and fully consumed. */
bool reader_done(const struct reader *r);

void writer_init(struct writer *w, void *data, size_t capacity);
void put_u8(struct writer *w, uint8_t v);
void put_u16(struct writer *w, uint16_t v);
void put_u32(struct writer *w, uint32_t v);
void put_u64(struct writer *w, uint64_t v);
void put_bytes(struct writer *w, const void *data, size_t size);
void put_text(struct writer *w, const char *text);

#endif
