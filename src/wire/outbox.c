/* outbox.c - see outbox.h.
 * SPDX-License-Identifier: MIT */
#include "wire/outbox.h"

#include <string.h>

#include "wire/control.h"

void outbox_init(struct outbox *o, struct action *actions, uint32_t capacity, void *bytes, uint32_t bytes_capacity,
                 uint64_t *dest_ids, uint32_t dest_capacity)
{
    memset(o, 0, sizeof *o);
    o->actions = actions;
    o->capacity = capacity;
    o->bytes = bytes;
    o->bytes_capacity = bytes_capacity;
    o->dest_ids = dest_ids;
    o->dest_capacity = dest_capacity;
}

static size_t action_bytes(const struct outbox_bounds *b)
{
    return b->actions * sizeof(struct action);
}

static size_t dest_bytes(const struct outbox_bounds *b)
{
    return b->dests * sizeof(uint64_t);
}

size_t outbox_memory(const struct outbox_bounds *b)
{
    return action_bytes(b) + dest_bytes(b) + b->bytes;
}

void outbox_use(struct outbox *o, void *memory, const struct outbox_bounds *b)
{
    unsigned char *at = memory;
    void *dests = at + action_bytes(b);
    outbox_init(o, memory, b->actions, at + action_bytes(b) + dest_bytes(b), b->bytes, dests, b->dests);
}

bool outbox_holds(const struct outbox *o, const struct outbox_bounds *b)
{
    return b->actions <= o->capacity && b->bytes <= o->bytes_capacity && b->dests <= o->dest_capacity;
}

void outbox_limit(struct outbox *o, const struct outbox_bounds *b)
{
    o->capacity = b->actions;
    o->bytes_capacity = b->bytes;
    o->dest_capacity = b->dests;
}

void outbox_reset(struct outbox *o)
{
    o->count = 0;
    o->used = 0;
    o->dests = 0;
    o->overflow = false;
}

bool outbox_half_free(const struct outbox *o)
{
    return o->used <= o->bytes_capacity / 2 && o->count <= o->capacity / 2 && o->dests <= o->dest_capacity / 2;
}

struct action *outbox_add(struct outbox *o, uint32_t kind)
{
    /* The last entry is the scratch one: it is handed out when the box is full and never carried out. */
    uint32_t at = o->count;
    if (at + 1 >= o->capacity) {
        o->overflow = true;
        at = o->capacity - 1;
    } else {
        o->count++;
    }
    struct action *a = &o->actions[at];
    memset(a, 0, sizeof *a);
    a->kind = kind;
    a->dest = o->dests;
    return a;
}

void outbox_text(struct outbox *o, uint32_t kind, uint64_t value, const char *text)
{
    struct action *a = outbox_add(o, kind);
    size_t bytes = strlen(text) + 1;
    if (bytes > o->bytes_capacity - o->used) {
        o->overflow = true;
        return;
    }
    a->value = value;
    a->frame = o->used;
    a->frame_bytes = (uint32_t)bytes;
    memcpy(o->bytes + o->used, text, bytes);
    o->used += (uint32_t)bytes;
}

struct writer *outbox_frame(struct outbox *o, uint8_t type, uint64_t run, uint64_t view)
{
    o->frame_at = o->used;
    writer_init(&o->writer, o->bytes + o->used, o->bytes_capacity - o->used);
    struct frame_header h = {.type = type, .run = run, .view = view};
    unsigned char raw[FRAME_HEADER_BYTES];
    frame_put(raw, &h);
    put_bytes(&o->writer, raw, sizeof raw);
    return &o->writer;
}

enum { PART_FIELDS = 8, PART_HEAD = FRAME_HEADER_BYTES + PART_FIELDS }; /* in front of each piece */

static void put_part_head(unsigned char *at, const struct frame_header *whole, uint32_t piece, uint32_t all)
{
    struct frame_header h = {.type = FRAME_VIEW_PART, .length = PART_FIELDS + piece, .run = whole->run, .view = whole->view};
    struct writer w;
    frame_put(at, &h);
    writer_init(&w, at + FRAME_HEADER_BYTES, PART_FIELDS);
    put_view_part(&w, &(struct msg_view_part){.bytes = all, .size = piece});
}

/* The frame at `raw` becomes parts and an empty frame of its type; how many bytes that is, 0: they do not fit. */
static uint32_t split(unsigned char *raw, size_t capacity, struct frame_header *h, uint32_t payload, uint32_t most)
{
    uint32_t piece = most - PART_FIELDS, pieces = (payload + piece - 1) / piece;
    uint64_t bytes = (uint64_t)pieces * PART_HEAD + payload + FRAME_HEADER_BYTES;
    if (bytes > capacity) {
        return 0;
    }
    for (uint32_t i = pieces; i-- > 0;) { /* from the last on, so that nothing is overwritten before it has moved */
        uint32_t size = i + 1 < pieces ? piece : payload - i * piece;
        unsigned char *to = raw + i * (PART_HEAD + piece);
        memmove(to + PART_HEAD, raw + FRAME_HEADER_BYTES + i * piece, size);
        put_part_head(to, h, size, payload);
    }
    h->length = 0;
    frame_put(raw + bytes - FRAME_HEADER_BYTES, h);
    return (uint32_t)bytes;
}

struct action *outbox_send_many(struct outbox *o, uint32_t kind)
{
    struct action *a = outbox_add(o, kind);
    if (o->writer.bad) {
        o->overflow = true;
        return a;
    }
    struct frame_header h;
    unsigned char *raw = o->bytes + o->frame_at;
    uint32_t bytes = (uint32_t)o->writer.used;
    if (!frame_get(raw, &h)) {
        o->overflow = true;
        return a;
    }
    uint32_t payload = bytes - FRAME_HEADER_BYTES, most = frame_limit(h.type);
    most = o->part_bytes != 0 && o->part_bytes < most ? o->part_bytes : most;
    if (payload > most && frame_in_parts(h.type)) {
        bytes = split(raw, o->bytes_capacity - o->frame_at, &h, payload, most);
        o->overflow = o->overflow || bytes == 0;
    } else {
        h.length = payload;
        frame_put(raw, &h);
    }
    a->frame = o->frame_at;
    a->frame_bytes = bytes;
    o->used += bytes;
    return a;
}

void outbox_dest(struct outbox *o, struct action *a, uint64_t dest)
{
    if (o->dests >= o->dest_capacity) {
        o->overflow = true;
        return;
    }
    o->dest_ids[o->dests++] = dest;
    a->dests++;
}

void outbox_lend(struct outbox *o, struct action *a, const void *data, uint32_t bytes)
{
    struct frame_header h;
    a->data = bytes > 0 ? data : NULL;
    a->data_bytes = bytes;
    if (!o->overflow && frame_get(o->bytes + a->frame, &h)) {
        h.length += bytes;
        frame_put(o->bytes + a->frame, &h);
    }
}

struct action *outbox_send(struct outbox *o, uint32_t kind, uint64_t dest)
{
    struct action *a = outbox_send_many(o, kind);
    outbox_dest(o, a, dest);
    return a;
}
