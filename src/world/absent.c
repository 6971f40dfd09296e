/* absent.c - see absent.h.
 *
 * The table of rates has room for all edges among as many members as can be measured and as many absent ones as are remembered
 * (tables.c), so no absent one ever takes a place that a present one needs.
 * SPDX-License-Identifier: MIT */
#include "world/absent.h"

#include <string.h>

#include "topology/rates.h"
#include "wire/address.h"
#include "world/world_state.h"
#include "world/member_read.h"

enum { ABSENT_CHECKED = 16 }; /* keys of which each pair is looked for in a check */

/* ---- forgetting ---------------------------------------------------------------------------------------------------- */

static void drop_edge(struct world *w, uint64_t from, uint64_t to, int64_t since)
{
    const struct bandwidth_entry *e = bandwidth_find(&w->bandwidth, from, to);
    if (e != NULL && (e->rate_bps == 0 || (int64_t)e->probed_ns > since)) {
        bandwidth_remove(&w->bandwidth, from, to);
    }
}

/* Edges of this key that were measured after `since`, or could not be. */
static void drop_edges(struct world *w, uint64_t key, int64_t since)
{
    const struct absent_list *l = &w->absent;
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb->phase != MEMBER_FREE && mb->rated && mb->rates_key != key) {
            drop_edge(w, key, mb->rates_key, since);
            drop_edge(w, mb->rates_key, key, since);
        }
    }
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->entries[i].key != key) {
            drop_edge(w, key, l->entries[i].key, since);
            drop_edge(w, l->entries[i].key, key, since);
        }
    }
    drop_edge(w, key, RATES_ALL, since);
    drop_edge(w, RATES_ALL, key, since);
    drop_edge(w, key, RATES_FAR, since);
    drop_edge(w, RATES_FAR, key, since);
}

static void take_out(struct absent_list *l, uint32_t at)
{
    l->count--;
    memmove(&l->entries[at], &l->entries[at + 1], (l->count - at) * sizeof *l->entries);
}

static void forget_first(struct world *w)
{
    drop_edges(w, w->absent.entries[0].key, -1);
    take_out(&w->absent, 0);
}

static void forget_old(struct world *w)
{
    while (w->absent.count > 0 && w->common->now - w->absent.entries[0].since > ABSENT_NS) {
        forget_first(w);
    }
}

/* ---- leaving and coming back --------------------------------------------------------------------------------------- */

/* 0: of another host or group; 1: of the same; 2: under the same ports, too. */
static uint32_t likeness(const struct world *w, const struct absent *a, const struct member *mb)
{
    uint32_t like = 2;
    if (a->group != member_group(w, mb)->label || a->addresses != mb->info.addresses || !address_same_host(&a->seen, &mb->seen)) {
        return 0;
    }
    for (uint32_t i = 0; i < a->addresses; i++) {
        if (!address_same_host(&a->address[i], &mb->info.address[i])) {
            return 0;
        }
        like = a->address[i].port == mb->info.address[i].port ? like : 1;
    }
    return like;
}

void absent_recall(struct world *w, struct member *mb)
{
    struct absent_list *l = &w->absent;
    uint32_t best = 0, at = 0;
    forget_old(w);
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t like = likeness(w, &l->entries[i], mb);
        if (like > best) {
            best = like;
            at = i;
        }
    }
    mb->rated = best > 0;
    mb->rates_key = mb->rated ? l->entries[at].key : mb->id;
    if (mb->rated) {
        take_out(l, at);
    }
}

/* Rates that others measured after its last sign of life may be those of a dying host, or of a cut link.  An edge that could not be measured is
 * tried again. */
void absent_add(struct world *w, const struct member *mb)
{
    struct absent_list *l = &w->absent;
    forget_old(w);
    if (!mb->rated) {
        return;
    }
    drop_edges(w, mb->rates_key, mb->heard_at);
    if (l->count == l->room) {
        forget_first(w);
    }
    struct absent *a = &l->entries[l->count++];
    *a = (struct absent){.key = mb->rates_key, .since = w->common->now, .group = member_group(w, mb)->label, .seen = mb->seen};
    a->addresses = mb->info.addresses;
    memcpy(a->address, mb->info.address, sizeof a->address);
    for (uint32_t i = 0; i < w->member_room; i++) { /* it may be back before its loss was seen */
        struct member *other = &w->members[i];
        if (other->phase == MEMBER_PENDING && !other->rated) {
            absent_recall(w, other);
        }
    }
}

/* ---- checked ------------------------------------------------------------------------------------------------------- */

static bool is_used(const struct world *w, uint64_t key, const struct member *but)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (mb->phase != MEMBER_FREE && mb != but && mb->rates_key == key) {
            return true;
        }
    }
    return false;
}

/* No rate is left of somebody who has been forgotten. */
static void check_edges(const struct world *w)
{
    uint64_t keys[ABSENT_CHECKED + 2] = {RATES_ALL, RATES_FAR};
    size_t count = 2, edges = 0;
    for (uint32_t i = 0; i < w->member_room + w->absent.count; i++) {
        const struct member *mb = i < w->member_room ? &w->members[i] : NULL;
        if (mb != NULL && (mb->phase == MEMBER_FREE || !mb->rated)) {
            continue;
        }
        if (count > ABSENT_CHECKED + 1) {
            return;
        }
        keys[count++] = mb != NULL ? mb->rates_key : w->absent.entries[i - w->member_room].key;
    }
    for (size_t i = 0; i < count * count; i++) {
        edges += bandwidth_find(&w->bandwidth, keys[i / count], keys[i % count]) != NULL;
    }
    PCCL_ASSERT(edges == w->bandwidth.count);
}

void absent_check(const struct world *w)
{
    const struct absent_list *l = &w->absent;
    PCCL_ASSERT(l->count <= l->room);
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        PCCL_ASSERT(mb->phase == MEMBER_FREE || mb->rates_key == mb->id || !is_used(w, mb->rates_key, mb)); /* ids are not used twice */
    }
    for (uint32_t i = 0; i < l->count; i++) {
        PCCL_ASSERT(!is_used(w, l->entries[i].key, NULL));
        PCCL_ASSERT(i == 0 || l->entries[i - 1].since <= l->entries[i].since);
    }
    check_edges(w);
}
