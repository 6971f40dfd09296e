/* sync.h - shared state as a tree of hashes, and how a receiver fetches what differs.
 *
 * leaf = SimpleHash64 of up to leaf_bytes of an entry; entry = SimpleHash64 over its leaf hashes (u64, little-endian);
 * content digest = mix over (name, dtype, count, flag, entry hash) of the entries that may not differ; key digest = mix
 * over (name, dtype, count, flag) of all entries.  Peers vote 16 bytes of digests however many entries there are.
 *
 * A receiver asks one holder for the MANIFEST (all leaf hashes), checks it against the elected digest, fetches the leaves that
 * differ from its own from all holders at once, checks each against its hash, keeps them in staging, and reports
 * STAGED.  Invariant: user memory is written by sync_apply only, after APPLY, and then completely.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_SYNC_H
#define PCCL_SESSION_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"
#include "wire/p2p.h"

struct sync_entry {
    const char *name;        /* borrowed: the program's; null: it has none */
    uint64_t name_hash;      /* of the name's bytes */
    enum dtype dtype;
    uint64_t count;
    bool inequality;
    unsigned char *data;     /* borrowed: user memory */
    uint64_t bytes;
    uint32_t first_leaf;     /* into sync_state.leaf_hash */
    uint32_t leaves;         /* ceil(bytes / leaf_bytes) */
    uint64_t hash;
};

/* The caller's tensors with their hashes; made by the calling thread before it votes (sync_hash_entries), borrowed by the session until the
 * vote is collected. */
struct sync_state {
    struct sync_entry *entries;
    uint32_t entry_count;
    uint64_t *leaf_hash;     /* of own content */
    uint32_t leaf_count;
    uint32_t leaf_bytes;     /* 1 MiB; the simulator uses less */
    uint64_t key_digest, content_digest;
    bool has_inequality;
    uint64_t revision;
    uint8_t strategy;
    /* the receiving side; arrays of leaf_count provided by the caller */
    uint64_t *want_hash;     /* from the manifest */
    uint64_t *stage_at;      /* offset in staging + 1 of each leaf that differs; 0: not needed */
    unsigned char *leaf_state; /* enum leaf_state */
    unsigned char *staging;    /* the shell's: made for ACT_SYNC_ALLOC, freed after the vote or at the next ACT_SYNC_ALLOC */
    uint64_t staging_bytes;
    uint64_t tx_bytes, rx_bytes; /* of leaves */
};

enum leaf_state { LEAF_SAME = 0, LEAF_WANTED, LEAF_WANTED_WHOLE /* only of whole_source */, LEAF_ASKED, LEAF_HERE };

/* Storage a state needs, in leaves: sum over entries of ceil(bytes / leaf_bytes). */
uint64_t sync_leaves(uint64_t bytes, uint32_t leaf_bytes);
/* Fills hash of leaf [leaf] of an entry from user memory: may be called for different leaves from several threads. */
void sync_hash_leaf(struct sync_state *state, uint32_t entry, uint32_t leaf);
/* Entry hashes and digests from the leaf hashes. */
void sync_finish_hashes(struct sync_state *state);
/* The content digest of a peer whose leaf hashes these are: leaf_count u64, little-endian, at any address.  This is what a MANIFEST
 * carries: keys are equal, so the entries' hashes follow from those of the leaves. */
uint64_t sync_content_digest(const struct sync_state *state, const void *leaf_hashes);
/* The entry of leaf [index] of leaf_hash. */
uint32_t sync_entry_of(const struct sync_state *state, uint32_t index);
/* Bytes of leaf [leaf] of an entry. */
uint32_t sync_leaf_size(const struct sync_state *state, uint32_t entry, uint32_t leaf);
/* Copies every staged leaf into user memory. */
void sync_apply(struct sync_state *state);

#endif
