/* bandwidth.h - the measured rates of a run: directed edges (from peer, to peer) -> bits/s, and when they were seen.
 *
 * Its one idea: knowledge about an edge belongs to the run, not to a view.  A measurement stays until it is replaced or
 * removed, so peers that leave and come back under the same key are not probed again.
 * Invariant: at most one measurement per ordered pair; an unused slot is all zero.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_BANDWIDTH_H
#define PCCL_TOPOLOGY_BANDWIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topology/site_find.h"

struct bandwidth_entry {
    uint64_t from, to; /* peer keys; equal (zero) in an unused slot, no peer has an edge to itself */
    uint64_t rate_bps; /* 0: measured, and the pair cannot connect in this direction */
    uint64_t sent_bps, heard_bps; /* the most that either end has said since */
    uint64_t probed_ns, seen_ns; /* when it was probed, and when that rate was seen, by the caller's clock */
    uint32_t rtt_us;   /* the least round trip; 0: unknown */
    uint32_t loss_ppm; /* of the bytes, those that were sent again */
    bool doubted;      /* it is to be measured again; until then this counts */
    bool assumed;      /* it has never been measured, and is taken to be like another one between the same sites */
    bool observed;     /* operations have shown more than the last probe */
};

struct bandwidth {
    struct bandwidth_entry *entries; /* borrowed, `capacity` slots */
    size_t capacity;
    size_t count;
};

/* Slots that hold every edge among `peers` peers, and four more of each (topology/rates.h), without long searches. */
#define BANDWIDTH_CAPACITY(peers) (5 * (size_t)(peers) * ((size_t)(peers) + 4) / 4 + 8)

/* Starts empty on the caller's storage. */
void bandwidth_init(struct bandwidth *b, struct bandwidth_entry *storage, size_t capacity);

/* Stores or replaces.  False, and nothing changed, for an edge from a peer to itself and for a new edge when an eighth
 * of the slots or less is left: remove something first. */
bool bandwidth_set(struct bandwidth *b, uint64_t from, uint64_t to, uint64_t rate_bps, uint64_t now_ns);

/* The same of a probe, of which both ends have said what they saw: the sender's word counts, up to twice what the receiver saw. */
bool bandwidth_probed(struct bandwidth *b, uint64_t from, uint64_t to, uint64_t sent_bps, uint64_t heard_bps, uint64_t now_ns);

/* Operations have moved so much over an edge that was probed, as its sender or its receiver says.  They share links with others, so that they
 * show how much it carries at least.  False: it was not probed. */
bool bandwidth_observe(struct bandwidth *b, uint64_t from, uint64_t to, bool sent, uint64_t bps, uint64_t now_ns);

/* Stores or replaces all that is known of the edge that `entry` names; false as above. */
bool bandwidth_keep(struct bandwidth *b, const struct bandwidth_entry *entry);

/* Stores or replaces an edge that is taken to be like another one between the same two sites, until it is measured; false as above. */
#define BANDWIDTH_APART_US ((uint32_t)(SITE_FIND_RTT_NS / 1000)) /* its round trip is at least that: its ends are at different sites */
bool bandwidth_assume(struct bandwidth *b, uint64_t from, uint64_t to, const struct bandwidth_entry *like);

/* What else is known of an edge that has been set; false, and nothing changed, for another one. */
bool bandwidth_set_way(struct bandwidth *b, uint64_t from, uint64_t to, uint32_t rtt_us, uint32_t loss_ppm);

/* Marks a measurement, or what was assumed, as doubted until the next measurement replaces it; false if there is none, or it is already. */
bool bandwidth_doubt(struct bandwidth *b, uint64_t from, uint64_t to);

/* Whether it was measured and is not doubted.  An assumed edge is never sure. */
bool bandwidth_sure(const struct bandwidth *b, uint64_t from, uint64_t to);

/* All that is known of an edge; null if it was never measured. */
const struct bandwidth_entry *bandwidth_find(const struct bandwidth *b, uint64_t from, uint64_t to);

/* The rate of an edge that was measured, by probes or by operations; 0 of another one. */
uint64_t bandwidth_measured(const struct bandwidth *b, uint64_t from, uint64_t to);

/* False if never measured; outputs may be null. */
bool bandwidth_get(const struct bandwidth *b, uint64_t from, uint64_t to, uint64_t *rate_bps_out,
                   uint64_t *seen_ns_out);

/* False if it was never measured. */
bool bandwidth_remove(struct bandwidth *b, uint64_t from, uint64_t to);

/* The same; of an edge that was never measured, what is known of the way back, which is the best guess. */
const struct bandwidth_entry *bandwidth_either(const struct bandwidth *b, uint64_t from, uint64_t to);

/* Whether all pairs among ids[0..n) were measured, in one direction at least. */
bool bandwidth_covers(const struct bandwidth *b, const uint64_t *ids, size_t n);

/* ... in one at least that is not doubted, or were assumed. */
bool bandwidth_complete(const struct bandwidth *b, const uint64_t *ids, size_t n);

#endif
