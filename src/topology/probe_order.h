/* probe_order.h - which edges are measured at the same time, and which one begins next.
 *
 * Its one idea: a peer sends at most one probe and receives at most one, and no two peers probe each other.  Full-duplex links
 * then do not disturb each other, and no queue delays the acknowledgements of a stream the other way.  The same holds for sites,
 * whose peers may share a link: each sends at most one probe to other sites and receives at most one.  An edge begins as soon as
 * both of its ends are free: it never waits for a slow edge between others.
 * Invariant: an edge is waiting, under way, or neither; place[i].to == k  =>  k is not in `free`.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_PROBE_ORDER_H
#define PCCL_TOPOLOGY_PROBE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_ORDER_NONE = 0xFFFF };

/* By places in the order. */
struct probe_edge {
    uint16_t from, to;
};

struct probe_place {
    uint16_t to;                 /* by sender: the receiver of its probe, or NONE */
    uint16_t site;               /* of a peer, numbered by one of its peers; at first each has its own */
    uint16_t site_fastest;       /* by site: the peer that is measured first with other sites; at first the one that numbers it */
    uint16_t site_peers;         /* by site: how many are there, */
    uint16_t site_to, site_from; /* ... where its probe to another site goes, from which one it receives one; or NONE */
};

struct probe_order {
    uint32_t n;         /* peers */
    uint32_t waiting, busy; /* edges that have not begun; that are under way */
    uint64_t *row;      /* borrowed, a set of receivers for each sender: edges that wait */
    uint64_t *free;     /* borrowed, a set: receivers of no probe */
    struct probe_place *place; /* borrowed */
};

/* Words that `row` and `free` take together. */
size_t probe_order_words(uint32_t n);

/* Of n peers, fewer than PROBE_ORDER_NONE: no edge waits.  `words` holds probe_order_words(n), `place` n. */
void probe_order_init(struct probe_order *p, uint32_t n, uint64_t *words, struct probe_place *place);

/* Goes on in other storage, of the same sizes at least. */
void probe_order_move(struct probe_order *to, const struct probe_order *from, uint64_t *words, struct probe_place *place);

/* The peer, so far alone at its site, is at the site of `first`.  No edge of either is under way. */
void probe_order_at_site(struct probe_order *p, uint16_t peer, uint16_t first);

/* Whether the edge goes to another site, and several peers are at one of its ends. */
bool probe_order_shares(const struct probe_order *p, uint16_t from, uint16_t to);

/* The edge waits, unless it does already or is under way. */
void probe_order_add(struct probe_order *p, uint16_t from, uint16_t to);

/* It has not begun. */
bool probe_order_waits(const struct probe_order *p, uint16_t from, uint16_t to);

/* The first receiver from `at` on for which an edge of that sender waits; n: there is none. */
uint32_t probe_order_waiting(const struct probe_order *p, uint16_t from, uint32_t at);

/* The edge is under way, whether it was waiting or not, unless one of its ends, or their sites, has a probe already: false. */
bool probe_order_begin(struct probe_order *p, uint16_t from, uint16_t to);

/* An edge that waits, with both ends in the set `present`, and may begin: it is under way then.  False: there is none now. */
bool probe_order_next(struct probe_order *p, const uint64_t *present, struct probe_edge *out);

/* That peer has gone: no edge of it waits any more. */
void probe_order_drop(struct probe_order *p, uint16_t peer);

/* The probe of that sender has ended, if it had one. */
void probe_order_end(struct probe_order *p, uint16_t from);

#endif
