/* roster.c - who the ranks of a program are: the members of its snapshot, whatever view is installed.
 *
 * Views after the snapshot only lose members, since newcomers come with answers that move it: so its members are those of the installed view and
 * those that were lost since, by (key, id); so a call names whom its program means (B10).
 * Invariant: whoever is listed as gone is in the snapshot and not in the installed view; they are listed in the order of (key, id), each with
 * its rank among all of them.
 * SPDX-License-Identifier: MIT */
#include "session/calls/roster.h"
#include "session/tables/peers.h"
#include "session/tables/storage.h"

static uint32_t key_of(const struct session *s, uint32_t rank)
{
    uint32_t p = s->view.peer[rank];
    return p == NONE ? s->view.key : s->peers.at[p].info.key;
}

static bool before(uint32_t key, uint64_t id, uint32_t other_key, uint64_t other_id)
{
    return key < other_key || (key == other_key && id < other_id);
}

size_t roster_bytes(uint32_t members)
{
    return members * sizeof(struct gone);
}

void roster_use(struct session *s, void *storage, uint32_t members)
{
    unsigned char *at = storage;
    s->roster.gone = storage_moved(&at, sizeof *s->roster.gone, members, s->roster.gone, s->roster.count);
}

void roster_clear(struct session *s)
{
    s->roster.count = 0;
}

/* In the order of (key, id), like ranks. */
void roster_lose(struct session *s, uint64_t view, uint32_t rank)
{
    uint32_t p = s->view.peer[rank], key = key_of(s, rank), i = s->roster.count;
    uint64_t id = s->view.ids[rank];
    if (i == s->view.room) {
        return;
    }
    for (; i > 0 && before(key, id, s->roster.gone[i - 1].key, s->roster.gone[i - 1].id); i--) {
        s->roster.gone[i] = s->roster.gone[i - 1];
    }
    s->roster.gone[i] = (struct gone){.id = id, .view = view, .key = key,
                               .address = p == NONE ? s->cfg.address[0] : s->peers.at[p].info.address[0]};
    s->roster.count++;
}

void roster_order(struct session *s)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < s->roster.count; i++) {
        struct gone *g = &s->roster.gone[i];
        while (shown < s->view.world) {
            uint32_t rank = s->view.ranked[shown];
            if (before(g->key, g->id, key_of(s, rank), s->view.ids[rank])) {
                break;
            }
            shown++;
        }
        g->called = shown + i;
    }
}

void roster_moved(struct session *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->roster.count; i++) {
        if (s->roster.gone[i].view > s->snapshot.view) {
            s->roster.gone[n++] = s->roster.gone[i];
        }
    }
    if (n < s->roster.count) {
        s->roster.count = n;
        roster_order(s);
    }
}

/* How many of those that are gone come before (key, id). */
static uint32_t gone_before(const struct session *s, uint32_t key, uint64_t id)
{
    uint32_t low = 0, high = s->roster.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (before(s->roster.gone[middle].key, s->roster.gone[middle].id, key, id)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* How many of those that are gone were called by less than that rank. */
static uint32_t gone_below(const struct session *s, uint32_t called)
{
    uint32_t low = 0, high = s->roster.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->roster.gone[middle].called < called) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t roster_rank(const struct session *s, uint64_t id)
{
    uint32_t rank = view_rank(s, id);
    if (rank != NONE) {
        return s->view.shown[rank] + gone_before(s, key_of(s, rank), id);
    }
    for (uint32_t i = 0; i < s->roster.count; i++) {
        if (s->roster.gone[i].id == id) {
            return s->roster.gone[i].called;
        }
    }
    return NONE;
}

bool session_present(const struct session *s, uint64_t id)
{
    return view_rank(s, id) != NONE;
}

uint64_t session_called(const struct session *s, uint32_t rank)
{
    return s->view.world == 0 ? 0 : roster_member(s, rank);
}

uint64_t roster_member(const struct session *s, uint32_t called)
{
    uint32_t gone = gone_below(s, called);
    if (gone < s->roster.count && s->roster.gone[gone].called == called) {
        return s->roster.gone[gone].id;
    }
    return called - gone < s->view.world ? s->view.ids[s->view.ranked[called - gone]] : 0;
}

/* Of the installed view. */
static void describe(const struct session *s, uint32_t rank, struct session_member *out)
{
    uint32_t p = s->view.peer[rank];
    out->key = key_of(s, rank);
    out->address = p == NONE ? s->cfg.address[0] : s->peers.at[p].info.address[0];
    out->ring_position = s->view.places[rank];
}

bool session_member(const struct session *s, uint32_t called, struct session_member *out)
{
    *out = (struct session_member){.id = session_called(s, called), .ring_position = NONE};
    uint32_t rank = out->id == 0 ? NONE : view_rank(s, out->id);
    if (rank != NONE) {
        describe(s, rank, out);
    }
    for (uint32_t i = 0; rank == NONE && i < s->roster.count; i++) {
        if (s->roster.gone[i].id == out->id) {
            out->key = s->roster.gone[i].key;
            out->address = s->roster.gone[i].address;
            out->lost = true;
        }
    }
    return out->id != 0;
}
