/* bandwidth.c - open addressing with linear probing; removal shifts back, so there are no tombstones to clean.
 *
 * Its one idea: rates outlive membership, so the store is keyed by peers and knows no view.
 * Invariant: between an entry's home slot and its own slot no slot is empty.
 * SPDX-License-Identifier: MIT */
#include "topology/bandwidth.h"

#include <string.h>

static bool slot_empty(const struct bandwidth_entry *e)
{
    return e->from == e->to;
}

static size_t slot_home(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    uint64_t z = from * 0x9E3779B97F4A7C15u + (to ^ (to >> 32)) * 0xC2B2AE3D27D4EB4Fu;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (size_t)((z ^ (z >> 31)) % b->capacity);
}

/* The slot of the edge, or the empty slot where it would go, or `capacity` if neither exists. */
static size_t slot_find(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    if (b->capacity == 0) {
        return 0;
    }
    size_t at = slot_home(b, from, to);
    for (size_t step = 0; step < b->capacity; step++) {
        const struct bandwidth_entry *e = &b->entries[at];
        if (slot_empty(e) || (e->from == from && e->to == to)) {
            return at;
        }
        at = at + 1 == b->capacity ? 0 : at + 1;
    }
    return b->capacity;
}

void bandwidth_init(struct bandwidth *b, struct bandwidth_entry *storage, size_t capacity)
{
    b->entries = storage;
    b->capacity = capacity;
    b->count = 0;
    if (capacity != 0) {
        memset(storage, 0, capacity * sizeof *storage);
    }
}

bool bandwidth_keep(struct bandwidth *b, const struct bandwidth_entry *entry)
{
    if (entry->from == entry->to) {
        return false;
    }
    size_t at = slot_find(b, entry->from, entry->to);
    if (at == b->capacity) {
        return false;
    }
    if (slot_empty(&b->entries[at])) {
        if (b->count >= b->capacity - b->capacity / 8) {
            return false;
        }
        b->count++;
    }
    b->entries[at] = *entry;
    return true;
}

bool bandwidth_set(struct bandwidth *b, uint64_t from, uint64_t to, uint64_t rate_bps, uint64_t now_ns)
{
    return bandwidth_probed(b, from, to, rate_bps, rate_bps, now_ns);
}

/* The sender knows what was delivered; the receiver has that in order only, and misses what a loss held up until the end. */
static uint64_t rate_agreed(uint64_t sent_bps, uint64_t heard_bps)
{
    uint64_t most = heard_bps < UINT64_MAX / 2 ? 2 * heard_bps : UINT64_MAX;
    return sent_bps < most ? sent_bps : most;
}

bool bandwidth_probed(struct bandwidth *b, uint64_t from, uint64_t to, uint64_t sent_bps, uint64_t heard_bps, uint64_t now_ns)
{
    uint64_t rate_bps = rate_agreed(sent_bps, heard_bps);
    return bandwidth_keep(b, &(struct bandwidth_entry){.from = from, .to = to, .rate_bps = rate_bps, .sent_bps = rate_bps,
                                                       .heard_bps = rate_bps, .probed_ns = now_ns, .seen_ns = now_ns});
}

bool bandwidth_assume(struct bandwidth *b, uint64_t from, uint64_t to, const struct bandwidth_entry *like)
{
    const struct bandwidth_entry *known = bandwidth_find(b, from, to);
    struct bandwidth_entry e = *like; /* which may be moved by what follows */
    e.from = from;
    e.to = to;
    e.rtt_us = e.rtt_us == 0 || e.rtt_us > BANDWIDTH_APART_US ? e.rtt_us : BANDWIDTH_APART_US;
    e.observed = false;
    e.sent_bps = e.heard_bps = e.rate_bps; /* words are of that edge */
    e.doubted = known != NULL && known->doubted;
    e.assumed = true;
    return bandwidth_keep(b, &e);
}

