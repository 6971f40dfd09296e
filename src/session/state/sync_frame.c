/* sync_frame.c - frames of shared state, given to the side that they are for: a holder is asked, a receiver gets what it asked for.
 *
 * Invariant: a frame that is malformed, or has no business here, ends its connection as a source.
 * SPDX-License-Identifier: MIT */
#include "session/state/fetch.h"
#include "session/state/holder.h"

void sync_frame(struct session *s, struct session_event *e, struct outbox *out)
{
    struct reader r;
    struct msg_manifest_want manifest_want;
    struct msg_manifest manifest;
    struct msg_leaf_want leaf_want;
    struct msg_leaf leaf;
    struct msg_entries_want entries_want;
    struct msg_entries entries;
    const void *payload = NULL;
    reader_init(&r, e->payload, e->header->length);
    if (e->header->type == FRAME_MANIFEST_WANT && get_manifest_want(&r, &manifest_want)) {
        holder_give_manifest(s, e->peer, &manifest_want, out);
    } else if (e->header->type == FRAME_LEAF_WANT && get_leaf_want(&r, &leaf_want)) {
        holder_give_leaf(s, e->peer, &leaf_want, out);
    } else if (e->header->type == FRAME_MANIFEST && get_manifest(&r, &manifest, &payload)) {
        fetch_manifest(s, e->peer, &manifest, payload, out);
    } else if (e->header->type == FRAME_LEAF && get_leaf(&r, &leaf, &payload)) {
        fetch_leaf(s, e->peer, &leaf, payload, out);
    } else if (e->header->type == FRAME_ENTRIES_WANT && get_entries_want(&r, &entries_want)) {
        holder_give_entries(s, e->peer, &entries_want, out);
    } else if (e->header->type == FRAME_ENTRIES && get_entries(&r, &entries)) {
        fetch_entries(s, e->peer, &entries, &r, out);
    } else {
        fetch_down(s, e->peer, out); /* malformed, or no business here: as good as gone */
    }
}
