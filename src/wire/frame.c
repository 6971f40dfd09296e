/* frame.c - the header of every message, and what each type may weigh.
 *
 * The rows are those of frame_table.h.  Invariant: a type without a row does not exist; no length above the row's is ever believed.
 * SPDX-License-Identifier: MIT */
#include "wire/frame.h"

#include "core/bounds.h"
#include "wire/p2p.h"
#include "wire/parts.h"

enum {
    FRAME_SMALL = 4096, /* messages without lists and payload */
    FRAME_LIST = BOUNDS_CONTROL_FRAME - FRAME_HEADER_BYTES,
    FRAME_IDS = PARTS_MEMBERS * PARTS_ID_BYTES + FRAME_SMALL,
    FRAME_NAMES = PARTS_NAMES * PARTS_NAME_MOST + FRAME_SMALL,
};

struct frame_row {
    char name[16]; /* in place: pointers would make the table writable until it is relocated */
    uint32_t limit;
};

static const struct frame_row frame_rows[] = {
#define FRAME_ROW(name, number, way, limit) [number] = {#name, limit},
    FRAME_TABLE(FRAME_ROW)
#undef FRAME_ROW
};

/* The row of a type; null if there is none. */
static const struct frame_row *frame_find(uint8_t type)
{
    if (type >= sizeof frame_rows / sizeof frame_rows[0] || frame_rows[type].name[0] == '\0') {
        return NULL;
    }
    return &frame_rows[type];
}

void frame_put(void *out, const struct frame_header *header)
{
    struct writer w;
    writer_init(&w, out, FRAME_HEADER_BYTES);
    put_u32(&w, FRAME_MAGIC);
    put_u8(&w, FRAME_VERSION);
    put_u8(&w, header->type);
    put_u16(&w, header->lane);
    put_u32(&w, header->length);
    put_u32(&w, 0);
    put_u64(&w, header->run);
    put_u64(&w, header->view);
}

bool frame_get(const void *in, struct frame_header *header)
{
    struct reader r;
    reader_init(&r, in, FRAME_HEADER_BYTES);
    if (get_u32(&r) != FRAME_MAGIC || get_u8(&r) != FRAME_VERSION) {
        return false;
    }
    header->type = get_u8(&r);
    header->lane = get_u16(&r);
    header->length = get_u32(&r);
    uint32_t zero = get_u32(&r);
    header->run = get_u64(&r);
    header->view = get_u64(&r);
    const struct frame_row *row = frame_find(header->type);
    return row != NULL && zero == 0 && header->length <= row->limit && reader_done(&r);
}

uint8_t frame_other_version(const void *in)
{
    struct reader r;
    reader_init(&r, in, FRAME_HEADER_BYTES);
    uint32_t magic = get_u32(&r);
    uint8_t version = get_u8(&r);
    return magic == FRAME_MAGIC && version != FRAME_VERSION ? version : 0;
}

uint32_t frame_limit(uint8_t type)
{
    const struct frame_row *row = frame_find(type);
    return row == NULL ? 0 : row->limit;
}

bool frame_in_parts(uint8_t type)
{
    return type == FRAME_VIEW || type == FRAME_ADMIT;
}

const char *frame_name(uint8_t type)
{
    const struct frame_row *row = frame_find(type);
    return row == NULL ? "?" : row->name;
}
