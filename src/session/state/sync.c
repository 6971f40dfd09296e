/* sync.c - the tree of hashes over shared state, and the one place that writes user memory.
 *
 * Leaves are hashed by whoever has time, everything above them from their hashes alone; so a list of leaf hashes is all that
 * a peer has to show to prove what it holds.  Invariant: the same keys and leaf hashes give the same digests on every peer.
 * SPDX-License-Identifier: MIT */
#include "session/state/sync.h"

#include <string.h>

#include "core/check.h"
#include "kernels/hash.h"

/* Leaf hashes are sent as they lie in memory, and elements as well. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shared state travels little-endian");

enum { SYNC_HASH_BYTES = sizeof(uint64_t) };

uint64_t sync_leaves(uint64_t bytes, uint32_t leaf_bytes)
{
    return bytes / leaf_bytes + (bytes % leaf_bytes != 0);
}

uint32_t sync_leaf_size(const struct sync_state *state, uint32_t entry, uint32_t leaf)
{
    uint64_t left = state->entries[entry].bytes - (uint64_t)leaf * state->leaf_bytes;
    return left < state->leaf_bytes ? (uint32_t)left : state->leaf_bytes;
}

uint32_t sync_entry_of(const struct sync_state *state, uint32_t index)
{
    uint32_t low = 0, high = state->entry_count; /* the last entry that begins at or before it; empty ones come before */
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (state->entries[mid].first_leaf <= index) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

void sync_hash_leaf(struct sync_state *state, uint32_t entry, uint32_t leaf)
{
    const struct sync_entry *e = &state->entries[entry];
    state->leaf_hash[e->first_leaf + leaf] =
        hash_simple64(e->data + (uint64_t)leaf * state->leaf_bytes, sync_leaf_size(state, entry, leaf));
}

static uint64_t entry_hash(const struct sync_entry *e, const void *leaf_hashes)
{
    const unsigned char *all = leaf_hashes;
    return hash_simple64(all + (size_t)e->first_leaf * SYNC_HASH_BYTES, (size_t)e->leaves * SYNC_HASH_BYTES);
}

static uint64_t mix_key(uint64_t h, const struct sync_entry *e)
{
    h = hash_mix64(h, e->name_hash);
    h = hash_mix64(h, e->dtype);
    h = hash_mix64(h, e->count);
    return hash_mix64(h, e->inequality);
}

uint64_t sync_content_digest(const struct sync_state *state, const void *leaf_hashes)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < state->entry_count; i++) {
        const struct sync_entry *e = &state->entries[i];
        if (!e->inequality) {
            h = hash_mix64(mix_key(h, e), entry_hash(e, leaf_hashes));
        }
    }
    return h;
}

void sync_finish_hashes(struct sync_state *state)
{
    state->key_digest = 0;
    state->has_inequality = false;
    for (uint32_t i = 0; i < state->entry_count; i++) {
        struct sync_entry *e = &state->entries[i];
        e->hash = entry_hash(e, state->leaf_hash);
        state->key_digest = mix_key(state->key_digest, e);
        state->has_inequality = state->has_inequality || e->inequality;
    }
    state->content_digest = sync_content_digest(state, state->leaf_hash);
}

void sync_apply(struct sync_state *state)
{
    for (uint32_t i = 0; i < state->entry_count; i++) {
        const struct sync_entry *e = &state->entries[i];
        for (uint32_t leaf = 0; leaf < e->leaves; leaf++) {
            uint64_t at = state->stage_at[e->first_leaf + leaf];
            if (at == 0) {
                continue;
            }
            PCCL_ASSERT(state->leaf_state[e->first_leaf + leaf] == LEAF_HERE);
            memcpy(e->data + (uint64_t)leaf * state->leaf_bytes, state->staging + at - 1,
                   sync_leaf_size(state, i, leaf));
        }
    }
}