/* Null if it was never measured. */
static struct bandwidth_entry *entry_of(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    size_t at = slot_find(b, from, to);
    return from == to || at == b->capacity || slot_empty(&b->entries[at]) ? NULL : &b->entries[at];
}

const struct bandwidth_entry *bandwidth_find(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    return entry_of(b, from, to);
}

const struct bandwidth_entry *bandwidth_either(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    return e != NULL ? e : bandwidth_find(b, to, from);
}

bool bandwidth_set_way(struct bandwidth *b, uint64_t from, uint64_t to, uint32_t rtt_us, uint32_t loss_ppm)
{
    struct bandwidth_entry *e = entry_of(b, from, to);
    if (e != NULL) {
        e->rtt_us = rtt_us;
        e->loss_ppm = loss_ppm;
    }
    return e != NULL;
}

bool bandwidth_observe(struct bandwidth *b, uint64_t from, uint64_t to, bool sent, uint64_t bps, uint64_t now_ns)
{
    struct bandwidth_entry *e = entry_of(b, from, to);
    if (e == NULL) {
        return false;
    }
    uint64_t *said = sent ? &e->sent_bps : &e->heard_bps;
    *said = bps > *said ? bps : *said;
    uint64_t rate = e->sent_bps < e->heard_bps ? e->sent_bps : e->heard_bps;
    if (rate > e->rate_bps) {
        e->rate_bps = rate;
        e->seen_ns = now_ns;
        e->observed = true;
    }
    return true;
}

bool bandwidth_doubt(struct bandwidth *b, uint64_t from, uint64_t to)
{
    struct bandwidth_entry *e = entry_of(b, from, to);
    bool doubts = e != NULL && !e->doubted;
    if (doubts) {
        e->doubted = true;
    }
    return doubts;
}

bool bandwidth_sure(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    return e != NULL && !e->doubted && !e->assumed;
}

uint64_t bandwidth_measured(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    return e != NULL && (!e->assumed || e->observed) ? e->rate_bps : 0;
}

bool bandwidth_get(const struct bandwidth *b, uint64_t from, uint64_t to, uint64_t *rate_bps_out, uint64_t *seen_ns_out)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    if (e != NULL && rate_bps_out != NULL) {
        *rate_bps_out = e->rate_bps;
    }
    if (e != NULL && seen_ns_out != NULL) {
        *seen_ns_out = e->seen_ns;
    }
    return e != NULL;
}

/* Empties slot `hole` and pulls back the entries behind it whose way to their slot leads over it. */
static void slot_remove(struct bandwidth *b, size_t hole)
{
    size_t at = hole;
    for (size_t step = 1; step < b->capacity; step++) {
        at = at + 1 == b->capacity ? 0 : at + 1;
        const struct bandwidth_entry *e = &b->entries[at];
        if (slot_empty(e)) {
            break;
        }
        size_t home = slot_home(b, e->from, e->to);
        size_t from_home = at >= home ? at - home : at + b->capacity - home;
        size_t from_hole = at >= hole ? at - hole : at + b->capacity - hole;
        if (from_home >= from_hole) {
            b->entries[hole] = *e;
            hole = at;
        }
    }
    memset(&b->entries[hole], 0, sizeof b->entries[hole]);
    b->count--;
}

bool bandwidth_remove(struct bandwidth *b, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    if (e != NULL) {
        slot_remove(b, (size_t)(e - b->entries));
    }
    return e != NULL;
}

bool bandwidth_covers(const struct bandwidth *b, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (bandwidth_either(b, ids[i], ids[j]) == NULL) {
                return false;
            }
        }
    }
    return true;
}

static bool counts(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    return e != NULL && !e->doubted;
}

bool bandwidth_complete(const struct bandwidth *b, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (ids[i] != ids[j] && !counts(b, ids[i], ids[j]) && !counts(b, ids[j], ids[i])) {
                return false;
            }
        }
    }
    return true;
}
