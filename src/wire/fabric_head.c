/* fabric_head.c - where an end is, and the head of each message.
 *
 * Put and get of one message stand together and read like its schema: the same fields in the same order.
 * SPDX-License-Identifier: MIT */
#include "wire/fabric_head.h"

#include <string.h>

#include "wire/parts.h"

void put_fabric_end(struct writer *w, const struct fabric_end *m)
{
    put_u8(w, m->bytes);
    if (m->bytes > 0) {
        put_u64(w, m->provider);
        put_u64(w, m->key);
        put_bytes(w, m->address, m->bytes);
    }
}

void get_fabric_end(struct reader *r, struct fabric_end *m)
{
    memset(m, 0, sizeof *m);
    m->bytes = parts_get_u8(r, 0, FABRIC_ADDRESS_BYTES);
    if (m->bytes > 0) {
        m->provider = get_u64(r);
        m->key = get_u64(r);
        const void *address = get_bytes(r, m->bytes);
        if (address != NULL) {
            memcpy(m->address, address, m->bytes);
        }
    }
}

void put_fabric_head(struct writer *w, const struct fabric_head *m)
{
    put_u64(w, m->key);
    put_u32(w, m->number);
    put_u8(w, m->kind);
    put_u8(w, m->grant);
    put_u16(w, 0);
}

bool get_fabric_head(struct reader *r, struct fabric_head *m)
{
    m->key = get_u64(r);
    m->number = get_u32(r);
    m->kind = parts_get_u8(r, FABRIC_HELLO, FABRIC_GRANT);
    m->grant = get_u8(r);
    return get_u16(r) == 0 && reader_done(r);
}
