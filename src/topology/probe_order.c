/* probe_order.c - see probe_order.h.
 *
 * Senders are looked at in turn, each from the receiver behind itself on.  While nothing is known, and all probes take equally long, the probes
 * under way are rotations of all peers: n - 1 of them measure all edges.
 * SPDX-License-Identifier: MIT */
#include "topology/probe_order.h"

#include <string.h>

#include "core/bitset.h"

size_t probe_order_words(uint32_t n)
{
    return ((size_t)n + 1) * bitset_words(n);
}

void probe_order_init(struct probe_order *p, uint32_t n, uint64_t *words, struct probe_place *place)
{
    *p = (struct probe_order){.n = n, .row = words, .free = words + (size_t)n * bitset_words(n), .place = place};
    if (n == 0) {
        return;
    }
    memset(words, 0, probe_order_words(n) * sizeof *words);
    for (uint32_t i = 0; i < n; i++) {
        place[i] = (struct probe_place){
            .to = PROBE_ORDER_NONE, .site = (uint16_t)i, .site_fastest = (uint16_t)i, .site_peers = 1, .site_to = PROBE_ORDER_NONE,
            .site_from = PROBE_ORDER_NONE};
        bitset_add(p->free, i);
    }
}

void probe_order_move(struct probe_order *to, const struct probe_order *from, uint64_t *words, struct probe_place *place)
{
    *to = *from;
    to->row = words;
    to->free = words + (size_t)from->n * bitset_words(from->n);
    to->place = place;
    if (from->n > 0) {
        memcpy(words, from->row, probe_order_words(from->n) * sizeof *words);
        memcpy(place, from->place, from->n * sizeof *place);
    }
}

void probe_order_at_site(struct probe_order *p, uint16_t peer, uint16_t first)
{
    uint16_t site = p->place[first].site;
    if (site != p->place[peer].site) {
        p->place[p->place[peer].site].site_peers--;
        p->place[peer].site = site;
        p->place[site].site_peers++;
    }
}

bool probe_order_shares(const struct probe_order *p, uint16_t from, uint16_t to)
{
    uint16_t one = p->place[from].site, other = p->place[to].site;
    return one != other && (p->place[one].site_peers > 1 || p->place[other].site_peers > 1);
}

static uint64_t *row_of(const struct probe_order *p, uint32_t from)
{
    return p->row + (size_t)from * bitset_words(p->n);
}

void probe_order_add(struct probe_order *p, uint16_t from, uint16_t to)
{
    if (p->place[from].to != to && !bitset_has(row_of(p, from), to)) {
        bitset_add(row_of(p, from), to);
        p->waiting++;
    }
}

bool probe_order_waits(const struct probe_order *p, uint16_t from, uint16_t to)
{
    return bitset_has(row_of(p, from), to);
}

uint32_t probe_order_waiting(const struct probe_order *p, uint16_t from, uint32_t at)
{
    return at < p->n ? bitset_next(row_of(p, from), p->n, at) : p->n;
}

/* Of the sites of both, unless it is the same one. */
static bool sites_may(const struct probe_order *p, uint32_t from, uint32_t to)
{
    uint16_t one = p->place[from].site, other = p->place[to].site;
    return one == other || (p->place[one].site_to == PROBE_ORDER_NONE && p->place[other].site_from == PROBE_ORDER_NONE &&
                            p->place[other].site_to != one);
}

/* The sender has none, and the receiver is in `free`. */
static bool may_begin(const struct probe_order *p, uint32_t from, uint32_t to)
{
    return p->place[to].to != from && sites_may(p, from, to);
}

bool probe_order_begin(struct probe_order *p, uint16_t from, uint16_t to)
{
    uint16_t one = p->place[from].site, other = p->place[to].site;
    if (p->place[from].to != PROBE_ORDER_NONE || !bitset_has(p->free, to) || !may_begin(p, from, to)) {
        return false;
    }
    if (bitset_has(row_of(p, from), to)) {
        bitset_remove(row_of(p, from), to);
        p->waiting--;
    }
    bitset_remove(p->free, to);
    p->place[from].to = to;
    if (one != other) {
        p->place[one].site_to = other;
        p->place[other].site_from = one;
    }
    p->busy++;
    return true;
}

/* The first receiver in [at, end) that waits for a probe of `from`, and may get it now; NONE: there is none. */
static uint16_t receiver_in(const struct probe_order *p, const uint64_t *present, uint32_t from, uint32_t at, uint32_t end)
{
    const uint64_t *row = row_of(p, from);
    for (uint32_t i = at; i < end; i = (i / 64 + 1) * 64) {
        uint64_t rest = (row[i / 64] & p->free[i / 64] & present[i / 64]) >> (i % 64);
        for (; rest != 0; rest &= rest - 1) {
            uint32_t to = i + (uint32_t)__builtin_ctzll(rest);
            if (to < end && may_begin(p, from, to)) {
                return (uint16_t)to;
            }
        }
    }
    return PROBE_ORDER_NONE;
}

bool probe_order_next(struct probe_order *p, const uint64_t *present, struct probe_edge *out)
{
    for (uint32_t from = 0; from < p->n && p->waiting > 0; from++) {
        if (p->place[from].to != PROBE_ORDER_NONE || !bitset_has(present, from)) {
            continue;
        }
        uint16_t to = receiver_in(p, present, from, from + 1, p->n);
        to = to == PROBE_ORDER_NONE ? receiver_in(p, present, from, 0, from) : to;
        if (to != PROBE_ORDER_NONE) {
            (void)probe_order_begin(p, (uint16_t)from, to); /* both are free */
            *out = (struct probe_edge){.from = (uint16_t)from, .to = to};
            return true;
        }
    }
    return false;
}

void probe_order_drop(struct probe_order *p, uint16_t peer)
{
    for (uint32_t i = 0; i < p->n; i++) {
        uint64_t *row = row_of(p, i);
        uint32_t first = i == peer ? 0 : peer, end = i == peer ? p->n : peer + 1u;
        for (uint32_t k = first; k < end; k++) {
            p->waiting -= bitset_has(row, k);
            bitset_remove(row, k);
        }
    }
}

void probe_order_end(struct probe_order *p, uint16_t from)
{
    uint16_t to = p->place[from].to;
    if (to == PROBE_ORDER_NONE) {
        return;
    }
    uint16_t one = p->place[from].site, other = p->place[to].site;
    if (one != other) {
        p->place[one].site_to = PROBE_ORDER_NONE;
        p->place[other].site_from = PROBE_ORDER_NONE;
    }
    bitset_add(p->free, to);
    p->place[from].to = PROBE_ORDER_NONE;
    p->busy--;
}
