/* frame.c - the header of every message, and what each type may weigh.
 *
 * One row per type says its name and its most payload bytes.  Invariant: a type without a row does
 * not exist; no length above the row's is ever believed.
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
    [FRAME_REGISTER] = {"REGISTER", FRAME_SMALL},
    [FRAME_SUSPECT] = {"SUSPECT", FRAME_SMALL},
    [FRAME_FROZEN] = {"FROZEN", FRAME_LIST},
    [FRAME_VOTE] = {"VOTE", FRAME_SMALL},
    [FRAME_LINKED] = {"LINKED", FRAME_IDS},
    [FRAME_LEAVE] = {"LEAVE", FRAME_LIST},
    [FRAME_STAGED] = {"STAGED", FRAME_SMALL},
    [FRAME_MEASURED] = {"MEASURED", FRAME_SMALL},
    [FRAME_TOOK] = {"TOOK", FRAME_SMALL},
    [FRAME_CLAIM] = {"CLAIM", FRAME_SMALL},
    [FRAME_DECLINE] = {"DECLINE", FRAME_SMALL},
    [FRAME_STATUS] = {"STATUS", FRAME_SMALL},
    [FRAME_TOPOLOGY] = {"TOPOLOGY", FRAME_SMALL},
    [FRAME_EXPECT] = {"EXPECT", FRAME_IDS},
    [FRAME_HEARTBEAT] = {"HEARTBEAT", FRAME_SMALL},
    [FRAME_WELCOME] = {"WELCOME", FRAME_SMALL},
    [FRAME_FREEZE] = {"FREEZE", FRAME_IDS},
    [FRAME_VIEW] = {"VIEW", FRAME_LIST},
    [FRAME_ANSWER] = {"ANSWER", FRAME_SMALL},
    [FRAME_ADMIT] = {"ADMIT", FRAME_LIST},
    [FRAME_FENCE] = {"FENCE", FRAME_SMALL},
    [FRAME_ELECTED] = {"ELECTED", FRAME_IDS},
    [FRAME_PROBE] = {"PROBE", FRAME_SMALL},
    [FRAME_GIVEN_UP] = {"GIVEN_UP", FRAME_SMALL},
    [FRAME_VIEW_PART] = {"VIEW_PART", FRAME_LIST},
    [FRAME_STATUS_PAGE] = {"STATUS_PAGE", STATUS_PAGE_BYTES},
    [FRAME_TOPOLOGY_PAGE] = {"TOPOLOGY_PAGE", TOPOLOGY_PAGE_BYTES},
    [FRAME_HELLO] = {"HELLO", FRAME_SMALL},
    [FRAME_HELLO_ACK] = {"HELLO_ACK", FRAME_SMALL},
    [FRAME_READY] = {"READY", FRAME_SMALL},
    /* Input quantised to 16 bits with its metadata stays below twice its size and a bit. */
    [FRAME_EAGER] = {"EAGER", 2 * BOUNDS_EAGER_BYTES + 256},
    [FRAME_WANT] = {"WANT", FRAME_SMALL},
    [FRAME_HOLD] = {"HOLD", FRAME_SMALL},
    [FRAME_REFUSE] = {"REFUSE", FRAME_SMALL},
    [FRAME_FINISHED] = {"FINISHED", FRAME_NAMES},
    [FRAME_PING] = {"PING", 0},
    [FRAME_SWITCH] = {"SWITCH", 0},
    [FRAME_PATH] = {"PATH", FRAME_SMALL},
    [FRAME_PART] = {"PART", FRAME_SMALL + P2P_PART_BYTES},
    [FRAME_GOT] = {"GOT", FRAME_SMALL},
    [FRAME_DATA] = {"DATA", 2 * BOUNDS_FRAME_BYTES + P2P_DATA_PREFIX},
    [FRAME_CREDIT] = {"CREDIT", FRAME_SMALL},
    [FRAME_MANIFEST_WANT] = {"MANIFEST_WANT", FRAME_SMALL},
    [FRAME_MANIFEST] = {"MANIFEST", 16u << 20},
    [FRAME_LEAF_WANT] = {"LEAF_WANT", FRAME_SMALL},
    [FRAME_LEAF] = {"LEAF", (1u << 20) + 64},
    [FRAME_ENTRIES_WANT] = {"ENTRIES_WANT", FRAME_SMALL},
    [FRAME_ENTRIES] = {"ENTRIES", FRAME_SMALL},
    [FRAME_PROBE_DATA] = {"PROBE_DATA", 256u << 10},
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
