/* p2p_sync.c - messages that move shared state: manifests and leaves, asked for and given.
 *
 * Invariant: a payload's length is in the message and is exactly what is left of the frame.
 * SPDX-License-Identifier: MIT */
#include "wire/p2p.h"

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
