/* p2p_sync.c - messages that move shared state: manifests, leaves and the list of entries, asked for and given.
 *
 * Invariant: a payload's length is in the message and is exactly what is left of the frame.
 * SPDX-License-Identifier: MIT */
#include "core/dtype.h"
#include "wire/p2p.h"
#include "wire/parts.h"

void put_manifest_want(struct writer *w, const struct msg_manifest_want *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
}

bool get_manifest_want(struct reader *r, struct msg_manifest_want *m)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    return reader_done(r);
}

void put_manifest(struct writer *w, const struct msg_manifest *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u32(w, m->bytes);
}

bool get_manifest(struct reader *r, struct msg_manifest *m, const void **payload)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->bytes = get_u32(r);
    *payload = get_bytes(r, m->bytes);
    return reader_done(r);
}

void put_leaf_want(struct writer *w, const struct msg_leaf_want *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u32(w, m->entry);
    put_u64(w, m->leaf);
}

bool get_leaf_want(struct reader *r, struct msg_leaf_want *m)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->entry = get_u32(r);
    m->leaf = get_u64(r);
    return reader_done(r);
}

void put_leaf(struct writer *w, const struct msg_leaf *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u32(w, m->entry);
    put_u64(w, m->leaf);
    put_u32(w, m->bytes);
}

bool get_leaf(struct reader *r, struct msg_leaf *m, const void **payload)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->entry = get_u32(r);
    m->leaf = get_u64(r);
    m->bytes = get_u32(r);
    *payload = get_bytes(r, m->bytes);
    return reader_done(r);
}

void put_entries_want(struct writer *w, const struct msg_entries_want *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u32(w, m->first);
}

bool get_entries_want(struct reader *r, struct msg_entries_want *m)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->first = get_u32(r);
    return reader_done(r);
}

void put_entries(struct writer *w, const struct msg_entries *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u32(w, m->first);
    put_u32(w, m->total);
    put_u32(w, m->entries);
}

bool get_entries(struct reader *r, struct msg_entries *m)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->first = get_u32(r);
    m->total = get_u32(r);
    m->entries = get_count(r, PARTS_ENTRY_BYTES, P2P_ENTRIES);
    return !r->bad;
}

void put_entry_key(struct writer *w, const struct entry_key *m)
{
    put_u64(w, m->name_hash);
    put_u64(w, m->count);
    put_u8(w, m->dtype);
    put_u8(w, m->inequality);
    put_text(w, m->name);
}

bool get_entry_key(struct reader *r, struct entry_key *m)
{
    m->name_hash = get_u64(r);
    m->count = get_u64(r);
    m->dtype = parts_get_u8(r, 0, DTYPE_COUNT - 1);
    m->inequality = parts_get_u8(r, 0, 1);
    get_text(r, m->name, sizeof m->name);
    return !r->bad;
}
