/* program_state.c - the shared state of a program and what a sync may do to it.
 *
 * One idea: the state evolves as a function of the reduced results, so members that have made the same calls hold the same bytes; a
 * newcomer holds noise until its first sync.  A copy from before each sync shows whether anything was written half (G6).
 * Invariant: outside a sync nobody but the program writes the state.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "program.h"

static void state_fill(unsigned char *bytes, uint64_t size, uint64_t seed)
{
    struct rng r = {.state = seed};
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)rng_next(&r);
    }
}

void program_state_init(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct rng shape = {.state = mix64(cl->opt.seed, n->group + 50)};
    static const uint8_t types[PROGRAM_ENTRIES] = {DTYPE_U8, DTYPE_F32, DTYPE_BF16};
    uint64_t at = 0;
    uint32_t leaf = 0;
    p->state.entry_count = 1 + (uint32_t)rng_below(&shape, PROGRAM_ENTRIES);
    p->state.entries = p->entries;
    p->state.leaf_bytes = cl->opt.leaf_bytes;
    for (uint32_t i = 0; i < p->state.entry_count; i++) {
        struct sync_entry *e = &p->entries[i];
        e->name_hash = mix64(i, 5);
        e->dtype = (enum dtype)types[i];
        e->count = rng_below(&shape, 400);
        e->inequality = i == 2 && rng_below(&shape, 2) != 0;
        e->bytes = e->count * dtype_size(e->dtype);
        e->first_leaf = leaf;
        e->leaves = (uint32_t)sync_leaves(e->bytes, cl->opt.leaf_bytes);
        leaf += e->leaves;
        at += e->bytes;
        p->state.has_inequality = p->state.has_inequality || e->inequality;
    }
    p->state_bytes = at;
    p->state.leaf_count = leaf;
    p->state_data = malloc(at + 1);
    p->state_before = malloc(at + 1);
    p->state.leaf_hash = calloc(leaf + 1, sizeof(uint64_t));
    p->state.want_hash = calloc(leaf + 1, sizeof(uint64_t));
    p->state.stage_at = calloc(leaf + 1, sizeof(uint64_t));
    p->state.leaf_state = calloc(leaf + 1, 1);
    if (p->state_data == NULL || p->state_before == NULL || p->state.leaf_hash == NULL || p->state.want_hash == NULL ||
        p->state.stage_at == NULL || p->state.leaf_state == NULL) {
        abort();
    }
    uint64_t from = 0;
    for (uint32_t i = 0; i < p->state.entry_count; i++) {
        p->entries[i].data = p->state_data + from;
        from += p->entries[i].bytes;
    }
    state_fill(p->state_data, at, mix64(cl->opt.seed, n->index + 900));
}

void program_state_free(struct program *p)
{
    free(p->state_data);
    free(p->state_before);
    free(p->state.leaf_hash);
    free(p->state.want_hash);
    free(p->state.stage_at);
    free(p->state.leaf_state);
}

void program_state_vote(struct cluster *cl, struct node *n, struct msg_vote *vote)
{
    struct program *p = n->program;
    struct sync_state *s = &p->state;
    if (p->want_drift && p->state_bytes != 0) {
        p->want_drift = false;
        p->state_data[rng_below(&cl->rng, p->state_bytes)] ^= 0x40;
    }
    bool roles = mix64(mix64(cl->opt.seed, n->group), p->step * 3 + 2) % 4 == 0;
    s->strategy = roles ? (p->synced ? 2 : 1) : 0;
    bool repeats = mix64(mix64(cl->opt.seed, n->group), p->step * 3 + 7) % 100 < cl->opt.repeat_percent;
    s->revision = !p->synced ? 0 : p->revision + !(repeats || p->want_stale);
    p->want_stale = p->want_stale && !p->synced;
    s->staging = NULL;
    s->staging_bytes = 0;
    s->tx_bytes = s->rx_bytes = 0;
    for (uint32_t i = 0; i < s->entry_count; i++) {
        for (uint32_t leaf = 0; leaf < s->entries[i].leaves; leaf++) {
            sync_hash_leaf(s, i, leaf);
        }
    }
    sync_finish_hashes(s);
    memcpy(p->state_before, p->state_data, p->state_bytes);
    *vote = (struct msg_vote){.kind = VOTE_SYNC, .strategy = s->strategy, .revision = s->revision,
                              .key_digest = s->key_digest, .content_digest = s->content_digest,
                              .has_inequality = s->has_inequality};
}

void program_apply(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    if (p->vote != VOTE_SYNC) {
        cluster_fail(cl, "G6: peer %u: apply outside a sync", n->index);
        return;
    }
    if (memcmp(p->state_before, p->state_data, p->state_bytes) != 0) {
        cluster_fail(cl, "G6: peer %u: shared state was written before apply", n->index);
    }
    sync_apply(&p->state);
}

static uint64_t state_hash(const struct program *p)
{
    uint64_t h = 1;
    for (uint32_t i = 0; i < p->state.entry_count; i++) {
        const struct sync_entry *e = &p->entries[i];
        for (uint64_t k = 0; !e->inequality && k < e->bytes; k++) {
            h = (h ^ e->data[k]) * 0x100000001B3u;
        }
    }
    return h;
}

void program_state_result(struct cluster *cl, struct node *n, const struct session_outcome *o)
{
    struct program *p = n->program;
    if (o->result != RESULT_OK) {
        if (memcmp(p->state_before, p->state_data, p->state_bytes) != 0) {
            cluster_fail(cl, "G6: peer %u: a failed sync (%d) changed the shared state", n->index, (int)o->result);
        }
        p->synced = p->synced && o->result != RESULT_GONE;
        return;
    }
    oracle_agree(cl, n, "shared state after sync", program_name(n, NAME_STATE), state_hash(p));
    oracle_agree(cl, n, "revision after sync", program_name(n, NAME_REVISION), o->value);
    if (p->state.strategy == 2 && memcmp(p->state_before, p->state_data, p->state_bytes) != 0) {
        cluster_fail(cl, "peer %u only sends, but its shared state changed", n->index);
    }
    if (p->synced && p->synced_as == n->id && o->value != p->revision + 1) { /* the group has its last sync still */
        cluster_fail(cl, "peer %u: a sync succeeded with revision %llu after %llu", n->index, (unsigned long long)o->value,
                     (unsigned long long)p->revision);
    }
    p->synced = true;
    p->synced_as = n->id;
    p->revision = o->value;
}

void program_state_evolve(struct node *n)
{
    struct program *p = n->program;
    for (uint64_t i = 0; i < p->state_bytes; i += 37) {
        p->state_data[i] ^= (unsigned char)mix64(p->results, i);
    }
}
